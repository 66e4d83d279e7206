//! Lists channels by name with their sizes.

use alloc::sync::Arc;
use core::ops::Bound;

use crate::hub::Hub;

/// A channel in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSummary {
    /// Its name.
    pub name: Arc<str>,
    /// The number of messages that it holds.
    pub messages: usize,
    /// The memory that it takes with its messages. A message of several channels counts in each.
    pub bytes: u64,
    /// The publisher whose quota the channel counts against; `None` for the program itself.
    pub publisher: Option<Arc<str>>,
}

impl Hub {
    /// Returns the channels after a name, in the order of names.
    pub fn list_after<'h>(&'h self, name: &str) -> impl Iterator<Item = ChannelSummary> + use<'h> {
        let range = (Bound::Excluded(name), Bound::Unbounded);
        let numbers = self.names.range::<str, _>(range).map(|(_, number)| number);
        let channels = numbers.filter_map(|number| self.channels.get(number));
        channels.filter(|channel| !channel.is_removed).map(|channel| ChannelSummary {
            name: channel.name.clone(),
            messages: channel.queue.len(),
            bytes: channel.queue.bytes() + channel.footprint(),
            publisher: channel.owner.clone(),
        })
    }
}
