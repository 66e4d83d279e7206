//! Tests of the limits on connections, jobs and times.

use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use bine_server::{Address, ServerMetrics, Settings, Timeouts};

use crate::PATIENCE;
use crate::house::{AT_ONCE, House, LOOPS, SCHEDULERS, settings};
use crate::metrics::metrics;
use crate::peer::{Peer, get};
use crate::program::FILE;

#[test]
fn delays_new_connections_at_the_connection_limit() {
    for scheduler in AT_ONCE {
        let house = House::with(Settings { connections: Some(3), ..settings(scheduler) });
        let mut inside: Vec<Peer> = (0..3).map(|_| house.connect()).collect();
        for peer in &mut inside {
            assert_eq!(peer.ask("/"), "200 hello");
        }
        let mut newcomer = house.connect();
        newcomer.send(get("/say/in"));
        // During this time the server tries to accept again, and fails.
        assert_eq!(inside[0].ask("/sleep/250"), "200 later");
        assert_eq!(house.program.said(), ["slept"], "{scheduler}");
        inside.pop();
        assert_eq!(newcomer.reply().to_string(), "200 in", "{scheduler}");
        assert_eq!(inside[1].ask("/"), "200 hello");
    }
}

#[test]
fn answers_503_when_the_job_queue_is_full() {
    let mut settings = Settings { workers: 1, queue: 1, ..settings("hybrid") };
    settings.timeouts.queue = Duration::from_mins(1);
    let house = House::with(settings);
    let mut peers: Vec<Peer> = (0..3).map(|_| house.connect()).collect();
    peers[0].send(get("/block/gate"));
    house.program.gate("gate").await_arrivals(1);
    peers[1].send(get("/block/gate"));
    let waits = |told: &ServerMetrics| {
        told.scheduler.as_ref().is_some_and(|own| own.status.ends_with(", 1 requests wait"))
    };
    metrics(&house.server, waits);
    peers[2].send(get("/block/gate"));
    assert_eq!(peers[2].reply().to_string(), "503 close");
    peers[2].expect_closed();
    let mut other = house.connect();
    assert_eq!(other.ask("/"), "200 hello");
    assert_eq!(other.ask("/yield"), "200 later");
    house.program.gate("gate").open();
    for peer in &mut peers[..2] {
        assert_eq!(peer.reply().to_string(), "200 work");
    }
}

#[test]
fn withdraws_a_job_that_waits_too_long() {
    let patient = Settings { workers: 1, ..settings("hybrid") };
    let house = House::with(patient.clone());
    let mut first = house.connect();
    first.send(get("/block/gate"));
    house.program.gate("gate").await_arrivals(1);
    let mut brief = patient.clone();
    brief.timeouts.queue = Duration::from_millis(50);
    house.replace(brief);
    let began = Instant::now();
    let mut second = house.connect();
    second.send(get("/block/gate"));
    assert_eq!(second.reply().to_string(), "503 close");
    assert!(began.elapsed() >= Duration::from_millis(50));
    second.expect_closed();
    // A worker runs the first job, so only the handler timeout applies to it.
    house.program.gate("gate").open();
    assert_eq!(first.reply().to_string(), "200 work");
    house.replace(patient);
    assert_eq!(house.connect().ask("/work"), "200 work");
}

#[test]
fn answers_504_for_a_handler_that_times_out() {
    let async_ones = SCHEDULERS.map(|scheduler| (scheduler, "/wait/never"));
    // These schedulers have no second thread that could answer for a blocking handler.
    for (scheduler, path) in async_ones.into_iter().chain([("hybrid", "/block/never")]) {
        let patient = Settings { workers: 1, ..settings(scheduler) };
        let mut brief = patient.clone();
        brief.timeouts.handler = Duration::from_millis(100);
        let house = House::with(brief);
        let begun = Instant::now();
        let (mut peer, reply) = loop {
            assert!(begun.elapsed() < PATIENCE, "no thread takes the job: {path}, {scheduler}");
            let mut peer = house.connect();
            peer.send(get("/say/a") + &get(path) + &get("/say/b"));
            assert_eq!(peer.reply().to_string(), "200 a", "{path}, {scheduler}");
            let reply = peer.reply().to_string();
            // A busy machine may have no thread for it within the timeout.
            if reply != "503 close" || house.program.gate("never").arrivals() > 0 {
                break (peer, reply);
            }
        };
        assert_eq!(reply, "504 close", "{path}, {scheduler}");
        peer.finish();
        peer.expect_closed();
        // A worker that returns late finds no waiting client, and takes the next job.
        house.program.gate("never").open();
        house.replace(patient);
        let mut next = house.connect();
        assert_eq!(next.ask("/"), "200 hello", "{path}, {scheduler}");
        assert_eq!(next.ask("/work"), "200 work", "{path}, {scheduler}");
    }
}

#[test]
fn closes_silent_and_idle_clients_and_answers_408_to_slow_heads() {
    const MOMENT: Duration = Duration::from_millis(100);
    // Each server has a single short timeout. A failure by a different timeout only shows that the
    // machine was busy.
    let with = |scheduler, shorten: fn(&mut Timeouts)| {
        let mut settings = settings(scheduler);
        shorten(&mut settings.timeouts);
        House::with(settings)
    };
    for scheduler in SCHEDULERS {
        let house = with(scheduler, |timeouts| timeouts.first_byte = MOMENT);
        house.connect().expect_closed();
        let house = with(scheduler, |timeouts| timeouts.idle = MOMENT);
        let mut idle = house.connect();
        assert_eq!(idle.ask("/"), "200 hello");
        idle.expect_closed();
        let house = with(scheduler, |timeouts| timeouts.head = MOMENT);
        let mut slow = house.connect();
        slow.send("GET / HT");
        assert_eq!(slow.reply().to_string(), "408 close", "{scheduler}");
        slow.expect_closed();
    }
}

#[test]
fn closes_a_client_that_stops_reading_at_the_write_timeout() {
    for scheduler in LOOPS {
        let mut settings = Settings { connections: Some(1), ..settings(scheduler) };
        settings.timeouts.write = Duration::from_millis(100);
        let house = House::with(settings);
        let mut stalled = house.connect();
        stalled.send(get("/file"));
        assert_eq!(house.connect().ask("/"), "200 hello", "{scheduler}");
        assert!(stalled.rest().len() < FILE, "{scheduler}");
    }
}

/// Symptom: where a handler blocks the thread of its connection, the thread kept earlier responses
/// in its buffer until the handler returned.
#[test]
fn sends_finished_pipelined_responses_before_a_later_handler_ends() {
    for scheduler in SCHEDULERS {
        for path in ["/wait/gate", "/block/gate"] {
            let house = House::open(scheduler);
            let mut peer = house.connect();
            peer.send(get("/say/a") + &get(path) + &get("/say/b"));
            assert_eq!(peer.reply().to_string(), "200 a", "{path}, {scheduler}");
            house.program.gate("gate").open();
            assert_eq!(peer.reply().status, 200, "{path}, {scheduler}");
            assert_eq!(peer.reply().to_string(), "200 b", "{path}, {scheduler}");
        }
    }
}

/// The file needs several turns of the event loop, while the connection waits for the handler.
#[test]
fn sends_a_large_pipelined_response_while_a_later_handler_runs() {
    for scheduler in SCHEDULERS {
        for path in ["/wait/gate", "/block/gate"] {
            let house = House::open(scheduler);
            let mut peer = house.connect();
            peer.send(get("/file") + &get(path) + &get("/say/b"));
            assert_eq!(peer.reply().content.len(), FILE, "{path}, {scheduler}");
            house.program.gate("gate").open();
            assert_eq!(peer.reply().status, 200, "{path}, {scheduler}");
            assert_eq!(peer.reply().to_string(), "200 b", "{path}, {scheduler}");
        }
    }
}

/// Returns a non-local address of this machine, without sending a packet; `None` without a network.
pub(crate) fn own_address() -> Option<IpAddr> {
    let outward = UdpSocket::bind("0.0.0.0:0").ok()?;
    outward.connect("198.51.100.1:9").ok()?;
    let own = outward.local_addr().ok()?.ip();
    own.is_ipv4().then_some(own)
}

/// Symptom: the pool closed connections over the limit per address without a response.
#[test]
fn answers_503_to_an_address_over_its_connection_limit() {
    let Some(own) = own_address() else { return };
    for scheduler in AT_ONCE {
        let mut settings = Settings { connections_per_address: 2, ..settings(scheduler) };
        settings.listeners[0].address = "0.0.0.0:0".parse().unwrap();
        let house = House::with(settings);
        let Address::Tcp(listening) = house.address() else { unreachable!("it is TCP") };
        let address = Address::Tcp((own, listening.port()).into());
        let connect = || Peer::connect(&address).unwrap();
        let mut inside = [connect(), connect()];
        for peer in &mut inside {
            assert_eq!(peer.ask("/"), "200 hello");
        }
        let mut refused = connect();
        assert_eq!(refused.reply().to_string(), "503 close", "{scheduler}");
        refused.expect_closed();
        assert_eq!(inside[0].ask("/"), "200 hello");
    }
}
