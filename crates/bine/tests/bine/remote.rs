//! Calls and events between two servers.

use std::time::Duration;

use bine::prelude::*;
use bine::remote::{self, remote};
use bine::{Bytes, Events};
use serde::{Deserialize, Serialize};

use crate::app::{options, program};
use crate::harness::{KINDS, Peer, Program, Reply};

/// The program under test, which calls and is called. Ordinary test runs skip it.
#[test]
fn serve_remote_program() -> Exit {
    let Some(options) = options() else { return Exit::success() };
    App::new()
        .event("bell")
        .service(turn)
        .service(nothing)
        .service(refuse)
        .page(ring)
        .page(ask)
        .page(ask_plainly)
        .page(ask_for_refusal)
        .page(ask_wrongly)
        .page(ask_nobody)
        .run_with("Usage: remote", options.lines())
}

/// A value for the round trip between the servers.
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

/// The value after the round trip.
fn noted() -> Reading {
    Reading { note: Some("here".to_owned()), ..reading() }
}

/// Returns its argument with a change that proves the call.
#[service]
fn turn(reading: Reading, note: Option<Text>) -> Reading {
    Reading { note: note.as_deref().map(str::to_owned), ..reading }
}

#[service(safe)]
async fn nothing() {}

#[service]
fn refuse() -> Result<Reading, Error> {
    Err(Error::status(Status::CONFLICT, "somebody was first"))
}

#[page(POST "/ring")]
async fn ring(events: Events) -> Result<Response, Error> {
    events.broadcast("bell", reading())?;
    Ok(Response::text("rung"))
}

#[page("/ask")]
async fn ask(of: Query<Text>) -> Result<Response, Error> {
    let other = remote(&of);
    other.call(nothing, ()).await?;
    let told = other.call(turn, (reading(), Some("here".into()))).await?;
    Ok(Response::text(format!("{:?}", told == noted())))
}

#[page("/ask/plain")]
fn ask_plainly(of: Query<Text>) -> Result<Response, Error> {
    let other = remote(&of);
    other.call(nothing, ()).wait()?;
    let told = other.call(turn, (reading(), Some("here".into()))).wait()?;
    Ok(Response::text(format!("{:?}", told == noted())))
}

#[page("/ask/refused")]
async fn ask_for_refusal(of: Query<Text>) -> Result<Response, Error> {
    let told = remote(&of).call(refuse, ()).await?;
    Ok(Response::text(format!("{told:?}")))
}

/// Calls by path, with an argument that the service does not have.
#[page("/ask/wrongly")]
async fn ask_wrongly(of: Query<Text>) -> Result<Response, Error> {
    let arguments = std::collections::BTreeMap::from([("readin", 7)]);
    let told: Reading = remote(&of).service("/bine/turn").call(&arguments).await?;
    Ok(Response::text(format!("{told:?}")))
}

#[page("/ask/lost")]
async fn ask_nobody(of: Query<Text>) -> Result<Response, Error> {
    remote(&of).service("/bine/lost").call::<_, ()>(&()).await?;
    Ok(Response::text("found"))
}

fn start(options: &[&str]) -> Program {
    Program::start(&mut program("remote::serve_remote_program", options))
}

#[test]
fn calls_other_server_and_returns_values_unchanged() {
    let called = start(&[]);
    for scheduler in KINDS {
        println!("on {scheduler}:");
        let caller = start(&["--scheduler", scheduler]);
        let mut peer = caller.connect();
        let of = format!("of=http://{}", called.address());
        for page in ["/ask", "/ask/plain"] {
            for _ in 0..3 {
                assert_eq!(peer.get(&format!("{page}?{of}")).text(), "true", "{page}");
            }
        }
        let told = |reply: Reply| (reply.status(), reply.text().to_owned());
        let (status, text) = told(peer.get(&format!("/ask/refused?{of}")));
        assert_eq!(status, 409);
        assert!(text.contains("somebody was first"), "{text}");
        let (status, text) = told(peer.get(&format!("/ask/wrongly?{of}")));
        assert_eq!(status, 400);
        assert!(text.contains("did you mean `reading`?"), "{text}");
        // A missing remote service is a fault of this program, not of its client.
        assert_eq!(told(peer.get(&format!("/ask/lost?{of}"))).0, 502);
        // A server may call itself.
        let own = format!("/ask?of=http://{}", caller.address());
        assert_eq!(peer.get(&own).text(), "true");
    }
}

#[test]
fn receives_broadcast_events_unchanged() {
    // Use a separate address, where no other test takes the port after the kill.
    let mut server = start(&["--listen", "127.7.7.9:0"]);
    let other = remote(server.await_address().trim_end_matches('/'));
    let mut bell = other.on::<Reading>("bell");
    let mut peer = Peer::tcp(server.address());
    let heard = loop {
        // Events before the subscription are not delivered.
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
    // The client reconnects after a pause.
    let told = bell.wait(crate::harness::PATIENCE);
    assert!(matches!(told, Some(Err(remote::Error::Unreached(_)))), "{told:?}");
}

#[test]
fn rejects_unknown_event() {
    let server = start(&[]);
    let mut bells = remote(&format!("http://{}", server.address())).on::<()>("b\u{e9}lls & more");
    let told = bells.wait(crate::harness::PATIENCE);
    let Some(Err(remote::Error::Refused { status, .. })) = told else { panic!("{told:?}") };
    assert_eq!(status, Status::NOT_FOUND);
}
