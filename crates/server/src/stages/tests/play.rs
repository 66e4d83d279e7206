//! Runs scripts: drives the stages as the event loop and as a thread per connection do, with a
//! clock that the script advances.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::access::AccessLog;
use crate::address::ClientAddress;
use crate::connection::{Connection, DeferredWork, Phase, ThreadContext};
use crate::generation::ThreadConfig;
use crate::handler::{Finished, Outgoing, ReplyFuture, Retained, ServeReason, Work, failure};
use crate::next::{Next, ResponseKind};
use crate::settings::Settings;
use crate::stages;
use crate::time::Clock;

use super::fake::{FakeTransport, ScriptStep};
use super::program::{self, TestProgram};

/// Runs `script` with and without blocking, and compares the output with `expected`.
#[track_caller]
pub(super) fn check(script: &[ScriptStep], expected: &str) {
    let turns = play::<false>(script, Placement::SameThread).transcript.text();
    assert_eq!(turns, expected, "without blocking");
    let expected: Vec<&str> = expected.split("; ").filter(|part| *part != "turn").collect();
    let held = play::<true>(script, Placement::SameThread).transcript.text();
    assert_eq!(held, expected.join("; "), "blocking");
}

/// Like [`check`], but a worker runs work that may block. Only an event loop has workers.
#[track_caller]
pub(super) fn check_with_workers(script: &[ScriptStep], expected: &str) {
    assert_eq!(play::<false>(script, Placement::Spawn).transcript.text(), expected);
}

/// Like [`check`], for the nonblocking transport only.
#[track_caller]
pub(super) fn check_loop(script: &[ScriptStep], expected: &str) {
    assert_eq!(play::<false>(script, Placement::SameThread).transcript.text(), expected);
}

pub(super) use crate::scheduling::Placement;

/// Runs `script` to the end of its connection.
pub(super) fn play<const BLOCKS: bool>(
    script: &[ScriptStep],
    place: Placement,
) -> FakeTransport<BLOCKS> {
    let settings = Settings { unsent: 50_000, ..Settings::default() };
    play_from(ClientAddress::UNIX, script, place, settings).transport
}

/// Like [`play`], for a client at `peer` and with other settings. Returns the connection at its end.
pub(super) fn play_from<const BLOCKS: bool>(
    peer: ClientAddress,
    script: &[ScriptStep],
    place: Placement,
    settings: Settings,
) -> Connection<FakeTransport<BLOCKS>> {
    let clock = Rc::new(Clock::told(1_795_208_400));
    let gate = Rc::new(Cell::new(false));
    let responder = TestProgram {
        clock: Rc::clone(&clock),
        gate: Rc::clone(&gate),
        file: program::file(),
        has_waited: Cell::default(),
    };
    let config = ThreadConfig::new(Arc::new(settings), Box::new(responder), AccessLog::new(None));
    let mut context = ThreadContext::new(config, Rc::clone(&clock), Arc::default());
    let transport = FakeTransport::new(script, &clock);
    let connection = Connection::new(|_| transport, peer, &mut context);
    let mut stage = Player { connection, context, gate, place, unfinished: None };
    stage.play();
    stage.connection
}

/// A reply that is written outside the stages.
enum Unfinished {
    Later(ReplyFuture),
    Work(Arc<dyn Work>, Box<Retained>),
}

struct Player<const BLOCKS: bool> {
    connection: Connection<FakeTransport<BLOCKS>>,
    context: ThreadContext,
    gate: Rc<Cell<bool>>,
    place: Placement,
    unfinished: Option<Unfinished>,
}

impl<const BLOCKS: bool> Player<BLOCKS> {
    fn play(&mut self) {
        let mut next = Next::Idle;
        for _ in 0..1_000_000 {
            let Self { connection, context, .. } = self;
            next = match next {
                Next::Request => stages::request(connection, context),
                Next::Response(ResponseKind::Static) => stages::response(connection, context),
                Next::Response(ResponseKind::Dynamic) if self.place == Placement::Spawn => {
                    self.start_work()
                }
                Next::Response(ResponseKind::Dynamic) => stages::dynamic(connection, context),
                Next::Reply => stages::reply(connection, context),
                Next::Held => stages::held(connection, context, ServeReason::Room),
                Next::Park => self.park(),
                Next::Idle if BLOCKS => {
                    context.make_current(connection);
                    if connection.has_unsent() { Next::Reply } else { Next::Request }
                }
                Next::Idle => self.wait(),
                Next::Depart | Next::Closed => {
                    connection.transport.transcript.record("closed");
                    return;
                }
            };
        }
        panic!("a script without an end: {}", self.connection.transport.transcript.text());
    }

    /// Waits for the next event, as the event loop does.
    fn wait(&mut self) -> Next {
        let Self { connection, context, .. } = self;
        if connection.wants_turn {
            connection.wants_turn = false;
            connection.transport.transcript.record("turn");
            context.make_current(connection);
            return if connection.has_unsent() { Next::Reply } else { Next::Request };
        }
        let mut left = connection.deadline.since(context.clock.now());
        let event = connection.transport.script.front().cloned();
        if !connection.transport.pass(&mut left) {
            context.make_current(connection);
            if connection.phase == Phase::Queued
                && let Some(Unfinished::Work(_, request)) = self.unfinished.take()
            {
                return stages::reject_overloaded(connection, context, request);
            }
            return stages::expire(connection, context);
        }
        let parked = matches!(connection.phase, Phase::Queued | Phase::Handler);
        match event {
            Some(ScriptStep::Finish) => return self.finish(),
            Some(ScriptStep::Stop) => context.stopping = true,
            Some(ScriptStep::Last(_) | ScriptStep::Leave) => connection.hung_up = true,
            _ => {}
        }
        if matches!(event, Some(ScriptStep::Wait(_) | ScriptStep::Stop)) {
            return Next::Idle;
        }
        if parked {
            if connection.has_unsent() {
                stages::send_unsent(connection, context);
            }
            return Next::Idle;
        }
        context.make_current(connection);
        if connection.phase == Phase::Writing { Next::Reply } else { Next::Request }
    }

    fn start_work(&mut self) -> Next {
        let Self { connection, context, .. } = self;
        let Some(DeferredWork::Work(work, request)) = context.deferred_work.take() else {
            unreachable!()
        };
        self.unfinished = Some(Unfinished::Work(work, request));
        if stages::park(connection, context) == Next::Closed {
            return Next::Closed;
        }
        connection.phase = Phase::Queued;
        connection.deadline = context.clock.now().after(context.config.settings.timeouts.queue);
        connection.transport.transcript.record("queued");
        Next::Idle
    }

    fn park(&mut self) -> Next {
        let Self { connection, context, .. } = self;
        let Some(DeferredWork::Later(reply, _) | DeferredWork::WhileOpen(reply, _)) =
            context.deferred_work.take()
        else {
            unreachable!()
        };
        self.unfinished = Some(Unfinished::Later(reply));
        if stages::park(connection, context) == Next::Closed {
            return Next::Closed;
        }
        if !BLOCKS {
            return Next::Idle;
        }
        let mut left = context.config.settings.timeouts.handler;
        loop {
            let event = connection.transport.script.front().cloned();
            if !connection.transport.pass(&mut left) {
                context.make_current(connection);
                return stages::expire(connection, context);
            }
            if matches!(event, Some(ScriptStep::Finish)) {
                return self.finish();
            }
        }
    }

    /// Finishes the reply that is written elsewhere, if the connection still waits for it.
    fn finish(&mut self) -> Next {
        let Self { connection, context, gate, .. } = self;
        gate.set(true);
        let mut finished = match self.unfinished.take() {
            Some(Unfinished::Later(mut reply)) => {
                let mut task = std::task::Context::from_waker(Waker::noop());
                match catch_unwind(AssertUnwindSafe(|| reply.as_mut().poll(&mut task))) {
                    Ok(Poll::Ready(finished)) => finished,
                    Ok(Poll::Pending) => unreachable!("the gate is open"),
                    Err(_) => failure::failed(&context.clock, context.config.settings.security),
                }
            }
            Some(Unfinished::Work(work, request)) => {
                let mut bytes = Vec::new();
                let mut keep = |_: &mut Vec<u8>| {};
                let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
                let done = failure::run_work(&*work, &request, &context.clock, &mut out);
                let done = done.unwrap_or_else(|| {
                    failure::reply_after_panic(&*work, &request, &context.clock, &mut bytes)
                });
                Finished { bytes, follow: done.follow, close: done.close }
            }
            None => return Next::Idle,
        };
        if matches!(connection.phase, Phase::Queued | Phase::Handler) {
            context.make_current(connection);
        } else {
            connection.transport.transcript.record("too late");
            return Next::Idle;
        }
        stages::finished(connection, context, &mut finished, None)
    }
}

/// A request without content.
pub(super) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// The head of a request with `length` bytes of content.
pub(super) fn post(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")
}

/// A pause in seconds.
pub(super) const fn seconds(number: u64) -> ScriptStep {
    ScriptStep::Wait(Duration::from_secs(number))
}
