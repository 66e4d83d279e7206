//! Lists channels by name, with what each takes.

use alloc::sync::Arc;
use core::ops::Bound;

use crate::hub::Hub;

/// A channel in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSummary {
    /// Its name.
    pub name: Arc<str>,
    /// Messages that it holds.
    pub messages: usize,
    /// The memory that it takes with its messages. A message that other channels hold too counts for each of them.
    pub bytes: u64,
    /// Against whose quota it counts; `None`: the program's own.
    pub publisher: Option<Arc<str>>,
}

impl Hub {
    /// The channels behind a name, in the order of their names.
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
