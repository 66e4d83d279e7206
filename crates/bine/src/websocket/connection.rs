//! Drives one WebSocket: pings, the closing handshake, timeouts and all limits.
//!
//! The handler and the connection run in one task. The handler appends frames to a buffer and takes
//! messages; only [`run`] moves bytes, so pings are answered while the handler awaits something
//! else.

use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bine_http::websocket::{CloseCode, Frame, FrameEvent, FrameReader, MessageLimits};
use bine_server::{CloseReason, Disconnected, UpgradedConnection};

use super::{HandlerFuture, Message};

/// The connection, shared by the handler and [`run`].
pub(super) struct WebSocketConnection(RefCell<ConnectionState>);

struct ConnectionState {
    wire: UpgradedConnection,
    reader: FrameReader,
    /// The received part of an incomplete message.
    partial: Vec<u8>,
    limits: MessageLimits,
    /// Time that the client may be silent, or may accept no data.
    ping_interval: Duration,
    /// Frames to send; the first `sent` bytes are sent.
    out: Vec<u8>,
    sent: usize,
    /// A received message that the handler has not taken. The connection reads no further until it
    /// is taken.
    message: Option<Message>,
    phase: Phase,
    /// Whether a close frame was sent or received.
    was_closed: bool,
    /// The client's close code and reason.
    close_reason: Option<(CloseCode, String)>,
    /// Set while the handler waits for a message, or (`sender_waker`) for room to send.
    receiver_waker: Option<Waker>,
    sender_waker: Option<Waker>,
    /// When bytes were last received.
    last_received: Instant,
    /// When the last unanswered ping was sent.
    pinged: Option<Instant>,
    /// Since when the client has accepted no data.
    stalled: Option<Instant>,
    /// Control frames, and the start of the second in which they are counted.
    controls: (u32, Instant),
}

/// The phases of a connection. The time is the phase's deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The server has sent a close frame; the client has not.
    Closing(Instant),
    /// Received bytes are discarded. The connection sends the rest of its buffer, then waits for
    /// the client to close.
    Ending(Instant),
    /// As `Ending`, with the server's half closed.
    Finished(Instant),
    /// The connection has ended, at this time.
    Ended(Instant),
}

/// Unsent bytes at which senders wait.
const MAX_UNSENT: usize = 64 * 1024;
/// Buffers up to this size are kept for later.
const BUFFER_KEPT: usize = 4 * 1024;
/// Control frames per second. Each needs an answer, and no client needs more.
const MAX_CONTROLS_PER_SECOND: u32 = 100;
/// Time for the client to close too, and to read the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The same time if no thread is available.
const BUSY_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for the handler to end after the connection has ended.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a connection until it has ended and its handler has returned.
pub(super) async fn run(
    connection: Rc<WebSocketConnection>,
    handler: impl FnOnce() -> HandlerFuture,
) -> Result<(), String> {
    // Without an available thread, the handler does not start.
    let mut running = connection.has_thread().then(handler);
    let mut outcome = Ok(());
    poll_fn(|task| {
        let mut has_ended = connection.advance(task);
        if let Some(future) = &mut running {
            let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task)));
            let ended = match polled {
                Ok(Poll::Pending) => None,
                Ok(Poll::Ready(Ok(()))) => Some(Ok(())),
                // The handler only passes on that the connection has ended.
                Ok(Poll::Ready(Err(_))) if connection.is_closed() => Some(Ok(())),
                Ok(Poll::Ready(Err(error))) => Some(Err(format!("{error:?}"))),
                Err(_) => Some(Err("it panicked".to_owned())),
            };
            if let Some(ended) = ended {
                let code =
                    if ended.is_ok() { CloseCode::NORMAL } else { CloseCode::INTERNAL_ERROR };
                connection.close(code, "");
                outcome = ended;
                running = None;
            }
            // Sends the handler's messages at once.
            has_ended = connection.advance(task);
        }
        if has_ended && (running.is_none() || connection.is_abandoned()) {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
    outcome
}

impl WebSocketConnection {
    pub(super) fn new(
        wire: UpgradedConnection,
        limits: MessageLimits,
        ping_interval: Duration,
    ) -> Self {
        let now = Instant::now();
        Self(RefCell::new(ConnectionState {
            wire,
            reader: FrameReader::server(),
            partial: Vec::new(),
            limits,
            ping_interval,
            out: Vec::new(),
            sent: 0,
            message: None,
            phase: Phase::Open,
            was_closed: false,
            close_reason: None,
            receiver_waker: None,
            sender_waker: None,
            last_received: now,
            pinged: None,
            stalled: None,
            controls: (0, now),
        }))
    }

    pub(super) fn poll_message(
        &self,
        task: &mut Context<'_>,
    ) -> Poll<Result<Option<Message>, Disconnected>> {
        let mut state = self.0.borrow_mut();
        let now = Instant::now();
        state.parse(now);
        if let Some(message) = state.message.take() {
            // The client could not be read while the message waited.
            state.last_received = now;
            return Poll::Ready(Ok(Some(message)));
        }
        match state.phase {
            Phase::Open => {
                state.receiver_waker = Some(task.waker().clone());
                Poll::Pending
            }
            _ if state.was_closed => Poll::Ready(Ok(None)),
            _ => Poll::Ready(Err(Disconnected)),
        }
    }

    /// Ready when there is room for a further message.
    pub(super) fn poll_room(&self, task: &mut Context<'_>) -> Poll<Result<(), Disconnected>> {
        let mut state = self.0.borrow_mut();
        if state.phase != Phase::Open {
            return Poll::Ready(Err(Disconnected));
        }
        if state.unsent() >= MAX_UNSENT {
            state.sender_waker = Some(task.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn send(&self, frame: &Frame<'_>) {
        frame.append(&mut self.0.borrow_mut().out);
    }

    pub(super) fn close(&self, code: CloseCode, reason: &str) {
        let mut state = self.0.borrow_mut();
        state.message = None;
        state.close(code, reason);
    }

    pub(super) fn close_reason(&self) -> Option<(CloseCode, String)> {
        self.0.borrow().close_reason.clone()
    }

    fn has_thread(&self) -> bool {
        self.0.borrow().wire.parting() != Some(CloseReason::NoThread)
    }

    fn is_closed(&self) -> bool {
        self.0.borrow().phase != Phase::Open
    }

    /// Whether the handler still runs long after the connection has ended.
    fn is_abandoned(&self) -> bool {
        let state = self.0.borrow();
        let Phase::Ended(since) = state.phase else { return false };
        state.wire.wake_at(since + HANDLER_TIMEOUT);
        since.elapsed() >= HANDLER_TIMEOUT
    }

    /// Receives and sends as far as possible. Returns true if the connection has ended.
    fn advance(&self, task: &mut Context<'_>) -> bool {
        let mut state = self.0.borrow_mut();
        state.advance(task, Instant::now());
        let wakers = state.wakers();
        let has_ended = matches!(state.phase, Phase::Ended(_));
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
        has_ended
    }
}

impl ConnectionState {
    const fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    /// The wakers of waits that are over.
    fn wakers(&mut self) -> [Option<Waker>; 2] {
        let is_open = self.phase == Phase::Open;
        let (has_message, has_room) = (self.message.is_some(), self.unsent() < MAX_UNSENT);
        [
            self.receiver_waker.take_if(|_| has_message || !is_open),
            self.sender_waker.take_if(|_| has_room || !is_open),
        ]
    }

    fn close(&mut self, code: CloseCode, reason: &str) {
        if self.phase == Phase::Open {
            Frame::Close { code: Some(code), reason }.append(&mut self.out);
            self.was_closed = true;
            self.phase = Phase::Closing(Instant::now() + CLOSE_TIMEOUT);
        }
    }

    fn advance(&mut self, task: &mut Context<'_>, now: Instant) {
        match self.wire.parting() {
            Some(CloseReason::Stop) => self.close(CloseCode::GOING_AWAY, "The server stops."),
            // The thread that waits until the close frame is read belongs to other connections.
            Some(CloseReason::NoThread) if self.phase == Phase::Open => {
                self.close(CloseCode::TRY_AGAIN_LATER, "The server is busy.");
                self.phase = Phase::Ending(now + BUSY_CLOSE_TIMEOUT);
            }
            Some(CloseReason::NoThread) | None => {}
        }
        loop {
            self.parse(now);
            self.flush(task, now);
            // Reads on even if much is unsent: a flooded connection must still receive a close
            // frame. `MAX_CONTROLS_PER_SECOND` limits the answers.
            let has_ended = matches!(self.phase, Phase::Ended(_));
            if self.message.is_some() || has_ended || !self.receive(task, now) {
                break;
            }
        }
        self.check_deadlines(task, now);
    }

    /// Receives bytes. Returns false if no bytes are available.
    fn receive(&mut self, task: &mut Context<'_>, now: Instant) -> bool {
        match self.wire.poll_receive(task) {
            Poll::Pending => return false,
            Poll::Ready(Ok(0) | Err(Disconnected)) => self.phase = Phase::Ended(now),
            Poll::Ready(Ok(_)) => {
                self.last_received = now;
                self.pinged = None;
            }
        }
        true
    }

    /// Parses received bytes up to the next message.
    fn parse(&mut self, now: Instant) {
        while self.message.is_none() {
            let Self { wire, reader, partial, limits, out, .. } = self;
            match self.phase {
                Phase::Open | Phase::Closing(_) => {}
                Phase::Ending(_) | Phase::Finished(_) => {
                    let count = wire.received().len();
                    return wire.consume(count);
                }
                Phase::Ended(_) => return,
            }
            let is_open = self.phase == Phase::Open;
            let step = reader.receive(wire.received(), partial, limits);
            let mut is_control = false;
            let mut phase = self.phase;
            let mut is_heard = true;
            match step.event {
                FrameEvent::More => is_heard = false,
                FrameEvent::Frame(Frame::Text(text)) if is_open => {
                    self.message = Some(Message::Text(text.to_owned()));
                }
                FrameEvent::Frame(Frame::Binary(bytes)) if is_open => {
                    self.message = Some(Message::Binary(bytes.to_owned()));
                }
                // The handler takes no messages after a close.
                FrameEvent::Frame(Frame::Text(_) | Frame::Binary(_)) => {}
                FrameEvent::Frame(frame) => {
                    is_control = true;
                    if let (true, Some(answer)) = (is_open, frame.answer()) {
                        answer.append(out);
                    }
                    if let Frame::Close { code, reason } = frame {
                        self.close_reason = code.map(|code| (code, reason.to_owned()));
                        self.was_closed = true;
                        phase = Phase::Ending(now + CLOSE_TIMEOUT);
                    }
                }
                FrameEvent::Fault(fault) => {
                    if is_open {
                        fault.close_frame().append(out);
                    }
                    phase = Phase::Ending(now + CLOSE_TIMEOUT);
                }
            }
            let consumed = step.consumed;
            wire.consume(consumed);
            self.phase = phase;
            if !self.reader.has_partial_message() && self.partial.capacity() > BUFFER_KEPT {
                self.partial = Vec::new();
            }
            if is_control {
                self.count_control(now);
            }
            if !is_heard {
                return;
            }
        }
    }

    /// Limits control frames, since the server answers every frame.
    fn count_control(&mut self, now: Instant) {
        let (count, since) = &mut self.controls;
        if now.duration_since(*since) >= Duration::from_secs(1) {
            (*count, *since) = (0, now);
        }
        *count += 1;
        if *count > MAX_CONTROLS_PER_SECOND && self.phase == Phase::Open {
            let reason = "Too many control frames.";
            Frame::Close { code: Some(CloseCode::POLICY_VIOLATION), reason }.append(&mut self.out);
            self.phase = Phase::Ending(now + CLOSE_TIMEOUT);
        }
    }

    fn flush(&mut self, task: &mut Context<'_>, now: Instant) {
        if matches!(self.phase, Phase::Ended(_)) {
            return;
        }
        loop {
            match self.wire.poll_send(task, &self.out[self.sent..]) {
                Poll::Pending => {
                    self.stalled.get_or_insert(now);
                    return;
                }
                Poll::Ready(Err(Disconnected)) => {
                    self.phase = Phase::Ended(now);
                    return;
                }
                Poll::Ready(Ok(0)) => break,
                Poll::Ready(Ok(count)) => {
                    self.sent += count;
                    self.stalled = None;
                    if self.sent == self.out.len() {
                        self.out.clear();
                        self.out.shrink_to(BUFFER_KEPT);
                        self.sent = 0;
                    }
                }
            }
        }
        self.stalled = None;
        if let Phase::Ending(end) = self.phase {
            self.wire.finish();
            self.phase = Phase::Finished(end);
        }
    }

    /// Acts on deadlines that have passed, and sets a timer for the next one.
    fn check_deadlines(&mut self, task: &mut Context<'_>, now: Instant) {
        let stall = self.stalled.map(|since| since + self.ping_interval);
        let due = match self.phase {
            Phase::Ended(_) => return,
            Phase::Closing(end) | Phase::Ending(end) | Phase::Finished(end) => Some(end),
            // The client's pongs are not read while a message waits.
            Phase::Open if self.message.is_some() => None,
            Phase::Open => match self.pinged {
                Some(pinged) => Some(pinged + self.ping_interval / 3),
                None if self.last_received + self.ping_interval <= now => {
                    Frame::Ping(b"").append(&mut self.out);
                    self.pinged = Some(now);
                    self.flush(task, now);
                    Some(now + self.ping_interval / 3)
                }
                None => Some(self.last_received + self.ping_interval),
            },
        };
        for moment in [due, stall].into_iter().flatten() {
            if moment <= now {
                self.phase = Phase::Ended(now);
                return;
            }
            self.wire.wake_at(moment);
        }
    }
}
