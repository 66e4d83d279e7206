//! Decides that what once went wrong in a loop or at its workers stays mended; each test tells its
//! story.

use std::sync::Arc;

use bine_server::Settings;

use crate::PATIENCE;
use crate::house::{House, LOOPS, SCHEDULERS, settings};
use crate::peer::{Peer, get};

/// A stop looked at connections that waited for another turn and put them on the ready list a
/// second time; the second time round the request behind one at a worker was read and answered
/// first, as if it were that one's reply. A connection now takes one turn however often it is
/// listed.
#[test]
fn keeps_response_order_during_a_stop() {
    let house = House::open("hybrid");
    // Known to the loop already, so its requests are heard before the stop is.
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
    // The sixteenth may already know of the stop; what comes behind it must be what was asked.
    assert!(peer.reply().to_string().starts_with("200 15"));
    house.program.gate("worker").open();
    peer.rest();
    assert!(house.program.said().iter().all(|word| word != "17"), "answered out of turn");
    house.await_end();
}

/// With more newcomers than a slice the listener was still ready, but the runtime was told that all
/// had been heard; edges come once, so while any handler awaited the rest were never accepted.
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

/// After exactly a full batch the loop yields; when the last task ended in that moment, the loop
/// found no task alive and slept, with the task's reply in its hands.
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
    // With its waker already called the task ends at the first chance it gets.
    house.program.gate("late").open();
    house.program.gate("loop").open();
    for peer in &mut crowd {
        assert_eq!(peer.reply().to_string(), "200 again");
    }
    assert_eq!(waiting.reply().to_string(), "200 later");
}

/// The bound on waiting jobs also counted those that a free thread was about to take: with a queue
/// of none every plain handler was refused.
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

/// Handlers that never return kept their threads for good: when all were stuck every later job was
/// refused. Another thread takes the place of one that is overdue.
#[test]
fn replaces_an_overdue_worker() {
    let mut settings = Settings { workers: 2, ..settings("hybrid") };
    settings.timeouts.handler = std::time::Duration::from_millis(100);
    let house = House::with(settings);
    let mut stuck: Vec<Peer> = (0..2).map(|_| house.connect()).collect();
    for peer in &mut stuck {
        peer.send(get("/block/never"));
    }
    for peer in &mut stuck {
        assert_eq!(peer.reply().status, 504);
    }
    assert_eq!(house.connect().ask("/work"), "200 work");
    house.program.gate("never").open();
}

/// A peer that left while a worker was at its request got no 504, and no other thread took the place of that worker: when
/// all hung for peers that had lost patience, every later job was refused.
#[test]
fn replaces_a_worker_that_hangs_for_a_disconnected_client() {
    let mut settings = Settings { workers: 2, ..settings("hybrid") };
    settings.timeouts.handler = std::time::Duration::from_millis(100);
    let house = House::with(settings);
    let mut leavers: Vec<Peer> = (0..2).map(|_| house.connect()).collect();
    for peer in &mut leavers {
        peer.send(get("/block/never"));
    }
    house.program.gate("never").await_arrivals(2);
    leavers.into_iter().for_each(Peer::reset);
    // Until their time is over a job waits in vain.
    let begun = std::time::Instant::now();
    while house.connect().ask("/work") != "200 work" {
        assert!(begun.elapsed() < PATIENCE, "nobody took their place");
    }
    house.program.gate("never").open();
}

/// A peer that left did not take its job out of the queue: honest ones waited behind the dead.
#[test]
fn withdraws_the_job_of_a_disconnected_client() {
    let house = House::with(Settings { workers: 1, ..settings("hybrid") });
    let mut holder = house.connect();
    holder.send(get("/block/gate"));
    house.program.gate("gate").await_arrivals(1);
    for _ in 0..5 {
        let mut leaver = house.connect();
        leaver.send(get("/block/left"));
        // Answered by the loop itself: by then the job before it is queued.
        assert_eq!(house.connect().ask("/say/queued"), "200 queued");
        leaver.reset();
    }
    assert_eq!(house.connect().ask("/say/seen"), "200 seen");
    house.program.gate("gate").open();
    assert_eq!(house.connect().ask("/work"), "200 work");
    assert_eq!(house.program.gate("left").arrivals(), 0);
}

/// The bound on unsent bytes was looked at only while a page was drained; a plain handler's whole
/// reply went round it.
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

/// Dropping the runtime waited for every call that blocks, so a server with one that never returns
/// never ended.
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
