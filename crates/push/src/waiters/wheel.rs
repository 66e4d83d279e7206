//! A timer wheel: O(1) to set, to cancel and to fire a timer.

use alloc::boxed::Box;

use super::{NONE, Waiter};

/// A wheel of 256 buckets of a quarter of a second each, because most waits are shorter than one
/// turn. A timer that is further ahead goes to the last bucket and moves on when that bucket is
/// due.
#[derive(Debug)]
pub(super) struct Wheel {
    /// The first waiter of each bucket. The waiters of a bucket form a linked list.
    heads: Box<[u32; BUCKETS as usize]>,
    /// The last tick whose bucket was emptied.
    last_tick: u64,
    len: usize,
}

const BUCKETS: u64 = 256;

/// The length of a tick in milliseconds.
const TICK: u64 = 256;

/// The bucket of a waiter without a timer.
pub(super) const UNSET: u16 = u16::MAX;

impl Wheel {
    pub(super) fn new(now: u64) -> Self {
        Self { heads: Box::new([NONE; BUCKETS as usize]), last_tick: now / TICK, len: 0 }
    }

    /// Sets the timer of a waiter that has none. It fires at its deadline or up to a tick later.
    pub(super) fn insert(&mut self, slots: &mut [Waiter], slot: u32) {
        let tick = slots[slot as usize].deadline.div_ceil(TICK);
        let tick = tick.clamp(self.last_tick + 1, self.last_tick + BUCKETS - 1);
        let bucket = (tick % BUCKETS) as u16;
        let next = core::mem::replace(&mut self.heads[usize::from(bucket)], slot);
        if next != NONE {
            slots[next as usize].previous = slot;
        }
        let waiter = &mut slots[slot as usize];
        waiter.previous = NONE;
        waiter.next = next;
        waiter.bucket = bucket;
        self.len += 1;
    }

    /// Cancels a waiter's timer, if it has one.
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

    /// Cancels and returns the next timer that is due.
    pub(super) fn next_due(&mut self, slots: &mut [Waiter], now: u64) -> Option<u32> {
        let tick = now / TICK;
        if self.len == 0 {
            self.last_tick = self.last_tick.max(tick);
        }
        // After a long sleep, one turn visits every bucket.
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

    /// Returns the time of the next bucket that is not empty, in milliseconds.
    pub(super) fn next_tick(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let mut ticks = self.last_tick + 1..=self.last_tick + BUCKETS;
        ticks.find(|tick| self.heads[(tick % BUCKETS) as usize] != NONE).map(|tick| tick * TICK)
    }

    /// Puts back a timer that is not due yet, after the bucket that is being emptied.
    fn insert_later(&mut self, slots: &mut [Waiter], slot: u32) {
        self.last_tick += 1;
        self.insert(slots, slot);
        self.last_tick -= 1;
    }
}
