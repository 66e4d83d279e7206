//! Claims about thread pools other than the workers: what requests wait for one, and what it runs for no single request.

use super::*;

/// Admission with two workers on a server of loops, and a pool of `threads`.
fn with_pool(terms: Terms, threads: usize) -> (Arc<Admission>, Arc<ThreadPool>) {
    let admission = Arc::new(Admission::told(terms, 2));
    admission.begin_loops();
    let pool = admission.add_pool(threads);
    (admission, pool)
}

/// Terms with a place for one session.
fn one_place() -> Terms {
    Terms { least: 1, most: 1, ..Terms::default() }
}

impl ThreadPool {
    /// The first request of a client gets a thread after such a wait, runs for so long, and is answered.
    fn request(self: &Arc<Self>, wait: Duration, run: Duration) {
        self.queue(true).start(wait);
        self.run(run);
        self.answered();
    }

    /// The same of a client that waits for requests of its own.
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

/// Joins of live pages waited for seconds while the state stayed `asleep`: nothing reported the waits for the threads
/// that render, so no newcomer was ever refused.
#[test]
fn wakes_and_limits_new_sessions_when_requests_queue_for_a_pool() {
    let (admission, pool) = with_pool(one_place(), 4);
    (0..ROW).for_each(|_| pool.request(30 * MS, 10 * MS));
    assert_eq!(admission.state(), State::Watching);
    let Verdict::Admitted(session) = admission.ask(STRANGER) else { panic!("it only watches") };
    pool.request(30 * MS, 10 * MS);
    admission.move_to(100);
    assert_eq!(admission.state(), State::Limiting);
    assert_eq!(admission.ask(STRANGER), Verdict::Refused);
    assert_eq!(admission.ask(with_ticket(session)), Verdict::Known);
}

#[test]
fn ends_the_limit_when_the_queue_of_a_pool_has_ended() {
    let (admission, pool) = with_pool(one_place(), 4);
    (0..=ROW).for_each(|_| pool.request(30 * MS, 10 * MS));
    admission.move_to(100);
    assert_eq!(admission.state(), State::Limiting);
    for tenth in 2..=100 {
        pool.request(MS, 10 * MS);
        admission.move_to(100 * tenth);
        admission.turned(Turn::default());
    }
    assert_eq!(admission.state(), State::Asleep);
}

#[test]
fn counts_the_shortest_wait_for_a_pool() {
    let (admission, pool) = with_pool(one_place(), 4);
    admission.wake_up();
    // No thread is free, and one request more waits at each look.
    (0..4).for_each(|_| pool.began());
    let _waiting = pool.queue(true);
    for tenth in 1..=20 {
        (0..50).for_each(|_| pool.request(2000 * MS, MS));
        pool.request(MS, MS);
        admission.move_to(100 * tenth);
        assert_eq!(admission.state(), State::Watching);
    }
}

#[test]
fn ignores_client_that_waits_for_its_own_requests() {
    let (admission, pool) = with_pool(one_place(), 4);
    let waiting: Vec<Queued> = (0..50).map(|_| pool.queue(false)).collect();
    (0..4).for_each(|_| pool.began());
    (0..50).for_each(|_| pool.own_request(2000 * MS, 300 * MS));
    assert_eq!(admission.state(), State::Asleep);
    // Something else has woken it.
    admission.wake_up();
    for tenth in 1..=20 {
        // In every other interval nothing begins, although all threads run and the client waits.
        (0..tenth % 2 * 50).for_each(|_| pool.own_request(2000 * MS, 300 * MS));
        admission.move_to(100 * tenth);
        assert_eq!(admission.state(), State::Watching);
    }
    drop(waiting);
}

#[test]
fn detects_empty_queue_from_one_short_wait() {
    let (admission, pool) = with_pool(one_place(), 4);
    for _ in 0..20 {
        (1..ROW).for_each(|_| pool.request(30 * MS, MS));
        pool.own_request(MS, MS);
    }
    assert_eq!(admission.state(), State::Asleep);
    admission.wake_up();
    for tenth in 1..=20 {
        pool.request(30 * MS, MS);
        pool.own_request(MS, MS);
        admission.move_to(100 * tenth);
        assert_eq!(admission.state(), State::Watching);
    }
}

#[test]
fn rejects_no_session_for_background_work_in_a_pool() {
    let (admission, pool) = with_pool(one_place(), 2);
    for tenth in 1..=20 {
        (0..20).for_each(|_| pool.run(10 * MS));
        admission.move_to(100 * tenth);
        assert_eq!(admission.state(), State::Asleep, "no request has waited");
    }
    admission.wake_up();
    for tenth in 21..=60 {
        (0..20).for_each(|_| pool.run(10 * MS));
        admission.move_to(100 * tenth);
        assert_eq!(admission.state(), State::Watching, "no request has waited");
    }
    assert!(admission.metrics().utilization > 0.95, "{:?}", admission.metrics());
    // A request that finds the pool saturated does wait.
    pool.request(30 * MS, 10 * MS);
    admission.move_to(6100);
    assert_eq!(admission.state(), State::Limiting);
}

#[test]
fn counts_requests_without_a_thread_as_queued() {
    let (admission, pool) = with_pool(one_place(), 1);
    pool.began();
    let mut waiting: Vec<Queued> = (1..ROW).map(|_| pool.queue(true)).collect();
    assert_eq!(admission.state(), State::Asleep);
    waiting.push(pool.queue(true));
    assert_eq!(admission.state(), State::Watching);
    admission.move_to(100);
    assert_eq!(admission.state(), State::Limiting);
    // Cancelled, they wait no more.
    drop(waiting);
    for tenth in 2..=25 {
        admission.move_to(100 * tenth);
        admission.turned(Turn::default());
    }
    pool.ended(2400 * MS);
    assert_eq!(pool.running(), 0);
    for tenth in 26..=60 {
        admission.move_to(100 * tenth);
        admission.turned(Turn::default());
    }
    assert_eq!(admission.state(), State::Watching);
}

#[test]
fn derives_capacity_from_the_busiest_pool() {
    let (admission, pool) = with_pool(Terms::default(), 4);
    admission.wake_up();
    for tenth in 1..=40 {
        // A twentieth of the two workers, and half of the four threads.
        admission.task(MS, 10 * MS);
        (0..20).for_each(|_| pool.request(MS, 10 * MS));
        admission.move_to(100 * tenth);
        admission.turned(Turn::default());
    }
    let metrics = admission.metrics();
    assert!((0.48..0.51).contains(&metrics.utilization), "{metrics:?}");
    // 210 a second, in half of the time that there is.
    assert!((415.0..425.0).contains(&metrics.capacity.unwrap()), "{metrics:?}");
    // With the task by which it woke.
    assert_eq!((metrics.done, metrics.running), (40 * 21 + 1, 0));
}

/// Under `pool` and the like nothing says what else is done: with a few joins known as done, few sessions would fit.
#[test]
fn wakes_for_a_pool_only_with_event_loops() {
    let admission = Arc::new(Admission::told(Terms::default(), 2));
    let pool = admission.add_pool(4);
    (0..10 * ROW).for_each(|_| pool.request(30 * MS, 10 * MS));
    assert!(!admission.is_awake());
}

#[test]
fn resets_late_request_count_of_a_pool_after_sleep() {
    let (admission, pool) = with_pool(Terms::default(), 4);
    (0..ROW).for_each(|_| pool.request(6 * MS, MS));
    assert!(admission.is_awake());
    admission.move_to(10_000);
    admission.turned(Turn::default());
    assert_eq!(admission.state(), State::Asleep);
    (1..ROW).for_each(|_| pool.request(6 * MS, MS));
    assert!(!admission.is_awake());
    pool.request(6 * MS, MS);
    assert!(admission.is_awake());
}
