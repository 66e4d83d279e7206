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
fn a_wait_that_is_long_once_wakes_nobody() {
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
fn hands_that_are_half_full_wake_it_although_nobody_has_waited() {
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
fn a_loop_that_rests_between_slow_pages_has_no_queue() {
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
fn a_loop_that_is_held_by_a_page_is_in_use() {
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
fn a_loop_that_never_rests_between_slow_pages_has_one() {
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
fn a_queue_is_no_older_than_the_longest_wait_in_it() {
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
fn a_piece_of_a_body_is_no_request_that_was_done() {
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
fn after_a_sleep_it_takes_as_many_late_ones_again_to_wake_it() {
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
fn a_look_that_comes_behind_the_switch_does_not_undo_it() {
    let (admission, _) = limiting();
    admission.amend(Terms { is_on: false, ..Terms::default() });
    admission.look_at(&mut admission.lock(), 60_000);
    assert!(!admission.is_on());
}

#[test]
fn any_span_of_seconds_to_come_again_after_has_an_end() {
    for (retry, chance) in [(0..=u32::MAX, 7), (5..=5, 7), (0..=0, u32::MAX)] {
        let admission = Admission::told(Terms { retry: retry.clone(), ..Terms::default() }, 1);
        assert!(retry.contains(&admission.again_after(chance)));
    }
}

#[test]
fn loops_that_are_slow_turn_after_turn_wake_it() {
    let admission = Admission::told(Terms::default(), 4);
    (0..ROW).for_each(|_| admission.turned(turn(11 * MS)));
    assert!(admission.is_awake());
}

#[test]
fn while_it_watches_everybody_is_let_in_and_those_who_come_again_are_known() {
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
fn strangers_are_refused_and_whoever_has_begun_is_served() {
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
fn a_ticket_outlasts_a_restart_and_no_idleness() {
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
fn tickets_that_were_gathered_bring_in_no_more_than_fit_twice() {
    let (admission, _) = limiting();
    let let_in = (100..200).filter(|number| admission.ask(with_ticket(*number)) == Verdict::Known);
    assert_eq!(let_in.count(), 1, "of one place there are two, and one is taken");
}

#[test]
fn a_clock_that_jumps_cuts_nobody_off() {
    let (admission, session) = limiting();
    let with_old = |session| Asker { ticket: Shown::Old(session), ..STRANGER };
    assert_eq!(admission.ask(with_old(session)), Verdict::Again(session));
    assert_eq!(admission.ask(with_old(session + 1)), Verdict::Refused);
}

#[test]
fn whoever_was_given_no_ticket_or_lost_it_is_given_it_again() {
    let (admission, _) = limiting();
    let begun = Asker { has_begun: true, stand_in: Some(7), ..STRANGER };
    assert_eq!(admission.ask(begun), Verdict::Admitted(7));
    assert_eq!(admission.ask(begun), Verdict::Again(7));
    assert_eq!(admission.ask(with_ticket(7)), Verdict::Known);
    assert_eq!(admission.metrics().admitted, 2, "it is one session all the time");
}

#[test]
fn a_limit_does_not_come_back_with_nobody_known() {
    let (admission, session) = limiting();
    admission.move_to(400_000);
    admission.amend(Terms { is_on: false, ..Terms::default() });
    admission.amend(Terms::default());
    assert_eq!(admission.state(), State::Asleep);
    admission.wake_up();
    assert_eq!(admission.ask(with_ticket(session)), Verdict::Known);
}

#[test]
fn who_logs_in_has_one_place_and_not_two() {
    let (admission, session) = limiting();
    admission.rename(session, 5);
    assert_eq!(admission.ask(with_ticket(5)), Verdict::Known);
    let again = Asker { stand_in: Some(5), ..STRANGER };
    assert_eq!(admission.ask(again), Verdict::Again(5), "another login of the same account");
    assert_eq!(admission.metrics().active, 1);
}

#[test]
fn switched_off_it_never_wakes_and_asleep_it_forgets() {
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
fn each_is_told_to_come_again_after_another_time() {
    let admission = Admission::told(Terms::default(), 1);
    let times: Vec<u32> = (0..32).map(|chance| admission.again_after(chance)).collect();
    assert!((5..=20).all(|second| times.contains(&second)));
    assert!(times.iter().all(|second| (5..=20).contains(second)));
}
