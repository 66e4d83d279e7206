//! An HTTP client for tests: one request on each connection, with strict parsing of the response.

use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bine_http::Method;
use serde::de::DeserializeOwned;

use super::address;

/// Time limit for a response from a server in the same process.
const PATIENCE: Duration = Duration::from_secs(30);
/// Default limit of a response's content, in bytes.
const LONGEST: u64 = 256 << 20;
/// Limit of a response's head, in bytes.
const LONGEST_HEAD: u64 = 1 << 20;

/// A request.
#[derive(Clone, Debug)]
pub(super) struct TestRequest {
    pub(super) method: Method,
    /// Path and query.
    pub(super) target: String,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Number of bytes of the response's content to read, if limited.
    pub(super) most: Option<u64>,
}

impl TestRequest {
    pub(super) fn new(method: Method, target: &str) -> Self {
        Self {
            method,
            target: address::sent(target),
            fields: Vec::new(),
            body: Vec::new(),
            most: None,
        }
    }

    pub(super) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.fields.push((name.to_owned(), value.into()));
        self
    }

    /// Sends the request and reads the response, up to the limit.
    pub(super) fn send(&self, to: SocketAddr) -> io::Result<Reply> {
        self.send_by(Instant::now() + PATIENCE, to)
    }

    fn send_by(&self, deadline: Instant, to: SocketAddr) -> io::Result<Reply> {
        let (mut reply, content) = self.begin(to, TimeLimit::Until(deadline))?;
        if self.method != Method::Head {
            // One more byte shows whether the content exceeds the limit.
            let most = self.most.unwrap_or(LONGEST + 1);
            content.take(most).read_to_end(&mut reply.body).map_err(|error| {
                let came = reply.body.len();
                Error::new(error.kind(), format!("{error} ({came} bytes came)"))
            })?;
            if self.most.is_none() && reply.body.len() as u64 > LONGEST {
                return Err(invalid(
                    "the answer goes on behind 256 MiB; `.max_body_size(bytes)` takes a part",
                ));
            }
        }
        Ok(reply)
    }

    /// Sends the request and reads the response's head. `silence` limits the wait for each piece of
    /// the content.
    pub(super) fn open(
        &self,
        to: SocketAddr,
        silence: Duration,
    ) -> io::Result<(Reply, BodyReader)> {
        self.begin(to, TimeLimit::Each(silence))
    }

    fn begin(&self, to: SocketAddr, time_limit: TimeLimit) -> io::Result<(Reply, BodyReader)> {
        let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        (&stream).write_all(&self.to_bytes(to)?)?;
        let mut stream = BufReader::new(TestConnection { stream, time_limit });
        loop {
            let reply = Reply::read(&mut stream)?;
            // Skip interim responses (RFC 9110 section 15.2).
            if reply.status / 100 != 1 {
                let framing = reply.framing()?;
                return Ok((reply, BodyReader { stream, framing }));
            }
        }
    }

    fn to_bytes(&self, to: SocketAddr) -> io::Result<Vec<u8>> {
        let has = |name| self.fields.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let mut head = vec![format!("{} {} HTTP/1.1", self.method.as_str(), self.target)];
        if !has("host") {
            head.push(format!("Host: {to}"));
        }
        if !self.body.is_empty() || !self.method.is_safe() {
            head.push(format!("Content-Length: {}", self.body.len()));
        }
        head.extend(self.fields.iter().map(|(name, value)| format!("{name}: {value}")));
        if let Some(line) = head.iter().find(|line| line.contains(['\r', '\n'])) {
            return Err(Error::other(format!("{line:?} would be several lines")));
        }
        head.push("Connection: close\r\n\r\n".to_owned());
        Ok([head.join("\r\n").as_bytes(), &self.body].concat())
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Reply {
    /// Returns the status code, such as 200.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Returns the value of the first header field with this name. Names ignore case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns names and values of all header fields, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the content.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// Returns the content as text.
    ///
    /// # Panics
    ///
    /// The content is not UTF-8.
    #[track_caller]
    pub fn text(&self) -> &str {
        match str::from_utf8(&self.body) {
            Ok(text) => text,
            Err(error) => panic!("the answer ({}) is no text: {error}", self.status),
        }
    }

    /// Parses the content as JSON.
    ///
    /// # Panics
    ///
    /// The content is not JSON, or not of this type.
    #[track_caller]
    pub fn json<T: DeserializeOwned>(&self) -> T {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!(
                "the answer ({}) is no such JSON: {error}\n    {}",
                self.status,
                String::from_utf8_lossy(&self.body)
            ),
        }
    }

    /// Returns the media type without parameters.
    pub(super) fn media_type(&self) -> &str {
        let whole = self.header("Content-Type").unwrap_or_default();
        whole.split_once(';').map_or(whole, |(kind, _)| kind).trim()
    }

    fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut left = from.take(LONGEST_HEAD);
        let mut line = || {
            let mut line = String::new();
            left.read_line(&mut line)?;
            let line = line.strip_suffix("\r\n").ok_or_else(|| invalid("the head is cut"))?;
            Ok::<_, Error>(line.to_owned())
        };
        let first = line()?;
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| invalid(&format!("no reply begins {first:?}")))?;
        let mut fields = Vec::new();
        loop {
            let line = line()?;
            if line.is_empty() {
                return Ok(Self { status, fields, body: Vec::new() });
            }
            let (name, value) = line.split_once(':').ok_or_else(|| invalid("no header field"))?;
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// Returns how the content is delimited (RFC 9112 section 6.3).
    fn framing(&self) -> io::Result<Framing> {
        if matches!(self.status, 204 | 304) {
            return Ok(Framing::Length(0));
        }
        if self.header("Transfer-Encoding").is_some() {
            return Ok(Framing::Chunks { left: 0, is_first: true });
        }
        match self.header("Content-Length") {
            None => Ok(Framing::Close),
            Some(length) => {
                Ok(Framing::Length(length.parse().map_err(|_| invalid("the length is none"))?))
            }
        }
    }
}

/// A connection with time limits on reads.
pub(super) struct TestConnection {
    stream: TcpStream,
    time_limit: TimeLimit,
}

/// The time limit on reads.
#[derive(Clone, Copy)]
enum TimeLimit {
    /// One deadline for the whole response.
    Until(Instant),
    /// A limit for each read.
    Each(Duration),
}

impl Read for TestConnection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (left, late) = match self.time_limit {
            TimeLimit::Until(deadline) => (
                deadline.saturating_duration_since(Instant::now()),
                "the answer does not come to an end; `.max_body_size(bytes)` takes a part",
            ),
            TimeLimit::Each(silence) => (silence, "it says nothing more"),
        };
        let late = || Error::new(ErrorKind::TimedOut, late);
        if left.is_zero() {
            return Err(late());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into).map_err(|error| match error.kind() {
            // The kind depends on the system.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => late(),
            _ => error,
        })
    }
}

/// The content of a response, without its framing.
pub(super) struct BodyReader<S = TestConnection> {
    stream: BufReader<S>,
    framing: Framing,
}

enum Framing {
    Length(u64),
    /// `left`: remaining bytes of the current chunk.
    Chunks {
        left: u64,
        is_first: bool,
    },
    Close,
}

impl BodyReader {
    /// Returns the connection, so that a second thread can close it.
    pub(super) fn connection(&self) -> io::Result<TcpStream> {
        self.stream.get_ref().stream.try_clone()
    }
}

impl<S: Read> BodyReader<S> {
    /// Returns the number of bytes that may be read now; 0 at the end of the content.
    fn left(&mut self) -> io::Result<u64> {
        let Self { stream, framing } = self;
        match framing {
            Framing::Close => Ok(u64::MAX),
            Framing::Chunks { left: left @ 0, is_first } => {
                let mut line = String::new();
                if !std::mem::replace(is_first, false) {
                    stream.read_line(&mut line)?;
                }
                line.clear();
                stream.take(16).read_line(&mut line)?;
                *left = u64::from_str_radix(line.trim_end(), 16)
                    .map_err(|_| invalid("cut in the middle of its content"))?;
                if *left == 0 {
                    self.framing = Framing::Length(0);
                    return Ok(0);
                }
                Ok(*left)
            }
            Framing::Length(left) | Framing::Chunks { left, .. } => Ok(*left),
        }
    }
}

impl<S: Read> Read for BodyReader<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = self.left()?.min(into.len() as u64);
        let count = self.stream.read(&mut into[..most as usize])?;
        match &mut self.framing {
            Framing::Close => {}
            _ if count == 0 && most > 0 => return Err(invalid("cut in the middle of its content")),
            Framing::Length(left) | Framing::Chunks { left, .. } => *left -= count as u64,
        }
        Ok(count)
    }
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads status and content of a complete response.
    fn read(bytes: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let mut stream = BufReader::with_capacity(7, bytes);
        let reply = Reply::read(&mut stream)?;
        let framing = reply.framing()?;
        let mut body = Vec::new();
        BodyReader { stream, framing }.read_to_end(&mut body)?;
        Ok((reply.status, body))
    }

    fn in_chunks(chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
            bytes.extend([chunk, &b"\r\n"[..]].concat());
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    }

    proptest! {
        #[test]
        fn joins_chunks_and_detects_truncation(
            chunks: Vec<Vec<u8>>, cut: prop::sample::Index,
        ) {
            let bytes = in_chunks(&chunks);
            prop_assert_eq!(read(&bytes).unwrap(), (200, chunks.concat()));
            // The response is complete after the line of the last chunk.
            let end = bytes.len() - "0\r\n\r\n".len();
            prop_assert!(read(&bytes[..cut.index(end)]).is_err());
        }

        #[test]
        fn reads_or_rejects_any_bytes(bytes: Vec<u8>) {
            let _ = read(&bytes);
            let _ = read(&[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &*bytes].concat());
        }
    }

    /// Starts a server that sends these bytes and then keeps the connection open until the client
    /// closes it.
    fn answering(bytes: &'static [u8]) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(bytes).unwrap();
            let _ = io::copy(&mut stream, &mut io::sink());
        });
        address
    }

    #[test]
    fn reports_endless_response_or_reads_part() {
        let endless = b"HTTP/1.1 200 OK\r\n\r\ndata";
        let mut request = TestRequest::new(Method::Get, "/");
        let expected = "the answer does not come to an end; `.max_body_size(bytes)` takes a part (4 bytes came)";
        // A busy machine may miss the deadline, so try longer ones.
        let mut ends = [100, 1000, 10_000].into_iter().map(|patience| {
            let deadline = Instant::now() + Duration::from_millis(patience);
            request.send_by(deadline, answering(endless)).unwrap_err().to_string()
        });
        assert!(ends.any(|told| told == expected));
        request.most = Some(3);
        assert_eq!(request.send(answering(endless)).unwrap().bytes(), b"dat");
    }

    #[test]
    fn reads_content_of_stated_length() {
        let head = "HTTP/1.1 404 Not Found\r\nContent-Length:  3\r\n\r\n";
        assert_eq!(read(format!("{head}abcd").as_bytes()).unwrap(), (404, b"abc".to_vec()));
        assert!(read(format!("{head}ab").as_bytes()).is_err());
        assert_eq!(read(b"HTTP/1.1 200 OK\r\n\r\nabc").unwrap(), (200, b"abc".to_vec()));
        assert_eq!(read(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap(), (204, Vec::new()));
    }
}
