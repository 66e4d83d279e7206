//! An HTTP client for tests: raw bytes out, whole replies in, with strict framing.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::PATIENCE;

/// A client's end of a connection.
pub(crate) struct Peer<S = TcpStream> {
    stream: S,
    /// Bytes received after the replies read so far.
    received: Vec<u8>,
}

/// A reply with its content decoded.
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

    /// Closes the sending side. Replies can still be read.
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

    /// Sends the shortest valid GET request and reads the reply.
    pub(crate) fn get(&mut self, target: &str) -> Reply {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        self.reply()
    }

    /// Sends a request and reads the reply. Each of `fields` ends with CR LF.
    pub(crate) fn request(
        &mut self,
        method: &str,
        target: &str,
        fields: &str,
        body: &str,
    ) -> Reply {
        self.send_request(method, target, fields, body);
        if method == "HEAD" { self.reply_to_head() } else { self.reply() }
    }

    /// Sends a request, with a length unless it is a GET or HEAD without content.
    pub(crate) fn send_request(&mut self, method: &str, target: &str, fields: &str, body: &str) {
        let length = match (method, body.len()) {
            ("GET" | "HEAD", 0) => String::new(),
            (_, length) => format!("Content-Length: {length}\r\n"),
        };
        self.send(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{length}{fields}\r\n{body}"));
    }

    /// Posts content and asserts that the reply has the status 200.
    #[track_caller]
    pub(crate) fn expect_post(&mut self, target: &str, body: &str) {
        let reply = self.request("POST", target, "", body);
        assert_eq!(reply.status(), 200, "{target}: {reply:?}");
    }

    /// Reads the reply to any method but HEAD.
    pub(crate) fn reply(&mut self) -> Reply {
        let head = self.head();
        let mut reply = Reply { head, body: Vec::new() };
        reply.body = if matches!(reply.status(), 100..200 | 204 | 304) {
            Vec::new()
        } else if let Some(coding) = reply.header("Transfer-Encoding") {
            assert_eq!((coding, reply.header("Content-Length")), ("chunked", None), "{reply:?}");
            self.chunks()
        } else if let Some(length) = reply.header("Content-Length") {
            let length = length.parse().unwrap();
            self.take(length)
        } else {
            self.rest()
        };
        reply
    }

    /// Waits until the buffer has at least `count` bytes.
    pub(crate) fn await_beginning(&mut self, count: usize) {
        while self.received.len() < count {
            self.await_more();
        }
    }

    /// Reads all bytes up to and including `text`, without decoding.
    pub(crate) fn await_text(&mut self, text: &str) -> String {
        loop {
            let here = self.received.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(at) = here {
                return String::from_utf8(self.take(at + text.len())).unwrap();
            }
            self.await_more();
        }
    }

    /// Reads the reply to a HEAD request, which has no content.
    pub(crate) fn reply_to_head(&mut self) -> Reply {
        Reply { head: self.head(), body: Vec::new() }
    }

    /// Reads the next chunk of a chunked body. The last chunk is empty.
    pub(crate) fn chunk(&mut self) -> Vec<u8> {
        let line = self.line();
        let size = usize::from_str_radix(&line, 16).unwrap();
        let chunk = self.take(size);
        assert_eq!(self.take(2), b"\r\n", "a chunk of {size} bytes does not end there");
        chunk
    }

    /// Reads everything until the server closes the connection. Only this method accepts a reset.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.receive() {}
        std::mem::take(&mut self.received)
    }

    /// Asserts that the server closes the connection without sending more.
    #[track_caller]
    pub(crate) fn expect_closed(&mut self) {
        let rest = self.rest();
        assert_eq!(
            String::from_utf8_lossy(&rest),
            "",
            "unexpected data before the end of the connection"
        );
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

    /// Reads `count` bytes without decoding.
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
            "the connection closed within {:?}",
            String::from_utf8_lossy(&self.received)
        );
    }

    /// Reads once. Returns `false` at the end of the connection.
    fn receive(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(count) => {
                    self.received.extend_from_slice(&piece[..count]);
                    return count > 0;
                }
                // A read with a time limit ends when the process continues after a suspension.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return false,
                Err(error) => {
                    panic!("{error} after {:?}", String::from_utf8_lossy(&self.received))
                }
            }
        }
    }
}

impl Reply {
    pub(crate) fn status(&self) -> u16 {
        self.head["HTTP/1.1 ".len()..][..3].parse().unwrap()
    }

    /// Returns the value of a field that occurs at most once.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.head.lines().filter_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then_some(value.trim())
        });
        let value = values.next();
        assert_eq!(values.next(), None, "{name} twice in {:?}", self.head);
        value
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// Replaces the time in the Date field of `head`.
pub(crate) fn undated(head: &str) -> String {
    let (before, date) = head.split_once("Date: ").unwrap();
    let (date, after) = date.split_once("\r\n").unwrap();
    assert_eq!((date.len(), &date[26..]), ("Sun, 06 Nov 1994 08:49:37 GMT".len(), "GMT"));
    format!("{before}Date: -\r\n{after}")
}
