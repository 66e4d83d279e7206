//! Claims about one server that calls another, and hears its events.

use std::time::Duration;

use bine::prelude::*;
use bine::remote::{self, remote};
use bine::{Bytes, Events};
use serde::{Deserialize, Serialize};

use crate::app::{options, program};
use crate::harness::{Peer, Program, SCHEDULERS};

/// The program itself, which calls and is called. As a test among the others it has nothing to do.
#[test]
fn the_program_that_calls_serves() -> Exit {
    let Some(options) = options() else { return Exit::fine() };
    App::new()
        .event("bell")
        .page(turned)
        .page(refused)
        .page(ring)
        .page(ask)
        .page(ask_plainly)
        .run_with("Usage: remote", options.lines())
}

/// What crosses from one to the other and back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Reading {
    number: i64,
    huge: u128,
    at: Time,
    raw: Bytes,
    note: Option<String>,
    kind: Kind,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
enum Kind {
    Cold,
    Warm { degrees: f64 },
}

fn reading() -> Reading {
    Reading {
        number: i64::MIN,
        huge: u128::MAX,
        at: Time(1_795_253_400_000_001),
        raw: Bytes(vec![0, 255]),
        note: None,
        kind: Kind::Warm { degrees: 0.1 + 0.2 },
    }
}

/// As a service would: what it gets it gives back, as it stands.
#[page(POST "/turned")]
async fn turned(body: bine::Body) -> Response {
    Response::bytes("application/json", body.to_vec())
}

#[page(POST "/refused")]
async fn refused() -> Response {
    let problem = br#"{"status":409,"detail":"somebody was first"}"#;
    Response::bytes("application/problem+json", problem.to_vec()).with_status(Status::CONFLICT)
}

#[page(POST "/ring")]
async fn ring(events: Events) -> Result<Response, Error> {
    events.broadcast("bell", reading())?;
    Ok(Response::text("rung"))
}

#[page("/ask")]
async fn ask(of: Query<Text>, path: Query<Text>) -> Result<Response, Error> {
    let told: Reading = remote(&of).service(path.as_str()).call(&reading()).await?;
    Ok(Response::text(format!("{}", told == reading())))
}

#[page("/ask/plain")]
fn ask_plainly(of: Query<Text>, path: Query<Text>) -> Result<Response, Error> {
    let told: Reading = remote(&of).service(path.as_str()).call(&reading()).wait()?;
    Ok(Response::text(format!("{}", told == reading())))
}

fn start(options: &[&str]) -> Program {
    Program::start(&mut program("remote::the_program_that_calls_serves", options))
}

#[test]
fn a_page_of_either_kind_calls_another_server_and_values_come_back_as_they_were() {
    let called = start(&[]);
    for scheduler in SCHEDULERS {
        println!("on {scheduler}:");
        let caller = start(&["--scheduler", scheduler]);
        let mut peer = caller.connect();
        for page in ["/ask", "/ask/plain"] {
            let of = format!("of=http://{}", called.address());
            for _ in 0..3 {
                assert_eq!(peer.get(&format!("{page}?{of}&path=/turned")).text(), "true", "{page}");
            }
            let refused = peer.get(&format!("{page}?{of}&path=/refused"));
            assert_eq!(refused.status(), 409, "{page}");
            assert!(refused.text().contains("somebody was first"), "{page}");
            let lost = peer.get(&format!("{page}?{of}&path=/lost"));
            assert_eq!(lost.status(), 502, "{page}");
        }
        // A server may call itself, too.
        let own = format!("/ask?of=http://{}&path=/turned", caller.address());
        assert_eq!(peer.get(&own).text(), "true");
    }
}

#[test]
fn what_a_server_broadcasts_is_heard_by_another_as_it_was() {
    let server = start(&[]);
    let other = remote(&format!("http://{}", server.address()));
    let mut bell = other.on::<Reading>("bell");
    let mut peer = Peer::tcp(server.address());
    let heard = loop {
        // What is rung before it listens is not heard.
        peer.send("POST /ring HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(peer.reply().text(), "rung");
        if let Some(heard) = bell.wait(Duration::from_millis(20)) {
            break heard;
        }
    };
    assert_eq!(heard, Ok(reading()));
    server.kill();
    let told = loop {
        match bell.wait(crate::harness::PATIENCE) {
            Some(Ok(reading)) => assert_eq!(reading, self::reading()),
            other => break other,
        }
    };
    assert!(matches!(told, Some(Err(remote::Error::Unanswered(_)))), "{told:?}");
    // Tried again, after a pause.
    let told = bell.wait(crate::harness::PATIENCE);
    assert!(matches!(told, Some(Err(remote::Error::Unreached(_)))), "{told:?}");
}

#[test]
fn an_event_that_is_not_there_is_refused() {
    let server = start(&[]);
    let mut bells = remote(&format!("http://{}", server.address())).on::<()>("b\u{e9}lls & more");
    let told = bells.wait(crate::harness::PATIENCE);
    let Some(Err(remote::Error::Refused { status, .. })) = told else { panic!("{told:?}") };
    assert_eq!(status, Status::NOT_FOUND);
}
