//! Tests of single measurements: their exact bounds, and the clocks.

use std::sync::PoisonError;

use super::*;

/// An interval that is longer than its queue counts as two: one without the queue and without the
/// requests, and the queue.
#[test]
fn splits_a_long_interval_before_its_queue() {
    // With a minimum of 0 the client is rejected.
    for (least, requests) in [(0, 0), (8, 1)] {
        let terms = AdmissionSettings { least, ..AdmissionSettings::default() };
        let admission = Admission::with_test_clock(terms.clone(), 2);
        admission.wake_up();
        admission.task(30 * MS, 10 * MS);
        admission.set_time(100);
        assert_eq!(admission.state(), State::Limiting);
        let outcome = admission.admit(NEW_CLIENT);
        assert_eq!(outcome == AdmissionOutcome::Rejected, requests == 0);
        admission.task(150 * MS, 30 * MS);
        admission.set_time(1100);

        let mut policy = Policy::new(terms);
        policy.wake();
        // The task that woke admission counts too.
        let busy = 0.02 / 0.1 / 2.0;
        let first =
            Sample { elapsed: 100 * MS, done: 2, busy, is_queued: true, ..Sample::default() };
        policy.tick(&first);
        let queue = Sample {
            elapsed: 150 * MS,
            done: 1,
            requests,
            busy: 0.03 / 2.0,
            is_queued: true,
            active: requests as usize,
            refused: 1 - requests,
            ..Sample::default()
        };
        let idle = Sample { done: 0, requests: 0, refused: 0, is_queued: false, ..queue };
        policy.tick(&Sample { elapsed: 850 * MS, ..idle });
        policy.tick(&queue);
        let metrics = admission.metrics();
        assert_eq!(
            (metrics.state, metrics.factor, metrics.utilization, metrics.capacity, metrics.rate),
            (
                policy.state(),
                policy.factor(),
                policy.utilization(),
                policy.capacity(),
                policy.rate()
            )
        );
    }
}

#[test]
fn divides_cpu_time_by_the_time_of_all_cores() {
    let clocked = Admission::with_test_clock(AdmissionSettings::default(), 2);
    let admission = Admission { cores: 4.0, ..clocked };
    admission.wake_up();
    for tenth in 1..=40 {
        // Two of four cores compute.
        admission.set_cpu_time(200 * tenth);
        admission.set_time(100 * tenth);
        admission.turned(LoopTurn::default());
    }
    let utilization = admission.metrics().utilization;
    assert!((utilization - 0.5).abs() < 1e-3, "{utilization}");
}

#[test]
fn reports_each_change_of_the_state_to_the_observer() {
    static CHANGES: Mutex<Vec<State>> = Mutex::new(Vec::new());
    fn record(state: State) {
        CHANGES.lock().unwrap_or_else(PoisonError::into_inner).push(state);
    }
    let admission = Admission::with_test_clock(AdmissionSettings::default(), 2).on_change(record);
    admission.wake_up();
    for tenth in 1..=100 {
        // A queue for one second.
        let wait = if tenth <= 10 { 30 * MS } else { MS };
        admission.task(wait, MS);
        admission.set_time(100 * tenth);
        admission.turned(LoopTurn::default());
    }
    let changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(changes, [State::Limiting, State::Watching, State::Asleep]);
}

#[test]
fn counts_only_waits_above_half_of_the_terms_as_late() {
    for (wait, is_late) in [(5 * MS, false), (5 * MS + Duration::from_micros(1), true)] {
        let admission = Admission::with_test_clock(AdmissionSettings::default(), 4);
        (0..LATE_TO_WAKE).for_each(|_| admission.turned(turn(wait)));
        assert_eq!(admission.is_awake(), is_late, "{wait:?}");
    }
}

/// Workers beyond eight for each core do not count: they wait for something other than a core.
#[test]
fn wakes_when_four_workers_for_each_core_are_busy() {
    for (running, is_late) in [(7, false), (8, true)] {
        let clocked = Admission::with_test_clock(AdmissionSettings::default(), 1000);
        let admission = Admission { cores: 2.0, ..clocked };
        (0..running).for_each(|_| admission.waited(Duration::ZERO));
        (0..LATE_TO_WAKE).for_each(|_| admission.handed_over());
        assert_eq!(admission.is_awake(), is_late, "{running} tasks");
    }
}

#[test]
fn counts_waiting_task_as_queued_only_with_three_quarters_of_the_workers_busy() {
    for (workers, running, state) in [
        (8, 5, State::Watching),
        (8, 6, State::Limiting),
        (3, 2, State::Watching),
        (3, 3, State::Limiting),
    ] {
        let admission = Admission::with_test_clock(AdmissionSettings::default(), workers);
        admission.wake_up();
        (0..running).for_each(|_| admission.waited(Duration::ZERO));
        admission.set_time(100);
        assert_eq!(admission.state(), State::Watching);
        admission.handed_over();
        admission.set_time(200);
        assert_eq!(admission.state(), state, "{running} of {workers} workers");
    }
}

#[test]
fn reads_the_clocks_of_the_system() {
    let admission = Admission::off();
    let time = |clock| Duration::try_from(clock_gettime(clock)).unwrap();
    let before = time(ClockId::MonotonicCoarse).as_millis() as u64;
    let now = admission.now();
    let after = time(ClockId::MonotonicCoarse).as_millis() as u64;
    assert!((before..=after).contains(&now), "{before} {now} {after}");
    let before = time(ClockId::ProcessCPUTime);
    let now = admission.cpu_time();
    let after = time(ClockId::ProcessCPUTime);
    assert!((before..=after).contains(&now), "{before:?} {now:?} {after:?}");
}
