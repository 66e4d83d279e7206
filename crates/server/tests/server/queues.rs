//! Tests of the queue scheduler: the order of stages, and requests that wait too long.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bine_server::scheduler::{Pool, Queue, Scheduler};
use bine_server::tls::{Tickets, Tls};
use bine_server::{Settings, Timeouts};

use crate::PATIENCE;
use crate::house::{House, settings};
use crate::peer::{Peer, get};
use crate::secrecy::{Made, Trust};

/// Waits until `count` tasks wait for the one thread of `queue`.
#[track_caller]
fn await_waiting(queue: &Queue, count: usize) {
    let deadline = Instant::now() + PATIENCE;
    while !queue.status().ends_with(&format!("; {count} tasks wait for a thread")) {
        assert!(Instant::now() < deadline, "{}", queue.status());
        thread::yield_now();
    }
}

/// Under `pool` a thread keeps its connection while connections wait, and runs the second request
/// of the first connection before the first request of the second connection. Under `queue` the
/// order is reversed.
#[test]
fn serves_requests_in_turn_when_no_thread_is_free() {
    let queue = Arc::new(Queue::new(1, 64).unwrap());
    let house = House::on(Arc::<Queue>::clone(&queue), settings("queue"));
    assert_eq!(order(&house, || await_waiting(&queue, 1)), ["b", "a"]);
    let house = House::on(Arc::new(Pool::new(1)), settings("pool"));
    assert_eq!(order(&house, || {}), ["a", "b"]);
}

/// Returns the order in which two requests ran: `a`, the second request of the connection that has
/// the thread, and `b`, the first request of a second connection. `settled` waits until `b` is
/// queued.
fn order(house: &House, settled: impl Fn()) -> Vec<String> {
    let mut first = house.connect();
    first.send(get("/block/gate") + &get("/say/a"));
    house.program.gate("gate").await_arrivals(1);
    let mut other = house.connect();
    other.send(get("/say/b"));
    settled();
    house.program.gate("gate").open();
    let replies = [first.reply(), first.reply(), other.reply()];
    assert!(replies.iter().all(|reply| reply.status == 200));
    house.program.said()
}

#[test]
fn runs_all_stages_of_a_request_when_the_queue_is_empty() {
    let queue = Arc::new(Queue::new(2, 64).unwrap());
    let house = House::on(Arc::<Queue>::clone(&queue), settings("queue"));
    let mut peer = house.connect();
    for path in ["/thread", "/work", "/long/70000", "/echo/1"] {
        peer.send(get(path));
        assert_eq!(peer.reply().status, 200, "{path}");
    }
    assert!(queue.status().ends_with("; 0 tasks wait for a thread"), "{}", queue.status());
}

/// Covers a parsed request and an accepted connection that both wait too long for a thread.
#[test]
fn rejects_requests_that_wait_too_long_and_sends_finished_responses() {
    let queue = Arc::new(Queue::new(1, 64).unwrap());
    let house = House::on(Arc::<Queue>::clone(&queue), patient(PATIENCE));
    let mut first = house.connect();
    first.send(get("/block/one"));
    house.program.gate("one").await_arrivals(1);
    let mut second = house.connect();
    second.send(get("/block/two"));
    await_waiting(&queue, 1);
    let mut third = house.connect();
    third.send(get("/block/three"));
    await_waiting(&queue, 2);
    house.program.gate("one").open();
    assert_eq!(first.reply().status, 200);
    // All requests reach the blocking stage, and the thread runs the first.
    house.program.gate("two").await_arrivals(1);
    house.replace(patient(Duration::from_millis(1)));
    assert_eq!(third.reply().status, 503);
    third.expect_closed();
    let mut late = house.connect();
    late.send(get("/"));
    assert_eq!(late.reply().status, 503);
    house.program.gate("two").open();
    assert_eq!(second.reply().status, 200);
}

/// Responses to pipelined requests are sent together. Symptom: a finished response was lost when
/// the requests after it waited too long and the server closed the connection.
#[test]
fn sends_a_buffered_response_when_the_next_request_is_rejected() {
    let (house, mut second) = between_two_requests(&(get("/say/a") + &get("/say/b")));
    house.replace(patient(Duration::from_millis(1)));
    assert_eq!(second.reply().to_string(), "200 a");
    assert_eq!(second.reply().status, 503);
    second.expect_closed();
    assert_eq!(house.program.said(), ["a"]);
    house.program.gate("two").open();
}

/// Symptom: the server closed the connection without a response.
#[test]
fn rejects_a_second_request_that_waits_too_long() {
    let (house, mut second) = between_two_requests(&get("/say/a"));
    assert_eq!(second.reply().to_string(), "200 a");
    second.send(get("/say/b"));
    house.replace(patient(Duration::from_millis(1)));
    assert_eq!(second.reply().status, 503);
    second.expect_closed();
    assert_eq!(house.program.said(), ["a"]);
    house.program.gate("two").open();
}

/// A server with one thread, which is busy until gate `two` opens, and a connection that waits for
/// the thread after the response to the first of `requests`.
fn between_two_requests(requests: &str) -> (House, Peer) {
    let queue = Arc::new(Queue::new(1, 64).unwrap());
    let house = House::on(Arc::<Queue>::clone(&queue), patient(PATIENCE));
    let mut first = house.connect();
    first.send(get("/block/one"));
    house.program.gate("one").await_arrivals(1);
    let mut second = house.connect();
    second.send(requests);
    await_waiting(&queue, 1);
    let mut third = house.connect();
    third.send(get("/block/two"));
    await_waiting(&queue, 2);
    house.program.gate("one").open();
    // The thread runs one stage of each in turn, until the third blocks it.
    house.program.gate("two").await_arrivals(1);
    (house, second)
}

/// Settings with this queue timeout.
fn patient(queue: Duration) -> Settings {
    let timeouts = Timeouts { queue, ..Timeouts::default() };
    Settings { timeouts, ..settings("queue") }
}

/// TLS sessions move between the buffers of threads in the middle of received records.
#[test]
fn keeps_a_tls_session_across_threads() {
    let mut few = Settings { workers: 2, ..settings("queue") };
    few.listeners[0].tls = true;
    few.tls = Some(Arc::new(Tls::new(Made::usual().choice(), Arc::new(Tickets::passing()))));
    let house = House::with(few);
    let address = house.address();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut peer =
                    Peer::connect_secure(&address, &Trust::usual(), "localhost").unwrap();
                let paths = ["/a", "/work", "/long/3000", "/yield"].repeat(6);
                peer.send(paths.iter().map(|path| get(path)).collect::<String>());
                for path in paths {
                    assert_eq!(peer.reply().status, 200, "{path}");
                }
            });
        }
    });
}
