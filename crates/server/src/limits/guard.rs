//! Decides when a server closes, refuses or pauses for want of descriptors, of memory, or of workers' time: looks at most
//! once a second while all is well, and says each change once.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use bine_log as log;

use crate::limits::census::Census;
use crate::limits::pressure::{Bounds, Pressure, Room, Share};
use crate::limits::readings;
use crate::settings::{Guards, Settings};

/// Milliseconds between two looks while all is well.
const REST: u64 = 1000;
/// And while something is not: whoever waits for room waits no longer than this for it.
const WATCH: u64 = 100;

/// What one server knows of its want.
#[derive(Default)]
pub(crate) struct Guard {
    /// When somebody looked last, in milliseconds.
    looked: AtomicU64,
    descriptors: AtomicU8,
    memory: AtomicU8,
    is_over: AtomicBool,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    changes: AtomicU64,
    closed: AtomicU64,
    newcomers: AtomicU64,
    strangers: AtomicU64,
}

/// What is known of the guards, for whoever watches the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuardMetrics {
    /// Of descriptors.
    pub descriptors: Pressure,
    /// Of memory.
    pub memory: Pressure,
    /// Connections are not accepted because tasks wait too long for a worker.
    pub is_queue_over: bool,
    /// How often one of these has changed.
    pub changes: u64,
    /// Idle connections that were closed for want of descriptors.
    pub closed: u64,
    /// Connections that were refused for want of memory.
    pub newcomers: u64,
    /// Requests of strangers that were refused for want of memory.
    pub strangers: u64,
}

impl Guard {
    /// Whether nobody has looked for so long, at `now` milliseconds since some beginning, that it is time to. Of those
    /// who ask at once one is told so, and looks.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        let (last, order) = (self.looked.load(Ordering::Relaxed), Ordering::Relaxed);
        let is_calm = self.descriptors().max(self.memory()) == Pressure::Calm;
        let wait = if is_calm { REST } else { WATCH };
        now.saturating_sub(last) >= wait
            && self.looked.compare_exchange(last, now, order, order).is_ok()
    }

    /// Looks at what is used. Who is to make room is told how much.
    pub(crate) fn judge(&self, settings: &Settings, census: &Census) -> Option<Room> {
        self.judge_memory(&settings.guards);
        self.judge_descriptors(settings, census)
    }

    fn judge_memory(&self, guards: &Guards) {
        let share = if guards.memory_refuses.is_some() || guards.memory_pauses.is_some() {
            readings::memory(guards.memory)
        } else {
            None
        };
        let bounds = Bounds::of(guards.memory_refuses, guards.memory_pauses);
        let Some((was, is)) = change(&self.memory, share, bounds) else { return };
        self.counts.changes.fetch_add(1, Ordering::Relaxed);
        let percent = share.map_or(0, Share::percent);
        match is {
            Pressure::Calm => {
                log::notice(format_args!("there is memory again: {percent} % is used"));
            }
            Pressure::Tight if was == Pressure::Out => log::notice(format_args!(
                "connections are accepted again, and refused still: {percent} % of memory is used"
            )),
            Pressure::Tight => log::warn(format_args!(
                "{percent} % of memory is used: newcomers and strangers are refused"
            )),
            Pressure::Out => {
                log::warn(format_args!("{percent} % of memory is used: no connection is accepted"));
            }
        }
    }

    fn judge_descriptors(&self, settings: &Settings, census: &Census) -> Option<Room> {
        let percent = settings.guards.descriptors?;
        let descriptors = readings::descriptors();
        // Some are kept back, so that the places may run out first.
        let places = settings.connections.is_none().then(|| census.share());
        let share =
            [descriptors, places].into_iter().flatten().max_by_key(|share| share.permille());
        let bounds = Bounds::until_full(percent);
        if let Some((was, is)) = change(&self.descriptors, share, bounds) {
            self.counts.changes.fetch_add(1, Ordering::Relaxed);
            let percent = share.map_or(0, Share::percent);
            match is {
                Pressure::Calm => {
                    log::notice(format_args!("there are descriptors again: {percent} % are used"));
                }
                Pressure::Tight if was == Pressure::Out => log::notice(format_args!(
                    "connections are accepted again: {percent} % of descriptors are used"
                )),
                Pressure::Tight => log::warn(format_args!(
                    "{percent} % of descriptors are used: idle connections of strangers are closed"
                )),
                Pressure::Out => log::warn(format_args!(
                    "{percent} % of descriptors are used: no connection is accepted, and idle ones are closed"
                )),
            }
        }
        let pressure = self.descriptors();
        let over = |share: Share| share.above(bounds.relief());
        let count = [descriptors, places].into_iter().flatten().map(over).max().unwrap_or(0);
        let room = Room { count, known_too: pressure == Pressure::Out };
        (pressure > Pressure::Calm && count > 0).then_some(room)
    }

    /// Says whether tasks wait too long, where connections are not accepted for that.
    pub(crate) fn note_queue(&self, is_over: bool) {
        if self.is_over.load(Ordering::Relaxed) == is_over
            || self.is_over.swap(is_over, Ordering::Relaxed) == is_over
        {
            return;
        }
        self.counts.changes.fetch_add(1, Ordering::Relaxed);
        if is_over {
            log::warn(format_args!(
                "requests wait too long for a worker: no connection is accepted"
            ));
        } else {
            log::notice(format_args!("workers have time again: connections are accepted"));
        }
    }

    pub(crate) fn note_closed(&self, count: usize) {
        self.counts.closed.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn note_newcomer(&self) {
        self.counts.newcomers.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_stranger(&self) {
        self.counts.strangers.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections stay where they are, with the kernel.
    pub(crate) fn pauses(&self) -> bool {
        self.memory() == Pressure::Out || self.descriptors() == Pressure::Out
    }

    /// Newcomers are told to come later, and so is whoever is not known.
    pub(crate) fn refuses(&self) -> bool {
        self.memory() > Pressure::Calm
    }

    fn descriptors(&self) -> Pressure {
        Pressure::from_byte(self.descriptors.load(Ordering::Relaxed))
    }

    fn memory(&self) -> Pressure {
        Pressure::from_byte(self.memory.load(Ordering::Relaxed))
    }

    pub(crate) fn metrics(&self) -> GuardMetrics {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        GuardMetrics {
            descriptors: self.descriptors(),
            memory: self.memory(),
            is_queue_over: self.is_over.load(Ordering::Relaxed),
            changes: of(&self.counts.changes),
            closed: of(&self.counts.closed),
            newcomers: of(&self.counts.newcomers),
            strangers: of(&self.counts.strangers),
        }
    }
}

/// Puts in force what follows from `share`, of which nothing may be known; what it was and is, if that differs.
fn change(kept: &AtomicU8, share: Option<Share>, bounds: Bounds) -> Option<(Pressure, Pressure)> {
    let was = Pressure::from_byte(kept.load(Ordering::Relaxed));
    let is = share.map_or(Pressure::Calm, |share| bounds.judge(was, share));
    kept.store(is as u8, Ordering::Relaxed);
    (is != was).then_some((was, is))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Peer;
    use crate::limits::census::Places;

    fn guard(guards: Guards, most: usize, connected: usize) -> (Guard, Settings, Census) {
        let settings = Settings { guards, ..Settings::default() };
        let census = Census::new(Places { most, per_block: 1, local: Some(most) });
        (0..connected).for_each(|_| census.enter(Peer::UNIX).unwrap());
        (Guard::default(), settings, census)
    }

    #[test]
    fn it_looks_once_a_second_and_more_often_while_something_is_wanted() {
        let (guard, settings, census) = guard(Guards::default(), 100, 90);
        let asked = [5000, 5000, 5999, 6000, 6500].map(|now| guard.is_due(now));
        assert_eq!(asked, [true, false, false, true, false]);
        guard.judge(&settings, &census);
        assert_eq!(
            [6099, 6100, 6199, 6200].map(|now| guard.is_due(now)),
            [false, true, false, true]
        );
    }

    #[test]
    fn it_says_how_much_room_is_wanted_until_there_is_enough() {
        let (guard, settings, census) = guard(Guards::default(), 100, 90);
        let judge = || guard.judge(&settings, &census);
        assert_eq!(judge(), Some(Room { count: 2, known_too: false }));
        assert_eq!((guard.metrics().descriptors, guard.metrics().changes), (Pressure::Tight, 1));
        census.leave(Peer::UNIX);
        // Not yet what relieves it, and a little more room is wanted still.
        assert_eq!(judge().map(|room| room.count), Some(1));
        census.leave(Peer::UNIX);
        census.leave(Peer::UNIX);
        assert_eq!(judge(), None);
        assert_eq!((guard.metrics().descriptors, guard.metrics().changes), (Pressure::Calm, 2));
        assert!(!guard.pauses());
    }

    #[test]
    fn without_descriptors_nobody_comes_in_and_known_visitors_go_too() {
        let (guard, settings, census) = guard(Guards::default(), 100, 96);
        assert_eq!(guard.judge(&settings, &census), Some(Room { count: 8, known_too: true }));
        assert!(guard.pauses());
    }

    #[test]
    fn a_bound_of_connections_that_was_set_is_no_want_of_descriptors() {
        let (guard, mut settings, census) = guard(Guards::default(), 100, 100);
        settings.connections = Some(100);
        assert_eq!(guard.judge(&settings, &census), None);
    }

    #[test]
    fn memory_refuses_before_it_pauses() {
        let bound = |refuses, pauses| Guards {
            memory: Some(1),
            memory_refuses: refuses,
            memory_pauses: pauses,
            ..Guards::default()
        };
        let (tight, settings, census) = guard(bound(Some(85), None), 100, 0);
        assert!(!tight.refuses());
        tight.judge(&settings, &census);
        assert!(tight.refuses() && !tight.pauses());
        let (full, settings, census) = guard(bound(Some(85), Some(95)), 100, 0);
        full.judge(&settings, &census);
        assert!(full.refuses() && full.pauses());
        let (off, settings, census) = guard(bound(None, None), 100, 0);
        off.judge(&settings, &census);
        assert!(!off.refuses());
    }

    #[test]
    fn a_queue_that_is_over_is_told_once() {
        let guard = Guard::default();
        for is_over in [false, true, true, false, false] {
            guard.note_queue(is_over);
        }
        assert_eq!(guard.metrics().changes, 2);
    }
}
