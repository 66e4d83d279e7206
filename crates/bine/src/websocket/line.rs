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
use bine_server::{Gone, Parting, Wire};

use super::{Message, Talking};

/// The connection, shared by the handler and [`run`].
pub(super) struct Line(RefCell<State>);

struct State {
    wire: Wire,
    reader: FrameReader,
    /// The received part of an incomplete message.
    gathered: Vec<u8>,
    limits: MessageLimits,
    /// Time that the client may be silent, or may accept no data.
    pause: Duration,
    /// Frames to send; the first `sent` bytes are sent.
    out: Vec<u8>,
    sent: usize,
    /// A received message that the handler has not taken. The connection reads no further until it
    /// is taken.
    message: Option<Message>,
    phase: Phase,
    /// Whether a close frame was sent or received.
    is_clean: bool,
    /// The client's close code and reason.
    farewell: Option<(CloseCode, String)>,
    /// Set while the handler waits for a message, or (`sender`) for room to send.
    taker: Option<Waker>,
    sender: Option<Waker>,
    /// When bytes were last received.
    heard: Instant,
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
    Over(Instant),
}

/// Unsent bytes at which senders wait.
const AHEAD: usize = 64 * 1024;
/// Buffers up to this size are kept for later.
const KEPT: usize = 4 * 1024;
/// Control frames per second. Each needs an answer, and no client needs more.
const CONTROLS: u32 = 100;
/// Time for the client to close too, and to read the close frame.
const FAREWELL: Duration = Duration::from_secs(5);
/// The same time if no thread is available.
const SOON: Duration = Duration::from_secs(1);
/// Time for the handler to end after the connection has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a connection until it has ended and its handler has returned.
pub(super) async fn run(line: Rc<Line>, talk: impl FnOnce() -> Talking) -> Result<(), String> {
    // Without an available thread, the handler does not start.
    let mut talking = line.begins().then(talk);
    let mut outcome = Ok(());
    poll_fn(|task| {
        let mut is_over = line.advance(task);
        if let Some(future) = &mut talking {
            let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task)));
            let ended = match polled {
                Ok(Poll::Pending) => None,
                Ok(Poll::Ready(Ok(()))) => Some(Ok(())),
                // The handler only passes on that the connection has ended.
                Ok(Poll::Ready(Err(_))) if line.is_lost() => Some(Ok(())),
                Ok(Poll::Ready(Err(error))) => Some(Err(format!("{error:?}"))),
                Err(_) => Some(Err("it panicked".to_owned())),
            };
            if let Some(ended) = ended {
                let code =
                    if ended.is_ok() { CloseCode::NORMAL } else { CloseCode::INTERNAL_ERROR };
                line.close(code, "");
                outcome = ended;
                talking = None;
            }
            // Sends the handler's messages at once.
            is_over = line.advance(task);
        }
        if is_over && (talking.is_none() || line.is_abandoned()) {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
    outcome
}

impl Line {
    pub(super) fn new(wire: Wire, limits: MessageLimits, pause: Duration) -> Self {
        let now = Instant::now();
        Self(RefCell::new(State {
            wire,
            reader: FrameReader::server(),
            gathered: Vec::new(),
            limits,
            pause,
            out: Vec::new(),
            sent: 0,
            message: None,
            phase: Phase::Open,
            is_clean: false,
            farewell: None,
            taker: None,
            sender: None,
            heard: now,
            pinged: None,
            stalled: None,
            controls: (0, now),
        }))
    }

    pub(super) fn poll_message(
        &self,
        task: &mut Context<'_>,
    ) -> Poll<Result<Option<Message>, Gone>> {
        let mut state = self.0.borrow_mut();
        let now = Instant::now();
        state.understand(now);
        if let Some(message) = state.message.take() {
            // The client could not be read while the message waited.
            state.heard = now;
            return Poll::Ready(Ok(Some(message)));
        }
        match state.phase {
            Phase::Open => {
                state.taker = Some(task.waker().clone());
                Poll::Pending
            }
            _ if state.is_clean => Poll::Ready(Ok(None)),
            _ => Poll::Ready(Err(Gone)),
        }
    }

    /// Ready when there is room for a further message.
    pub(super) fn poll_room(&self, task: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let mut state = self.0.borrow_mut();
        if state.phase != Phase::Open {
            return Poll::Ready(Err(Gone));
        }
        if state.unsent() >= AHEAD {
            state.sender = Some(task.waker().clone());
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

    pub(super) fn farewell(&self) -> Option<(CloseCode, String)> {
        self.0.borrow().farewell.clone()
    }

    fn begins(&self) -> bool {
        self.0.borrow().wire.parting() != Some(Parting::NoThread)
    }

    fn is_lost(&self) -> bool {
        self.0.borrow().phase != Phase::Open
    }

    /// Whether the handler still runs long after the connection has ended.
    fn is_abandoned(&self) -> bool {
        let state = self.0.borrow();
        let Phase::Over(since) = state.phase else { return false };
        state.wire.wake_at(since + PATIENCE);
        since.elapsed() >= PATIENCE
    }

    /// Receives and sends as far as possible. Returns true if the connection has ended.
    fn advance(&self, task: &mut Context<'_>) -> bool {
        let mut state = self.0.borrow_mut();
        state.advance(task, Instant::now());
        let wakers = state.wakers();
        let is_over = matches!(state.phase, Phase::Over(_));
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
        is_over
    }
}

impl State {
    const fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    /// The wakers of waits that are over.
    fn wakers(&mut self) -> [Option<Waker>; 2] {
        let is_open = self.phase == Phase::Open;
        let (has_message, has_room) = (self.message.is_some(), self.unsent() < AHEAD);
        [
            self.taker.take_if(|_| has_message || !is_open),
            self.sender.take_if(|_| has_room || !is_open),
        ]
    }

    fn close(&mut self, code: CloseCode, reason: &str) {
        if self.phase == Phase::Open {
            Frame::Close { code: Some(code), reason }.append(&mut self.out);
            self.is_clean = true;
            self.phase = Phase::Closing(Instant::now() + FAREWELL);
        }
    }

    fn advance(&mut self, task: &mut Context<'_>, now: Instant) {
        match self.wire.parting() {
            Some(Parting::Stop) => self.close(CloseCode::GOING_AWAY, "The server stops."),
            // The thread that waits until the close frame is read belongs to other connections.
            Some(Parting::NoThread) if self.phase == Phase::Open => {
                self.close(CloseCode::TRY_AGAIN_LATER, "The server is busy.");
                self.phase = Phase::Ending(now + SOON);
            }
            Some(Parting::NoThread) | None => {}
        }
        loop {
            self.understand(now);
            self.flush(task, now);
            // Reads on even if much is unsent: a flooded connection must still receive a close
            // frame. `CONTROLS` limits the answers.
            let is_over = matches!(self.phase, Phase::Over(_));
            if self.message.is_some() || is_over || !self.receive(task, now) {
                break;
            }
        }
        self.keep_time(task, now);
    }

    /// Receives bytes. Returns false if no bytes are available.
    fn receive(&mut self, task: &mut Context<'_>, now: Instant) -> bool {
        match self.wire.poll_receive(task) {
            Poll::Pending => return false,
            Poll::Ready(Ok(0) | Err(Gone)) => self.phase = Phase::Over(now),
            Poll::Ready(Ok(_)) => {
                self.heard = now;
                self.pinged = None;
            }
        }
        true
    }

    /// Parses received bytes up to the next message.
    fn understand(&mut self, now: Instant) {
        while self.message.is_none() {
            let Self { wire, reader, gathered, limits, out, .. } = self;
            match self.phase {
                Phase::Open | Phase::Closing(_) => {}
                Phase::Ending(_) | Phase::Finished(_) => {
                    let count = wire.received().len();
                    return wire.consume(count);
                }
                Phase::Over(_) => return,
            }
            let is_open = self.phase == Phase::Open;
            let step = reader.receive(wire.received(), gathered, limits);
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
                        self.farewell = code.map(|code| (code, reason.to_owned()));
                        self.is_clean = true;
                        phase = Phase::Ending(now + FAREWELL);
                    }
                }
                FrameEvent::Fault(fault) => {
                    if is_open {
                        fault.close_frame().append(out);
                    }
                    phase = Phase::Ending(now + FAREWELL);
                }
            }
            let consumed = step.consumed;
            wire.consume(consumed);
            self.phase = phase;
            if !self.reader.has_partial_message() && self.gathered.capacity() > KEPT {
                self.gathered = Vec::new();
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
        if *count > CONTROLS && self.phase == Phase::Open {
            let reason = "Too many control frames.";
            Frame::Close { code: Some(CloseCode::POLICY_VIOLATION), reason }.append(&mut self.out);
            self.phase = Phase::Ending(now + FAREWELL);
        }
    }

    fn flush(&mut self, task: &mut Context<'_>, now: Instant) {
        if matches!(self.phase, Phase::Over(_)) {
            return;
        }
        loop {
            match self.wire.poll_send(task, &self.out[self.sent..]) {
                Poll::Pending => {
                    self.stalled.get_or_insert(now);
                    return;
                }
                Poll::Ready(Err(Gone)) => {
                    self.phase = Phase::Over(now);
                    return;
                }
                Poll::Ready(Ok(0)) => break,
                Poll::Ready(Ok(count)) => {
                    self.sent += count;
                    self.stalled = None;
                    if self.sent == self.out.len() {
                        self.out.clear();
                        self.out.shrink_to(KEPT);
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
    fn keep_time(&mut self, task: &mut Context<'_>, now: Instant) {
        let stall = self.stalled.map(|since| since + self.pause);
        let due = match self.phase {
            Phase::Over(_) => return,
            Phase::Closing(end) | Phase::Ending(end) | Phase::Finished(end) => Some(end),
            // The client's pongs are not read while a message waits.
            Phase::Open if self.message.is_some() => None,
            Phase::Open => match self.pinged {
                Some(pinged) => Some(pinged + self.pause / 3),
                None if self.heard + self.pause <= now => {
                    Frame::Ping(b"").append(&mut self.out);
                    self.pinged = Some(now);
                    self.flush(task, now);
                    Some(now + self.pause / 3)
                }
                None => Some(self.heard + self.pause),
            },
        };
        for moment in [due, stall].into_iter().flatten() {
            if moment <= now {
                self.phase = Phase::Over(now);
                return;
            }
            self.wire.wake_at(moment);
        }
    }
}
