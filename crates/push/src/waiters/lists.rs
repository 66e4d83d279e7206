//! The list of waiters of each channel.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The lists of all channels that have waiters.
#[derive(Debug, Default)]
pub(super) struct Lists {
    by_channel: BTreeMap<u64, u32>,
    slots: Vec<List>,
    /// Lists that no channel uses.
    free: Vec<u32>,
}

#[derive(Debug)]
struct List {
    channel: u64,
    entries: Vec<ListEntry>,
}

/// An entry of a list: the waiter's slot, and the ordinal of this channel among the waiter's
/// channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListEntry {
    pub(super) slot: u32,
    pub(super) ordinal: u32,
}

/// The location of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListPosition {
    list: u32,
    pub(super) index: u32,
}

/// The number of entries for which an unused list keeps memory.
const KEPT_CAPACITY: usize = 16;

impl ListPosition {
    /// The location of an entry that was removed.
    pub(super) const REMOVED: Self = Self { list: u32::MAX, index: u32::MAX };
}

impl Lists {
    /// Appends a waiter to a channel's list.
    pub(super) fn join(&mut self, channel: u64, slot: u32, ordinal: u32) -> ListPosition {
        let Self { by_channel, slots, free } = self;
        let list = *by_channel.entry(channel).or_insert_with(|| match free.pop() {
            Some(list) => {
                slots[list as usize].channel = channel;
                list
            }
            None => {
                slots.push(List { channel, entries: Vec::new() });
                slots.len() as u32 - 1
            }
        });
        let entries = &mut slots[list as usize].entries;
        entries.push(ListEntry { slot, ordinal });
        ListPosition { list, index: entries.len() as u32 - 1 }
    }

    /// Removes an entry. The list's last entry moves to its index and is returned, unless it was
    /// the removed one.
    pub(super) fn remove(&mut self, position: ListPosition) -> Option<ListEntry> {
        let list = self.slots.get_mut(position.list as usize)?;
        list.entries.swap_remove(position.index as usize);
        let moved = list.entries.get(position.index as usize).copied();
        if list.entries.is_empty() {
            list.entries.shrink_to(KEPT_CAPACITY);
            self.by_channel.remove(&list.channel);
            self.free.push(position.list);
            if self.by_channel.is_empty() {
                *self = Self::default();
            }
        }
        moved
    }

    /// Returns the number of waiters of a channel.
    pub(super) fn count(&self, channel: u64) -> usize {
        self.list(channel).map_or(0, |list| list.entries.len())
    }

    /// Returns the entry at an index of a channel's list.
    pub(super) fn get(&self, channel: u64, index: usize) -> Option<ListEntry> {
        self.list(channel)?.entries.get(index).copied()
    }

    fn list(&self, channel: u64) -> Option<&List> {
        self.slots.get(*self.by_channel.get(&channel)? as usize)
    }
}
