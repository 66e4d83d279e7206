//! A connection with a remote server: TCP, with TLS if the address requires it.

use std::io::{self, Read, Write};
use std::net::TcpStream as StandardStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::consume_budget;
use tokio::time::{Instant, timeout};

use super::address::Address;

/// An open connection, bound to the runtime that polls it.
#[derive(Debug)]
pub(super) struct RemoteConnection {
    socket: TcpStream,
    session: Option<Box<ClientConnection>>,
}

/// An idle connection, which any thread's runtime may take.
#[derive(Debug)]
pub(super) struct IdleConnection {
    socket: StandardStream,
    session: Option<Box<ClientConnection>>,
}

/// Bytes per read.
const READ_SIZE: usize = 16 << 10;

impl RemoteConnection {
    /// Connects to the first of the host's addresses that accepts, and completes the TLS handshake.
    /// Each address has its share of the time until the deadline; the caller limits the handshake.
    pub(super) async fn open(
        address: &Address,
        trust: Option<Arc<ClientConfig>>,
        deadline: Instant,
    ) -> io::Result<Self> {
        let socket = connect(address, deadline).await?;
        // A call fits one packet, so waiting for more data gains no throughput.
        socket.set_nodelay(true)?;
        let Some(trust) = trust else { return Ok(Self { socket, session: None }) };
        let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
        let session = ClientConnection::new(trust, name).map_err(io::Error::other)?;
        let mut connection = Self { socket, session: Some(Box::new(session)) };
        connection.shake_hands().await?;
        Ok(connection)
    }

    async fn shake_hands(&mut self) -> io::Result<()> {
        loop {
            self.flush().await?;
            match &self.session {
                Some(session) if !session.is_handshaking() => return Ok(()),
                Some(session) if session.wants_read() => {}
                // Neither side would send anything, so the loop would not end.
                _ => return Err(io::Error::other("the TLS handshake makes no progress")),
            }
            if self.receive_tls().await? == 0 {
                let what = "the connection ended in the handshake";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
        }
    }

    pub(super) async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = match &mut self.session {
                // The session accepts up to the free space of its buffer.
                Some(session) => session.writer().write(bytes)?,
                None => write_ready(&self.socket, |mut now| now.write(bytes)).await?,
            };
            bytes = &bytes[count..];
            self.flush().await?;
        }
        Ok(())
    }

    /// Waits for bytes and appends them; 0: the connection has ended.
    pub(super) async fn receive(&mut self, to: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            let Some(session) = &mut self.session else {
                return read_ready(&self.socket, |mut now| add(&mut now, to)).await;
            };
            match add(&mut session.reader(), to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // At the end of the connection, the reader reports whether the end was
                    // authenticated.
                    self.receive_tls().await?;
                }
                other => return other,
            }
        }
    }

    /// Passes received bytes to the TLS session. Returns their number; 0: the connection has ended.
    async fn receive_tls(&mut self) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return Ok(0) };
        let count = read_ready(&self.socket, |mut now| session.read_tls(&mut now)).await?;
        let understood = session.process_new_packets().map_err(io::Error::other);
        // After an error the session must send an alert.
        let flushed = self.flush().await;
        understood.and(flushed).map(|()| count)
    }

    /// Sends the TLS session's pending bytes.
    async fn flush(&mut self) -> io::Result<()> {
        let Some(session) = &mut self.session else { return Ok(()) };
        while session.wants_write() {
            write_ready(&self.socket, |mut now| session.write_tls(&mut now)).await?;
        }
        Ok(())
    }

    /// Detaches the connection from the runtime. `None`: this failed, or the server has sent
    /// unrequested bytes, which the next call would take for its response.
    pub(super) fn into_idle(mut self) -> Option<IdleConnection> {
        if let Some(session) = &mut self.session {
            match session.reader().read(&mut [0]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return None,
            }
        }
        Some(IdleConnection { socket: self.socket.into_std().ok()?, session: self.session })
    }
}

impl IdleConnection {
    /// Attaches the connection to the current runtime. `None`: the server has closed it or sent
    /// unrequested bytes.
    pub(super) fn resume(self) -> Option<RemoteConnection> {
        match self.socket.peek(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => return None,
        }
        let socket = TcpStream::from_std(self.socket).ok()?;
        Some(RemoteConnection { socket, session: self.session })
    }
}

/// Connects to the first of the host's addresses that accepts. An address that does not answer uses
/// only its share of the time.
async fn connect(address: &Address, deadline: Instant) -> io::Result<TcpStream> {
    let found: Vec<_> = lookup_host((address.host.as_str(), address.port)).await?.collect();
    let mut last = io::Error::other("its host name has no address");
    let mut left = u32::try_from(found.len()).unwrap_or(u32::MAX);
    for address in found {
        let share = deadline.saturating_duration_since(Instant::now()) / left;
        left -= 1;
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "no connection in time"),
        }
    }
    Err(last)
}

fn add(from: &mut impl Read, to: &mut Vec<u8>) -> io::Result<usize> {
    let before = to.len();
    to.resize(before + READ_SIZE, 0);
    let read = from.read(&mut to[before..]);
    to.truncate(before + read.as_ref().copied().unwrap_or(0));
    read
}

/// A non-blocking view of a socket.
struct NonBlocking<'s>(&'s TcpStream);

impl Read for NonBlocking<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(to)
    }
}

impl Write for NonBlocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn read_ready<T>(
    socket: &TcpStream,
    mut read: impl FnMut(NonBlocking<'_>) -> io::Result<T>,
) -> io::Result<T> {
    // A server that sends faster than this task reads would never let it wait, so no deadline would
    // be checked.
    consume_budget().await;
    loop {
        match read(NonBlocking(socket)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.readable().await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

async fn write_ready<T>(
    socket: &TcpStream,
    mut write: impl FnMut(NonBlocking<'_>) -> io::Result<T>,
) -> io::Result<T> {
    loop {
        match write(NonBlocking(socket)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
