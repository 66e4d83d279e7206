//! Tests of suspended requests: long polls and feeds that wait for an event.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use bine_server::Settings;

use crate::PATIENCE;
use crate::house::{AT_ONCE, House, LOOPS, SCHEDULERS, settings};
use crate::peer::{Peer, get};
use crate::secrecy::{secret, tls};

/// Settings for a stop, whose drain ends after all suspended requests have ended.
fn draining(scheduler: &str) -> Settings {
    let mut draining = settings(scheduler);
    draining.timeouts.drain = Duration::from_mins(1);
    draining
}

/// Waits until `count` requests are suspended.
#[track_caller]
fn await_waiting(house: &House, count: usize) {
    let began = Instant::now();
    while house.program.news.waiting() != count {
        assert!(began.elapsed() < PATIENCE, "{} wait", house.program.news.waiting());
        thread::yield_now();
    }
}

#[test]
fn sends_a_suspended_response_on_an_event_in_pipeline_order() {
    for scheduler in AT_ONCE {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send(get("/") + &get("/poll/0") + &get("/say/behind"));
        assert_eq!(peer.reply().to_string(), "200 hello", "{scheduler}");
        await_waiting(&house, 1);
        assert_eq!(house.connect().ask("/tell/one"), "200 told", "{scheduler}");
        assert_eq!(peer.reply().to_string(), "200 one", "{scheduler}");
        assert_eq!(peer.reply().to_string(), "200 behind", "{scheduler}");
        assert_eq!(house.program.news.waiting(), 0);
    }
}

#[test]
fn answers_immediately_when_the_event_has_already_happened() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        assert_eq!(peer.ask("/tell/one"), "200 told");
        assert_eq!(peer.ask("/tell/two"), "200 told");
        assert_eq!(peer.ask("/poll/0"), "200 one,two", "{scheduler}");
        assert_eq!(peer.ask("/poll/1"), "200 two", "{scheduler}");
        assert_eq!(peer.ask("/poll-work/1"), "200 two", "{scheduler}");
    }
}

#[test]
fn ends_a_long_poll_at_its_timeout_and_keeps_the_connection() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        house.program.news.wait.store(1, Ordering::Relaxed);
        let mut peer = house.connect();
        assert_eq!(peer.ask("/poll/0"), "204", "{scheduler}");
        assert_eq!(peer.ask("/poll/0"), "204", "{scheduler}");
        assert_eq!(peer.ask("/"), "200 hello", "{scheduler}");
    }
}

#[test]
fn streams_a_feed_until_the_client_disconnects() {
    for scheduler in AT_ONCE {
        let house = House::open(scheduler);
        let mut feed = house.connect();
        feed.send(get("/feed/0"));
        await_waiting(&house, 1);
        for word in ["one", "two", "three"] {
            assert_eq!(house.connect().ask(&format!("/tell/{word}")), "200 told");
            feed.until(format!("{word};\r\n").as_bytes());
        }
        drop(feed);
        await_waiting(&house, 0);
    }
}

#[test]
fn sends_keepalives_on_a_silent_feed() {
    for scheduler in AT_ONCE {
        let house = House::open(scheduler);
        house.program.news.wait.store(1, Ordering::Relaxed);
        let mut feed = house.connect();
        assert_eq!(feed.ask("/tell/one"), "200 told");
        feed.send(get("/feed/0"));
        feed.until(b"one;\r\n");
        feed.until(b"ping;\r\n");
        feed.until(b"ping;\r\n");
    }
}

#[test]
fn notifies_many_waiters_with_and_without_tls_while_serving_others() {
    const PEERS: usize = 600;
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let mut peers: Vec<Peer> = (0..PEERS).map(|_| house.connect()).collect();
        for peer in &mut peers {
            peer.send(get("/poll/0"));
        }
        await_waiting(&house, PEERS);
        assert_eq!(house.connect().ask("/tell/one"), "200 told");
        assert_eq!(house.connect().ask("/"), "200 hello");
        for peer in &mut peers {
            assert_eq!(peer.reply().to_string(), "200 one", "{scheduler}");
            // The clients immediately start the next poll.
            peer.send(get("/poll/1"));
        }
        await_waiting(&house, PEERS);
        assert_eq!(house.connect().ask("/tell/two"), "200 told");
        for peer in &mut peers {
            assert_eq!(peer.reply().to_string(), "200 two", "{scheduler}");
        }
    }
}

/// Symptom: a panic while the server notified one waiter ended the fan-out, and the waiters after
/// it were not notified before the next event. Cause: the panic dropped the rest of the list. Fix:
/// the fan-out continues after the waiter that panicked.
#[test]
fn notifies_all_waiters_despite_a_panic_of_one() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let mut peers: Vec<Peer> = (0..4)
            .map(|number| {
                let mut peer = house.connect();
                peer.send(get("/poll/0"));
                await_waiting(&house, number + 1);
                peer
            })
            .collect();
        house.program.news.faults.store(2, Ordering::Release);
        assert_eq!(house.connect().ask("/tell/one"), "200 told");
        for peer in &mut peers[2..] {
            assert_eq!(peer.reply().to_string(), "200 one", "{scheduler}");
        }
        assert_eq!(house.connect().ask("/tell/two"), "200 told");
        for peer in &mut peers[..2] {
            assert_eq!(peer.reply().to_string(), "200 one,two", "{scheduler}");
        }
    }
}

#[test]
fn delivers_all_events_to_a_client_that_reads_late() {
    for scheduler in LOOPS {
        let house = House::with(draining(scheduler));
        let mut feed = Peer::connect_narrow(&house.address()).unwrap();
        feed.send(get("/feed/0"));
        await_waiting(&house, 1);
        let word = "w".repeat(7000);
        let mut teller = house.connect();
        for number in 0..1000 {
            assert_eq!(teller.ask(&format!("/tell/{word}{number}")), "200 told");
        }
        // The server has now published far more than sockets hold. The client receives all words in
        // order.
        house.stop();
        let content = String::from_utf8(feed.rest()).unwrap();
        let mut from = 0;
        for number in 0..1000 {
            let told = content[from..].find(&format!("{word}{number}"));
            assert!(told.is_some(), "{number}, {scheduler}");
            from += told.unwrap();
        }
    }
}

#[test]
fn reserves_a_pool_thread_from_suspended_requests() {
    let house = House::with(Settings { workers: 2, ..settings("pool") });
    let mut first = house.connect();
    first.send(get("/poll/0"));
    await_waiting(&house, 1);
    let mut second = house.connect();
    assert_eq!(second.ask("/poll/0"), "204", "it would take the last thread");
    second.reset();
    assert_eq!(house.connect().ask("/tell/one"), "200 told");
    assert_eq!(first.reply().to_string(), "200 one");
}

#[test]
fn ends_all_suspended_requests_on_stop() {
    for scheduler in AT_ONCE {
        let house = House::with(draining(scheduler));
        let (mut poll, mut feed) = (house.connect(), house.connect());
        assert_eq!(feed.ask("/tell/one"), "200 told");
        poll.send(get("/poll/1"));
        feed.send(get("/feed/0"));
        feed.until(b"one;\r\n");
        await_waiting(&house, 2);
        house.stop();
        let reply = poll.reply();
        assert_eq!((reply.status, reply.close), (204, true), "{scheduler}");
        assert_eq!(feed.rest(), b"0\r\n\r\n", "{scheduler}");
        house.await_end();
    }
}

#[test]
fn notifies_requests_suspended_before_a_reload() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let mut older = house.connect();
        older.send(get("/poll/0"));
        await_waiting(&house, 1);
        house.replace(settings(scheduler));
        let mut newer = house.connect();
        newer.send(get("/poll/0"));
        await_waiting(&house, 2);
        assert_eq!(house.connect().ask("/tell/one"), "200 told");
        assert_eq!(older.reply().to_string(), "200 one", "{scheduler}");
        assert_eq!(newer.reply().to_string(), "200 one", "{scheduler}");
    }
}

#[test]
fn notifies_suspended_requests_over_tls() {
    for scheduler in AT_ONCE {
        let house = House::with(secret(scheduler, tls()));
        let mut peer = house.connect_secure();
        peer.send(get("/poll/0"));
        await_waiting(&house, 1);
        house.program.news.tell("one");
        assert_eq!(peer.reply().to_string(), "200 one", "{scheduler}");
    }
}
