//! Decides that those are let in who should be, by a clock that is moved.

mod pools;
mod simulation;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;

const MS: Duration = Duration::from_millis(1);

impl Admission {
    /// One whose clock stands until it is [moved](Self::move_to).
    fn told(terms: Terms, workers: usize) -> Self {
        Self { told: Some(AtomicU64::new(0)), ..Self::new(terms, workers) }
    }

    fn move_to(&self, milliseconds: u64) {
        if let Some(told) = &self.told {
            told.store(milliseconds, Ordering::Relaxed);
        }
    }

    /// A task that has waited for so long, and runs for so long.
    fn task(&self, wait: Duration, run: Duration) {
        self.waited(wait);
        self.ran(run, true);
    }

    fn wake_up(&self) {
        (0..ROW).for_each(|_| self.task(30 * MS, 10 * MS));
    }

    fn state(&self) -> State {
        self.metrics().state
    }
}

const STRANGER: Asker = Asker { ticket: Shown::Nothing, has_begun: false, stand_in: None };

/// One that took so long, with others behind it.
const fn turn(took: Duration) -> Turn {
    Turn { took, waited: took, worked: took }
}

const fn with_ticket(session: u64) -> Asker {
    Asker { ticket: Shown::Ticket(session), ..STRANGER }
}

/// One that has a limit in force, and one session under way.
fn limiting() -> (Admission, u64) {
    let terms = Terms { least: 1, most: 1, ..Terms::default() };
    let admission = Admission::told(terms, 2);
    admission.wake_up();
    let Verdict::Admitted(session) = admission.ask(STRANGER) else { panic!("it only watches") };
    admission.task(30 * MS, 100 * MS);
    admission.move_to(100);
    assert_eq!(admission.state(), State::Limiting);
    (admission, session)
}

#[test]
fn stays_asleep_after_one_long_wait() {
    let admission = Admission::told(Terms::default(), 8);
    for _ in 0..100 {
        (1..ROW).for_each(|_| admission.task(30 * MS, MS));
        admission.task(MS, MS);
        (1..ROW).for_each(|_| admission.turned(turn(30 * MS)));
        admission.turned(turn(MS));
    }
    assert!(!admission.is_awake());
    admission.wake_up();
    assert!(admission.is_awake());
}

#[test]
fn wakes_when_workers_are_half_busy() {
    let admission = Admission::told(Terms::default(), 4);
    (0..2).for_each(|_| admission.waited(Duration::ZERO));
    (1..ROW).for_each(|_| admission.handed_over());
    assert!(!admission.is_awake());
    admission.handed_over();
    assert!(admission.is_awake());
}

/// Twenty visitors kept their connections to a program whose pages take a loop 15 ms, one in a second among them, and the
/// next was refused: each turn was as long as a page, and nobody had asked whether somebody waited for its end.
#[test]
fn detects_no_queue_in_event_loop_that_idles_between_slow_pages() {
    let admission = Admission::told(Terms::default(), 4);
    (0..ROW).for_each(|_| admission.turned(Turn { waited: Duration::ZERO, ..turn(15 * MS) }));
    assert!(admission.is_awake());
    for visitor in 0..120 {
        admission.move_to(1000 * (visitor + 1));
        let asker = Asker { has_begun: visitor >= 20, stand_in: Some(visitor % 20), ..STRANGER };
        assert_ne!(admission.ask(asker), Verdict::Refused);
        admission.answered();
        admission.turned(Turn { waited: Duration::ZERO, ..turn(15 * MS) });
        assert_ne!(admission.state(), State::Limiting);
    }
    assert_ne!(admission.ask(STRANGER), Verdict::Refused);
}

/// Under `event` a page that waits holds its loop, of which nothing was known but that it hardly computes: with half of it
/// in use there seemed to be room for thirty times as much.
#[test]
fn counts_event_loop_blocked_by_a_page_as_busy() {
    let admission = Admission::told(Terms::default(), 4).on_loops(2);
    (0..ROW).for_each(|_| admission.turned(turn(20 * MS)));
    for tenth in 1..=80 {
        for _ in 0..5 {
            admission.answered();
            admission.turned(Turn { waited: Duration::ZERO, ..turn(20 * MS) });
        }
        admission.move_to(100 * tenth);
        admission.turned(Turn::default());
    }
    let metrics = admission.metrics();
    assert!((0.45..0.55).contains(&metrics.utilization), "{metrics:?}");
    assert!((95.0..105.0).contains(&metrics.capacity.unwrap()), "{metrics:?}");
}

#[test]
fn detects_queue_in_event_loop_that_never_idles() {
    let admission = Admission::told(Terms::default(), 4);
    for page in 0..50 {
        admission.turned(turn(15 * MS));
        admission.move_to(15 * page);
    }
    assert_eq!(admission.state(), State::Limiting);
}

/// A server that nobody had asked for ten minutes began with a slow page, of which it concluded that there had been a queue
/// for all of that time: for half a minute there was room for eight.
#[test]
fn bounds_queue_age_by_its_longest_wait() {
    let admission = Admission::told(Terms::default(), 2);
    admission.wake_up();
    for tenth in 1..=40 {
        (0..10).for_each(|_| admission.task(MS, 10 * MS));
        admission.move_to(100 * tenth);
        assert_ne!(admission.ask(STRANGER), Verdict::Refused);
    }
    let before = admission.metrics();
    admission.move_to(600_000);
    admission.task(30 * MS, 10 * MS);
    admission.turned(turn(30 * MS));
    let after = admission.metrics();
    assert!(after.factor >= 0.99 * before.factor, "{before:?} {after:?}");
    assert_eq!(after.state, State::Asleep, "what is long over");
}

/// An upload was stored in thousands of pieces, each of which counted as a request that was done: there seemed to be room
/// for ten times as many sessions as could be served.
#[test]
fn does_not_count_body_chunks_as_completed_requests() {
    let admission = Admission::told(Terms::default(), 2);
    admission.wake_up();
    for tenth in 1..=80 {
        admission.task(MS, 10 * MS);
        for _ in 0..9 {
            admission.waited(MS);
            admission.ran(10 * MS, false);
        }
        admission.move_to(100 * tenth);
        admission.turned(Turn::default());
    }
    // Ten a second, in half of the time that there is.
    let capacity = admission.metrics().capacity.unwrap();
    assert!((19.0..30.0).contains(&capacity), "{capacity}");
}

#[test]
fn resets_late_request_count_after_sleep() {
    let admission = Admission::told(Terms::default(), 4);
    let slow = || admission.turned(Turn { waited: Duration::ZERO, ..turn(11 * MS) });
    (0..ROW).for_each(|_| slow());
    admission.move_to(10_000);
    admission.turned(Turn::default());
    assert_eq!(admission.state(), State::Asleep);
    (1..ROW).for_each(|_| slow());
    assert!(!admission.is_awake());
    slow();
    assert!(admission.is_awake());
}

/// A thread that was about to look while another switched it off put it to sleep instead, from which no door was ever shut.
#[test]
fn keeps_admission_off_after_a_late_measurement() {
    let (admission, _) = limiting();
    admission.amend(Terms { is_on: false, ..Terms::default() });
    admission.look_at(&mut admission.lock(), 60_000);
    assert!(!admission.is_on());
}

#[test]
fn keeps_retry_after_within_any_range() {
    for (retry, chance) in [(0..=u32::MAX, 7), (5..=5, 7), (0..=0, u32::MAX)] {
        let admission = Admission::told(Terms { retry: retry.clone(), ..Terms::default() }, 1);
        assert!(retry.contains(&admission.again_after(chance)));
    }
}

#[test]
fn wakes_after_consecutive_slow_event_loop_turns() {
    let admission = Admission::told(Terms::default(), 4);
    (0..ROW).for_each(|_| admission.turned(turn(11 * MS)));
    assert!(admission.is_awake());
}

#[test]
fn admits_all_and_recognizes_returning_clients_while_watching() {
    let admission = Admission::told(Terms::default(), 2);
    admission.wake_up();
    let Verdict::Admitted(one) = admission.ask(STRANGER) else { panic!("there is no limit") };
    let Verdict::Admitted(other) = admission.ask(STRANGER) else { panic!("there is no limit") };
    assert_ne!(one, other);
    assert_eq!(admission.ask(with_ticket(one)), Verdict::Known);
    let metrics = admission.metrics();
    assert_eq!((metrics.active, metrics.admitted, metrics.served), (2, 2, 3));
}

#[test]
fn rejects_new_sessions_and_serves_existing_ones() {
    let (admission, session) = limiting();
    assert_eq!(admission.ask(STRANGER), Verdict::Refused);
    assert_eq!(admission.ask(with_ticket(session)), Verdict::Known);
    let foreign = Asker { ticket: Shown::Foreign, ..STRANGER };
    assert_eq!(admission.ask(foreign), Verdict::Refused);
    let begun = Asker { has_begun: true, stand_in: Some(7), ..STRANGER };
    assert_eq!(admission.ask(begun), Verdict::Admitted(7));
    assert_eq!(admission.ask(begun), Verdict::Again(7), "whoever takes no cookies is one session");
    let refused = admission.metrics().refused;
    assert_eq!((refused.strangers, refused.foreign, refused.total()), (1, 1, 2));
}

#[test]
fn accepts_ticket_after_restart_but_not_after_idle_timeout() {
    let (admission, _) = limiting();
    assert_eq!(admission.ask(with_ticket(77)), Verdict::Known, "it is from before the restart");
    // It stays awake, and those who were not here for longer than the terms allow are strangers.
    for second in 1..400 {
        admission.task(30 * MS, 900 * MS);
        admission.move_to(second * 1000);
        admission.turned(turn(30 * MS));
    }
    // Another has the one place that there is.
    assert!(matches!(admission.ask(STRANGER), Verdict::Admitted(_)));
    assert_eq!(admission.ask(with_ticket(77)), Verdict::Refused);
    assert_eq!(admission.metrics().refused.old, 1);
}

#[test]
fn bounds_admission_by_collected_tickets_to_twice_the_limit() {
    let (admission, _) = limiting();
    let let_in = (100..200).filter(|number| admission.ask(with_ticket(*number)) == Verdict::Known);
    assert_eq!(let_in.count(), 1, "of one place there are two, and one is taken");
}

#[test]
fn keeps_sessions_across_clock_jumps() {
    let (admission, session) = limiting();
    let with_old = |session| Asker { ticket: Shown::Old(session), ..STRANGER };
    assert_eq!(admission.ask(with_old(session)), Verdict::Again(session));
    assert_eq!(admission.ask(with_old(session + 1)), Verdict::Refused);
}

#[test]
fn reissues_missing_tickets() {
    let (admission, _) = limiting();
    let begun = Asker { has_begun: true, stand_in: Some(7), ..STRANGER };
    assert_eq!(admission.ask(begun), Verdict::Admitted(7));
    assert_eq!(admission.ask(begun), Verdict::Again(7));
    assert_eq!(admission.ask(with_ticket(7)), Verdict::Known);
    assert_eq!(admission.metrics().admitted, 2, "it is one session all the time");
}

#[test]
fn serves_existing_sessions_after_admission_is_reenabled() {
    let (admission, session) = limiting();
    admission.move_to(400_000);
    admission.amend(Terms { is_on: false, ..Terms::default() });
    admission.amend(Terms::default());
    assert_eq!(admission.state(), State::Asleep);
    admission.wake_up();
    assert_eq!(admission.ask(with_ticket(session)), Verdict::Known);
}

#[test]
fn counts_session_once_after_login() {
    let (admission, session) = limiting();
    admission.rename(session, 5);
    assert_eq!(admission.ask(with_ticket(5)), Verdict::Known);
    let again = Asker { stand_in: Some(5), ..STRANGER };
    assert_eq!(admission.ask(again), Verdict::Again(5), "another login of the same account");
    assert_eq!(admission.metrics().active, 1);
}

#[test]
fn never_wakes_when_disabled_and_forgets_sessions_asleep() {
    let (admission, _) = limiting();
    admission.amend(Terms { is_on: false, ..Terms::default() });
    admission.wake_up();
    assert!(!admission.is_on() && !admission.is_awake());
    admission.amend(Terms::default());
    admission.move_to(60_000);
    admission.turned(Turn::default());
    admission.move_to(120_000);
    assert_eq!((admission.state(), admission.metrics().known), (State::Asleep, 0));
}

#[test]
fn varies_retry_after_between_clients() {
    let admission = Admission::told(Terms::default(), 1);
    let times: Vec<u32> = (0..32).map(|chance| admission.again_after(chance)).collect();
    assert!((5..=20).all(|second| times.contains(&second)));
    assert!(times.iter().all(|second| (5..=20).contains(second)));
}
