//! Decides whose timer rings next: O(1) to set, to unset and to ring.

use alloc::boxed::Box;

use super::{NONE, Waiter};

/// A wheel of 256 spokes, a quarter of a second each: most waits are shorter than a turn of it. A timer that is set
/// further ahead is put on the last spoke, and on another when its turn comes.
#[derive(Debug)]
pub(super) struct Wheel {
    /// The first waiter on each spoke; the others hang on it.
    heads: Box<[u32; BUCKETS as usize]>,
    /// The last tick whose spoke was emptied.
    last_tick: u64,
    len: usize,
}

const BUCKETS: u64 = 256;

/// Milliseconds.
const TICK: u64 = 256;

/// On no spoke.
pub(super) const UNSET: u16 = u16::MAX;

impl Wheel {
    pub(super) fn new(now: u64) -> Self {
        Self { heads: Box::new([NONE; BUCKETS as usize]), last_tick: now / TICK, len: 0 }
    }

    /// Sets the timer of a waiter that has none. It rings when its time has come, and up to a tick later.
    pub(super) fn insert(&mut self, slots: &mut [Waiter], slot: u32) {
        let tick = slots[slot as usize].deadline.div_ceil(TICK);
        let tick = tick.clamp(self.last_tick + 1, self.last_tick + BUCKETS - 1);
        let bucket = (tick % BUCKETS) as u16;
        let next = core::mem::replace(&mut self.heads[usize::from(bucket)], slot);
        if next != NONE {
            slots[next as usize].previous = slot;
        }
        let waiter = &mut slots[slot as usize];
        (waiter.previous, waiter.next, waiter.bucket) = (NONE, next, bucket);
        self.len += 1;
    }

    /// Unsets a waiter's timer, if it has one.
    pub(super) fn remove(&mut self, slots: &mut [Waiter], slot: u32) {
        let waiter = &mut slots[slot as usize];
        let bucket = core::mem::replace(&mut waiter.bucket, UNSET);
        if bucket == UNSET {
            return;
        }
        let (previous, next) = (waiter.previous, waiter.next);
        if previous == NONE {
            self.heads[usize::from(bucket)] = next;
        } else {
            slots[previous as usize].next = next;
        }
        if next != NONE {
            slots[next as usize].previous = previous;
        }
        self.len -= 1;
    }

    /// A waiter whose timer rings, which is then unset.
    pub(super) fn next_due(&mut self, slots: &mut [Waiter], now: u64) -> Option<u32> {
        let tick = now / TICK;
        if self.len == 0 {
            self.last_tick = self.last_tick.max(tick);
        }
        // After a long sleep one turn passes every spoke.
        self.last_tick = self.last_tick.max(tick.saturating_sub(BUCKETS));
        while self.last_tick < tick {
            let bucket = ((self.last_tick + 1) % BUCKETS) as usize;
            while self.heads[bucket] != NONE {
                let slot = self.heads[bucket];
                self.remove(slots, slot);
                if slots[slot as usize].deadline <= now {
                    return Some(slot);
                }
                self.insert_later(slots, slot);
            }
            self.last_tick += 1;
        }
        None
    }

    /// When the next spoke that is not empty has its turn, in milliseconds.
    pub(super) fn next_tick(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let mut ticks = self.last_tick + 1..=self.last_tick + BUCKETS;
        ticks.find(|tick| self.heads[(tick % BUCKETS) as usize] != NONE).map(|tick| tick * TICK)
    }

    /// Puts back a timer that has come up before its time, behind the spoke that is being emptied.
    fn insert_later(&mut self, slots: &mut [Waiter], slot: u32) {
        self.last_tick += 1;
        self.insert(slots, slot);
        self.last_tick -= 1;
    }
}
