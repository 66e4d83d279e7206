//! Publications that follow from another record, and the channels of a record: both for several
//! replicas of a hub.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::hub::Hub;
use crate::message::Publish;
use crate::order::{Applied, Prepared};
use crate::record::{Change, Number, Record};
use crate::refused::Refused;
use crate::settings::Durability;

impl Hub {
    /// Publishes messages that follow from a record which is not the hub's own. The record with this
    /// number is in the journal already, so that every replica derives the same messages from it at
    /// the same place. `time` is in milliseconds since 1970 and comes from that record too.
    ///
    /// The hub leaves out messages to channels that do not exist or are closed, and reserves no
    /// memory: publish to channels with a short retention only.
    ///
    /// # Errors
    ///
    /// No message is left, or one of them is invalid.
    pub fn derive(
        &mut self,
        mut publish: Publish,
        time: u64,
        record: u64,
    ) -> Result<Applied, Refused> {
        publish.messages.retain(|draft| {
            let is_open =
                |name: &Arc<str>| self.find(name, time).is_ok_and(|channel| !channel.is_closed);
            draft.channels.iter().all(is_open)
        });
        let publication = self.resolve(publish, time)?;
        let change = Change::Publish(publication);
        let record_of_change = Record { time, publisher: None, change };
        let durability = Durability::Memory;
        self.apply(Prepared { record: record_of_change, durability, reserved: None }, record)
    }

    /// The names of the channels that a record of the journal changes, as far as the hub has them
    /// before it replays the record.
    pub fn changed_by(&self, record: &[u8]) -> Vec<Arc<str>> {
        let name_of = |number: &Number| self.channels.get(number).map(|one| one.name.clone());
        let numbers = match Record::read(record).map(|record| record.change) {
            Some(Change::Create { name, .. }) => return vec![name],
            Some(Change::Publish(publication)) => publication.channels().collect(),
            Some(Change::Renew(number) | Change::SetExpiry(number, _) | Change::Remove(number)) => {
                vec![number]
            }
            Some(Change::Expire(due)) => due.iter().map(|due| due.channel).collect(),
            None => Vec::new(),
        };
        numbers.iter().filter_map(name_of).collect()
    }
}
