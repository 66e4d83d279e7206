//! Tests of session admission with a clock that the test sets.

mod measurement;
mod pools;
mod simulation;

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::*;

const MS: Duration = Duration::from_millis(1);

impl Admission {
    /// Creates admission with a clock that [`set_time`](Self::set_time) sets.
    fn with_test_clock(terms: AdmissionSettings, workers: usize) -> Self {
        Self { test_clock: Some(TestClock::default()), ..Self::new(terms, workers) }
    }

    fn set_time(&self, milliseconds: u64) {
        if let Some(clock) = &self.test_clock {
            clock.now.store(milliseconds, Ordering::Relaxed);
        }
    }

    /// Sets the CPU time that the process has used.
    fn set_cpu_time(&self, milliseconds: u64) {
        if let Some(clock) = &self.test_clock {
            clock.cpu.store(milliseconds, Ordering::Relaxed);
        }
    }

    /// Records a task with this wait and this run time.
    fn task(&self, wait: Duration, run: Duration) {
        self.waited(wait);
        self.ran(run, true);
    }

    fn wake_up(&self) {
        (0..LATE_TO_WAKE).for_each(|_| self.task(30 * MS, 10 * MS));
    }

    fn state(&self) -> State {
        self.metrics().state
    }
}

/// A client without a session.
const NEW_CLIENT: RequestIdentity =
    RequestIdentity { ticket: PresentedTicket::None, has_begun: false, stand_in: None };

/// A turn of this duration, in which events waited for the whole turn.
const fn turn(took: Duration) -> LoopTurn {
    LoopTurn { took, waited: took, worked: took }
}

const fn with_ticket(session: u64) -> RequestIdentity {
    RequestIdentity { ticket: PresentedTicket::Valid(session), ..NEW_CLIENT }
}

/// Creates admission with a limit of one session that is in force, and returns it with that
/// session.
fn limiting() -> (Admission, u64) {
    let terms = AdmissionSettings { least: 1, most: 1, ..AdmissionSettings::default() };
    let admission = Admission::with_test_clock(terms, 2);
    admission.wake_up();
    let AdmissionOutcome::Admitted(session) = admission.admit(NEW_CLIENT) else {
        panic!("rejected while watching")
    };
    admission.task(30 * MS, 100 * MS);
    admission.set_time(100);
    assert_eq!(admission.state(), State::Limiting);
    (admission, session)
}

#[test]
fn stays_asleep_after_one_long_wait() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 8);
    for _ in 0..100 {
        (1..LATE_TO_WAKE).for_each(|_| admission.task(30 * MS, MS));
        admission.task(MS, MS);
        (1..LATE_TO_WAKE).for_each(|_| admission.turned(turn(30 * MS)));
        admission.turned(turn(MS));
    }
    assert!(!admission.is_awake());
    admission.wake_up();
    assert!(admission.is_awake());
}

#[test]
fn wakes_when_workers_are_half_busy() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 4);
    (0..2).for_each(|_| admission.waited(Duration::ZERO));
    (1..LATE_TO_WAKE).for_each(|_| admission.handed_over());
    assert!(!admission.is_awake());
    admission.handed_over();
    assert!(admission.is_awake());
}

/// Symptom: with twenty visitors on open connections and one request per second, the server
/// rejected the next visitor. Cause: each page took a turn of 15 ms, and a long turn counted as a
/// queue even if no event waited for its end.
#[test]
fn detects_no_queue_in_event_loop_that_idles_between_slow_pages() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 4);
    (0..LATE_TO_WAKE)
        .for_each(|_| admission.turned(LoopTurn { waited: Duration::ZERO, ..turn(15 * MS) }));
    assert!(admission.is_awake());
    for visitor in 0..120 {
        admission.set_time(1000 * (visitor + 1));
        let identity = RequestIdentity {
            has_begun: visitor >= 20,
            stand_in: Some(visitor % 20),
            ..NEW_CLIENT
        };
        assert_ne!(admission.admit(identity), AdmissionOutcome::Rejected);
        admission.answered();
        admission.turned(LoopTurn { waited: Duration::ZERO, ..turn(15 * MS) });
        assert_ne!(admission.state(), State::Limiting);
    }
    assert_ne!(admission.admit(NEW_CLIENT), AdmissionOutcome::Rejected);
}

/// Symptom: with the scheduler `event` and loops in use by half, the estimated capacity was thirty
/// times too high. Cause: a page that waits blocks its event loop, but only CPU time counted as
/// use.
#[test]
fn counts_event_loop_blocked_by_a_page_as_busy() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 4).on_loops(2);
    (0..LATE_TO_WAKE).for_each(|_| admission.turned(turn(20 * MS)));
    for tenth in 1..=80 {
        for _ in 0..5 {
            admission.answered();
            admission.turned(LoopTurn { waited: Duration::ZERO, ..turn(20 * MS) });
        }
        admission.set_time(100 * tenth);
        admission.turned(LoopTurn::default());
    }
    let metrics = admission.metrics();
    assert!((0.45..0.55).contains(&metrics.utilization), "{metrics:?}");
    assert!((95.0..105.0).contains(&metrics.capacity.unwrap()), "{metrics:?}");
}

#[test]
fn detects_queue_in_event_loop_that_never_idles() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 4);
    for page in 0..50 {
        admission.turned(turn(15 * MS));
        admission.set_time(15 * page);
    }
    assert_eq!(admission.state(), State::Limiting);
}

/// Symptom: after ten idle minutes and one slow page, the limit was eight sessions for half a
/// minute. Cause: the queue of the slow page counted as a queue during the whole interval since the
/// last measurement. Fix: a queue is at most as old as its longest wait.
#[test]
fn bounds_queue_age_by_its_longest_wait() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 2);
    admission.wake_up();
    for tenth in 1..=40 {
        (0..10).for_each(|_| admission.task(MS, 10 * MS));
        admission.set_time(100 * tenth);
        assert_ne!(admission.admit(NEW_CLIENT), AdmissionOutcome::Rejected);
    }
    let before = admission.metrics();
    admission.set_time(600_000);
    admission.task(30 * MS, 10 * MS);
    admission.turned(turn(30 * MS));
    let after = admission.metrics();
    assert!(after.factor >= 0.99 * before.factor, "{before:?} {after:?}");
    assert_eq!(after.state, State::Asleep, "the queue has ended long before");
}

/// Symptom: during an upload, admission admitted ten times as many sessions as the server could
/// serve. Cause: each of the thousands of chunks of the body counted as a completed request.
#[test]
fn does_not_count_body_chunks_as_completed_requests() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 2);
    admission.wake_up();
    for tenth in 1..=80 {
        admission.task(MS, 10 * MS);
        for _ in 0..9 {
            admission.waited(MS);
            admission.ran(10 * MS, false);
        }
        admission.set_time(100 * tenth);
        admission.turned(LoopTurn::default());
    }
    // Ten requests per second at half utilization.
    let capacity = admission.metrics().capacity.unwrap();
    assert!((19.0..30.0).contains(&capacity), "{capacity}");
}

#[test]
fn resets_late_request_count_after_sleep() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 4);
    let slow = || admission.turned(LoopTurn { waited: Duration::ZERO, ..turn(11 * MS) });
    (0..LATE_TO_WAKE).for_each(|_| slow());
    admission.set_time(10_000);
    admission.turned(LoopTurn::default());
    assert_eq!(admission.state(), State::Asleep);
    (1..LATE_TO_WAKE).for_each(|_| slow());
    assert!(!admission.is_awake());
    slow();
    assert!(admission.is_awake());
}

/// Symptom: admission was asleep instead of off after it had been disabled. Cause: a thread that
/// was about to measure at that time published its state.
#[test]
fn keeps_admission_off_after_a_late_measurement() {
    let (admission, _) = limiting();
    admission.amend(AdmissionSettings { is_on: false, ..AdmissionSettings::default() });
    admission.measure(&mut admission.lock(), 60_000);
    assert!(!admission.is_on());
}

/// A thread that is about to wake admission while another thread disables it must not enable it.
#[test]
fn keeps_admission_off_after_a_late_wake() {
    let admission = Admission::off();
    admission.wake();
    assert!(!admission.is_on() && !admission.is_awake());
}

#[test]
fn is_on_unless_disabled() {
    let terms = AdmissionSettings { least: 3, ..AdmissionSettings::default() };
    let admission = Admission::new(terms.clone(), 2);
    assert!(admission.is_on());
    assert_eq!(admission.settings(), terms);
    assert!(!Admission::off().is_on());
    assert!(!Admission::off().settings().is_on);
}

#[test]
fn numbers_clients_by_their_address_and_port() {
    let admission = Admission::off();
    let number = |address: &str| admission.number_of(address.parse().unwrap());
    assert_eq!(number("192.0.2.1:4000"), number("192.0.2.1:4000"));
    assert_ne!(number("192.0.2.1:4000"), number("192.0.2.1:4001"));
    assert_ne!(number("192.0.2.1:4000"), number("192.0.2.2:4000"));
}

#[test]
fn keeps_retry_after_within_any_range() {
    for (retry, chance) in [(0..=u32::MAX, 7), (5..=5, 7), (0..=0, u32::MAX)] {
        let admission = Admission::with_test_clock(
            AdmissionSettings { retry: retry.clone(), ..AdmissionSettings::default() },
            1,
        );
        assert!(retry.contains(&admission.again_after(chance)));
    }
}

#[test]
fn wakes_after_consecutive_slow_event_loop_turns() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 4);
    (0..LATE_TO_WAKE).for_each(|_| admission.turned(turn(11 * MS)));
    assert!(admission.is_awake());
}

#[test]
fn admits_all_and_recognizes_returning_clients_while_watching() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 2);
    admission.wake_up();
    let AdmissionOutcome::Admitted(one) = admission.admit(NEW_CLIENT) else {
        panic!("rejected while watching")
    };
    let AdmissionOutcome::Admitted(two) = admission.admit(NEW_CLIENT) else {
        panic!("rejected while watching")
    };
    assert_ne!(one, two);
    assert_eq!(admission.admit(with_ticket(one)), AdmissionOutcome::Known);
    let metrics = admission.metrics();
    assert_eq!((metrics.active, metrics.admitted, metrics.served), (2, 2, 3));
}

#[test]
fn rejects_new_sessions_and_serves_existing_ones() {
    let (admission, session) = limiting();
    assert_eq!(admission.admit(NEW_CLIENT), AdmissionOutcome::Rejected);
    assert_eq!(admission.admit(with_ticket(session)), AdmissionOutcome::Known);
    let foreign = RequestIdentity { ticket: PresentedTicket::Invalid, ..NEW_CLIENT };
    assert_eq!(admission.admit(foreign), AdmissionOutcome::Rejected);
    let existing = RequestIdentity { has_begun: true, stand_in: Some(7), ..NEW_CLIENT };
    assert_eq!(admission.admit(existing), AdmissionOutcome::Admitted(7));
    assert_eq!(
        admission.admit(existing),
        AdmissionOutcome::Reissue(7),
        "a client without cookies is one session"
    );
    let expired = RequestIdentity { ticket: PresentedTicket::Expired(8), ..NEW_CLIENT };
    assert_eq!(admission.admit(expired), AdmissionOutcome::Rejected);
    let refused = RejectionCounts { strangers: 1, foreign: 1, old: 1 };
    assert_eq!(admission.metrics().refused, refused);
}

#[test]
fn accepts_ticket_after_restart_but_not_after_idle_timeout() {
    let (admission, _) = limiting();
    assert_eq!(
        admission.admit(with_ticket(77)),
        AdmissionOutcome::Known,
        "the ticket may be older than a restart"
    );
    // Admission stays awake, and sessions that are idle for longer than the terms allow are
    // unknown.
    for second in 1..400 {
        admission.task(30 * MS, 900 * MS);
        admission.set_time(second * 1000);
        admission.turned(turn(30 * MS));
    }
    // The only place is taken by a new session.
    assert!(matches!(admission.admit(NEW_CLIENT), AdmissionOutcome::Admitted(_)));
    assert_eq!(admission.admit(with_ticket(77)), AdmissionOutcome::Rejected);
    assert_eq!(admission.metrics().refused.old, 1);
}

#[test]
fn bounds_admission_by_collected_tickets_to_twice_the_limit() {
    let (admission, _) = limiting();
    let is_admitted = |id: &u64| admission.admit(with_ticket(*id)) == AdmissionOutcome::Known;
    let admitted = (100..200).filter(is_admitted);
    assert_eq!(admitted.count(), 1, "twice the limit is two, and one place is taken");
}

#[test]
fn keeps_sessions_across_clock_jumps() {
    let (admission, session) = limiting();
    let with_old =
        |session| RequestIdentity { ticket: PresentedTicket::Expired(session), ..NEW_CLIENT };
    assert_eq!(admission.admit(with_old(session)), AdmissionOutcome::Reissue(session));
    assert_eq!(admission.admit(with_old(session + 1)), AdmissionOutcome::Rejected);
}

#[test]
fn reissues_missing_tickets() {
    let (admission, _) = limiting();
    let existing = RequestIdentity { has_begun: true, stand_in: Some(7), ..NEW_CLIENT };
    assert_eq!(admission.admit(existing), AdmissionOutcome::Admitted(7));
    assert_eq!(admission.admit(existing), AdmissionOutcome::Reissue(7));
    assert_eq!(admission.admit(with_ticket(7)), AdmissionOutcome::Known);
    assert_eq!(admission.metrics().admitted, 2, "all requests belong to one session");
}

#[test]
fn serves_existing_sessions_after_admission_is_reenabled() {
    let (admission, session) = limiting();
    admission.set_time(400_000);
    admission.amend(AdmissionSettings { is_on: false, ..AdmissionSettings::default() });
    admission.amend(AdmissionSettings::default());
    assert_eq!(admission.state(), State::Asleep);
    admission.wake_up();
    assert_eq!(admission.admit(with_ticket(session)), AdmissionOutcome::Known);
}

#[test]
fn counts_session_once_after_login() {
    let (admission, session) = limiting();
    admission.rename(session, 5);
    assert_eq!(admission.admit(with_ticket(5)), AdmissionOutcome::Known);
    let again = RequestIdentity { stand_in: Some(5), ..NEW_CLIENT };
    assert_eq!(
        admission.admit(again),
        AdmissionOutcome::Reissue(5),
        "another login of the same account"
    );
    assert_eq!(admission.metrics().active, 1);
}

#[test]
fn counts_no_session_at_login_while_asleep() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 2);
    admission.rename(1, 2);
    assert_eq!(admission.metrics().known, 0);
}

#[test]
fn never_wakes_when_disabled_and_forgets_sessions_asleep() {
    let (admission, _) = limiting();
    admission.amend(AdmissionSettings { is_on: false, ..AdmissionSettings::default() });
    admission.wake_up();
    assert!(!admission.is_on() && !admission.is_awake());
    admission.amend(AdmissionSettings::default());
    admission.set_time(60_000);
    admission.turned(LoopTurn::default());
    admission.set_time(120_000);
    assert_eq!((admission.state(), admission.metrics().known), (State::Asleep, 0));
}

#[test]
fn varies_retry_after_between_clients() {
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 1);
    let times: Vec<u32> = (0..32).map(|chance| admission.again_after(chance)).collect();
    assert!((5..=20).all(|second| times.contains(&second)));
    assert!(times.iter().all(|second| (5..=20).contains(second)));
}
