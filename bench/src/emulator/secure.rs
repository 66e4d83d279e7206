//! The TLS side of a visitor's connection. Owns no socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use anyhow::Result;
use rustix::net::{SendFlags, send};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use crate::certificates::accepting_client;

/// The number of servers whose tickets a visitor keeps.
const SERVERS: usize = 1;

/// The settings from which each visitor gets its own.
pub(super) struct SecureVisitors(ClientConfig);

impl SecureVisitors {
    pub(super) fn new() -> Result<Self> {
        Ok(Self(accepting_client()?))
    }

    /// The settings of one visitor. They keep its tickets: visitors never resume each other's
    /// sessions.
    pub(super) fn visitor(&self) -> Arc<ClientConfig> {
        let mut own = self.0.clone();
        own.resumption = Resumption::in_memory_sessions(SERVERS);
        Arc::new(own)
    }
}

/// One connection.
pub(super) struct SecureLink {
    connection: ClientConnection,
    is_counted: bool,
}

impl SecureLink {
    pub(super) fn new(config: &Arc<ClientConfig>) -> Result<Self, rustls::Error> {
        let name = ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let connection = ClientConnection::new(Arc::clone(config), name)?;
        Ok(Self { connection, is_counted: false })
    }

    /// Takes the `bytes` that the socket has received, and appends their content to `plain`. Returns
    /// whether the server has closed the connection.
    pub(super) fn receive(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> io::Result<bool> {
        while !bytes.is_empty() {
            self.connection.read_tls(&mut bytes)?;
            let state = self.connection.process_new_packets().map_err(io::Error::other)?;
            let (count, from) = (state.plaintext_bytes_to_read(), plain.len());
            plain.resize(from + count, 0);
            self.connection.reader().read_exact(&mut plain[from..])?;
            if state.peer_has_closed() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the finished handshake resumed a session; once per connection.
    pub(super) fn finished(&mut self) -> Option<bool> {
        let kind = self.connection.handshake_kind()?;
        if self.is_counted || self.connection.is_handshaking() {
            return None;
        }
        self.is_counted = true;
        Some(kind == HandshakeKind::Resumed)
    }

    /// Encrypts the front of `plain`, and returns its length.
    pub(super) fn write(&mut self, plain: &[u8]) -> usize {
        // The buffer takes what it has room for; the rest follows when the socket has sent some.
        self.connection.writer().write(plain).unwrap_or(0)
    }

    /// Sends what the socket accepts. An error shows up in the next read.
    pub(super) fn flush(&mut self, socket: &OwnedFd) {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Outlet(socket)) {
                Ok(count) if count > 0 => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// A socket that does not block.
struct Outlet<'socket>(&'socket OwnedFd);

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
