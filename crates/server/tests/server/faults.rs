//! Tests of panics: each closes only its own connection.

use std::time::Duration;

use bine_http::SecurityHeaders;
use bine_server::Settings;

use crate::house::{House, LOOPS, SCHEDULERS, settings};
use crate::peer::get;

/// Handlers that panic before they send any part of their response.
const PANICS: [&str; 4] = ["/panic", "/panic/work", "/panic/later", "/panic/late"];

#[test]
fn answers_a_panic_with_500_and_closes() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        for path in PANICS {
            let mut peer = house.connect();
            assert_eq!(peer.ask(path), "500 close", "{path}, {scheduler}");
            peer.expect_closed();
        }
    }
}

/// A client receives such a reply in place of a page, so it has the headers of a page.
#[test]
fn writes_security_headers_into_replies_of_the_server_itself() {
    for scheduler in SCHEDULERS {
        let security = SecurityHeaders::NOSNIFF;
        let house = House::with(Settings { security, ..settings(scheduler) });
        let malformed = ("400", "GET / HTTP/1.1\r\nHost : a\r\n\r\n".to_owned());
        let panics = PANICS.map(|path| ("500", get(path)));
        for (status, request) in [malformed].into_iter().chain(panics) {
            let mut peer = house.connect();
            peer.send(&request);
            let head = String::from_utf8(peer.until(b"\r\n\r\n")).unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            let has_header = head.to_ascii_lowercase().contains("x-content-type-options: nosniff");
            assert!(has_header, "{request}, {scheduler}: {head}");
        }
    }
}

#[test]
fn sends_pipelined_responses_before_a_panic_and_none_after() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        for path in PANICS {
            let mut peer = house.connect();
            peer.send(get("/say/a") + &get(path) + &get("/say/b"));
            assert_eq!(peer.reply().to_string(), "200 a", "{path}, {scheduler}");
            assert_eq!(peer.reply().to_string(), "500 close", "{path}, {scheduler}");
            peer.finish();
            peer.expect_closed();
            assert!(!house.program.said().contains(&"b".to_owned()), "{path}, {scheduler}");
        }
    }
}

#[test]
fn breaks_the_connection_on_a_panic_after_a_sent_part() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send(get("/panic/page"));
        let text = String::from_utf8(peer.rest()).unwrap();
        assert_eq!(text.matches("HTTP/1.1").count(), 1, "{scheduler}");
        assert!(!text.ends_with("0\r\n\r\n"), "{scheduler}");
    }
}

/// Symptom: a panic during admission, where no handler is expected to panic, ended the whole turn.
/// The later events of the turn were lost, and edge-triggered events do not repeat.
#[test]
fn isolates_a_panic_from_other_connections_of_its_loop() {
    for scheduler in LOOPS {
        for path in [&PANICS[..], &["/panic/page", "/panic/admit"]].concat() {
            let house = House::open(scheduler);
            let mut waiting = house.connect();
            waiting.send(get("/wait/task"));
            house.program.gate("task").await_arrivals(1);
            let mut culprits: Vec<_> = (0..4).map(|_| house.connect()).collect();
            let mut others: Vec<_> = (0..4).map(|_| house.connect()).collect();
            for peer in culprits.iter_mut().chain(&mut others) {
                assert_eq!(peer.ask("/"), "200 hello");
            }
            // All requests arrive in one turn, grouped by kind.
            let mut holder = house.connect();
            holder.send(get("/hold/loop"));
            house.program.gate("loop").await_arrivals(1);
            for (culprit, other) in culprits.iter_mut().zip(&mut others) {
                culprit.send(get(path));
                other.send(get("/say/a") + &get("/yield"));
            }
            house.program.gate("loop").open();
            assert_eq!(holder.reply().to_string(), "200 held", "{path}, {scheduler}");
            for other in &mut others {
                assert_eq!(other.reply().to_string(), "200 a", "{path}, {scheduler}");
                assert_eq!(other.reply().to_string(), "200 later", "{path}, {scheduler}");
            }
            for culprit in &mut culprits {
                culprit.rest();
            }
            house.program.gate("task").open();
            assert_eq!(waiting.reply().to_string(), "200 later", "{path}, {scheduler}");
        }
    }
}

#[test]
fn reuses_a_thread_after_the_panic_of_its_connection() {
    let house = House::open("pool");
    // More panics than threads.
    for _ in 0..3 {
        for path in [&PANICS[..], &["/panic/page", "/panic/admit"]].concat() {
            let mut peer = house.connect();
            peer.send(get(path));
            peer.rest();
        }
    }
    assert_eq!(house.connect().ask("/"), "200 hello");
}

/// Symptom: a panic in the destructor of a writer's state ended its thread under `pool`, and the
/// server's only thread under `nothread`. Such a destructor may, for example, spawn a task without
/// a runtime.
#[test]
fn closes_only_the_connection_of_a_writer_that_panics_on_drop() {
    for scheduler in SCHEDULERS {
        let mut settings = Settings { connections: Some(4), ..settings(scheduler) };
        settings.timeouts.handler = Duration::from_millis(20);
        let house = House::with(settings);
        // More panics than threads or places.
        for _ in 0..6 {
            let mut peer = house.connect();
            peer.send(get("/stream/fuse"));
            peer.rest();
        }
        assert_eq!(house.connect().ask("/"), "200 hello", "{scheduler}");
    }
}

#[test]
fn keeps_workers_alive_after_panics() {
    let house = House::open("hybrid");
    // More panics than workers.
    for _ in 0..12 {
        assert_eq!(house.connect().ask("/panic/work"), "500 close");
    }
    assert_eq!(house.connect().ask("/work"), "200 work");
}
