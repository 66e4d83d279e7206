//! An HTTP client for tests, plain or over TLS, that renders responses as text.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;

use rustix::net::{AddressFamily, RecvFlags, SocketType, sockopt};

use bine_server::Address;

use crate::PATIENCE;
use crate::secrecy::{Secure, Trust};

/// One connection to the tested server.
pub(crate) struct Peer {
    stream: Stream,
    received: Vec<u8>,
    /// The total number of bytes received.
    pub(crate) total: u64,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Secure(Box<Secure>),
}

/// A complete response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) close: bool,
    pub(crate) content: Vec<u8>,
}

impl Peer {
    pub(crate) fn connect(address: &Address) -> io::Result<Self> {
        let stream = match address {
            Address::Tcp(address) => return Self::over(TcpStream::connect(address)?),
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Stream::Unix(stream)
            }
            Address::Inherited(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Self { stream, received: Vec::new(), total: 0 })
    }

    /// Connects over TLS and requests `host`.
    pub(crate) fn connect_secure(address: &Address, trust: &Trust, host: &str) -> io::Result<Self> {
        let plain = Self::connect(address)?;
        Ok(plain.secured(trust, host))
    }

    /// Starts TLS on this connection.
    pub(crate) fn secured(self, trust: &Trust, host: &str) -> Self {
        let Stream::Tcp(stream) = self.stream else { panic!("only TCP has TLS here") };
        let stream = Stream::Secure(Box::new(trust.over(stream, host)));
        Self { stream, received: Vec::new(), total: 0 }
    }

    #[track_caller]
    pub(crate) fn secure(&mut self) -> &mut Secure {
        match &mut self.stream {
            Stream::Secure(secure) => secure,
            _ => panic!("this peer speaks plainly"),
        }
    }

    /// Connects with a small receive buffer.
    pub(crate) fn connect_narrow(address: &Address) -> io::Result<Self> {
        let Address::Tcp(address) = address else { return Err(io::ErrorKind::Unsupported.into()) };
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        // Before the connect, which negotiates the window.
        sockopt::set_socket_recv_buffer_size(&socket, 4096)?;
        rustix::net::connect(&socket, address)?;
        Self::over(socket.into())
    }

    fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: Stream::Tcp(stream), received: Vec::new(), total: 0 })
    }

    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes.as_ref()).unwrap(),
            Stream::Unix(stream) => stream.write_all(bytes.as_ref()).unwrap(),
            Stream::Secure(secure) => secure.0.write_all(bytes.as_ref()).unwrap(),
        }
    }

    /// Closes the sending side.
    pub(crate) fn finish(&mut self) {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write).unwrap(),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write).unwrap(),
            Stream::Secure(secure) => secure.finish(),
        }
    }

    /// Requests `path` and returns the response as text.
    #[track_caller]
    pub(crate) fn ask(&mut self, path: &str) -> String {
        self.send(get(path));
        self.reply().to_string()
    }

    /// Receives the next response.
    #[track_caller]
    pub(crate) fn reply(&mut self) -> Reply {
        let end = loop {
            if let Some(end) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            assert!(self.receive(), "the server closed instead of a reply");
        };
        let head: Vec<u8> = self.received.drain(..end).collect();
        let head = String::from_utf8(head).unwrap();
        let field =
            |name: &str| head.split("\r\n").find_map(|line| line.strip_prefix(name)).map(str::trim);
        let content = match field("Content-Length:") {
            Some(length) => self.take(length.parse().unwrap()),
            None if field("Transfer-Encoding:").is_some() => self.take_chunks(),
            None => Vec::new(),
        };
        let status = head[9..12].parse().unwrap();
        Reply { status, close: field("Connection:") == Some("close"), content }
    }

    /// Waits until the server closes the connection, and fails on any other byte.
    #[track_caller]
    pub(crate) fn expect_closed(&mut self) {
        let more = self.receive();
        let received = String::from_utf8_lossy(&self.received);
        assert!(!more && self.received.is_empty(), "instead of the end: {received}");
    }

    /// Whether the server has closed the connection. Received bytes stay in the buffer.
    pub(crate) fn has_closed(&self) -> bool {
        let Stream::Tcp(stream) = &self.stream else { panic!("only TCP is looked at") };
        let looked = rustix::net::recv(stream, &mut [0; 1], RecvFlags::DONTWAIT | RecvFlags::PEEK);
        !matches!(looked, Ok((1.., _)) | Err(rustix::io::Errno::AGAIN))
    }

    /// Whether a part of a reply has arrived that nothing has received yet.
    pub(crate) fn has_reply(&self) -> bool {
        let Stream::Tcp(stream) = &self.stream else { panic!("only TCP is looked at") };
        let looked = rustix::net::recv(stream, &mut [0; 1], RecvFlags::DONTWAIT | RecvFlags::PEEK);
        matches!(looked, Ok((1.., _)))
    }

    /// Resets the connection, which drops the bytes in transit in both directions.
    pub(crate) fn reset(self) {
        let Stream::Tcp(stream) = &self.stream else { panic!("only TCP has resets") };
        sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO)).unwrap();
    }

    /// Receives until the server closes the connection.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.receive() {}
        std::mem::take(&mut self.received)
    }

    /// Receives up to `end`.
    #[track_caller]
    pub(crate) fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            let place = self.received.windows(end.len()).position(|window| window == end);
            if let Some(place) = place {
                return self.take(place + end.len());
            }
            assert!(self.receive(), "the server closed before it came");
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        while self.received.len() < length {
            assert!(self.receive(), "the server closed in the middle of a reply");
        }
        self.received.drain(..length).collect()
    }

    fn take_chunks(&mut self) -> Vec<u8> {
        let mut content = Vec::new();
        loop {
            let line = loop {
                match self.received.windows(2).position(|two| two == b"\r\n") {
                    Some(end) => break end,
                    None => assert!(self.receive(), "the server closed in the middle of a chunk"),
                }
            };
            let size = String::from_utf8(self.take(line + 2)).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            content.extend(self.take(size));
            self.take(2);
            if size == 0 {
                return content;
            }
        }
    }

    /// Receives bytes; returns `false` when the server has closed or reset the connection.
    #[track_caller]
    fn receive(&mut self) -> bool {
        let mut space = [0; 16 * 1024];
        let received = loop {
            let received = match &mut self.stream {
                Stream::Tcp(stream) => stream.read(&mut space),
                Stream::Unix(stream) => stream.read(&mut space),
                Stream::Secure(secure) => secure.0.read(&mut space),
            };
            // A test sends a signal to this process.
            if !matches!(&received, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
                break received;
            }
        };
        match received {
            Ok(0) => false,
            Ok(count) => {
                self.received.extend_from_slice(&space[..count]);
                self.total += count as u64;
                true
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("nothing came: {error}"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if self.status == 200 && self.content.len() <= 20 {
            write!(f, " {}", String::from_utf8_lossy(&self.content))?;
        } else if self.status == 200 {
            write!(f, " <{}>", self.content.len())?;
        }
        f.write_str(if self.close { " close" } else { "" })
    }
}

/// Formats a request without content.
pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}
