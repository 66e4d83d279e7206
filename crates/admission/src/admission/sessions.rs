//! The table of sessions: bounded, in the order of their last requests.
//!
//! A session is *active*, and counts against the limit, until it has been idle for about twice the
//! mean think time, the time between two requests. It is *known*, and its next request is served,
//! for the idle time of the terms: a user who reads a page for long is not a new session.

use std::collections::HashMap;
use std::time::Duration;

/// The table. Times are milliseconds of any monotonic clock.
#[derive(Debug)]
pub(super) struct Sessions {
    slots_by_id: HashMap<u64, u32>,
    slots: Vec<Slot>,
    /// The first free slot. Free slots are linked by `newer`.
    free: u32,
    oldest: u32,
    newest: u32,
    /// The active session that has been idle for longest.
    first_active: u32,
    active: usize,
    /// The smoothed think time in milliseconds.
    think_time: f64,
    ended: [u64; CLASSES.len()],
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    id: u64,
    last_request: u64,
    older: u32,
    newer: u32,
    requests: u32,
    is_active: bool,
}

const NONE: u32 = u32::MAX;
/// The highest number of known sessions. Beyond it, the session that has been idle for longest is
/// removed.
pub const MOST: usize = 1 << 18;
/// The classes of sessions by length: the highest number of requests of each class.
pub const CLASSES: [u32; 5] = [1, 5, 20, 100, u32::MAX];
/// The think time before the first measurement.
const INITIAL_THINK_TIME: Duration = Duration::from_secs(5);
/// Added to twice the think time. A session stays active at least this long, in milliseconds,
/// because a page and its resources are requested together.
const MIN_ACTIVE: u64 = 1000;
/// The weight of a new think time in the smoothed one.
const SMOOTHING: f64 = 1.0 / 256.0;

impl Sessions {
    pub(super) fn new() -> Self {
        Self {
            slots_by_id: HashMap::new(),
            slots: Vec::new(),
            free: NONE,
            oldest: NONE,
            newest: NONE,
            first_active: NONE,
            active: 0,
            think_time: INITIAL_THINK_TIME.as_millis() as f64,
            ended: [0; CLASSES.len()],
        }
    }

    /// Records a request of the session. Returns false if the session is not known.
    pub(super) fn touch(&mut self, id: u64, now: u64) -> bool {
        let Some(index) = self.slots_by_id.get(&id).copied() else { return false };
        let slot = self.slots[index as usize];
        let gap = now.saturating_sub(slot.last_request);
        self.think_time += (gap as f64 - self.think_time) * SMOOTHING;
        self.unlink(index);
        let requests = slot.requests.saturating_add(1);
        self.link(index, Slot { last_request: now, requests, ..slot });
        true
    }

    /// Adds the session, or records a request of a known one.
    pub(super) fn insert(&mut self, id: u64, now: u64) {
        if self.touch(id, now) {
            return;
        }
        if self.slots_by_id.len() >= MOST {
            self.remove(self.oldest);
        }
        let slot =
            Slot { id, last_request: now, older: NONE, newer: NONE, requests: 1, is_active: false };
        let index = if self.free == NONE {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        } else {
            let index = self.free;
            self.free = self.slots[index as usize].newer;
            index
        };
        self.slots_by_id.insert(id, index);
        self.link(index, slot);
    }

    /// Changes the id of a session.
    pub(super) fn rename(&mut self, old: u64, new: u64, now: u64) {
        let Some(index) = self.slots_by_id.remove(&old) else { return self.insert(new, now) };
        if self.slots_by_id.contains_key(&new) {
            self.slots_by_id.insert(old, index);
            return self.remove(index);
        }
        self.slots[index as usize].id = new;
        self.slots_by_id.insert(new, index);
    }

    /// Ends the activity of sessions that have been idle for too long, and removes those that have
    /// been idle for longer than `idle`.
    pub(super) fn expire(&mut self, now: u64, idle: Duration) {
        let idle = idle.as_millis() as u64;
        let active = self.active_time().min(idle);
        while let Some(slot) = self.slots.get_mut(self.first_active as usize)
            && now.saturating_sub(slot.last_request) > active
        {
            slot.is_active = false;
            self.first_active = slot.newer;
            self.active -= 1;
        }
        while let Some(slot) = self.slots.get(self.oldest as usize)
            && now.saturating_sub(slot.last_request) > idle
        {
            self.remove(self.oldest);
        }
    }

    /// Removes all sessions and frees the memory.
    pub(super) fn clear(&mut self) {
        while self.oldest != NONE {
            self.remove(self.oldest);
        }
        *self = Self { ended: self.ended, ..Self::new() };
    }

    /// The number of active sessions.
    pub(super) const fn active(&self) -> usize {
        self.active
    }

    /// The number of known sessions.
    pub(super) fn known(&self) -> usize {
        self.slots_by_id.len()
    }

    /// The smoothed think time.
    pub(super) fn think_time(&self) -> Duration {
        Duration::from_secs_f64(self.think_time / 1000.0)
    }

    /// The number of ended sessions, by [class](CLASSES).
    pub(super) const fn ended(&self) -> [u64; CLASSES.len()] {
        self.ended
    }

    /// The idle time in milliseconds after which a session is no longer active.
    fn active_time(&self) -> u64 {
        2 * self.think_time().as_millis() as u64 + MIN_ACTIVE
    }

    /// Appends the slot as the newest one.
    fn link(&mut self, index: u32, slot: Slot) {
        let older = self.newest;
        self.slots[index as usize] = Slot { older, newer: NONE, is_active: true, ..slot };
        match self.slots.get_mut(older as usize) {
            Some(neighbor) => neighbor.newer = index,
            None => self.oldest = index,
        }
        self.newest = index;
        if self.first_active == NONE {
            self.first_active = index;
        }
        self.active += 1;
    }

    /// Unlinks the slot from its neighbors.
    fn unlink(&mut self, index: u32) {
        let Slot { older, newer, is_active, .. } = self.slots[index as usize];
        match self.slots.get_mut(older as usize) {
            Some(neighbor) => neighbor.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(neighbor) => neighbor.older = older,
            None => self.newest = older,
        }
        if is_active {
            self.active -= 1;
            if self.first_active == index {
                self.first_active = newer;
            }
        }
    }

    fn remove(&mut self, index: u32) {
        self.unlink(index);
        let slot = &mut self.slots[index as usize];
        slot.newer = self.free;
        self.free = index;
        self.slots_by_id.remove(&slot.id);
        // The last class has no bound, so each number of requests has a class.
        self.ended[CLASSES.partition_point(|most| *most < slot.requests)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const IDLE: Duration = Duration::from_mins(5);

    #[test]
    fn keeps_session_active_during_think_time_and_known_for_longer() {
        let mut sessions = Sessions::new();
        sessions.insert(1, 0);
        sessions.expire(11_000, IDLE);
        assert_eq!((sessions.active(), sessions.known()), (1, 1));
        sessions.expire(11_001, IDLE);
        assert_eq!((sessions.active(), sessions.known()), (0, 1));
        assert!(sessions.touch(1, 299_000) && sessions.active() == 1);
        sessions.expire(599_001, IDLE);
        assert_eq!((sessions.active(), sessions.known()), (0, 0));
        assert!(!sessions.touch(1, 600_000));
    }

    #[test]
    fn counts_ended_sessions_by_length() {
        let mut sessions = Sessions::new();
        for (id, requests) in [(1, 1), (2, 2), (3, 5), (4, 6), (5, 101)] {
            (0..requests).for_each(|_| sessions.insert(id, 0));
        }
        sessions.expire(400_000, IDLE);
        assert_eq!(sessions.ended(), [1, 2, 1, 0, 1]);
        sessions.insert(6, 400_000);
        sessions.clear();
        assert_eq!(sessions.ended(), [2, 2, 1, 0, 1], "a removal of all sessions ends them");
    }

    #[test]
    fn extends_activity_with_long_think_times() {
        let mut sessions = Sessions::new();
        for round in 0..2000 {
            sessions.insert(7, round * 20_000);
        }
        assert!((19_900..=20_000).contains(&sessions.think_time().as_millis()));
        sessions.expire(1999 * 20_000 + 40_000, IDLE);
        assert_eq!(sessions.active(), 1);
    }

    #[test]
    fn counts_renamed_session_once() {
        let mut sessions = Sessions::new();
        sessions.insert(1, 0);
        sessions.rename(1, 2, 5);
        assert!(!sessions.touch(1, 6) && sessions.touch(2, 6));
        sessions.insert(3, 7);
        sessions.rename(3, 2, 8);
        assert_eq!((sessions.active(), sessions.known()), (1, 1));
        sessions.rename(9, 10, 9);
        assert!(sessions.touch(10, 9));
    }

    proptest! {
        /// Compares the table with a model that checks every session each time.
        #[test]
        fn matches_a_plain_list_model(
            steps in proptest::collection::vec((0u64..12, 0u64..4000, any::<bool>()), 1..200),
        ) {
            let (mut sessions, mut model, mut now) = (Sessions::new(), HashMap::new(), 0);
            let idle = Duration::from_secs(15);
            for (id, gap, expires) in steps {
                now += gap;
                if expires {
                    let active = sessions.active_time();
                    sessions.expire(now, idle);
                    model.retain(|_, (last_request, is_active)| {
                        *is_active &= now - *last_request <= active;
                        now - *last_request <= 15_000
                    });
                } else {
                    prop_assert_eq!(sessions.touch(id, now), model.contains_key(&id));
                    sessions.insert(id, now);
                    model.insert(id, (now, true));
                }
                let active = model.values().filter(|(_, is_active)| *is_active).count();
                prop_assert_eq!((sessions.active(), sessions.known()), (active, model.len()));
            }
            sessions.clear();
            prop_assert_eq!((sessions.active(), sessions.known()), (0, 0));
        }
    }
}
