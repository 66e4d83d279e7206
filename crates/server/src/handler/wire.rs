//! Connections after an upgrade: a task reads and writes the connection as a stream of bytes.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bine_log as log;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use crate::handler::stream::{Disconnected, guarded};
use crate::lifecycle::State;
use crate::metrics::count_panic;
use crate::system::Transfer;
use crate::time::{Clock, Slowness};
use crate::transport::{Nonblocking, Transport as _};

/// Takes over a connection after the head that agrees to the upgrade was sent (RFC 9110, section
/// 7.8).
pub struct Upgrade(StartUpgrade);

/// The task that runs an upgraded connection to its end. Its error is for the log.
pub type UpgradeFuture = Pin<Box<dyn Future<Output = Result<(), String>>>>;

type StartUpgrade = Box<dyn FnOnce(UpgradedConnection) -> UpgradeFuture + Send>;

impl Upgrade {
    /// The server calls `begin` on the thread of the connection. The returned future runs there and
    /// must not block.
    pub fn new(begin: impl FnOnce(UpgradedConnection) -> UpgradeFuture + Send + 'static) -> Self {
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
pub enum CloseReason {
    /// The server stops.
    Stop,
    /// The scheduler has no thread for it.
    NoThread,
}

/// Both directions of an upgraded connection as bytes, over plain TCP or TLS. For one task: each
/// direction wakes the task that polled it last.
pub struct UpgradedConnection {
    transport: Watched,
    space: ReceiveBuffer,
    /// Received bytes; those before `start` are consumed.
    received: Vec<u8>,
    start: usize,
    signals: Rc<Signals>,
}

/// A transport, and how the runtime learns of its events.
enum Watched {
    Socket(AsyncFd<AsyncTransport>),
    /// One stream of a connection of HTTP/2, which wakes its task itself.
    Stream(Nonblocking),
}

/// The receive buffer that all wires of a thread share, one at a time.
#[derive(Clone)]
pub(crate) struct ReceiveBuffer(Rc<RefCell<Box<[u8]>>>);

/// The signals between a wire and the task that runs it.
#[derive(Default)]
struct Signals {
    parting: Cell<Option<CloseReason>>,
    /// The time at which the task is woken at the latest.
    alarm: Cell<Option<Instant>>,
}

/// Receives up to this many bytes at once. The longest TLS record fits.
const RECEIVE_SIZE: usize = 64 * 1024;
/// Most messages of a client are short: between two receives a wire keeps only a buffer of this
/// size.
const IDLE_BUFFER: usize = 4 * 1024;

impl UpgradedConnection {
    /// Wraps `transport`. `received` contains the bytes that were received before the upgrade.
    pub(crate) fn new(
        transport: Nonblocking,
        received: Vec<u8>,
        space: ReceiveBuffer,
    ) -> io::Result<Self> {
        let transport = if transport.is_stream() {
            Watched::Stream(transport)
        } else {
            // SAFETY: the transport has one descriptor, which it keeps open for as long as it lives.
            Watched::Socket(unsafe { AsyncFd::register(AsyncTransport(transport)) }?)
        };
        Ok(Self { transport, space, received, start: 0, signals: Rc::default() })
    }

    /// The bytes that were received and not yet [consumed](Self::consume).
    pub fn received(&mut self) -> &mut [u8] {
        &mut self.received[self.start..]
    }

    /// Marks the first `count` received bytes as consumed.
    ///
    /// # Panics
    ///
    /// If `count` is more than the number of received bytes.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.received.len() - self.start, "count exceeds the received bytes");
        self.start += count;
        if self.start == self.received.len() {
            self.start = 0;
            self.received.clear();
            self.received.shrink_to(IDLE_BUFFER);
        }
    }

    /// Receives more bytes and returns their number; 0 means that the client sends no more. The
    /// caller should consume earlier bytes first, or the buffer grows.
    ///
    /// # Errors
    ///
    /// The connection is closed.
    pub fn poll_receive(&mut self, task: &mut Context<'_>) -> Poll<Result<usize, Disconnected>> {
        self.received.drain(..std::mem::take(&mut self.start));
        loop {
            let mut space = self.space.0.borrow_mut();
            match ready!(self.transport.poll_receive(task, &mut space)) {
                Transfer::Moved(count) => {
                    self.received.extend_from_slice(&space[..count]);
                    return Poll::Ready(Ok(count));
                }
                Transfer::Again => {}
                Transfer::Ended => return Poll::Ready(Ok(0)),
                _ => return Poll::Ready(Err(Disconnected)),
            }
        }
    }

    /// Sends from `bytes` and returns how many bytes it took. With empty `bytes` it is ready when
    /// all earlier bytes have been sent.
    ///
    /// # Errors
    ///
    /// The connection is closed.
    pub fn poll_send(
        &mut self,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Disconnected>> {
        loop {
            let was_held_back = self.transport.get_ref().holds_back();
            if bytes.is_empty() && !was_held_back {
                return Poll::Ready(Ok(0));
            }
            match ready!(self.transport.poll_send(task, bytes)) {
                Transfer::Moved(_) if was_held_back => {}
                Transfer::Moved(count) => return Poll::Ready(Ok(count)),
                Transfer::Again => {}
                _ => return Poll::Ready(Err(Disconnected)),
            }
        }
    }

    /// Shuts down the sending direction.
    pub fn finish(&mut self) {
        self.transport.get_mut().finish();
    }

    /// Whether and why the connection shall end soon. A change wakes the task.
    pub fn parting(&self) -> Option<CloseReason> {
        self.signals.parting.get()
    }

    /// Wakes the task at `moment` at the latest, possibly earlier.
    pub fn wake_at(&self, moment: Instant) {
        if self.signals.alarm.get().is_none_or(|alarm| moment < alarm) {
            self.signals.alarm.set(Some(moment));
        }
    }
}

impl Drop for UpgradedConnection {
    fn drop(&mut self) {
        self.transport.get_mut().farewell();
    }
}

impl fmt::Debug for UpgradedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradedConnection")
            .field("parting", &self.parting())
            .finish_non_exhaustive()
    }
}

impl Watched {
    fn get_ref(&self) -> &Nonblocking {
        match self {
            Self::Socket(watched) => &watched.get_ref().0,
            Self::Stream(stream) => stream,
        }
    }

    fn get_mut(&mut self) -> &mut Nonblocking {
        match self {
            Self::Socket(watched) => &mut watched.get_mut().0,
            Self::Stream(stream) => stream,
        }
    }

    /// Receives into `space` when there is something to receive. After [`Transfer::Again`] the
    /// caller tries again.
    fn poll_receive(&mut self, task: &mut Context<'_>, space: &mut [u8]) -> Poll<Transfer> {
        match self {
            Self::Socket(watched) => {
                let Ok(mut ready) = ready!(watched.poll_read_ready_mut(task)) else {
                    return Poll::Ready(Transfer::Broken);
                };
                let transport = &mut ready.get_inner_mut().0;
                let transfer = transport.receive(space);
                let is_empty = match transfer {
                    Transfer::Moved(count) => transport.has_emptied(count, space.len()),
                    other => other == Transfer::Again,
                };
                if is_empty {
                    ready.clear_ready();
                }
                Poll::Ready(transfer)
            }
            Self::Stream(stream) => of_stream(stream, task, |stream| stream.receive(space)),
        }
    }

    /// Sends what is held back, otherwise from `bytes`, when there is room.
    fn poll_send(&mut self, task: &mut Context<'_>, bytes: &[u8]) -> Poll<Transfer> {
        match self {
            Self::Socket(watched) => {
                let Ok(mut ready) = ready!(watched.poll_write_ready_mut(task)) else {
                    return Poll::Ready(Transfer::Broken);
                };
                let transport = &mut ready.get_inner_mut().0;
                let transfer = if transport.holds_back() {
                    transport.flush()
                } else {
                    transport.send(bytes, false)
                };
                if transfer == Transfer::Again {
                    ready.clear_ready();
                }
                Poll::Ready(transfer)
            }
            Self::Stream(stream) => of_stream(stream, task, |stream| stream.send(bytes, false)),
        }
    }
}

/// The result of `transfer`, or the wait for the next event of the stream.
fn of_stream(
    stream: &mut Nonblocking,
    task: &Context<'_>,
    transfer: impl FnOnce(&mut Nonblocking) -> Transfer,
) -> Poll<Transfer> {
    match transfer(stream) {
        Transfer::Again => {
            if let Err(stream) = stream.descriptor() {
                stream.note(task);
            }
            Poll::Pending
        }
        other => Poll::Ready(other),
    }
}

impl ReceiveBuffer {
    pub(crate) fn new() -> Self {
        Self(Rc::new(RefCell::new(vec![0; RECEIVE_SIZE].into_boxed_slice())))
    }
}

/// The environment in which the task of an upgraded connection runs.
pub(crate) struct UpgradeContext {
    /// The phase of the server's shutdown.
    pub(crate) state: watch::Receiver<State>,
    /// Set if the connection shall end at once.
    pub(crate) parting: Option<CloseReason>,
    pub(crate) clock: Rc<Clock>,
    pub(crate) slowness: Rc<Slowness>,
    /// The handler that requested the upgrade, for the log.
    pub(crate) name: &'static str,
}

/// Runs an upgraded connection to its end, which is at the latest the end of the server.
pub(crate) async fn run_upgrade(
    upgrade: Upgrade,
    wire: UpgradedConnection,
    environment: UpgradeContext,
) {
    let UpgradeContext { mut state, parting, clock, slowness, name } = environment;
    let signals = Rc::clone(&wire.signals);
    signals.parting.set(parting);
    let Ok(living) = catch_unwind(AssertUnwindSafe(|| (upgrade.0)(wire))) else {
        count_panic();
        return log::error(format_args!("{name} panicked; its connection was cut"));
    };
    let mut living = pin!(guarded(living, &clock, &slowness, name));
    let mut server_end = pin!(async {
        // The sender is dropped with the server, so an error is an end too.
        let _ = state.wait_for(|state| *state != State::Serving).await;
        signals.parting.set(Some(CloseReason::Stop));
        let _ = state.wait_for(|state| *state == State::Over).await;
    });
    let mut alarm = pin!(tokio::time::sleep_until(Instant::now().into()));
    let mut set_for = None;
    let ended = poll_fn(|task| {
        if server_end.as_mut().poll(task).is_ready() {
            return Poll::Ready(Some(Ok(())));
        }
        if let Poll::Ready(ended) = living.as_mut().poll(task) {
            return Poll::Ready(ended);
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
    match ended.await {
        Some(Ok(())) => {}
        Some(Err(error)) => log::error(format_args!("{name} failed: {error}")),
        None => log::error(format_args!("{name} panicked; its connection was cut")),
    }
}

/// A transport with a raw descriptor, as the runtime requires.
struct AsyncTransport(Nonblocking);

impl AsRawFd for AsyncTransport {
    fn as_raw_fd(&self) -> RawFd {
        // Only a transport with a socket is watched.
        self.0.descriptor().map_or(-1, |socket| socket.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::test_support::sockets;
    use crate::tls::test_support::TlsPair;

    /// Runs `check` with an upgraded connection that has received `early`, and its client.
    fn with(early: &[u8], check: impl AsyncFnOnce(UpgradedConnection, UnixStream)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (socket, client) = sockets();
            rustix::io::ioctl_fionbio(&socket, true).unwrap();
            let transport = Nonblocking::new(socket, None);
            let early = early.to_vec();
            let space = ReceiveBuffer::new();
            check(UpgradedConnection::new(transport, early, space).unwrap(), client).await;
        });
    }

    async fn receive(connection: &mut UpgradedConnection) -> Result<usize, Disconnected> {
        poll_fn(|task| connection.poll_receive(task)).await
    }

    #[test]
    fn appends_received_bytes_to_those_that_are_not_consumed() {
        with(b"early", async |mut connection, mut client| {
            assert_eq!(connection.received(), b"early");
            connection.consume(2);
            assert_eq!(connection.received(), b"rly");
            client.write_all(b", late").unwrap();
            assert_eq!(receive(&mut connection).await, Ok(6));
            assert_eq!(connection.received(), b"rly, late");
            assert_eq!(connection.start, 0, "the consumed bytes are gone");
            connection.consume(9);
            assert_eq!(connection.received(), b"");
            assert!(connection.received.capacity() <= IDLE_BUFFER);
        });
    }

    #[test]
    #[should_panic(expected = "count exceeds the received bytes")]
    fn consumes_no_more_than_it_has_received() {
        with(b"early", async |mut connection, _client| {
            connection.consume(2);
            connection.consume(4);
        });
    }

    #[test]
    fn wakes_its_task_at_the_earliest_moment() {
        with(b"", async |connection, _client| {
            let now = Instant::now();
            let moments = [5, 3, 4].map(|seconds| {
                connection.wake_at(now + Duration::from_secs(seconds));
                connection.signals.alarm.get().unwrap().duration_since(now).as_secs()
            });
            assert_eq!(moments, [5, 3, 3]);
            assert_eq!(connection.parting(), None);
            connection.signals.parting.set(Some(CloseReason::Stop));
            assert_eq!(format!("{connection:?}"), "UpgradedConnection { parting: Some(Stop), .. }");
        });
    }

    #[test]
    fn reports_the_end_of_the_client() {
        with(b"", async |mut connection, mut client| {
            client.write_all(b"last").unwrap();
            assert_eq!(receive(&mut connection).await, Ok(4));
            assert_eq!(connection.received(), b"last");
            assert_eq!(poll_fn(|task| connection.poll_send(task, b"reply")).await, Ok(5));
            let mut bytes = [0; 5];
            client.read_exact(&mut bytes).unwrap();
            assert_eq!(&bytes, b"reply");
            connection.finish();
            assert_eq!(client.read(&mut bytes).unwrap(), 0, "its sending half is closed");
            drop(client);
            assert_eq!(receive(&mut connection).await, Ok(0));
            let sent = poll_fn(|task| connection.poll_send(task, b"more")).await;
            assert_eq!(sent, Err(Disconnected));
        });
    }

    /// A task that is woken before its moment would run for nothing, and one that sets the same
    /// moment again must not be delayed.
    #[test]
    fn wakes_the_task_of_an_upgraded_connection_once_at_its_moment() {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().unwrap();
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        runtime.block_on(async {
            let (socket, _client) = sockets();
            let transport = Nonblocking::new(socket, None);
            let wire =
                UpgradedConnection::new(transport, Vec::new(), ReceiveBuffer::new()).unwrap();
            let begin = tokio::time::Instant::now();
            let moments = [3, 5].map(|seconds| begin + Duration::from_secs(seconds));
            let upgrade = Upgrade(Box::new(move |connection| {
                Box::pin(async move {
                    for moment in moments {
                        poll_fn(|_task| {
                            counted.fetch_add(1, Ordering::Relaxed);
                            if tokio::time::Instant::now() >= moment {
                                return Poll::Ready(());
                            }
                            connection.wake_at(moment.into());
                            Poll::Pending
                        })
                        .await;
                    }
                    Ok(())
                })
            }));
            let (_server, state) = watch::channel(State::Serving);
            let (clock, slowness) = (Rc::new(Clock::told(0)), Rc::default());
            let context = UpgradeContext { state, parting: None, clock, slowness, name: "test" };
            assert_eq!(format!("{upgrade:?}"), "Upgrade");
            run_upgrade(upgrade, wire, context).await;
            assert_eq!(begin.elapsed(), Duration::from_secs(5));
        });
        assert_eq!(polls.load(Ordering::Relaxed), 5);
    }

    /// Encrypted bytes for which the socket has no room stay with the connection until the client
    /// reads. The end of the connection is a separate message.
    #[test]
    fn waits_until_encrypted_bytes_have_left_and_closes_the_session() {
        let mut pair = TlsPair::open();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let socket = std::mem::replace(&mut pair.socket, sockets().0);
            let session = std::mem::replace(&mut pair.session, TlsPair::open().session);
            let transport = Nonblocking::new(socket, Some(Box::new(session)));
            let mut wire =
                UpgradedConnection::new(transport, Vec::new(), ReceiveBuffer::new()).unwrap();
            let content = vec![b'x'; 10_000];
            let mut sent = poll_fn(|task| wire.poll_send(task, &content)).await.unwrap();
            let mut task = Context::from_waker(std::task::Waker::noop());
            while let Poll::Ready(count) = wire.poll_send(&mut task, &content) {
                sent += count.unwrap();
            }
            assert!(wire.poll_send(&mut task, b"").is_pending());
            let mut read = pair.client_reads().unwrap().len();
            assert_eq!(poll_fn(|task| wire.poll_send(task, b"")).await, Ok(0));
            read += pair.client_reads().unwrap().len();
            assert_eq!(read, sent);
            drop(wire);
            pair.client_reads().unwrap();
            let state = pair.client.process_new_packets().unwrap();
            assert!(state.peer_has_closed());
        });
    }
}
