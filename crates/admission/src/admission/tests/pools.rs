//! Tests of other thread pools: requests that wait for a pool, and its background work.

use super::*;

/// Creates admission with two workers and event loops, and a pool of `threads`.
fn with_pool(terms: AdmissionSettings, threads: usize) -> (Arc<Admission>, Arc<ThreadPool>) {
    let admission = Arc::new(Admission::with_test_clock(terms, 2));
    admission.begin_loops();
    let pool = admission.add_pool(threads);
    (admission, pool)
}

/// Terms with a limit of one session.
fn one_place() -> AdmissionSettings {
    AdmissionSettings { least: 1, most: 1, ..AdmissionSettings::default() }
}

impl ThreadPool {
    /// Records the first request of a client, with this wait and this run time.
    fn request(self: &Arc<Self>, wait: Duration, run: Duration) {
        self.queue(true).start(wait);
        self.run(run);
        self.answered();
    }

    /// Records a request of a client that waits for its own requests.
    fn own_request(self: &Arc<Self>, wait: Duration, run: Duration) {
        self.queue(false).start(wait);
        self.run(run);
        self.answered();
    }

    fn run(&self, run: Duration) {
        self.began();
        self.ended(run);
    }
}

/// Symptom: subscriptions to live pages waited for seconds while admission stayed asleep and
/// rejected no new session. Cause: the waits for the rendering threads were not reported.
#[test]
fn wakes_and_limits_new_sessions_when_requests_queue_for_a_pool() {
    let (admission, pool) = with_pool(one_place(), 4);
    (0..LATE_TO_WAKE).for_each(|_| pool.request(30 * MS, 10 * MS));
    assert_eq!(admission.state(), State::Watching);
    let AdmissionOutcome::Admitted(session) = admission.admit(NEW_CLIENT) else {
        panic!("rejected while watching")
    };
    pool.request(30 * MS, 10 * MS);
    admission.set_time(100);
    assert_eq!(admission.state(), State::Limiting);
    assert_eq!(admission.admit(NEW_CLIENT), AdmissionOutcome::Rejected);
    assert_eq!(admission.admit(with_ticket(session)), AdmissionOutcome::Known);
}

#[test]
fn ends_the_limit_when_the_queue_of_a_pool_has_ended() {
    let (admission, pool) = with_pool(one_place(), 4);
    (0..=LATE_TO_WAKE).for_each(|_| pool.request(30 * MS, 10 * MS));
    admission.set_time(100);
    assert_eq!(admission.state(), State::Limiting);
    for tenth in 2..=100 {
        pool.request(MS, 10 * MS);
        admission.set_time(100 * tenth);
        admission.turned(LoopTurn::default());
    }
    assert_eq!(admission.state(), State::Asleep);
}

#[test]
fn counts_the_shortest_wait_for_a_pool() {
    let (admission, pool) = with_pool(one_place(), 4);
    admission.wake_up();
    // No thread is idle, and a request waits at each measurement.
    (0..4).for_each(|_| pool.began());
    let _waiting = pool.queue(true);
    for tenth in 1..=20 {
        (0..50).for_each(|_| pool.request(2000 * MS, MS));
        pool.request(MS, MS);
        admission.set_time(100 * tenth);
        assert_eq!(admission.state(), State::Watching);
    }
}

#[test]
fn ignores_client_that_waits_for_its_own_requests() {
    let (admission, pool) = with_pool(one_place(), 4);
    let waiting: Vec<QueuedRequest> = (0..50).map(|_| pool.queue(false)).collect();
    (0..4).for_each(|_| pool.began());
    (0..50).for_each(|_| pool.own_request(2000 * MS, 300 * MS));
    assert_eq!(admission.state(), State::Asleep);
    // The workers wake it.
    admission.wake_up();
    for tenth in 1..=20 {
        // In every second interval no request starts, although all threads run and the client
        // waits.
        (0..tenth % 2 * 50).for_each(|_| pool.own_request(2000 * MS, 300 * MS));
        admission.set_time(100 * tenth);
        assert_eq!(admission.state(), State::Watching);
    }
    drop(waiting);
}

#[test]
fn detects_empty_queue_from_one_short_wait() {
    let (admission, pool) = with_pool(one_place(), 4);
    for _ in 0..20 {
        (1..LATE_TO_WAKE).for_each(|_| pool.request(30 * MS, MS));
        pool.own_request(MS, MS);
    }
    assert_eq!(admission.state(), State::Asleep);
    admission.wake_up();
    for tenth in 1..=20 {
        pool.request(30 * MS, MS);
        pool.own_request(MS, MS);
        admission.set_time(100 * tenth);
        assert_eq!(admission.state(), State::Watching);
    }
}

#[test]
fn rejects_no_session_for_background_work_in_a_pool() {
    let (admission, pool) = with_pool(one_place(), 2);
    for tenth in 1..=20 {
        (0..20).for_each(|_| pool.run(10 * MS));
        admission.set_time(100 * tenth);
        assert_eq!(admission.state(), State::Asleep, "no request has waited");
    }
    admission.wake_up();
    for tenth in 21..=60 {
        (0..20).for_each(|_| pool.run(10 * MS));
        admission.set_time(100 * tenth);
        assert_eq!(admission.state(), State::Watching, "no request has waited");
    }
    assert!(admission.metrics().utilization > 0.95, "{:?}", admission.metrics());
    // A request that finds the pool saturated does wait.
    pool.request(30 * MS, 10 * MS);
    admission.set_time(6100);
    assert_eq!(admission.state(), State::Limiting);
}

#[test]
fn counts_requests_without_a_thread_as_queued() {
    let (admission, pool) = with_pool(one_place(), 1);
    pool.began();
    let mut waiting: Vec<QueuedRequest> = (1..LATE_TO_WAKE).map(|_| pool.queue(true)).collect();
    assert_eq!(admission.state(), State::Asleep);
    waiting.push(pool.queue(true));
    assert_eq!(admission.state(), State::Watching);
    admission.set_time(100);
    assert_eq!(admission.state(), State::Limiting);
    // A drop cancels the requests: the queue, which lowers the limit, has ended.
    drop(waiting);
    let before = admission.metrics().factor;
    for tenth in 2..=25 {
        admission.set_time(100 * tenth);
        admission.turned(LoopTurn::default());
    }
    assert!(admission.metrics().factor > before, "{before} {:?}", admission.metrics());
    assert_eq!(pool.running(), 1);
    pool.ended(2400 * MS);
    assert_eq!(pool.running(), 0);
    for tenth in 26..=60 {
        admission.set_time(100 * tenth);
        admission.turned(LoopTurn::default());
    }
    assert_eq!(admission.state(), State::Watching);
}

#[test]
fn derives_capacity_from_the_busiest_pool() {
    let (admission, pool) = with_pool(AdmissionSettings::default(), 4);
    admission.wake_up();
    for tenth in 1..=40 {
        // The utilization of the two workers is 0.05, that of the four threads 0.5.
        admission.task(MS, 10 * MS);
        (0..20).for_each(|_| pool.request(MS, 10 * MS));
        admission.set_time(100 * tenth);
        admission.turned(LoopTurn::default());
    }
    let metrics = admission.metrics();
    assert!((0.48..0.51).contains(&metrics.utilization), "{metrics:?}");
    // 210 requests per second at half utilization.
    assert!((415.0..425.0).contains(&metrics.capacity.unwrap()), "{metrics:?}");
    // Includes the task that woke admission.
    assert_eq!((metrics.done, metrics.running), (40 * 21 + 1, 0));
}

/// Schedulers such as `pool` do not report other completed requests. From the requests of a pool
/// alone, admission would compute a limit that is too low.
#[test]
fn wakes_for_a_pool_only_with_event_loops() {
    let admission = Arc::new(Admission::with_test_clock(AdmissionSettings::default(), 2));
    let pool = admission.add_pool(4);
    (0..10 * LATE_TO_WAKE).for_each(|_| pool.request(30 * MS, 10 * MS));
    assert!(!admission.is_awake());
}

#[test]
fn resets_late_request_count_of_a_pool_after_sleep() {
    let (admission, pool) = with_pool(AdmissionSettings::default(), 4);
    (0..LATE_TO_WAKE).for_each(|_| pool.request(6 * MS, MS));
    assert!(admission.is_awake());
    admission.set_time(10_000);
    admission.turned(LoopTurn::default());
    assert_eq!(admission.state(), State::Asleep);
    (1..LATE_TO_WAKE).for_each(|_| pool.request(6 * MS, MS));
    assert!(!admission.is_awake());
    pool.request(6 * MS, MS);
    assert!(admission.is_awake());
}

#[test]
fn wakes_for_requests_that_find_half_of_a_pool_busy() {
    for (threads, running, is_late) in [(8, 3, false), (8, 4, true), (1, 0, false), (1, 1, true)] {
        let (admission, pool) = with_pool(AdmissionSettings::default(), threads);
        (0..running).for_each(|_| pool.began());
        let waiting: Vec<QueuedRequest> = (0..LATE_TO_WAKE).map(|_| pool.queue(true)).collect();
        assert_eq!(admission.is_awake(), is_late, "{running} of {threads} threads");
        drop(waiting);
    }
}

#[test]
fn counts_waiting_request_as_queued_only_with_three_quarters_of_a_pool_busy() {
    for (threads, running, state) in [
        (8, 5, State::Watching),
        (8, 6, State::Limiting),
        (3, 2, State::Watching),
        (3, 3, State::Limiting),
    ] {
        let (admission, pool) = with_pool(AdmissionSettings::default(), threads);
        admission.wake_up();
        (0..running).for_each(|_| pool.began());
        let _waiting = pool.queue(true);
        admission.set_time(100);
        assert_eq!(admission.state(), state, "{running} of {threads} threads");
    }
}

#[test]
fn detects_queue_for_a_pool_only_above_the_wait_of_the_terms() {
    for (wait, state) in
        [(10 * MS, State::Watching), (10 * MS + Duration::from_micros(1), State::Limiting)]
    {
        let (admission, pool) = with_pool(AdmissionSettings::default(), 4);
        admission.wake_up();
        pool.request(wait, MS);
        admission.set_time(100);
        assert_eq!(admission.state(), state, "{wait:?}");
    }
}
