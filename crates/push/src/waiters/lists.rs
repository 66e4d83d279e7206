//! Decides where waiters stand in the lists of their channels.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// For each channel that somebody waits for, who does.
#[derive(Debug, Default)]
pub(super) struct Lists {
    by_channel: BTreeMap<u64, u32>,
    lists: Vec<List>,
    /// Lists of channels that nobody waits for.
    free: Vec<u32>,
}

#[derive(Debug)]
struct List {
    channel: u64,
    entries: Vec<Entry>,
}

/// A waiter in a list: its slot, and which of its places this is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) slot: u32,
    pub(super) ordinal: u32,
}

/// Where a waiter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListPosition {
    list: u32,
    pub(super) index: u32,
}

/// A list that nobody uses keeps memory for so many.
const KEPT_CAPACITY: usize = 16;

impl ListPosition {
    /// In no list any more.
    pub(super) const REMOVED: Self = Self { list: u32::MAX, index: u32::MAX };
}

impl Lists {
    /// Puts a waiter at the end of a channel's list.
    pub(super) fn join(&mut self, channel: u64, slot: u32, ordinal: u32) -> ListPosition {
        let Self { by_channel, lists, free } = self;
        let list = *by_channel.entry(channel).or_insert_with(|| match free.pop() {
            Some(list) => {
                lists[list as usize].channel = channel;
                list
            }
            None => {
                lists.push(List { channel, entries: Vec::new() });
                lists.len() as u32 - 1
            }
        });
        let entries = &mut lists[list as usize].entries;
        entries.push(Entry { slot, ordinal });
        ListPosition { list, index: entries.len() as u32 - 1 }
    }

    /// Takes a waiter off a list; the last one gets its place, and is answered if it is another.
    pub(super) fn remove(&mut self, position: ListPosition) -> Option<Entry> {
        let list = self.lists.get_mut(position.list as usize)?;
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

    /// How many wait for a channel.
    pub(super) fn count(&self, channel: u64) -> usize {
        self.list(channel).map_or(0, |list| list.entries.len())
    }

    /// Who stands at this index of a channel's list.
    pub(super) fn get(&self, channel: u64, index: usize) -> Option<Entry> {
        self.list(channel)?.entries.get(index).copied()
    }

    fn list(&self, channel: u64) -> Option<&List> {
        self.lists.get(*self.by_channel.get(&channel)? as usize)
    }
}
