//! One connection to an origin: sends a request, and receives the response in pieces.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bine_http::{Limits, ResponseEvent, ResponseFault, ResponseHead, ResponseParser};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::address::OriginAddress;
use crate::tls::{OriginTls, TlsFault, TlsSession};

/// The bytes that one receive takes at most. A piece of a response is at most this long.
const RECEIVE_SIZE: usize = 64 << 10;
/// The buffer of a connection that waits for its next request is at most this large.
const IDLE_BUFFER: usize = 16 << 10;

/// An open connection to an origin. It is bound to the runtime that opened it.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    /// Received bytes. Those before `start` are parsed.
    buffer: Vec<u8>,
    start: usize,
    has_ended: bool,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Tls(TcpStream, TlsSession),
    Unix(UnixStream),
}

/// The reason why a response is not received completely.
#[derive(Debug)]
pub enum ExchangeFault {
    /// The connection failed.
    Io(io::Error),
    /// The origin violated HTTP, or closed the connection too early.
    Response(ResponseFault),
    /// The origin was silent for this time.
    Silent(Duration),
}

impl Connection {
    /// Connects to the first of the host's addresses that accepts, and completes the handshake of TLS.
    /// `tls` is for an address with TLS.
    pub(crate) async fn open(address: &OriginAddress, tls: Option<&OriginTls>) -> io::Result<Self> {
        let mut buffer = Vec::new();
        let socket = match address {
            OriginAddress::Tcp { host, port, is_tls } => {
                let socket = TcpStream::connect((&**host, *port)).await?;
                // A request is written as a whole, so a delay would not make packets fuller.
                socket.set_nodelay(true)?;
                if *is_tls {
                    let untrusted = || io::Error::other("no authorities of certificates are set");
                    let mut session = TlsSession::new(tls.ok_or_else(untrusted)?, host)?;
                    poll_fn(|task| session.poll_handshake(&socket, task, &mut buffer)).await?;
                    Socket::Tls(socket, session)
                } else {
                    Socket::Tcp(socket)
                }
            }
            OriginAddress::Unix(path) => Socket::Unix(UnixStream::connect(path).await?),
        };
        Ok(Self { socket, buffer, start: 0, has_ended: false })
    }

    /// Whether an idle connection can carry a request: the origin has neither closed it nor sent
    /// unexpected bytes.
    pub(crate) fn is_usable(&mut self) -> bool {
        if self.has_ended || self.start < self.buffer.len() {
            return false;
        }
        let mut byte = [0];
        let read = match &mut self.socket {
            Socket::Tcp(socket) => socket.try_read(&mut byte),
            Socket::Tls(socket, session) => return session.is_usable(socket),
            Socket::Unix(socket) => socket.try_read(&mut byte),
        };
        matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Frees a large buffer before the connection waits for its next request.
    pub(crate) fn rest(&mut self) {
        self.buffer.clear();
        self.start = 0;
        if self.buffer.capacity() > IDLE_BUFFER {
            self.buffer = Vec::new();
        }
    }

    /// Sends from `bytes` and returns how many bytes it took. With TLS, a rest of these may be sent
    /// later, while the connection receives.
    pub fn poll_send(&mut self, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let sent = match &mut self.socket {
                Socket::Tls(socket, session) => return session.poll_send(socket, task, bytes),
                Socket::Tcp(socket) => {
                    ready!(socket.poll_write_ready(task))?;
                    socket.try_write(bytes)
                }
                Socket::Unix(socket) => {
                    ready!(socket.poll_write_ready(task))?;
                    socket.try_write(bytes)
                }
            };
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
    }

    /// Appends received bytes to those that are not parsed, and returns their number; 0: the
    /// connection has ended.
    pub fn poll_receive(&mut self, task: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if let Socket::Tls(socket, session) = &mut self.socket {
            let received = ready!(session.poll_receive(socket, task, &mut self.buffer));
            self.has_ended = !matches!(received, Ok(1..));
            return Poll::Ready(received);
        }
        loop {
            let length = self.buffer.len();
            // The first receive is usually a small response.
            let room =
                if self.buffer.capacity() < IDLE_BUFFER { IDLE_BUFFER } else { RECEIVE_SIZE };
            let received = match &self.socket {
                Socket::Tcp(socket) | Socket::Tls(socket, _) => {
                    ready!(socket.poll_read_ready(task))?;
                    self.buffer.resize(length + room, 0);
                    socket.try_read(&mut self.buffer[length..])
                }
                Socket::Unix(socket) => {
                    ready!(socket.poll_read_ready(task))?;
                    self.buffer.resize(length + room, 0);
                    socket.try_read(&mut self.buffer[length..])
                }
            };
            self.buffer.truncate(length + *received.as_ref().unwrap_or(&0));
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => {
                    self.has_ended = !matches!(received, Ok(1..));
                    return Poll::Ready(received);
                }
            }
        }
    }

    /// Whether received bytes are not parsed yet.
    pub fn has_unparsed(&self) -> bool {
        self.start < self.buffer.len()
    }

    /// The received bytes that are not parsed.
    pub fn unparsed(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Marks the first `count` of the unparsed bytes as parsed.
    pub fn consume(&mut self, count: usize) {
        self.start = self.buffer.len().min(self.start + count);
    }

    /// Shuts down the sending direction. With TLS, this announces the end of the content.
    pub async fn finish(&mut self) {
        use std::pin::Pin;
        use tokio::io::AsyncWrite;
        // The origin may have closed the connection already.
        let _ = poll_fn(|task| match &mut self.socket {
            Socket::Tcp(socket) => Pin::new(socket).poll_shutdown(task),
            Socket::Tls(socket, session) => {
                session.end();
                // What the socket does not take now is sent while the connection receives.
                let _ = session.poll_flush(socket, task);
                Poll::Ready(Ok(()))
            }
            Socket::Unix(socket) => Pin::new(socket).poll_shutdown(task),
        })
        .await;
    }

    /// Sends all of `bytes`, unless the origin sends first. Returns false if it does: received bytes
    /// are [unparsed](Self::unparsed), or the connection has ended.
    ///
    /// # Errors
    ///
    /// The origin has closed the connection, or takes no bytes for `patience`.
    pub async fn send(&mut self, bytes: &[u8], patience: Duration) -> Result<bool, ExchangeFault> {
        let mut sent = 0;
        while sent < bytes.len() || self.has_unsent() {
            let step = poll_fn(|task| {
                if let Poll::Ready(count) = self.poll_send(task, &bytes[sent..]) {
                    return Poll::Ready(count.map(Some));
                }
                self.poll_receive(task).map(|received| received.map(|_| None))
            });
            match timeout(patience, step).await {
                Ok(Ok(Some(count))) => sent += count,
                Ok(Ok(None)) => return Ok(false),
                Ok(Err(error)) => return Err(ExchangeFault::Io(error)),
                Err(_) => return Err(ExchangeFault::Silent(patience)),
            }
        }
        Ok(true)
    }

    /// Whether encrypted bytes wait for the socket.
    fn has_unsent(&self) -> bool {
        matches!(&self.socket, Socket::Tls(_, session) if session.has_unsent())
    }

    /// Receives the head of the final response and returns what `visit` makes of it. Interim
    /// responses are dropped.
    ///
    /// # Errors
    ///
    /// The response is malformed or breaks off, or does not arrive within `patience`.
    pub async fn head<T>(
        &mut self,
        parser: &mut ResponseParser,
        limits: &Limits,
        patience: Duration,
        mut visit: impl FnMut(&ResponseHead<'_>) -> T,
    ) -> Result<T, ExchangeFault> {
        let receiving = async {
            loop {
                let step = parser.receive(&self.buffer[self.start..], limits);
                self.start += step.consumed;
                match step.event {
                    ResponseEvent::Head(head) => return Ok(visit(&head)),
                    ResponseEvent::Interim(_) => {}
                    ResponseEvent::Fault(fault) => return Err(ExchangeFault::Response(fault)),
                    _ => self.receive_or_end(parser).await?,
                }
            }
        };
        // The whole head has one time limit, so that an origin gains none by single bytes.
        let received = timeout(patience, receiving).await;
        received.unwrap_or(Err(ExchangeFault::Silent(patience)))
    }

    /// Returns the next piece of the content, which [`bytes`](Self::bytes) gives; `None`: the
    /// content is complete.
    ///
    /// # Errors
    ///
    /// The response is malformed or breaks off, or the origin is silent for `patience`.
    pub async fn piece(
        &mut self,
        parser: &mut ResponseParser,
        limits: &Limits,
        patience: Duration,
    ) -> Result<Option<Range<usize>>, ExchangeFault> {
        loop {
            if let Some(step) = self.parsed_piece(parser, limits)? {
                return Ok(step);
            }
            match timeout(patience, self.receive_or_end(parser)).await {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => return Err(fault),
                Err(_) => return Err(ExchangeFault::Silent(patience)),
            }
            if parser.is_complete() {
                return Ok(None);
            }
        }
    }

    /// Like [`piece`](Self::piece), from the bytes that were received already; the outer `None`:
    /// more are needed.
    ///
    /// # Errors
    ///
    /// The response is malformed.
    pub fn parsed_piece(
        &mut self,
        parser: &mut ResponseParser,
        limits: &Limits,
    ) -> Result<Option<Option<Range<usize>>>, ExchangeFault> {
        loop {
            let step = parser.receive(&self.buffer[self.start..], limits);
            self.start += step.consumed;
            match step.event {
                ResponseEvent::Body(piece) => {
                    return Ok(Some(Some(self.start - piece.len()..self.start)));
                }
                ResponseEvent::End => return Ok(Some(None)),
                ResponseEvent::More => return Ok(None),
                ResponseEvent::Fault(fault) => return Err(ExchangeFault::Response(fault)),
                ResponseEvent::Head(_) | ResponseEvent::Interim(_) => {}
            }
        }
    }

    /// The bytes of a piece, until more is received.
    pub fn bytes(&self, piece: Range<usize>) -> &[u8] {
        &self.buffer[piece]
    }

    /// Receives more, or ends the response with the connection.
    async fn receive_or_end(&mut self, parser: &mut ResponseParser) -> Result<(), ExchangeFault> {
        let received =
            if self.has_ended { Ok(0) } else { poll_fn(|task| self.poll_receive(task)).await };
        match received {
            Ok(0) => parser.finish().map_err(ExchangeFault::Response),
            Ok(_) => Ok(()),
            Err(error) => Err(ExchangeFault::Io(error)),
        }
    }

    /// Whether the origin has sent no byte of a response.
    pub fn is_untouched(&self) -> bool {
        self.start == 0 && self.buffer.is_empty()
    }
}

impl ExchangeFault {
    /// The failure of TLS that is its cause, if any.
    pub fn tls_fault(&self) -> Option<TlsFault> {
        match self {
            Self::Io(error) => TlsFault::of(error),
            Self::Response(_) | Self::Silent(_) => None,
        }
    }
}

impl fmt::Display for ExchangeFault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => match TlsFault::of(error) {
                Some(fault) => fault.fmt(to),
                None => write!(to, "the connection failed: {error}"),
            },
            Self::Response(ResponseFault::Incomplete) => {
                to.write_str("it closed the connection before its response was complete")
            }
            Self::Response(fault) => write!(to, "it sent {}", fault.description()),
            Self::Silent(time) => write!(to, "it was silent for {time:?}"),
        }
    }
}

impl std::error::Error for ExchangeFault {}
