//! Decides where waiters stand in the lists of their channels.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// For each channel that somebody waits for, who does.
#[derive(Debug, Default)]
pub(super) struct Lists {
    by_channel: BTreeMap<u64, u32>,
    all: Vec<List>,
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
    pub(super) which: u32,
}

/// Where a waiter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    list: u32,
    pub(super) index: u32,
}

/// A list that nobody uses keeps memory for so many.
const KEPT: usize = 16;

impl Place {
    /// In no list any more.
    pub(super) const NOWHERE: Self = Self { list: u32::MAX, index: u32::MAX };
}

impl Lists {
    /// Puts a waiter at the end of a channel's list.
    pub(super) fn join(&mut self, channel: u64, slot: u32, which: u32) -> Place {
        let Self { by_channel, all, free } = self;
        let list = *by_channel.entry(channel).or_insert_with(|| match free.pop() {
            Some(list) => {
                all[list as usize].channel = channel;
                list
            }
            None => {
                all.push(List { channel, entries: Vec::new() });
                all.len() as u32 - 1
            }
        });
        let entries = &mut all[list as usize].entries;
        entries.push(Entry { slot, which });
        Place { list, index: entries.len() as u32 - 1 }
    }

    /// Takes a waiter off a list; the last one gets its place, and is answered if it is another.
    pub(super) fn remove(&mut self, place: Place) -> Option<Entry> {
        let list = self.all.get_mut(place.list as usize)?;
        list.entries.swap_remove(place.index as usize);
        let moved = list.entries.get(place.index as usize).copied();
        if list.entries.is_empty() {
            list.entries.shrink_to(KEPT);
            self.by_channel.remove(&list.channel);
            self.free.push(place.list);
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
    pub(super) fn at(&self, channel: u64, index: usize) -> Option<Entry> {
        self.list(channel)?.entries.get(index).copied()
    }

    fn list(&self, channel: u64) -> Option<&List> {
        self.all.get(*self.by_channel.get(&channel)? as usize)
    }
}
