//! Decides how a test talks HTTP: raw bytes out, whole replies in, framing read to the letter.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::PATIENCE;

/// One end of a connection, held by a test.
pub(crate) struct Peer<S = TcpStream> {
    stream: S,
    /// What came behind the replies taken so far.
    received: Vec<u8>,
}

/// A reply, its content freed of the framing.
#[derive(Debug)]
pub(crate) struct Reply {
    /// From the status line to the empty line.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Peer {
    pub(crate) fn tcp(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, received: Vec::new() }
    }

    /// Says that nothing more will be sent, and goes on listening.
    pub(crate) fn end(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

impl Peer<UnixStream> {
    pub(crate) fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, received: Vec::new() }
    }
}

impl<S: Read + Write> Peer<S> {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Asks with the least a request may consist of.
    pub(crate) fn get(&mut self, target: &str) -> Reply {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        self.reply()
    }

    /// The next reply, to anything but HEAD.
    pub(crate) fn reply(&mut self) -> Reply {
        let head = self.head();
        let mut reply = Reply { head, body: Vec::new() };
        reply.body = if matches!(reply.status(), 100..200 | 204 | 304) {
            Vec::new()
        } else if let Some(coding) = reply.field("Transfer-Encoding") {
            assert_eq!((coding, reply.field("Content-Length")), ("chunked", None), "{reply:?}");
            self.chunks()
        } else if let Some(length) = reply.field("Content-Length") {
            let length = length.parse().unwrap();
            self.take(length)
        } else {
            self.rest()
        };
        reply
    }

    /// Waits until at least so many bytes of what comes next are here, and leaves them there.
    pub(crate) fn await_beginning(&mut self, count: usize) {
        while self.received.len() < count {
            self.await_more();
        }
    }

    /// Everything up to `text`, however it is framed.
    pub(crate) fn await_text(&mut self, text: &str) -> String {
        loop {
            let here = self.received.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(at) = here {
                return String::from_utf8(self.take(at + text.len())).unwrap();
            }
            self.await_more();
        }
    }

    /// The next reply when the request was HEAD: whatever its head says, nothing follows it.
    pub(crate) fn reply_to_head(&mut self) -> Reply {
        Reply { head: self.head(), body: Vec::new() }
    }

    /// The next chunk of a body that goes on; the last one is empty.
    pub(crate) fn chunk(&mut self) -> Vec<u8> {
        let line = self.line();
        let size = usize::from_str_radix(&line, 16).unwrap();
        let chunk = self.take(size);
        assert_eq!(self.take(2), b"\r\n", "a chunk of {size} bytes does not end there");
        chunk
    }

    /// Everything until the other side closes. A reset is an end like any other only here.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.receive() {}
        std::mem::take(&mut self.received)
    }

    /// The other side has closed, and said nothing more before.
    #[track_caller]
    pub(crate) fn expect_closed(&mut self) {
        let rest = self.rest();
        assert_eq!(String::from_utf8_lossy(&rest), "", "nothing was to follow");
    }

    fn head(&mut self) -> String {
        loop {
            if let Some(end) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                return String::from_utf8(self.take(end + 4)).unwrap();
            }
            self.await_more();
        }
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let chunk = self.chunk();
            if chunk.is_empty() {
                return body;
            }
            body.extend(chunk);
        }
    }

    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.received.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8(self.take(end)).unwrap();
                self.take(2);
                return line;
            }
            self.await_more();
        }
    }

    /// The next so many bytes, however they are framed.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        while self.received.len() < count {
            self.await_more();
        }
        self.received.drain(..count).collect()
    }

    #[track_caller]
    fn await_more(&mut self) {
        assert!(
            self.receive(),
            "closed in the middle of {:?}",
            String::from_utf8_lossy(&self.received)
        );
    }

    /// Whether there was more; `false` at the end of the connection.
    fn receive(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece) {
            Ok(count) => {
                self.received.extend_from_slice(&piece[..count]);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => {
                panic!("{error} behind {:?}", String::from_utf8_lossy(&self.received))
            }
        }
    }
}

impl Reply {
    pub(crate) fn status(&self) -> u16 {
        self.head["HTTP/1.1 ".len()..][..3].parse().unwrap()
    }

    /// The value of the only field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.head.lines().filter_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then_some(value.trim())
        });
        let value = values.next();
        assert_eq!(values.next(), None, "{name} twice in {:?}", self.head);
        value
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// `head` with the time taken out of its Date.
pub(crate) fn undated(head: &str) -> String {
    let (before, date) = head.split_once("Date: ").unwrap();
    let (date, after) = date.split_once("\r\n").unwrap();
    assert_eq!((date.len(), &date[26..]), ("Sun, 06 Nov 1994 08:49:37 GMT".len(), "GMT"));
    format!("{before}Date: -\r\n{after}")
}
