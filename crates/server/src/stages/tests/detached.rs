//! Checks that the output does not depend on which thread runs which stage of a connection.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use bine_admission::{Admission, AdmissionSettings};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};

use crate::address::ClientAddress;
use crate::connection::{Connection, DetachedConnection, ThreadContext};
use crate::generation::ConfigSnapshot;
use crate::handler::{Handler, HandlerContext, Responder};
use crate::next::{Next, ResponseKind};
use crate::stages;
use crate::time::Clock;
use crate::transport::Blocking;

use super::play::{get, post};
use super::program::{self, TestProgram};
use super::splits::{shorten_lines, streams};

struct TestHandler;

impl Handler for TestHandler {
    fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder> {
        let gate = Rc::new(Cell::new(false));
        Box::new(TestProgram {
            clock: handler_context.clock,
            gate,
            file: program::file(),
            has_waited: Cell::default(),
        })
    }
}

fn snapshot() -> Arc<ConfigSnapshot> {
    let admission = Arc::new(Admission::new(AdmissionSettings::default(), 1));
    Arc::new(ConfigSnapshot {
        settings: Arc::default(),
        access: None,
        handler: Arc::new(TestHandler),
        admission,
        budgets: Arc::default(),
    })
}

/// The contexts of two threads, with one clock.
fn contexts(snapshot: &Arc<ConfigSnapshot>) -> [ThreadContext; 2] {
    let clock = Rc::new(Clock::told(1_795_208_400));
    [(); 2].map(|()| ThreadContext::under(snapshot, Rc::clone(&clock)))
}

/// Returns the bytes that a client gets for `stream`, and the number of handovers. The connection
/// is handed over before each stage for which `moves` is true; `moves` is repeated.
fn serve(stream: &[u8], moves: &[bool]) -> (Vec<u8>, usize) {
    let (own, peer) = UnixStream::pair().unwrap();
    let (mut sender, mut receiver) = (peer.try_clone().unwrap(), peer);
    let stream = stream.to_vec();
    thread::scope(|scope| {
        scope.spawn(move || {
            // The server may close the connection after a fault of the client.
            let _ = sender.write_all(&stream);
            let _ = sender.shutdown(Shutdown::Write);
        });
        let received = scope.spawn(move || {
            let mut bytes = Vec::new();
            // After a reset, the bytes received earlier are still in `bytes`.
            let _ = receiver.read_to_end(&mut bytes);
            bytes
        });
        let handovers = drive(own, moves);
        (received.join().unwrap(), handovers)
    })
}

fn drive(own: UnixStream, moves: &[bool]) -> usize {
    let mut contexts = contexts(&snapshot());
    let (mut here, mut handovers) = (0, 0);
    let transport = Blocking::new(own.into(), None);
    let mut connection = Connection::new(|_| transport, ClientAddress::UNIX, &mut contexts[here]);
    contexts[here].make_current(&mut connection);
    let mut next = Next::Request;
    let mut moves = moves.iter().cycle();
    loop {
        if moves.next() == Some(&true) {
            match DetachedConnection::detach(connection, &mut contexts[here], next) {
                Ok(detached) => {
                    here = 1 - here;
                    handovers += 1;
                    (connection, next) = detached.attach(&mut contexts[here]).unwrap();
                }
                Err(same) => connection = same,
            }
        }
        let context = &mut contexts[here];
        next = match next {
            Next::Request => stages::request(&mut connection, context),
            Next::Response(ResponseKind::Static) => stages::response(&mut connection, context),
            Next::Response(ResponseKind::Dynamic) => stages::dynamic(&mut connection, context),
            Next::Reply => stages::reply(&mut connection, context),
            Next::Idle => {
                context.make_current(&mut connection);
                if connection.has_unsent() { Next::Reply } else { Next::Request }
            }
            Next::Closed => return handovers,
            other => unreachable!("{other:?} in a script that cannot cause it"),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn output_does_not_depend_on_handovers(stream in streams(), moves in vec(any::<bool>(), 1..40)) {
        let (expected, _) = serve(&stream, &[false]);
        for moves in [&moves[..], &[true]] {
            let (bytes, _) = serve(&stream, moves);
            prop_assert!(bytes == expected, "{}\ninstead of\n{}", shorten_lines(&bytes), shorten_lines(&expected));
        }
    }
}

#[test]
fn moves_a_connection_before_every_stage() {
    // Input after the head, a body received in part, unsent replies, work, a file of many slices.
    let stream = get("/a")
        + &post("/echo/9", 9)
        + "012345678"
        + &get("/work")
        + &get("/long/70000")
        + &get("/file/0")
        + &get("/b");
    let (expected, none) = serve(stream.as_bytes(), &[false]);
    let (bytes, handovers) = serve(stream.as_bytes(), &[true]);
    assert!(
        bytes == expected,
        "{}\ninstead of\n{}",
        shorten_lines(&bytes),
        shorten_lines(&expected)
    );
    // Each request has at least three stages.
    assert!(none == 0 && handovers >= 18, "{handovers} handovers");
}

#[test]
fn keeps_its_snapshot_on_a_thread_with_newer_settings() {
    let (old, new) = (snapshot(), snapshot());
    let [mut one, mut other] = contexts(&old);
    let (own, mut peer) = UnixStream::pair().unwrap();
    let connection =
        Connection::new(|_| Blocking::new(own.into(), None), ClientAddress::UNIX, &mut one);
    assert!(other.adopt(&new));
    let detached = DetachedConnection::detach(connection, &mut one, Next::Request).ok().unwrap();
    let (mut connection, next) = detached.attach(&mut other).unwrap();
    assert_eq!(next, Next::Request);
    assert!(Arc::ptr_eq(other.config.snapshot(connection.snapshot_id).unwrap(), &old));
    peer.write_all(get("/a").as_bytes()).unwrap();
    assert_eq!(stages::request(&mut connection, &mut other), Next::Response(ResponseKind::Static));
    other.config.leave(connection.snapshot_id);
    assert!(
        other.config.snapshot(connection.snapshot_id).is_none(),
        "the last connection removes the old snapshot"
    );
}

#[test]
fn keeps_a_streamed_reply_on_its_thread() {
    let [mut one, _] = contexts(&snapshot());
    let (own, _peer) = UnixStream::pair().unwrap();
    let mut connection =
        Connection::new(|_| Blocking::new(own.into(), None), ClientAddress::UNIX, &mut one);
    let stream = crate::handler::Stream::new(bine_http::BodyFraming::CloseDelimited, |_| {
        Box::pin(std::future::ready(Ok(())))
    });
    connection.follow(crate::handler::Follow::Stream(stream), &mut one);
    assert!(DetachedConnection::detach(connection, &mut one, Next::Reply).is_err());
}
