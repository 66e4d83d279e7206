//! The task of a connection: it accepts streams, and ends the connection when it is idle, when its
//! client does not read, when the server stops, or when the client attacks.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bine_log as log;
use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, Connection};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

use crate::address::ClientAddress;
use crate::handler::UpgradedConnection;
use crate::http2::byte_stream::ByteStream;
use crate::http2::exchange::{Exchanges, exchanges};
use crate::http2::flood::FloodCounter;
use crate::http2::idle::{IdleConnections, IdlePlace};
use crate::http2::link::Link;
use crate::lifecycle::State;
use crate::memory_stream::StreamQueue;
use crate::settings::Settings;
use crate::time::monotonic_milliseconds;

/// The streams that a client may open at one time: browsers need no more, and RFC 9113 section 6.5.2
/// advises against fewer.
const MAX_STREAMS: u32 = 100;
/// The content of a request that the client may send ahead of the server, for one stream and for all
/// of a connection.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// The content of one response that waits in `h2`.
const SEND_BUFFER: usize = 32 * 1024;
/// Streams that the client makes the server reset (CVE-2025-8671), until the connection is closed.
const MAX_ERROR_RESETS: usize = 100;

/// What a connection needs of its thread.
pub(crate) struct ConnectionTerms {
    /// Takes the streams of the connection.
    pub(crate) queue: Rc<StreamQueue>,
    /// The idle connections of the same loop.
    pub(crate) idle: Rc<IdleConnections>,
    /// The client of all requests, as far as no trusted proxy names another.
    pub(crate) peer: ClientAddress,
    /// The settings under which the connection was accepted.
    pub(crate) settings: Arc<Settings>,
    /// The phase of the server's shutdown.
    pub(crate) state: watch::Receiver<State>,
    /// Whether the server is leaving.
    pub(crate) is_leaving: Box<dyn Fn() -> bool>,
    /// Counts the connection if its client floods it.
    pub(crate) floods: Arc<FloodCounter>,
}

/// Serves a connection whose first bytes are the preface, to its end.
pub(crate) async fn serve(connection: UpgradedConnection, terms: ConnectionTerms) {
    let ConnectionTerms { queue, idle, peer, settings, state, is_leaving, floods } = terms;
    let link = Rc::new(Link::new(queue, peer, settings));
    let bytes = ByteStream::new(connection, Rc::clone(&link));
    let handshake = builder(&link.settings).handshake::<_, Bytes>(bytes);
    // The preface and the first settings arrive as a head does.
    let Ok(begun) = tokio::time::timeout(link.settings.timeouts.head, handshake).await else {
        return;
    };
    match begun {
        Ok(connection) => {
            let sleep = Box::pin(tokio::time::sleep(Duration::MAX));
            let stage = LifeStage::Open;
            let armed = None;
            let exchanges = exchanges();
            let life =
                Life { connection, exchanges, link, idle, is_leaving, floods, sleep, armed, stage };
            life.run(state).await;
        }
        Err(error) => log::debug(format_args!("HTTP/2: {error}")),
    }
}

fn builder(settings: &Settings) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(MAX_STREAMS)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(settings.limits.head)
        .max_send_buffer_size(SEND_BUFFER)
        .max_local_error_reset_streams(Some(MAX_ERROR_RESETS))
        .enable_connect_protocol();
    builder
}

/// A connection after its handshake.
struct Life<E> {
    connection: Connection<ByteStream, Bytes>,
    exchanges: E,
    link: Rc<Link>,
    idle: Rc<IdleConnections>,
    is_leaving: Box<dyn Fn() -> bool>,
    floods: Arc<FloodCounter>,
    sleep: Pin<Box<Sleep>>,
    /// The deadline for which `sleep` is set.
    armed: Option<Instant>,
    stage: LifeStage,
}

enum LifeStage {
    /// With streams, or without a deadline so far.
    Open,
    /// Without a stream.
    Idle { since: Instant, place: IdlePlace },
    /// The client has been told to open no more streams.
    Closing { idle_since: Option<Instant> },
}

impl<E: Exchanges> Life<E> {
    async fn run(mut self, mut state: watch::Receiver<State>) {
        let mut stops = pin!(async {
            // The sender is dropped with the server, so an error is an end too.
            let _ = state.wait_for(|state| *state != State::Serving).await;
        });
        let mut is_stopping = false;
        // The loop drops this task at the end of the server.
        poll_fn(|task| {
            self.link.set_waker(task);
            if !is_stopping && stops.as_mut().poll(task).is_ready() {
                is_stopping = true;
                self.begin_closing();
            }
            self.poll(task)
        })
        .await;
    }

    /// Tells the client to open no more streams. The connection ends after the open ones.
    fn begin_closing(&mut self) {
        if !matches!(self.stage, LifeStage::Closing { .. }) {
            self.connection.graceful_shutdown();
            self.stage = LifeStage::Closing { idle_since: None };
        }
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.poll_streams(task).is_ready() {
                return Poll::Ready(());
            }
            if self.link.is_hostile() {
                self.note_flood();
                self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                // Sends the reason, if the client reads it.
                let _ = self.poll_streams(task);
                return Poll::Ready(());
            }
            if self.exchanges.poll(task) {
                // Sends what they have written.
                continue;
            }
            let Some(due) = self.deadline(task) else { return Poll::Pending };
            if matches!(&self.stage, LifeStage::Idle { place, .. } if place.is_closed()) {
                self.begin_closing();
                continue;
            }
            if self.armed != Some(due) {
                self.sleep.as_mut().reset(due);
                self.armed = Some(due);
            }
            if self.sleep.as_mut().poll(task).is_pending() {
                return Poll::Pending;
            }
            self.armed = None;
            let is_unread = self.link.blocked_since.get().is_some();
            if is_unread || !matches!(self.stage, LifeStage::Idle { .. }) {
                return Poll::Ready(());
            }
            self.begin_closing();
        }
    }

    fn note_flood(&self) {
        self.floods.note(self.link.peer, monotonic_milliseconds());
    }

    /// Accepts streams, and drives the connection. Ready at its end.
    fn poll_streams(&mut self, task: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.connection.poll_accept(task) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Ready(Some(Err(error))) => {
                    log::debug(format_args!("HTTP/2: {error}"));
                    // `h2` limits resets that the client provokes, and other frames.
                    let is_flood = error.reason() == Some(Reason::ENHANCE_YOUR_CALM);
                    if is_flood && error.is_library() && !self.link.is_hostile() {
                        self.note_flood();
                    }
                    return Poll::Ready(());
                }
                Poll::Ready(Some(Ok((request, respond)))) => {
                    if (self.is_leaving)() {
                        self.begin_closing();
                    }
                    self.exchanges.begin(request, respond, &self.link);
                }
            }
        }
    }

    /// When the connection ends, if nothing happens until then.
    fn deadline(&mut self, task: &Context<'_>) -> Option<Instant> {
        let timeouts = &self.link.settings.timeouts;
        let unread = self.link.blocked_since.get().map(|since| since + timeouts.write);
        let idle = if self.link.open_streams() > 0 {
            if matches!(self.stage, LifeStage::Idle { .. }) {
                self.stage = LifeStage::Open;
            }
            None
        } else {
            if matches!(self.stage, LifeStage::Open) {
                let block = self.link.peer.block();
                let place = self.idle.enter(block, timeouts.idle, task.waker());
                self.stage = LifeStage::Idle { since: Instant::now(), place };
            }
            match &mut self.stage {
                LifeStage::Open => None,
                LifeStage::Idle { since, .. } => Some(*since + timeouts.idle),
                LifeStage::Closing { idle_since } => {
                    Some(*idle_since.get_or_insert_with(Instant::now) + timeouts.linger)
                }
            }
        };
        match (unread, idle) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}
