//! Tests of schedulers with a thread per connection, when threads are scarce.

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bine_server::scheduler::{AcceptMany, NoThread, OneToOne, Pool, SingleThreadScheduler as _};
use bine_server::{Address, Settings};

use crate::PATIENCE;
use crate::house::{House, LOOPS, settings};
use crate::limits::own_address;
use crate::peer::{Peer, get};

/// Schedulers with a thread per connection and several threads.
const ROWS: [&str; 4] = ["one-to-one", "pool", "accept-many", "queue"];

/// A server with this number of threads for connections.
fn of(threads: usize, scheduler: &str) -> House {
    let settings = Settings { workers: threads, ..settings(scheduler) };
    match scheduler {
        "one-to-one" => House::on(Arc::new(OneToOne::new(threads).unwrap()), settings),
        _ => House::with(settings),
    }
}

/// Symptom: idle connections kept their threads for 75 seconds, and with one for each thread the
/// server answered no further client. Fix: when no thread is free, the server closes one idle
/// connection per new connection, and only then.
#[test]
fn closes_idle_connections_for_new_ones_when_no_thread_is_free() {
    for scheduler in ROWS {
        let house = of(2, scheduler);
        let mut idle = [house.connect(), house.connect()];
        for peer in &mut idle {
            assert_eq!(peer.ask("/"), "200 hello");
        }
        assert_eq!(idle[0].ask("/sleep/300"), "200 later");
        assert_eq!(idle[1].ask("/"), "200 hello", "{scheduler}");
        // This connection stays busy, so the server closes the idle one.
        idle[0].send(get("/wait/gate"));
        house.program.gate("gate").await_arrivals(1);
        // The thread of the idle connection may take longer than a newcomer waits.
        let begun = Instant::now();
        let mut newcomer = loop {
            let mut newcomer = house.connect();
            match &*newcomer.ask("/") {
                "200 hello" => break newcomer,
                reply => assert!(reply.starts_with("503") && begun.elapsed() < PATIENCE, "{reply}"),
            }
        };
        idle[1].expect_closed();
        house.program.gate("gate").open();
        assert_eq!(idle[0].reply().to_string(), "200 later");
        assert_eq!(newcomer.ask("/"), "200 hello", "{scheduler}");
    }
}

/// When the number of places equals the number of threads, a new connection finds no place until
/// one is free. Symptom: the server closed every idle connection for it. Schedulers with a separate
/// accepting thread closed no connection, since the queue was empty.
#[test]
fn closes_one_idle_connection_at_the_connection_limit() {
    for scheduler in ROWS {
        let settings = Settings { workers: 12, connections: Some(12), ..settings(scheduler) };
        let house = match scheduler {
            "one-to-one" => House::on(Arc::new(OneToOne::new(12).unwrap()), settings),
            _ => House::with(settings),
        };
        let mut idle: Vec<Peer> = (0..12).map(|_| house.connect()).collect();
        for peer in &mut idle {
            assert_eq!(peer.ask("/"), "200 hello");
        }
        assert_eq!(idle[0].ask("/sleep/300"), "200 later");
        let mut newcomer = house.connect();
        assert_eq!(newcomer.ask("/"), "200 hello", "{scheduler}");
        assert_eq!(newcomer.ask("/sleep/50"), "200 later", "{scheduler}");
        drop(newcomer);
        let stay = idle.iter_mut().filter(|peer| !peer.has_closed()).count();
        assert_eq!(stay, 11, "{scheduler}");
    }
}

/// Clients that connect and send nothing have one second, longer than a new connection may wait for
/// a thread before the server rejects it.
#[test]
fn closes_silent_connections_for_new_ones_when_no_thread_is_free() {
    for scheduler in ["pool", "nothread"] {
        let mut settings = Settings { workers: 2, ..settings(scheduler) };
        // Longer than any request in this test waits.
        settings.timeouts.first_byte = 2 * PATIENCE;
        let house = House::with(settings);
        let _silent = [house.connect(), house.connect()];
        assert_eq!(house.connect().ask("/"), "200 hello", "{scheduler}");
    }
}

#[test]
fn keeps_an_idle_connection_while_a_thread_is_free() {
    for scheduler in ROWS {
        // One place for each idle and each new connection, since the test cannot observe when the
        // server notices a disconnect.
        let house = of(2 + 10, scheduler);
        let mut idle = [house.connect(), house.connect()];
        for peer in &mut idle {
            assert_eq!(peer.ask("/"), "200 hello");
        }
        for _ in 0..10 {
            assert_eq!(house.connect().ask("/sleep/50"), "200 later");
        }
        for peer in &mut idle {
            assert_eq!(peer.ask("/"), "200 hello", "{scheduler}");
        }
    }
}

/// Load closes connections to free their threads, and connections on loops have no threads.
#[test]
fn keeps_idle_connections_under_load_on_loops() {
    for scheduler in LOOPS {
        let house = House::with(Settings { workers: 1, queue: 1, ..settings(scheduler) });
        let mut idle: Vec<Peer> = (0..20).map(|_| house.connect()).collect();
        for peer in &mut idle {
            assert_eq!(peer.ask("/"), "200 hello");
        }
        let mut busy: Vec<Peer> = (0..3).map(|_| house.connect()).collect();
        if scheduler == "hybrid" {
            for peer in &mut busy {
                peer.send(get("/block/gate"));
            }
            house.program.gate("gate").await_arrivals(1);
        }
        // Lasts long enough for the check of a thread's connection, while new connections keep
        // arriving.
        for _ in 0..10 {
            assert_eq!(house.connect().ask("/sleep/50"), "200 later");
        }
        for peer in &mut idle {
            assert_eq!(peer.ask("/"), "200 hello", "{scheduler}");
        }
        house.program.gate("gate").open();
    }
}

/// Symptom: one address could take every place in the queue for a thread.
#[test]
fn limits_queue_places_per_address() {
    let Some(own) = own_address() else { return };
    for scheduler in ["accept-many", "queue"] {
        let mut settings = Settings { workers: 1, queue: 8, ..settings(scheduler) };
        settings.listeners[0].address = "0.0.0.0:0".parse().unwrap();
        let house = House::with(settings);
        let Address::Tcp(listening) = house.address() else { unreachable!("it is TCP") };
        let connect = |ip: IpAddr| {
            let mut peer = Peer::connect(&Address::Tcp((ip, listening.port()).into())).unwrap();
            peer.send("GET /block/gate HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            peer
        };
        let mut inside = connect(own);
        house.program.gate("gate").await_arrivals(1);
        let mut waiting = [connect(own), connect(own)];
        // The share is a quarter of eight.
        let mut refused = connect(own);
        assert_eq!(refused.reply().to_string(), "503 close", "{scheduler}");
        let mut other = connect(IpAddr::from([127, 0, 0, 1]));
        house.program.gate("gate").open();
        for peer in [&mut inside, &mut other].into_iter().chain(&mut waiting) {
            assert_eq!(peer.reply().status, 200, "{scheduler}");
        }
    }
}

#[test]
fn serves_a_second_connection_when_the_first_is_idle_without_threads() {
    let house = House::open("nothread");
    let mut first = house.connect();
    first.send(get("/wait/gate") + &get("/sleep/100"));
    house.program.gate("gate").await_arrivals(1);
    let mut second = house.connect();
    second.send(get("/say/in"));
    house.program.gate("gate").open();
    assert_eq!(first.reply().to_string(), "200 later");
    assert_eq!(first.reply().to_string(), "200 later");
    assert_eq!(second.reply().to_string(), "200 in");
    assert_eq!(house.program.said(), ["slept", "in"]);
    first.expect_closed();
}

#[test]
fn ends_suspended_requests_immediately_without_threads() {
    let house = House::open("nothread");
    let mut peer = house.connect();
    peer.send(get("/poll/0") + &get("/say/behind"));
    assert_eq!(peer.reply().to_string(), "204");
    assert_eq!(peer.reply().to_string(), "200 behind");
    assert_eq!(peer.ask("/tell/one"), "200 told");
    assert_eq!(peer.ask("/poll/0"), "200 one");
    // A feed sends the published words and ends.
    peer.send(get("/feed/0"));
    let feed = peer.rest();
    assert!(feed.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&feed));
    let mut peer = house.connect();
    peer.send(get("/upgrade/echo"));
    assert_eq!(peer.reply().status, 101);
    assert_eq!(peer.rest(), b"full");
}

#[test]
fn answers_with_retry_after_when_no_thread_is_free() {
    for scheduler in ["one-to-one", "accept-many"] {
        let mut few = Settings { workers: 1, ..settings(scheduler) };
        let house = of(1, scheduler);
        let mut busy = house.connect();
        busy.send(get("/block/gate"));
        house.program.gate("gate").await_arrivals(1);
        few.timeouts.queue = Duration::from_millis(50);
        house.replace(few);
        let mut refused = house.connect();
        let reply = String::from_utf8(refused.rest()).unwrap();
        assert!(
            reply.starts_with("HTTP/1.1 503 ") && reply.contains("\r\nRetry-After: "),
            "{reply}"
        );
        let (head, content) = reply.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", content.len())), "{head}");
        house.program.gate("gate").open();
        assert_eq!(busy.reply().to_string(), "200 work", "{scheduler}");
        assert_eq!(busy.ask("/"), "200 hello", "{scheduler}");
    }
}

#[test]
fn answers_503_when_the_queue_is_full_and_serves_waiters_in_order() {
    let many = Arc::new(AcceptMany::new(1, 1).unwrap());
    let few = Settings { workers: 1, queue: 1, ..settings("accept-many") };
    let house = House::on(Arc::<AcceptMany>::clone(&many), few);
    let mut busy = house.connect();
    busy.send(get("/block/gate"));
    house.program.gate("gate").await_arrivals(1);
    let mut waits = house.connect();
    waits.send(get("/say/waited"));
    let deadline = Instant::now() + PATIENCE;
    while !many.status().ends_with("; 1 connections wait for a thread") {
        assert!(Instant::now() < deadline, "{}", many.status());
        thread::yield_now();
    }
    assert_eq!(house.connect().reply().to_string(), "503 close");
    house.program.gate("gate").open();
    assert_eq!(busy.reply().to_string(), "200 work");
    assert_eq!(waits.reply().to_string(), "200 waited");
}

#[test]
fn reports_the_status_of_a_scheduler_in_one_line() {
    let pool = Arc::new(Pool::new(2));
    let house = House::on(Arc::<Pool>::clone(&pool), settings("pool"));
    let mut peer = house.connect();
    assert_eq!(peer.ask("/"), "200 hello");
    assert_eq!(pool.status(), "1 of 2 threads serve a connection, 0 of them a suspended response");
    assert!((pool.load() - 0.5).abs() < f32::EPSILON);
    assert!(NoThread::new().load().abs() < f32::EPSILON);
}
