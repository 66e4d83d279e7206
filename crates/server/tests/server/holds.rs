//! Decides what a reply promises that waits for something to happen.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use bine_server::Settings;

use crate::PATIENCE;
use crate::house::{AT_ONCE, House, LOOPS, SCHEDULERS, settings};
use crate::peer::{Peer, get};
use crate::secrecy::{secret, tls};

/// Lets those who wait go within two seconds of a stop.
fn brief(scheduler: &str) -> Settings {
    let mut brief = settings(scheduler);
    brief.timeouts.drain = Duration::from_secs(4);
    brief
}

/// Returns when so many wait.
#[track_caller]
fn await_waiting(house: &House, count: usize) {
    let began = Instant::now();
    while house.program.news.waiting() != count {
        assert!(began.elapsed() < PATIENCE, "{} wait", house.program.news.waiting());
        thread::yield_now();
    }
}

#[test]
fn a_held_reply_comes_when_something_happens_and_keeps_its_place_in_a_pipeline() {
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
fn what_has_happened_already_is_told_at_once() {
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
fn who_has_waited_long_enough_is_told_so_and_may_ask_again() {
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
fn a_feed_goes_on_until_its_peer_goes_and_is_then_forgotten() {
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
fn a_feed_that_is_silent_for_long_shows_that_it_lives() {
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
fn many_wait_in_secret_and_plainly_and_all_are_told_while_others_are_served() {
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
            // They come back at once, and wait for the next.
            peer.send(get("/poll/1"));
        }
        await_waiting(&house, PEERS);
        assert_eq!(house.connect().ask("/tell/two"), "200 told");
        for peer in &mut peers {
            assert_eq!(peer.reply().to_string(), "200 two", "{scheduler}");
        }
    }
}

/// A fault while one of many was sent to ended the fan-out: those behind were told nothing until something else happened,
/// since what was left was forgotten with it. It goes on behind the one at whom it happened.
#[test]
fn a_fault_at_one_who_waits_keeps_nothing_from_the_others() {
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
fn a_reader_that_does_not_read_misses_nothing_when_it_does() {
    for scheduler in LOOPS {
        // Time enough for a busy machine to take all of it in.
        let mut long = settings(scheduler);
        long.timeouts.drain = Duration::from_secs(12);
        let house = House::with(long);
        let mut feed = Peer::connect_narrow(&house.address()).unwrap();
        feed.send(get("/feed/0"));
        await_waiting(&house, 1);
        let word = "w".repeat(7000);
        let mut teller = house.connect();
        for number in 0..1000 {
            assert_eq!(teller.ask(&format!("/tell/{word}{number}")), "200 told");
        }
        // By then far more has been told than sockets hold, and it comes whole and in order.
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
fn a_pool_keeps_a_thread_for_those_who_do_not_wait() {
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
fn a_stop_lets_all_go_who_wait() {
    for scheduler in AT_ONCE {
        let house = House::with(brief(scheduler));
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
fn who_waits_across_a_reload_is_told_too() {
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
fn waiting_in_secret_is_told_in_secret() {
    for scheduler in AT_ONCE {
        let house = House::with(secret(scheduler, tls()));
        let mut peer = house.connect_secure();
        peer.send(get("/poll/0"));
        await_waiting(&house, 1);
        house.program.news.tell("one");
        assert_eq!(peer.reply().to_string(), "200 one", "{scheduler}");
    }
}
