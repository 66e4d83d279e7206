//! Tests of request bodies that a handler takes in pieces, while the server receives them.

use std::time::Duration;

use bine_http::{Reply, Status};
use bine_server::{Answer, Body, Finished, Incoming, body_stream};

use crate::house::{House, LOOPS, SCHEDULERS, settings};
use crate::peer::{Peer, get};
use crate::program::{Part, file_byte};

impl Part {
    /// Takes the body in pieces and replies with its length, a checksum, and whether no piece was
    /// longer than the server may be ahead. `what` is `all`, `first` for a reply after the first
    /// piece, or the name of a gate to pass after it.
    pub(crate) fn take_pieces(&self, request: &Incoming<'_>, what: &str) -> Answer {
        let (source, mut reader) = body_stream();
        let (program, clock) = (self.program(), self.clock());
        let (what, mut exchange) = (what.to_owned(), request.exchange);
        exchange.keep_alive = request.head.exchange().keep_alive;
        let is_empty = matches!(request.body, Body::None);
        let reply = async move {
            let (mut piece, mut length, mut sum) = (Vec::new(), 0_usize, 0_u64);
            let mut longest = 0;
            while reader.next(&mut piece).await.unwrap_or(false) {
                let bytes = piece.iter().zip(length..);
                sum += bytes.filter(|(byte, at)| **byte != file_byte(*at)).count() as u64;
                length += piece.len();
                longest = longest.max(piece.len());
                match &*what {
                    "all" => {}
                    "first" => break,
                    gate => program.gate(gate).passed().await,
                }
            }
            program.gate("taken").arrive();
            exchange.keep_alive &= is_empty || reader.is_complete();
            let told = format!("{length} {sum} {}", longest <= 192 * 1024);
            let mut bytes = Vec::new();
            Reply::begin(&mut bytes, exchange, Status::OK, &clock.date()).whole(told.as_bytes());
            Finished { bytes, follow: None, close: !exchange.keep_alive }
        };
        Answer::Receive(Box::pin(reply), source)
    }
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(file_byte).collect()
}

/// A request with this body.
fn post(path: &str, length: usize) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    [head.into_bytes(), content(length)].concat()
}

#[test]
fn delivers_a_body_in_pieces_and_serves_the_next_request() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        for length in [1, 1000, 3_000_000] {
            peer.send(get("/"));
            peer.send(post("/pieces/all", length));
            peer.send(get("/say/next"));
            assert_eq!(peer.reply().to_string(), "200 hello", "{scheduler}");
            assert_eq!(peer.reply().to_string(), format!("200 {length} 0 true"), "{scheduler}");
            assert_eq!(peer.reply().to_string(), "200 next", "{scheduler}");
        }
        let chunks = content(20);
        peer.send("POST /pieces/all HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in chunks.chunks(5) {
            peer.send(b"5\r\n");
            peer.send(chunk);
            peer.send(b"\r\n");
        }
        peer.send(b"0\r\nX: y\r\n\r\n");
        assert_eq!(peer.reply().to_string(), "200 20 0 true", "{scheduler}");
        assert_eq!(peer.ask("/pieces/all"), "200 0 0 true", "{scheduler}");
    }
}

#[test]
fn asks_a_client_that_waits_to_send_its_body() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        let head = "POST /pieces/all HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
        peer.send(head);
        assert_eq!(peer.until(b"\r\n\r\n"), b"HTTP/1.1 100 Continue\r\n\r\n", "{scheduler}");
        peer.send(content(5));
        assert_eq!(peer.reply().to_string(), "200 5 0 true", "{scheduler}");
    }
}

#[test]
fn receives_no_more_than_64_kib_ahead_of_the_handler() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        println!("on {scheduler}:");
        let length = 16_000_000;
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                peer.send(post("/pieces/gate", length));
                peer.reply().to_string()
            });
            house.program.gate("gate").await_arrivals(1);
            house.program.gate("gate").open();
            assert_eq!(sending.join().unwrap(), format!("200 {length} 0 true"), "{scheduler}");
        });
    }
}

#[test]
fn closes_after_a_reply_before_the_end_of_the_body() {
    for scheduler in SCHEDULERS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send("POST /pieces/first HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
        peer.send(content(10));
        assert_eq!(peer.reply().to_string(), "200 10 0 true close", "{scheduler}");
        peer.send(content(20));
        peer.finish();
        peer.expect_closed();
    }
}

#[test]
fn ends_the_handler_when_the_body_breaks_off() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let begin = |peer: &mut Peer| {
            peer.send("POST /pieces/all HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
            peer.send(b"3\r\nabc\r\n");
        };
        let mut peer = house.connect();
        begin(&mut peer);
        peer.send(b"x\r\n");
        assert_eq!(peer.reply().to_string(), "400 close", "{scheduler}");
        let mut peer = house.connect();
        begin(&mut peer);
        peer.reset();
        assert_eq!(house.connect().ask("/"), "200 hello", "{scheduler}");
        assert_eq!(house.program.gate("taken").arrivals(), 0, "no handler saw the end");
    }
}

#[test]
fn times_out_a_client_that_sends_too_little() {
    for scheduler in SCHEDULERS {
        let mut settings = settings(scheduler);
        settings.timeouts.body = Duration::from_millis(50);
        let house = House::with(settings);
        let mut peer = house.connect();
        peer.send("POST /pieces/all HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
        assert_eq!(peer.reply().to_string(), "408 close", "{scheduler}");
    }
}
