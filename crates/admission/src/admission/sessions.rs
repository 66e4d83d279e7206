//! Decides which sessions are under way, and which are only known: a bounded table in the order of their last requests.
//!
//! A session is *active*, and has one of the places that are limited, until it was idle for twice as long as sessions
//! usually think between two requests. It is *known*, and is served when it comes again, for the terms' idle time: people
//! who read for long are not strangers.

use std::collections::HashMap;
use std::time::Duration;

/// The table. Moments are milliseconds of any clock.
#[derive(Debug)]
pub(super) struct Sessions {
    places: HashMap<u64, u32>,
    slots: Vec<Slot>,
    /// The first of the slots that are free, linked by `newer`.
    free: u32,
    oldest: u32,
    newest: u32,
    /// The one that was idle for longest of those that are active.
    first_active: u32,
    active: usize,
    /// Milliseconds between two requests of a session, smoothed.
    think: f64,
    ended: [u64; CLASSES.len()],
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    id: u64,
    seen: u64,
    older: u32,
    newer: u32,
    requests: u32,
    is_active: bool,
}

const NONE: u32 = u32::MAX;
/// Sessions that are known at one time; of more, those go that were idle for longest.
pub const MOST: usize = 1 << 18;
/// The most requests of each class of sessions by length.
pub const CLASSES: [u32; 5] = [1, 5, 20, 100, u32::MAX];
/// What is believed before anything is known of the time between two requests.
const USUAL_THINK: Duration = Duration::from_secs(5);
/// A session is active for at least so long: a page and what it calls come together.
const LEAST_IDLE: u64 = 1000;
/// One in so many counts as much as all before it.
const SMOOTHING: f64 = 1.0 / 256.0;

impl Sessions {
    pub(super) fn new() -> Self {
        Self {
            places: HashMap::new(),
            slots: Vec::new(),
            free: NONE,
            oldest: NONE,
            newest: NONE,
            first_active: NONE,
            active: 0,
            think: USUAL_THINK.as_millis() as f64,
            ended: [0; CLASSES.len()],
        }
    }

    /// The session asks for something; false: it is not known.
    pub(super) fn touch(&mut self, id: u64, now: u64) -> bool {
        let Some(place) = self.places.get(&id).copied() else { return false };
        let slot = self.slots[place as usize];
        let gap = now.saturating_sub(slot.seen);
        self.think += (gap as f64 - self.think) * SMOOTHING;
        self.unlink(place);
        let requests = slot.requests.saturating_add(1);
        self.link(place, Slot { seen: now, requests, ..slot });
        true
    }

    /// The session begins, or is known again.
    pub(super) fn enter(&mut self, id: u64, now: u64) {
        if self.touch(id, now) {
            return;
        }
        if self.places.len() >= MOST {
            self.forget(self.oldest);
        }
        let slot = Slot { id, seen: now, older: NONE, newer: NONE, requests: 1, is_active: false };
        let place = if self.free == NONE {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        } else {
            let place = self.free;
            self.free = self.slots[place as usize].newer;
            place
        };
        self.places.insert(id, place);
        self.link(place, slot);
    }

    /// The session is known under another number from here on.
    pub(super) fn rename(&mut self, old: u64, new: u64, now: u64) {
        let Some(place) = self.places.remove(&old) else { return self.enter(new, now) };
        if self.places.contains_key(&new) {
            self.places.insert(old, place);
            return self.forget(place);
        }
        self.slots[place as usize].id = new;
        self.places.insert(new, place);
    }

    /// Who was idle for too long is not active any more, and after `idle` not known.
    pub(super) fn sweep(&mut self, now: u64, idle: Duration) {
        let idle = idle.as_millis() as u64;
        let active = self.idle_of_active().min(idle);
        while let Some(slot) = self.slots.get_mut(self.first_active as usize)
            && now.saturating_sub(slot.seen) > active
        {
            slot.is_active = false;
            self.first_active = slot.newer;
            self.active -= 1;
        }
        while let Some(slot) = self.slots.get(self.oldest as usize)
            && now.saturating_sub(slot.seen) > idle
        {
            self.forget(self.oldest);
        }
    }

    /// Everybody is forgotten, and the memory given back.
    pub(super) fn clear(&mut self) {
        while self.oldest != NONE {
            self.forget(self.oldest);
        }
        *self = Self { ended: self.ended, ..Self::new() };
    }

    /// Sessions that are under way.
    pub(super) const fn active(&self) -> usize {
        self.active
    }

    /// Sessions that would be served.
    pub(super) fn known(&self) -> usize {
        self.places.len()
    }

    /// The time between two requests of a session.
    pub(super) fn think(&self) -> Duration {
        Duration::from_secs_f64(self.think / 1000.0)
    }

    /// How many have ended, by [class](CLASSES).
    pub(super) const fn ended(&self) -> [u64; CLASSES.len()] {
        self.ended
    }

    /// Milliseconds of idleness within which a session is active.
    fn idle_of_active(&self) -> u64 {
        2 * self.think().as_millis() as u64 + LEAST_IDLE
    }

    /// Puts the slot behind all others.
    fn link(&mut self, place: u32, slot: Slot) {
        let older = self.newest;
        self.slots[place as usize] = Slot { older, newer: NONE, is_active: true, ..slot };
        match self.slots.get_mut(older as usize) {
            Some(before) => before.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
        if self.first_active == NONE {
            self.first_active = place;
        }
        self.active += 1;
    }

    /// Takes the slot from between its neighbors.
    fn unlink(&mut self, place: u32) {
        let Slot { older, newer, is_active, .. } = self.slots[place as usize];
        match self.slots.get_mut(older as usize) {
            Some(before) => before.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(behind) => behind.older = older,
            None => self.newest = older,
        }
        if is_active {
            self.active -= 1;
            if self.first_active == place {
                self.first_active = newer;
            }
        }
    }

    fn forget(&mut self, place: u32) {
        self.unlink(place);
        let slot = &mut self.slots[place as usize];
        slot.newer = self.free;
        self.free = place;
        self.places.remove(&slot.id);
        let class = CLASSES.iter().position(|most| slot.requests <= *most);
        self.ended[class.unwrap_or(CLASSES.len() - 1)] += 1;
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
        sessions.enter(1, 0);
        sessions.sweep(11_000, IDLE);
        assert_eq!((sessions.active(), sessions.known()), (1, 1));
        sessions.sweep(11_001, IDLE);
        assert_eq!((sessions.active(), sessions.known()), (0, 1));
        assert!(sessions.touch(1, 299_000) && sessions.active() == 1);
        sessions.sweep(599_001, IDLE);
        assert_eq!((sessions.active(), sessions.known()), (0, 0));
        assert!(!sessions.touch(1, 600_000));
    }

    #[test]
    fn counts_ended_sessions_by_length() {
        let mut sessions = Sessions::new();
        for (id, requests) in [(1, 1), (2, 2), (3, 5), (4, 6), (5, 101)] {
            (0..requests).for_each(|_| sessions.enter(id, 0));
        }
        sessions.sweep(400_000, IDLE);
        assert_eq!(sessions.ended(), [1, 2, 1, 0, 1]);
    }

    #[test]
    fn extends_activity_with_long_think_times() {
        let mut sessions = Sessions::new();
        for round in 0..2000 {
            sessions.enter(7, round * 20_000);
        }
        assert!((19_900..=20_000).contains(&sessions.think().as_millis()));
        sessions.sweep(1999 * 20_000 + 40_000, IDLE);
        assert_eq!(sessions.active(), 1);
    }

    #[test]
    fn counts_renamed_session_once() {
        let mut sessions = Sessions::new();
        sessions.enter(1, 0);
        sessions.rename(1, 2, 5);
        assert!(!sessions.touch(1, 6) && sessions.touch(2, 6));
        sessions.enter(3, 7);
        sessions.rename(3, 2, 8);
        assert_eq!((sessions.active(), sessions.known()), (1, 1));
        sessions.rename(9, 10, 9);
        assert!(sessions.touch(10, 9));
    }

    proptest! {
        /// Against a table that looks at every session each time.
        #[test]
        fn matches_a_plain_list_model(
            steps in proptest::collection::vec((0u64..12, 0u64..4000, any::<bool>()), 1..200),
        ) {
            let (mut sessions, mut plain, mut now) = (Sessions::new(), HashMap::new(), 0);
            let idle = Duration::from_secs(15);
            for (id, gap, sweeps) in steps {
                now += gap;
                if sweeps {
                    let active = sessions.idle_of_active();
                    sessions.sweep(now, idle);
                    plain.retain(|_, (seen, is_active)| {
                        *is_active &= now - *seen <= active;
                        now - *seen <= 15_000
                    });
                } else {
                    prop_assert_eq!(sessions.touch(id, now), plain.contains_key(&id));
                    sessions.enter(id, now);
                    plain.insert(id, (now, true));
                }
                let active = plain.values().filter(|(_, is_active)| *is_active).count();
                prop_assert_eq!((sessions.active(), sessions.known()), (active, plain.len()));
            }
            sessions.clear();
            prop_assert_eq!((sessions.active(), sessions.known()), (0, 0));
        }
    }
}
