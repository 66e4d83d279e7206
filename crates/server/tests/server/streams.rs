//! Tests of responses that are sent while they are written.

use std::time::Duration;

use bine_server::Settings;

use crate::house::{AT_ONCE, House, SCHEDULERS, settings};
use crate::peer::{Peer, get};
use crate::program::file_byte;

#[test]
fn sends_streams_whole_and_in_pipeline_order() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        for path in ["/stream", "/stream-later", "/stream-work"] {
            peer.send(get("/") + &get(&format!("{path}/300000")) + &get("/say/behind"));
            assert_eq!(peer.reply().to_string(), "200 hello", "{path}, {scheduler}");
            let content = peer.reply().content;
            assert_eq!((content.len(), &content[..5]), (300_000, &b"begun"[..]));
            let differs = (5..300_000).find(|&at| content[at] != file_byte(at));
            assert_eq!(differs, None, "{path}, {scheduler}");
            assert_eq!(peer.reply().to_string(), "200 behind", "{path}, {scheduler}");
        }
    }
}

#[test]
fn sends_written_parts_before_the_stream_ends() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send(get("/stream/gate"));
        let first = peer.until(b"begun\r\n");
        assert!(first.starts_with(b"HTTP/1.1 200 OK\r\n"), "{scheduler}");
        house.program.gate("gate").open();
        peer.finish();
        assert_eq!(peer.rest(), b"5\r\nended\r\n0\r\n\r\n", "{scheduler}");
    }
}

#[test]
fn ends_a_stream_to_an_http_1_0_client_by_closing() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send("GET /stream/25 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let reply = String::from_utf8(peer.rest()).unwrap();
        let (head, content) = reply.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("chunked") && !head.contains("keep-alive"), "{head}");
        assert_eq!(content.len(), 25, "{scheduler}");
    }
}

#[test]
fn starts_no_writer_for_a_head_request() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send("HEAD /stream/300 HTTP/1.1\r\nHost: a\r\n\r\n".to_owned() + &get("/say/next"));
        let head = String::from_utf8(peer.until(b"\r\n\r\n")).unwrap();
        assert!(head.contains("Transfer-Encoding: chunked"), "{head}");
        assert_eq!(peer.reply().to_string(), "200 next");
        assert_eq!(house.program.said(), ["next"], "{scheduler}");
    }
}

#[test]
fn applies_backpressure_to_a_writer_and_drops_it_on_disconnect() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = Peer::connect_narrow(&house.address()).unwrap();
        peer.send(get("/stream/flood"));
        peer.until(b"begun");
        // Without backpressure a writer ends in its first poll.
        assert_eq!(house.program.said(), ["writes"], "{scheduler}");
        peer.reset();
        house.program.gate("left").await_arrivals(1);
        assert_eq!(house.program.said(), ["writes", "left"], "{scheduler}");
    }
}

#[test]
fn cuts_only_the_connection_of_a_failed_writer() {
    for scheduler in AT_ONCE {
        let house = House::open(scheduler);
        let mut other = house.connect();
        for what in ["fail", "panic"] {
            let mut peer = house.connect();
            peer.send(get(&format!("/stream/{what}")));
            let received = peer.rest();
            assert!(!received.ends_with(b"0\r\n\r\n"), "{what}, {scheduler}");
            assert_eq!(other.ask("/"), "200 hello", "{what}, {scheduler}");
        }
    }
}

#[test]
fn cuts_the_connection_of_a_silent_writer_at_its_timeout() {
    for scheduler in SCHEDULERS {
        let mut settings = settings(scheduler);
        // The writer begins within this time.
        settings.timeouts.handler = Duration::from_secs(2);
        let house = House::with(settings);
        let mut peer = house.connect();
        peer.send(get("/stream/never"));
        let received = peer.rest();
        assert!(received.ends_with(b"begun\r\n"), "{scheduler}");
        house.program.gate("left").await_arrivals(1);
    }
}

#[test]
fn finishes_a_running_stream_on_stop() {
    for scheduler in SCHEDULERS {
        println!("on {scheduler}:");
        let house = House::with(Settings { workers: 2, ..settings(scheduler) });
        let mut peer = house.connect();
        peer.send(get("/stream/gate"));
        peer.until(b"begun\r\n");
        house.stop();
        house.program.gate("gate").open();
        assert_eq!(peer.rest(), b"5\r\nended\r\n0\r\n\r\n", "{scheduler}");
        house.await_end();
    }
}
