//! Decides whose timer rings next: O(1) to set, to unset and to ring.

use alloc::boxed::Box;

use super::{NONE, Waiter};

/// A wheel of 256 spokes, a quarter of a second each: most waits are shorter than a turn of it. A timer that is set
/// further ahead is put on the last spoke, and on another when its turn comes.
#[derive(Debug)]
pub(super) struct Wheel {
    /// The first waiter on each spoke; the others hang on it.
    first: Box<[u32; SPOKES as usize]>,
    /// The last tick whose spoke was emptied.
    turned: u64,
    set: usize,
}

const SPOKES: u64 = 256;

/// Milliseconds.
const TICK: u64 = 256;

/// On no spoke.
pub(super) const OFF: u16 = u16::MAX;

impl Wheel {
    pub(super) fn new(now: u64) -> Self {
        Self { first: Box::new([NONE; SPOKES as usize]), turned: now / TICK, set: 0 }
    }

    /// Sets the timer of a waiter that has none. It rings when its time has come, and up to a tick later.
    pub(super) fn insert(&mut self, slots: &mut [Waiter], slot: u32) {
        let tick = slots[slot as usize].until.div_ceil(TICK);
        let tick = tick.clamp(self.turned + 1, self.turned + SPOKES - 1);
        let spoke = (tick % SPOKES) as u16;
        let next = core::mem::replace(&mut self.first[usize::from(spoke)], slot);
        if next != NONE {
            slots[next as usize].before = slot;
        }
        let waiter = &mut slots[slot as usize];
        (waiter.before, waiter.next, waiter.spoke) = (NONE, next, spoke);
        self.set += 1;
    }

    /// Unsets a waiter's timer, if it has one.
    pub(super) fn remove(&mut self, slots: &mut [Waiter], slot: u32) {
        let waiter = &mut slots[slot as usize];
        let spoke = core::mem::replace(&mut waiter.spoke, OFF);
        if spoke == OFF {
            return;
        }
        let (before, next) = (waiter.before, waiter.next);
        if before == NONE {
            self.first[usize::from(spoke)] = next;
        } else {
            slots[before as usize].next = next;
        }
        if next != NONE {
            slots[next as usize].before = before;
        }
        self.set -= 1;
    }

    /// A waiter whose timer rings, which is then unset.
    pub(super) fn next_due(&mut self, slots: &mut [Waiter], now: u64) -> Option<u32> {
        let tick = now / TICK;
        if self.set == 0 {
            self.turned = self.turned.max(tick);
        }
        // After a long sleep one turn passes every spoke.
        self.turned = self.turned.max(tick.saturating_sub(SPOKES));
        while self.turned < tick {
            let spoke = ((self.turned + 1) % SPOKES) as usize;
            while self.first[spoke] != NONE {
                let slot = self.first[spoke];
                self.remove(slots, slot);
                if slots[slot as usize].until <= now {
                    return Some(slot);
                }
                self.insert_later(slots, slot);
            }
            self.turned += 1;
        }
        None
    }

    /// When the next spoke that is not empty has its turn, in milliseconds.
    pub(super) fn next_turn(&self) -> Option<u64> {
        if self.set == 0 {
            return None;
        }
        let mut ticks = self.turned + 1..=self.turned + SPOKES;
        ticks.find(|tick| self.first[(tick % SPOKES) as usize] != NONE).map(|tick| tick * TICK)
    }

    /// Puts back a timer that has come up before its time, behind the spoke that is being emptied.
    fn insert_later(&mut self, slots: &mut [Waiter], slot: u32) {
        self.turned += 1;
        self.insert(slots, slot);
        self.turned -= 1;
    }
}
