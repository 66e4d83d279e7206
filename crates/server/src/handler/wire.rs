//! Decides how a connection lives on that has left HTTP: as a task with a stream of bytes, which whoever took it over
//! reads and writes.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bine_log as log;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use crate::handler::stream::{Gone, guarded};
use crate::lifecycle::State;
use crate::metrics::count_panic;
use crate::system::Transfer;
use crate::time::{Clock, Slowness};
use crate::transport::{Nonblocking, Transport as _};

/// What takes a connection over when the head has left that agrees to that (RFC 9110 section 7.8).
pub struct Upgrade(Begin);

/// The rest of a connection's life, which ends with it. Its error is for the log.
pub type Living = Pin<Box<dyn Future<Output = Result<(), String>>>>;

type Begin = Box<dyn FnOnce(Wire) -> Living + Send>;

impl Upgrade {
    /// `begin` is called on the connection's own thread, and what it returns runs there and must not block.
    pub fn new(begin: impl FnOnce(Wire) -> Living + Send + 'static) -> Self {
        Self(Box::new(begin))
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}

/// Why a connection shall end soon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parting {
    /// The server stops.
    Stop,
    /// No thread can be lent to it.
    NoThread,
}

/// Both directions of a connection, as bytes, secret or not. For one task: each direction wakes who asked last.
pub struct Wire {
    transport: AsyncFd<Watched>,
    space: Space,
    /// Received, and used up to `start`.
    received: Vec<u8>,
    start: usize,
    signals: Rc<Signals>,
}

/// Where a thread receives for all its wires, one at a time.
#[derive(Clone)]
pub(crate) struct Space(Rc<RefCell<Box<[u8]>>>);

/// What a wire and the task around it tell each other.
#[derive(Default)]
struct Signals {
    parting: Cell<Option<Parting>>,
    /// When the task shall be woken at the latest.
    alarm: Cell<Option<Instant>>,
}

/// At least this much is received at once. The longest record of TLS has room.
const SPACE: usize = 64 * 1024;
/// Most peers say little at once: only a buffer this small is kept between two times.
const KEPT: usize = 4 * 1024;

impl Wire {
    /// `transport` from here on, behind the bytes that were received already.
    pub(crate) fn new(transport: Nonblocking, received: Vec<u8>, space: Space) -> io::Result<Self> {
        // SAFETY: the transport has one descriptor, which it keeps open for as long as it lives.
        let transport = unsafe { AsyncFd::register(Watched(transport)) }?;
        Ok(Self { transport, space, received, start: 0, signals: Rc::default() })
    }

    /// What was received and is not [consumed](Self::consume).
    pub fn received(&mut self) -> &mut [u8] {
        &mut self.received[self.start..]
    }

    /// So many bytes at the front of that are done with.
    ///
    /// # Panics
    ///
    /// There are not so many.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.received.len() - self.start, "more than was received");
        self.start += count;
        if self.start == self.received.len() {
            self.start = 0;
            self.received.clear();
            self.received.shrink_to(KEPT);
        }
    }

    /// Receives more, and says how much; 0: the peer will send nothing further. What was received before should be
    /// consumed, or it piles up.
    ///
    /// # Errors
    ///
    /// The connection is gone.
    pub fn poll_receive(&mut self, task: &mut Context<'_>) -> Poll<Result<usize, Gone>> {
        if self.start > 0 {
            self.received.drain(..self.start);
            self.start = 0;
        }
        loop {
            let mut ready = ready!(self.transport.poll_read_ready_mut(task)).map_err(|_| Gone)?;
            let mut space = self.space.0.borrow_mut();
            let transport = &mut ready.get_inner_mut().0;
            match transport.receive(&mut space) {
                Transfer::Moved(count) => {
                    if transport.has_emptied(count, space.len()) {
                        ready.clear_ready();
                    }
                    self.received.extend_from_slice(&space[..count]);
                    return Poll::Ready(Ok(count));
                }
                Transfer::Again => ready.clear_ready(),
                Transfer::Ended => return Poll::Ready(Ok(0)),
                _ => return Poll::Ready(Err(Gone)),
            }
        }
    }

    /// Sends from `bytes`, and says how many; without any it is ready when all that was sent has left.
    ///
    /// # Errors
    ///
    /// The connection is gone.
    pub fn poll_send(&mut self, task: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Gone>> {
        loop {
            if bytes.is_empty() && !self.transport.get_ref().0.holds_back() {
                return Poll::Ready(Ok(0));
            }
            let mut ready = ready!(self.transport.poll_write_ready_mut(task)).map_err(|_| Gone)?;
            let transport = &mut ready.get_inner_mut().0;
            let was_held_back = transport.holds_back();
            let transfer =
                if was_held_back { transport.flush() } else { transport.send(bytes, false) };
            match transfer {
                Transfer::Moved(_) if was_held_back => {}
                Transfer::Moved(count) => return Poll::Ready(Ok(count)),
                Transfer::Again => ready.clear_ready(),
                _ => return Poll::Ready(Err(Gone)),
            }
        }
    }

    /// Tells the peer that nothing further will be sent.
    pub fn finish(&mut self) {
        self.transport.get_mut().0.finish();
    }

    /// Whether it shall end soon. Its task is woken when that changes.
    pub fn parting(&self) -> Option<Parting> {
        self.signals.parting.get()
    }

    /// Has its task woken at this moment at the latest; it may be earlier.
    pub fn wake_at(&self, moment: Instant) {
        if self.signals.alarm.get().is_none_or(|alarm| moment < alarm) {
            self.signals.alarm.set(Some(moment));
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.transport.get_mut().0.farewell();
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("parting", &self.parting()).finish_non_exhaustive()
    }
}

impl Space {
    pub(crate) fn new() -> Self {
        Self(Rc::new(RefCell::new(vec![0; SPACE].into_boxed_slice())))
    }
}

/// What one life needs of its thread.
pub(crate) struct Terms {
    /// How far the server is from its end.
    pub(crate) state: watch::Receiver<State>,
    /// It shall end at once.
    pub(crate) parting: Option<Parting>,
    pub(crate) clock: Rc<Clock>,
    pub(crate) slowness: Rc<Slowness>,
    /// The handler that asked for it, for the log.
    pub(crate) name: &'static str,
}

/// Lives a connection's life to its end, which is that of the server at the latest.
pub(crate) async fn live(upgrade: Upgrade, wire: Wire, terms: Terms) {
    let Terms { mut state, parting, clock, slowness, name } = terms;
    let signals = Rc::clone(&wire.signals);
    signals.parting.set(parting);
    let Ok(living) = catch_unwind(AssertUnwindSafe(|| (upgrade.0)(wire))) else {
        count_panic();
        return log::error(format_args!("{name} panicked; its connection was cut"));
    };
    let mut living = pin!(guarded(living, &clock, &slowness, name));
    let mut over = pin!(async {
        // Its sender goes with the server: that is an end too.
        let _ = state.wait_for(|state| *state != State::Serving).await;
        signals.parting.set(Some(Parting::Stop));
        let _ = state.wait_for(|state| *state == State::Over).await;
    });
    let mut alarm = pin!(tokio::time::sleep_until(Instant::now().into()));
    let mut set_for = None;
    let lived = poll_fn(|task| {
        if over.as_mut().poll(task).is_ready() {
            return Poll::Ready(Some(Ok(())));
        }
        if let Poll::Ready(lived) = living.as_mut().poll(task) {
            return Poll::Ready(lived);
        }
        let wanted = signals.alarm.get();
        if let Some(moment) = wanted {
            if set_for != wanted {
                alarm.as_mut().reset(moment.into());
                set_for = wanted;
            }
            if alarm.as_mut().poll(task).is_ready() {
                signals.alarm.set(None);
                set_for = None;
                task.waker().wake_by_ref();
            }
        }
        Poll::Pending
    });
    match lived.await {
        Some(Ok(())) => {}
        Some(Err(error)) => log::error(format_args!("{name} failed: {error}")),
        None => log::error(format_args!("{name} panicked; its connection was cut")),
    }
}

/// A transport as the runtime wants to see it.
struct Watched(Nonblocking);

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}
