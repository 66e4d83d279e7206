//! Overload protection: closes idle connections, refuses requests or pauses accepting when
//! descriptors, memory or workers run short. It checks at most once a second in the normal state
//! and logs each change once.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use bine_log as log;

use crate::limits::census::Census;
use crate::limits::pressure::{Bounds, Pressure, Room, Share};
use crate::limits::readings;
use crate::settings::{Guards, Settings};

/// Milliseconds between two checks in the normal state.
const CALM_INTERVAL: u64 = 1000;
/// Milliseconds between two checks under pressure, which bounds the wait of new connections for
/// room.
const PRESSURE_INTERVAL: u64 = 100;

/// The resource pressure of one server.
#[derive(Default)]
pub(crate) struct Guard {
    /// Time of the last check in milliseconds.
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

/// Metrics of overload protection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuardMetrics {
    /// Pressure on file descriptors.
    pub descriptors: Pressure,
    /// Pressure on memory.
    pub memory: Pressure,
    /// Whether the server accepts no connections because tasks wait too long for a worker.
    pub is_queue_over: bool,
    /// Number of changes of the three states above.
    pub changes: u64,
    /// Idle connections closed for lack of descriptors.
    pub closed: u64,
    /// Connections refused for lack of memory.
    pub newcomers: u64,
    /// Requests of clients without a session that were refused for lack of memory.
    pub strangers: u64,
}

impl Guard {
    /// Returns whether the next check is due at `now`, in milliseconds of a monotonic clock. Only
    /// one of several concurrent callers gets `true`, and must then call [`judge`](Self::judge).
    pub(crate) fn is_due(&self, now: u64) -> bool {
        let (last, order) = (self.looked.load(Ordering::Relaxed), Ordering::Relaxed);
        let is_calm = self.descriptors().max(self.memory()) == Pressure::Calm;
        let wait = if is_calm { CALM_INTERVAL } else { PRESSURE_INTERVAL };
        now.saturating_sub(last) >= wait
            && self.looked.compare_exchange(last, now, order, order).is_ok()
    }

    /// Checks memory and descriptors. Returns the idle connections to close, if any.
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
                log::notice(format_args!(
                    "{percent} % of memory is used: serving all clients again"
                ));
            }
            Pressure::Tight if was == Pressure::Out => log::notice(format_args!(
                "{percent} % of memory is used: accepting connections again, \
                 but still rejecting new and unknown clients (`guard-memory`)"
            )),
            Pressure::Tight => log::warn(format_args!(
                "{percent} % of memory is used: rejecting new and unknown clients (`guard-memory`)"
            )),
            Pressure::Out => log::warn(format_args!(
                "{percent} % of memory is used: accepting no connections (`guard-memory-accept`)"
            )),
        }
    }

    fn judge_descriptors(&self, settings: &Settings, census: &Census) -> Option<Room> {
        let percent = settings.guards.descriptors?;
        let descriptors = readings::descriptors();
        // Some descriptors are reserved, so the connection limit derived from them can be reached
        // first.
        let connections = settings.connections.is_none().then(|| census.share());
        let share =
            [descriptors, connections].into_iter().flatten().max_by_key(|share| share.permille());
        let bounds = Bounds::until_full(percent);
        if let Some((was, is)) = change(&self.descriptors, share, bounds) {
            self.counts.changes.fetch_add(1, Ordering::Relaxed);
            let percent = share.map_or(0, Share::percent);
            match is {
                Pressure::Calm => {
                    log::notice(format_args!(
                        "{percent} % of descriptors are used: keeping idle connections again"
                    ));
                }
                Pressure::Tight if was == Pressure::Out => log::notice(format_args!(
                    "{percent} % of descriptors are used: accepting connections again"
                )),
                Pressure::Tight => log::warn(format_args!(
                    "{percent} % of descriptors are used: closing idle connections of unknown \
                     clients (`guard-descriptors`); raise `ulimit -n`"
                )),
                Pressure::Out => log::warn(format_args!(
                    "{percent} % of descriptors are used: closing idle connections and accepting \
                     none (`guard-descriptors`); raise `ulimit -n`"
                )),
            }
        }
        let pressure = self.descriptors();
        let over = |share: Share| share.above(bounds.relief());
        let count = [descriptors, connections].into_iter().flatten().map(over).max().unwrap_or(0);
        let room = Room { count, known_too: pressure == Pressure::Out };
        (pressure > Pressure::Calm && count > 0).then_some(room)
    }

    /// Records whether tasks wait too long for a worker, which pauses accepting.
    pub(crate) fn note_queue(&self, is_over: bool) {
        if self.is_over.load(Ordering::Relaxed) == is_over
            || self.is_over.swap(is_over, Ordering::Relaxed) == is_over
        {
            return;
        }
        self.counts.changes.fetch_add(1, Ordering::Relaxed);
        if is_over {
            log::warn(format_args!(
                "requests wait too long for a worker: accepting no connections (`back-pressure`)"
            ));
        } else {
            log::notice(format_args!("workers are available: accepting connections again"));
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

    /// Whether accepting is paused: new connections stay in the kernel's queue.
    pub(crate) fn pauses(&self) -> bool {
        self.memory() == Pressure::Out || self.descriptors() == Pressure::Out
    }

    /// Whether the server refuses new connections, and requests of clients without a session, with
    /// 503.
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

/// Stores the pressure that `share` causes; an unknown share causes no pressure. Returns the old
/// and the new pressure if they differ.
fn change(stored: &AtomicU8, share: Option<Share>, bounds: Bounds) -> Option<(Pressure, Pressure)> {
    let was = Pressure::from_byte(stored.load(Ordering::Relaxed));
    let is = share.map_or(Pressure::Calm, |share| bounds.judge(was, share));
    stored.store(is as u8, Ordering::Relaxed);
    (is != was).then_some((was, is))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::ClientAddress;
    use crate::limits::census::ConnectionLimits;

    fn guard(guards: Guards, most: usize, connected: usize) -> (Guard, Settings, Census) {
        let settings = Settings { guards, ..Settings::default() };
        let census = Census::new(ConnectionLimits { most, per_block: 1, local: Some(most) });
        (0..connected).for_each(|_| census.enter(ClientAddress::UNIX).unwrap());
        (Guard::default(), settings, census)
    }

    #[test]
    fn checks_once_a_second_and_more_often_under_pressure() {
        let (guard, settings, census) = guard(Guards::default(), 100, 90);
        let is_due = [5000, 5000, 5999, 6000, 6500].map(|now| guard.is_due(now));
        assert_eq!(is_due, [true, false, false, true, false]);
        guard.judge(&settings, &census);
        assert_eq!(
            [6099, 6100, 6199, 6200].map(|now| guard.is_due(now)),
            [false, true, false, true]
        );
    }

    #[test]
    fn requests_room_until_the_pressure_is_relieved() {
        let (guard, settings, census) = guard(Guards::default(), 100, 90);
        let judge = || guard.judge(&settings, &census);
        assert_eq!(judge(), Some(Room { count: 2, known_too: false }));
        assert_eq!((guard.metrics().descriptors, guard.metrics().changes), (Pressure::Tight, 1));
        census.leave(ClientAddress::UNIX);
        // Still above the level of relief, so one more connection must close.
        assert_eq!(judge().map(|room| room.count), Some(1));
        census.leave(ClientAddress::UNIX);
        census.leave(ClientAddress::UNIX);
        assert_eq!(judge(), None);
        assert_eq!((guard.metrics().descriptors, guard.metrics().changes), (Pressure::Calm, 2));
        assert!(!guard.pauses());
    }

    #[test]
    fn pauses_and_evicts_known_clients_without_descriptors() {
        let (guard, settings, census) = guard(Guards::default(), 100, 96);
        assert_eq!(guard.judge(&settings, &census), Some(Room { count: 8, known_too: true }));
        assert!(guard.pauses());
    }

    #[test]
    fn ignores_a_configured_connection_limit_as_descriptor_pressure() {
        let (guard, mut settings, census) = guard(Guards::default(), 100, 100);
        settings.connections = Some(100);
        assert_eq!(guard.judge(&settings, &census), None);
    }

    #[test]
    fn refuses_before_it_pauses_under_memory_pressure() {
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
    fn counts_each_change_of_the_queue_state_once() {
        let guard = Guard::default();
        for is_over in [false, true, true, false, false] {
            guard.note_queue(is_over);
        }
        assert_eq!(guard.metrics().changes, 2);
    }

    #[test]
    fn logs_each_change_of_memory_pressure_once() {
        let guard = Guard::default();
        let messages = |refuses, pauses| {
            let capture = log::test_support::capture();
            // All of one byte is in use.
            let guards = Guards {
                memory: Some(1),
                memory_refuses: refuses,
                memory_pauses: pauses,
                ..Guards::default()
            };
            guard.judge_memory(&guards);
            guard.judge_memory(&guards);
            capture.end().join("; ")
        };
        let full = "100 % of memory is used: ";
        for (refuses, pauses, expected) in [
            (Some(85), None, format!("{full}rejecting new and unknown clients (`guard-memory`)")),
            (Some(85), Some(95), format!("{full}accepting no connections (`guard-memory-accept`)")),
            (
                Some(85),
                None,
                format!(
                    "{full}accepting connections again, but still rejecting new and unknown \
                     clients (`guard-memory`)"
                ),
            ),
            (None, None, "0 % of memory is used: serving all clients again".to_owned()),
            (None, None, String::new()),
            // Without the first threshold, the second one acts alone.
            (None, Some(95), format!("{full}accepting no connections (`guard-memory-accept`)")),
        ] {
            assert_eq!(messages(refuses, pauses), expected);
        }
        assert_eq!(guard.metrics().changes, 5);
    }

    #[test]
    fn logs_each_change_of_descriptor_pressure_once() {
        let (guard, settings, census) = guard(Guards::default(), 100, 0);
        let mut connected = 0;
        let mut messages = |connections: usize| {
            while connected < connections {
                census.enter(ClientAddress::UNIX).unwrap();
                connected += 1;
            }
            while connected > connections {
                census.leave(ClientAddress::UNIX);
                connected -= 1;
            }
            let capture = log::test_support::capture();
            guard.judge(&settings, &census);
            guard.judge(&settings, &census);
            capture.end().join("; ")
        };
        for (connections, expected) in [
            (89, ""),
            (
                90,
                "90 % of descriptors are used: closing idle connections of unknown clients \
                 (`guard-descriptors`); raise `ulimit -n`",
            ),
            (
                95,
                "95 % of descriptors are used: closing idle connections and accepting none \
                 (`guard-descriptors`); raise `ulimit -n`",
            ),
            (92, "92 % of descriptors are used: accepting connections again"),
            (80, "80 % of descriptors are used: keeping idle connections again"),
        ] {
            assert_eq!(messages(connections), expected, "{connections}");
        }
    }

    #[test]
    fn logs_each_change_of_the_queue_state_once() {
        let guard = Guard::default();
        let messages = [true, true, false, false].map(|is_over| {
            let capture = log::test_support::capture();
            guard.note_queue(is_over);
            assert_eq!(guard.metrics().is_queue_over, is_over);
            capture.end().join("; ")
        });
        assert_eq!(
            messages,
            [
                "requests wait too long for a worker: accepting no connections (`back-pressure`)",
                "",
                "workers are available: accepting connections again",
                ""
            ]
        );
    }

    #[test]
    fn counts_each_defense_on_its_own() {
        let guard = Guard::default();
        guard.note_closed(5);
        guard.note_closed(2);
        guard.note_newcomer();
        (0..3).for_each(|_| guard.note_stranger());
        let GuardMetrics { closed, newcomers, strangers, changes, .. } = guard.metrics();
        assert_eq!((closed, newcomers, strangers, changes), (7, 1, 3, 0));
    }

    /// A guard that has requested room requests it down to its level of relief, which is lower than
    /// the level at which it begins.
    #[test]
    fn requests_no_room_before_there_is_pressure() {
        let (guard, settings, census) = guard(Guards::default(), 100, 89);
        let judge = || guard.judge(&settings, &census);
        assert_eq!((judge(), guard.metrics().descriptors), (None, Pressure::Calm));
        census.enter(ClientAddress::UNIX).unwrap();
        assert_eq!(judge().map(|room| room.count), Some(2));
        census.leave(ClientAddress::UNIX);
        assert_eq!(judge().map(|room| room.count), Some(1));
    }
}
