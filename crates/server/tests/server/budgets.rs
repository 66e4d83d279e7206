//! Tests of the budgets that all connections share: bodies, uploads, and unsent responses.

use std::time::{Duration, Instant};

use bine_server::{Address, BudgetMetrics, ByteBudgets, Settings};

use crate::PATIENCE;
use crate::house::{AT_ONCE, House, LOOPS, settings};
use crate::limits::own_address;
use crate::peer::{Peer, get};

const BODY: usize = 850 * 1024;

fn post(path: &str, sent: usize) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY}\r\n\r\n");
    [head.into_bytes(), vec![b'b'; sent]].concat()
}

/// Waits until the use of budget `of` satisfies `held`, since threads release their shares with a
/// delay.
#[track_caller]
fn await_held(house: &House, of: &str, held: impl Fn(u64) -> bool) -> BudgetMetrics {
    let patience = Instant::now() + PATIENCE;
    loop {
        let metrics = house.server.budgets().into_iter().find(|metrics| metrics.of == of).unwrap();
        if held(metrics.held) {
            return metrics;
        }
        assert!(Instant::now() < patience, "{metrics:?}");
        std::thread::yield_now();
    }
}

/// Symptom: 256 bodies of 16 MiB used 4 101 MiB of memory, whatever the limit. The memory guard
/// then rejected every new connection and let the bodies grow.
#[test]
fn bounds_bodies_until_handlers_are_done_and_serves_small_requests() {
    for (scheduler, path) in AT_ONCE
        .map(|scheduler| (scheduler, "/gather/gate"))
        .into_iter()
        .chain([("hybrid", "/gather-work/gate")])
    {
        // Nine tenths of the budget are for this machine: two bodies.
        let budgets = ByteBudgets { bodies: Some(2 << 20), ..ByteBudgets::default() };
        let house = House::with(Settings { budgets, ..settings(scheduler) });
        let mut inside = [house.connect(), house.connect()];
        for peer in &mut inside {
            peer.send(post(path, BODY));
        }
        house.program.gate("gate").await_arrivals(2);
        let mut refused = house.connect();
        refused.send(post(path, BODY));
        assert_eq!(refused.reply().to_string(), "503 close", "{scheduler} {path}");
        let mut small = house.connect();
        let short = vec![b's'; 60 * 1024];
        small.send(format!(
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
            short.len()
        ));
        small.send(&short);
        assert_eq!(small.reply().content, short, "{scheduler} {path}");
        assert_eq!(small.ask("/"), "200 hello");
        drop(small);
        house.program.gate("gate").open();
        for peer in &mut inside {
            assert_eq!(peer.reply().status, 200, "{scheduler} {path}");
        }
        // The handlers have released their bodies.
        let metrics = await_held(&house, "bodies", |held| held == 0);
        assert_eq!(metrics.refused, [("full", 0), ("address", 1)]);
        inside[0].send(post(path, BODY));
        assert_eq!(inside[0].reply().status, 200, "{scheduler} {path}");
    }
}

#[test]
fn limits_bodies_per_address() {
    let Some(own) = own_address() else { return };
    for scheduler in AT_ONCE {
        let budgets =
            ByteBudgets { bodies: Some(8 << 20), share: Some(25), ..ByteBudgets::default() };
        let mut settings = Settings { budgets, ..settings(scheduler) };
        settings.listeners[0].address = "0.0.0.0:0".parse().unwrap();
        let house = House::with(settings);
        let Address::Tcp(listening) = house.address() else { unreachable!("it is TCP") };
        let from_own = || Peer::connect(&Address::Tcp((own, listening.port()).into())).unwrap();
        let from_local =
            || Peer::connect(&Address::Tcp(([127, 0, 0, 1], listening.port()).into())).unwrap();
        let mut inside = [from_own(), from_own()];
        for peer in &mut inside {
            peer.send(post("/gather/gate", BODY));
        }
        house.program.gate("gate").await_arrivals(2);
        let mut refused = from_own();
        refused.send(post("/gather/gate", BODY));
        assert_eq!(refused.reply().to_string(), "503 close", "{scheduler}");
        let mut other = from_local();
        other.send(post("/echo", BODY));
        assert_eq!(other.reply().status, 200, "{scheduler}");
        house.program.gate("gate").open();
    }
}

#[test]
fn evicts_bodies_that_have_stalled_when_others_need_their_bytes() {
    for scheduler in AT_ONCE {
        let budgets = ByteBudgets { bodies: Some(2 << 20), ..ByteBudgets::default() };
        let mut settings = Settings { budgets, ..settings(scheduler) };
        settings.timeouts.body = Duration::from_hours(1);
        let house = House::with(settings);
        let mut stalled = [house.connect(), house.connect()];
        for (peer, held) in stalled.iter_mut().zip([0, 850_000]) {
            peer.send(post("/echo", BODY - 1));
            await_held(&house, "bodies", |now| now > held + 800_000);
        }
        // The rest of a rejected body is smaller than the amount that the server reads before it
        // closes.
        let body = vec![b'n'; 300 * 1024];
        let head =
            format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        let patience = Instant::now() + PATIENCE;
        loop {
            let mut newcomer = house.connect();
            newcomer.send([head.as_bytes(), &body].concat());
            match newcomer.reply().status {
                200 => break,
                status => assert_eq!(status, 503, "{scheduler}"),
            }
            assert!(Instant::now() < patience, "{scheduler}");
        }
        // The older client received the rejection.
        assert_eq!(stalled[0].reply().to_string(), "503 close", "{scheduler}");
        assert!(await_held(&house, "bodies", |_| true).evicted > 0, "{scheduler}");
        assert_eq!(house.connect().ask("/"), "200 hello");
    }
}

#[test]
fn bounds_uploads_on_disk() {
    for scheduler in AT_ONCE {
        let budgets = ByteBudgets { uploads: Some(1 << 20), ..ByteBudgets::default() };
        let house = House::with(Settings { budgets, upload: 4_000_000, ..settings(scheduler) });
        let mut refused = house.connect();
        refused.send("POST /keep HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
        refused.send(vec![b'u'; 1_300_000]);
        assert_eq!(refused.reply().to_string(), "503 close", "{scheduler}");
        await_held(&house, "uploads", |held| held == 0);
        let mut peer = house.connect();
        peer.send(post("/keep", BODY));
        assert_eq!(peer.reply().status, 200, "{scheduler}");
        peer.send(get("/"));
        assert_eq!(peer.reply().to_string(), "200 hello");
        await_held(&house, "uploads", |held| held == 0);
    }
}

/// Each connection could keep 64 MiB of an unread page in memory.
#[test]
fn bounds_unsent_responses() {
    for scheduler in LOOPS {
        for path in ["/page/3000000", "/long/3000000"] {
            let budgets = ByteBudgets { unsent: Some(8 << 20), ..ByteBudgets::default() };
            let mut settings = Settings { budgets, ..settings(scheduler) };
            settings.listeners[0].send_buffer = Some(64 * 1024);
            let house = House::with(settings);
            let mut peers: Vec<Peer> =
                (0..6).map(|_| Peer::connect_narrow(&house.address()).unwrap()).collect();
            for peer in &mut peers {
                peer.send(get(path));
            }
            let patience = Instant::now() + PATIENCE;
            loop {
                let metrics = await_held(&house, "unsent", |_| true);
                assert!(metrics.held <= metrics.most / 10 * 9, "{metrics:?}");
                // Three of six responses exceed the budget.
                let refused: u64 = metrics.refused.iter().map(|(_, count)| count).sum();
                if refused + metrics.evicted >= 3 {
                    break;
                }
                assert!(Instant::now() < patience, "{scheduler} {path} {metrics:?}");
                std::thread::yield_now();
            }
            assert_eq!(house.connect().ask("/"), "200 hello");
            drop(peers);
            await_held(&house, "unsent", |held| held == 0);
        }
    }
}
