//! Tests that the metrics count every request, byte and closed connection exactly once.

use std::sync::Arc;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use bine_server::scheduler::OneToOne;
use bine_server::{Server, ServerMetrics, Settings, Timeouts};

use crate::PATIENCE;
use crate::house::{House, LOOPS, SCHEDULERS, settings};
use crate::peer::{Peer, get};

/// Waits until the metrics satisfy the condition, since a thread counts a closed connection after
/// its client sees the close.
#[track_caller]
pub(crate) fn metrics(
    server: &Arc<Server>,
    are_such: impl Fn(&ServerMetrics) -> bool,
) -> ServerMetrics {
    let patience = Instant::now() + PATIENCE;
    loop {
        let metrics = server.metrics();
        if are_such(&metrics) {
            return metrics;
        }
        assert!(Instant::now() < patience, "{metrics:?}");
        yield_now();
    }
}

/// Returns the reasons of closed connections with nonzero counts.
fn endings(metrics: &ServerMetrics) -> Vec<(&'static str, u64)> {
    metrics.closed.iter().copied().filter(|(_, count)| *count > 0).collect()
}

fn closed(metrics: &ServerMetrics) -> u64 {
    metrics.closed.iter().map(|(_, count)| count).sum()
}

#[test]
fn counts_the_bytes_of_a_connection_exactly() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        let mut sent = 0;
        let paths = ["/say/a", "/yield", "/work", "/page/300000", "/file", "/say/b", "/work"];
        for path in paths {
            let request = get(path);
            sent += request.len() as u64;
            peer.send(request);
            peer.reply();
        }
        // Two pipelined requests.
        let both = get("/say/c") + &get("/say/d");
        sent += both.len() as u64;
        peer.send(both);
        peer.reply();
        peer.reply();
        let last = "nonsense\r\n\r\n";
        sent += last.len() as u64;
        peer.send(last);
        peer.reply();
        peer.expect_closed();
        let received = peer.total;
        drop(peer);
        let told = metrics(&house.server, |told| closed(told) == 1 && told.open == 0);
        assert_eq!(told.accepted, 1, "{scheduler}");
        assert_eq!(told.requests, 9, "{scheduler}");
        assert_eq!(told.replies, [0, 9, 0, 1, 0], "{scheduler}");
        assert_eq!((told.received, told.sent), (sent, received), "{scheduler}");
        assert_eq!(endings(&told), [("error", 1)], "{scheduler}");
        house.stop();
        house.await_end();
        let after = house.server.metrics();
        assert_eq!(
            (after.requests, after.sent),
            (9, received),
            "threads that end keep their counts"
        );
    }
}

/// Runs `play` on a connection with a shortened timeout, and checks that the metrics count the
/// close with reason `expected`.
#[track_caller]
fn check(scheduler: &str, shorten: fn(&mut Timeouts), play: fn(Peer), expected: &'static str) {
    let mut settings = settings(scheduler);
    shorten(&mut settings.timeouts);
    let house = House::with(settings);
    play(house.connect());
    let told = metrics(&house.server, |told| closed(told) == 1);
    assert_eq!(endings(&told), [(expected, 1)], "{scheduler}");
}

#[test]
fn counts_closed_connections_by_reason() {
    const MOMENT: Duration = Duration::from_millis(20);
    const AS_USUAL: fn(&mut Timeouts) = |_| ();
    for scheduler in SCHEDULERS {
        let idle = |mut peer: Peer| {
            peer.ask("/say/a");
            peer.expect_closed();
        };
        check(scheduler, |timeouts| timeouts.idle = MOMENT, idle, "idle");
        let silent = |mut peer: Peer| peer.expect_closed();
        check(scheduler, |timeouts| timeouts.first_byte = MOMENT, silent, "timeout");
        let slow = |mut peer: Peer| {
            peer.send("GET / HT");
            assert_eq!(peer.reply().to_string(), "408 close");
        };
        check(scheduler, |timeouts| timeouts.head = MOMENT, slow, "timeout");
        let leaving = |mut peer: Peer| drop(peer.ask("/say/a"));
        check(scheduler, AS_USUAL, leaving, "peer");
        let polite = |mut peer: Peer| {
            peer.send("GET /say/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            peer.rest();
        };
        check(scheduler, AS_USUAL, polite, "reply");
        let unlucky = |mut peer: Peer| assert_eq!(peer.ask("/panic"), "500 close");
        check(scheduler, AS_USUAL, unlucky, "error");
    }
}

#[test]
fn counts_panics_everywhere() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        for path in ["/panic", "/panic/work", "/panic/later", "/panic/late"] {
            let before = house.server.metrics().panics;
            assert_eq!(house.connect().ask(path), "500 close", "{path}");
            // Other tests in this process may also cause panics.
            metrics(&house.server, |told| told.panics > before);
        }
    }
}

#[test]
fn counts_connections_closed_by_a_stop_as_drained() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut resting = house.connect();
        resting.ask("/say/a");
        house.stop();
        resting.expect_closed();
        house.await_end();
        assert_eq!(endings(&house.server.metrics()), [("drain", 1)], "{scheduler}");
    }
}

#[test]
fn counts_connections_without_a_worker_as_closed_for_load() {
    let house = House::with(Settings { workers: 1, queue: 0, ..settings("hybrid") });
    let gate = house.program.gate("a");
    let mut busy = house.connect();
    busy.send(get("/block/a"));
    gate.await_arrivals(1);
    assert_eq!(house.connect().ask("/work"), "503 close");
    let told = metrics(&house.server, |told| closed(told) == 1);
    assert_eq!((told.marked[1], endings(&told)), ((503, 1), vec![("load", 1)]));
    assert!(told.scheduler.is_some_and(|scheduler| scheduler.load > 0.9));
    gate.open();
    busy.reply();
}

#[test]
fn reports_the_turns_and_cpu_time_of_a_loop() {
    for scheduler in LOOPS {
        let house = House::with(Settings { loops: 2, ..settings(scheduler) });
        let mut peer = house.connect();
        let busy = |told: &ServerMetrics| {
            let turns: u64 = told.loops.iter().map(|each| each.turns).sum();
            let work: Duration = told.loops.iter().filter_map(|each| each.work).sum();
            told.loops.len() == 2 && turns > 0 && work > Duration::ZERO
        };
        peer.ask("/say/a");
        let told = metrics(&house.server, busy);
        assert_eq!(told.loops.iter().map(|each| each.connections).sum::<usize>(), 1);
        let name = told.scheduler.map(|scheduler| scheduler.name);
        assert_eq!(name.as_deref(), Some(scheduler));
    }
}

#[test]
fn reports_the_load_and_the_state_of_each_scheduler() {
    let serve = "threads serve a connection, 0 of them a suspended response";
    for (scheduler, idle, busy) in [
        (
            "hybrid",
            (0.0, "0 of 4 workers are busy, 0 requests wait"),
            (0.25, "1 of 4 workers are busy, 0 requests wait"),
        ),
        (
            "event",
            (0.0, "event loops alone: nothing waits for a thread"),
            (0.0, "event loops alone: nothing waits for a thread"),
        ),
        ("cohort", (0.0, "loops alone, in cohorts"), (0.0, "loops alone, in cohorts")),
        ("nothread", (0.0, &*format!("0 of 1 {serve}")), (1.0, &*format!("1 of 1 {serve}"))),
        ("pool", (0.0, &*format!("0 of 4 {serve}")), (0.25, &*format!("1 of 4 {serve}"))),
        (
            "accept-many",
            (0.0, &*format!("0 of 4 {serve}; 0 connections wait for a thread")),
            (0.25, &*format!("1 of 4 {serve}; 0 connections wait for a thread")),
        ),
        (
            "queue",
            (0.0, &*format!("0 of 4 {serve}; 0 tasks wait for a thread")),
            (0.25, &*format!("1 of 4 {serve}; 0 tasks wait for a thread")),
        ),
    ] {
        let house = House::open(scheduler);
        let such = |(load, status): (f32, &str)| {
            let is_such = |told: &ServerMetrics| {
                told.scheduler.as_ref().is_some_and(|own| {
                    own.name == scheduler && (own.load - load).abs() < 1e-6 && own.status == status
                })
            };
            metrics(&house.server, is_such);
        };
        such(idle);
        let gate = house.program.gate("a");
        let mut peer = house.connect();
        peer.send(get("/block/a"));
        gate.await_arrivals(1);
        such(busy);
        gate.open();
        assert_eq!(peer.reply().to_string(), "200 work");
        drop(peer);
        such(idle);
    }
}

#[test]
fn reports_the_share_of_threads_that_have_a_connection() {
    let house = House::on(Arc::new(OneToOne::new(4).unwrap()), settings("one-to-one"));
    let such = |load: f32, status: &str| {
        let is_such = |told: &ServerMetrics| {
            told.scheduler.as_ref().is_some_and(|own| {
                own.name == "own" && (own.load - load).abs() < 1e-6 && own.status == status
            })
        };
        metrics(&house.server, is_such);
    };
    such(0.0, "0 of at most 4 connections have a thread, 0 were rejected");
    let gate = house.program.gate("a");
    let mut peers: Vec<Peer> = (0..4).map(|_| house.connect()).collect();
    for (index, peer) in peers.iter_mut().enumerate() {
        peer.send(get("/block/a"));
        gate.await_arrivals(index + 1);
    }
    such(1.0, "4 of at most 4 connections have a thread, 0 were rejected");
    assert_eq!(house.connect().reply().to_string(), "503 close");
    such(1.0, "4 of at most 4 connections have a thread, 1 were rejected");
    gate.open();
    for peer in &mut peers {
        assert_eq!(peer.reply().to_string(), "200 work");
    }
    drop(peers);
    such(0.0, "0 of at most 4 connections have a thread, 1 were rejected");
}
