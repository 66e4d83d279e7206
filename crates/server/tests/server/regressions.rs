//! Regression tests of loops and workers. Each test describes its fault.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use bine_server::Settings;

use crate::PATIENCE;
use crate::gate::Gate;
use crate::house::{House, LOOPS, SCHEDULERS, settings};
use crate::peer::{Peer, get};

/// Symptom: during a stop, the response to a later request appeared as the response to an earlier
/// one at a worker. Cause: the stop put connections that waited for another turn on the ready list
/// a second time, and the second turn read the later request. Fix: a connection takes one turn
/// however often it is listed.
#[test]
fn keeps_response_order_during_a_stop() {
    let house = House::open("hybrid");
    // The loop already has this connection, so it processes these requests before the stop.
    let mut peer = house.connect();
    assert_eq!(peer.ask("/say/known"), "200 known");
    let mut holder = house.connect();
    holder.send(get("/hold/loop"));
    house.program.gate("loop").await_arrivals(1);
    let first: String = (0..16).map(|number| get(&format!("/say/{number}"))).collect();
    peer.send(first + &get("/block/worker") + &get("/say/17") + &get("/say/18"));
    house.stop();
    house.program.gate("loop").open();
    for number in 0..15 {
        assert!(peer.reply().to_string().starts_with(&format!("200 {number}")));
    }
    // The sixteenth response may already reflect the stop; the ones after it must match their
    // requests.
    assert!(peer.reply().to_string().starts_with("200 15"));
    house.program.gate("worker").open();
    peer.rest();
    assert!(house.program.said().iter().all(|word| word != "17"), "answered out of turn");
    house.await_end();
}

/// Symptom: with more new connections than a slice, the rest was not accepted while a handler was
/// suspended. Cause: the loop cleared the runtime's readiness although the listener was still
/// ready, and edge-triggered events do not repeat.
#[test]
fn accepts_more_connections_than_a_slice_while_a_handler_awaits() {
    let house = House::open("hybrid");
    let mut waiting = house.connect();
    waiting.send(get("/wait/never"));
    house.program.gate("never").await_arrivals(1);
    let mut holder = house.connect();
    holder.send(get("/hold/loop"));
    house.program.gate("loop").await_arrivals(1);
    let mut newcomers: Vec<Peer> = (0..40).map(|_| house.connect()).collect();
    house.program.gate("loop").open();
    for newcomer in &mut newcomers {
        assert_eq!(newcomer.ask("/say/in"), "200 in");
    }
}

/// Symptom: a response was not sent. Cause: after exactly a full batch the loop yields. When the
/// last task ended at that moment, the loop found no task alive and slept with the unsent response.
#[test]
fn sends_a_response_that_completes_while_the_loop_yields() {
    let house = House::open("hybrid");
    let mut waiting = house.connect();
    waiting.send(get("/wait/late"));
    house.program.gate("late").await_arrivals(1);
    let mut crowd: Vec<Peer> = (0..511).map(|_| house.connect()).collect();
    for peer in &mut crowd {
        assert_eq!(peer.ask("/say/in"), "200 in");
    }
    let mut holder = house.connect();
    holder.send(get("/hold/loop"));
    house.program.gate("loop").await_arrivals(1);
    for peer in &mut crowd {
        peer.send(get("/say/again"));
    }
    // The waker has already been called, so the task ends at its next poll.
    house.program.gate("late").open();
    house.program.gate("loop").open();
    for peer in &mut crowd {
        assert_eq!(peer.reply().to_string(), "200 again");
    }
    assert_eq!(waiting.reply().to_string(), "200 later");
}

/// Symptom: with a queue length of zero, every plain handler was rejected. Cause: the limit of
/// waiting jobs included those that a free thread was about to take.
#[test]
fn does_not_count_jobs_for_free_threads_as_waiting() {
    let house = House::with(Settings { queue: 0, workers: 2, ..settings("hybrid") });
    let mut one = house.connect();
    let mut other = house.connect();
    one.send(get("/block/gate"));
    other.send(get("/block/gate"));
    house.program.gate("gate").await_arrivals(2);
    let mut third = house.connect();
    third.send(get("/work"));
    assert_eq!(third.reply().status, 503, "both are busy, and nobody may wait");
    house.program.gate("gate").open();
    assert_eq!((one.reply().status, other.reply().status), (200, 200));
}

/// Symptom: handlers that never returned kept their threads permanently. When all threads were
/// stuck, the server rejected every later job. Fix: the pool replaces an overdue thread.
#[test]
fn replaces_an_overdue_worker() {
    let mut settings = Settings { workers: 2, ..settings("hybrid") };
    settings.timeouts.handler = std::time::Duration::from_millis(100);
    let house = House::with(settings);
    let gate = house.program.gate("never");
    for stuck in 1..=2 {
        let mut peer = send_until_it_runs(&house, &gate, stuck);
        assert_eq!(peer.reply().status, 504);
    }
    await_work(&house);
    gate.open();
}

/// Symptom: when all workers hung for clients that had disconnected, every later job was rejected.
/// Cause: such a request got no 504, and no thread replaced its worker.
#[test]
fn replaces_a_worker_that_hangs_for_a_disconnected_client() {
    let mut settings = Settings { workers: 2, ..settings("hybrid") };
    settings.timeouts.handler = std::time::Duration::from_millis(100);
    let house = House::with(settings);
    let gate = house.program.gate("never");
    for leavers in 1..=2 {
        send_until_it_runs(&house, &gate, leavers).reset();
    }
    // Jobs wait in vain until the timeout.
    await_work(&house);
    gate.open();
}

/// Sends `/block/never` until `count` of these handlers run: a job gets a 503 if no thread of a busy
/// machine takes it in good time.
fn send_until_it_runs(house: &House, gate: &Gate, count: usize) -> Peer {
    let begun = Instant::now();
    loop {
        let mut peer = house.connect();
        peer.send(get("/block/never"));
        while gate.arrivals() < count && !peer.has_reply() {
            let has_time = begun.elapsed() < PATIENCE && !peer.has_closed();
            assert!(has_time, "the request gets neither a thread nor a reply");
            thread::yield_now();
        }
        if gate.arrivals() == count {
            return peer;
        }
        assert_eq!(peer.reply().status, 503);
        assert!(begun.elapsed() < PATIENCE, "no thread takes the job");
    }
}

/// Waits until a worker takes a job.
fn await_work(house: &House) {
    let begun = Instant::now();
    while house.connect().ask("/work") != "200 work" {
        assert!(begun.elapsed() < PATIENCE, "nobody took the place of stuck workers");
    }
}

/// Symptom: jobs of disconnected clients stayed in the queue and delayed later jobs.
#[test]
fn withdraws_the_job_of_a_disconnected_client() {
    let house = House::with(Settings { workers: 1, ..settings("hybrid") });
    let mut holder = house.connect();
    holder.send(get("/block/gate"));
    house.program.gate("gate").await_arrivals(1);
    for _ in 0..5 {
        let mut leaver = house.connect();
        leaver.send(get("/block/left"));
        // The loop itself answers this request, so the previous job is queued by then.
        assert_eq!(house.connect().ask("/say/queued"), "200 queued");
        leaver.reset();
    }
    assert_eq!(house.connect().ask("/say/seen"), "200 seen");
    house.program.gate("gate").open();
    assert_eq!(house.connect().ask("/work"), "200 work");
    assert_eq!(house.program.gate("left").arrivals(), 0);
}

/// Symptom: the whole response of a plain handler could exceed the limit of unsent bytes. Cause:
/// only the draining of a page checked the limit.
#[test]
fn reports_a_whole_response_over_the_size_limit() {
    for scheduler in SCHEDULERS {
        let house = House::with(Settings { unsent: 100_000, ..settings(scheduler) });
        let mut peer = house.connect();
        peer.send(get("/work-long/200000"));
        assert_eq!(peer.reply().status, 500, "{scheduler}");
        peer.expect_closed();
        assert_eq!(house.connect().ask("/work"), "200 work");
    }
}

/// Symptom: a server with a blocking call that never returns never ended. Cause: dropping the
/// runtime waited for every blocking call.
#[test]
fn shuts_down_despite_a_call_that_never_returns() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let gate = Arc::clone(&house.program.gate("never"));
        let mut peer = house.connect();
        peer.send(get("/abandon/never"));
        assert_eq!(peer.reply().status, 200);
        gate.await_arrivals(1);
        house.stop();
        house.await_end();
        gate.open();
    }
}
