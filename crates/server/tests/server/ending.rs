//! Tests of the graceful shutdown.

use std::sync::Arc;
use std::time::Duration;

use bine_server::{Server, Settings};

use crate::house::{AT_ONCE, House, LOOPS, SCHEDULERS, settings, unix};
use crate::peer::{Peer, get};
use crate::program::{Parts, Program};

#[test]
fn finishes_running_requests_and_closes_idle_connections_on_stop() {
    for scheduler in SCHEDULERS {
        for path in ["/wait/gate", "/block/gate"] {
            // A handler that blocks its loop keeps the loop from seeing the stop.
            if path == "/block/gate" && matches!(scheduler, "event" | "cohort") {
                continue;
            }
            let house = House::open(scheduler);
            let mut idle = house.connect();
            assert_eq!(idle.ask("/"), "200 hello");
            let mut running = house.connect();
            running.send(get(path));
            house.program.gate("gate").await_arrivals(1);
            house.stop();
            idle.expect_closed();
            house.program.gate("gate").open();
            assert_eq!(running.reply().status, 200, "{path}, {scheduler}");
            running.expect_closed();
            house.await_end();
        }
    }
}

#[test]
fn answers_a_partly_received_request_last_on_stop() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        let next = get("/say/b");
        // The bytes in the same packet as an answered request have been received when its response
        // arrives.
        peer.send(get("/say/a") + &next[..10]);
        assert_eq!(peer.reply().to_string(), "200 a");
        house.stop();
        peer.send(&next[10..]);
        assert_eq!(peer.reply().to_string(), "200 b close", "{scheduler}");
        peer.expect_closed();
        house.await_end();
    }
}

/// Symptom: a stop closed the socket of a client that had sent half a head. Cause: a thread of the
/// pool counted as waiting for a request until the head was complete. Fix: as on a loop, a started
/// request is finished, and requests in transit have a moment to arrive.
#[test]
fn answers_a_head_that_a_stop_interrupts() {
    for scheduler in AT_ONCE {
        let house = House::open(scheduler);
        let (mut idle, mut kept, mut fresh, mut late) =
            (house.connect(), house.connect(), house.connect(), house.connect());
        let request = get("/say/b");
        for peer in [&mut idle, &mut kept, &mut late] {
            assert_eq!(peer.ask("/"), "200 hello");
        }
        kept.send(&request[..10]);
        fresh.send(&request[..10]);
        house.stop();
        late.send(&request);
        assert_eq!(late.reply().to_string(), "200 b close", "{scheduler}");
        // The server has now processed the stop, and that moment is over.
        idle.expect_closed();
        for mut peer in [kept, fresh] {
            peer.send(&request[10..]);
            assert_eq!(peer.reply().to_string(), "200 b close", "{scheduler}");
            peer.expect_closed();
        }
        house.await_end();
    }
}

/// Symptom: clients that connected during the drain waited for the whole drain and were then reset.
/// Cause: the server no longer watched the listener, but the kernel still accepted connections for
/// it. Connections that arrive while the loop processes the stop may still be accepted and are
/// closed after a moment; the kernel refuses all later ones.
#[test]
fn refuses_new_connections_while_draining() {
    for scheduler in SCHEDULERS {
        for listen in [settings("event").listeners.remove(0), unix()] {
            let house = House::with(Settings { listeners: vec![listen], ..settings(scheduler) });
            let mut idle = house.connect();
            assert_eq!(idle.ask("/"), "200 hello");
            let mut running = house.connect();
            running.send(get("/wait/gate"));
            house.program.gate("gate").await_arrivals(1);
            house.stop();
            // The server has now processed the stop.
            idle.expect_closed();
            let newcomer = Peer::connect(&house.address()).map(|_| ());
            assert!(newcomer.is_err(), "{scheduler}, {}", house.address());
            house.program.gate("gate").open();
            assert_eq!(running.reply().status, 200);
            house.await_end();
        }
    }
}

/// Closing a listener resets the connections in its backlog. They precede the stop, so the server
/// accepts them first and answers each with its last response.
#[test]
fn answers_connections_that_the_kernel_accepted_before_the_stop() {
    let house = House::open("event");
    let mut running = house.connect();
    running.send(get("/block/gate"));
    house.program.gate("gate").await_arrivals(1);
    // The loop is blocked and accepts no connection.
    let mut newcomers: Vec<Peer> = (0..40).map(|_| house.connect()).collect();
    for newcomer in &mut newcomers {
        newcomer.send(get("/say/in"));
    }
    house.stop();
    house.program.gate("gate").open();
    for newcomer in &mut newcomers {
        assert_eq!(newcomer.reply().to_string(), "200 in close");
    }
    house.await_end();
}

#[test]
fn ends_immediately_on_a_second_stop() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut running = house.connect();
        running.send(get("/wait/never"));
        house.program.gate("never").await_arrivals(1);
        house.stop();
        house.stop();
        house.await_cut();
        // A blocked thread ends only with its process, and the test process continues.
        if LOOPS.contains(&scheduler) {
            running.expect_closed();
        }
    }
}

#[test]
fn cuts_requests_that_exceed_the_drain_timeout() {
    for scheduler in SCHEDULERS {
        let mut settings = settings(scheduler);
        settings.timeouts.drain = Duration::from_millis(100);
        let house = House::with(settings);
        let mut running = house.connect();
        running.send(get("/wait/never"));
        house.program.gate("never").await_arrivals(1);
        house.stop();
        house.await_cut();
        // A blocked thread ends only with its process, and the test process continues.
        if LOOPS.contains(&scheduler) {
            running.expect_closed();
        }
    }
}

#[test]
fn ends_immediately_when_stopped_before_it_runs() {
    for scheduler in SCHEDULERS {
        let parts = Arc::new(Parts(Arc::new(Program::default())));
        let server = Arc::new(Server::open(settings(scheduler), parts, None).unwrap());
        server.stop();
        server.run().unwrap();
    }
}

#[test]
fn answers_all_received_requests_on_a_stop_under_load() {
    for scheduler in LOOPS {
        let house = House::with(Settings { loops: 2, ..settings(scheduler) });
        let mut peers: Vec<Peer> = (0..20).map(|_| house.connect()).collect();
        for peer in &mut peers {
            assert_eq!(peer.ask("/"), "200 hello");
            peer.send(get("/wait/gate"));
        }
        house.program.gate("gate").await_arrivals(peers.len());
        // These requests arrive during another request: the server receives them and does not start
        // them.
        for peer in &mut peers {
            peer.send(get("/say/x"));
        }
        house.stop();
        house.program.gate("gate").open();
        for peer in &mut peers {
            assert_eq!(peer.reply().to_string(), "200 later", "{scheduler}");
            assert_eq!(peer.reply().to_string(), "200 x close", "{scheduler}");
            peer.expect_closed();
        }
        house.await_end();
    }
}
