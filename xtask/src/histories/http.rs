//! A client of HTTP/1.1 that keeps its connection, and knows whether a request was sent.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection to one server, which opens when it is needed.
pub(super) struct Connection {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
    read_timeout: Duration,
}

/// A request without a version or fields of the connection.
#[derive(Default)]
pub(super) struct Request<'r> {
    pub(super) method: &'r str,
    pub(super) target: &'r str,
    pub(super) fields: Vec<(&'r str, String)>,
    pub(super) body: &'r [u8],
}

/// A whole response.
pub(super) struct Response {
    pub(super) status: u16,
    fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Why there is no response.
pub(super) enum Failure {
    /// The server has not received the request.
    NotSent(io::Error),
    /// The server may have carried the request out.
    Unknown(io::Error),
}

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest response that is read.
const MAX_BODY: u64 = 64 << 20;

impl Connection {
    /// `read_timeout` bounds each wait for bytes of a response.
    pub(super) const fn new(address: SocketAddr, read_timeout: Duration) -> Self {
        Self { address, stream: None, read_timeout }
    }

    /// Sends a request and reads the whole response.
    pub(super) fn send(&mut self, request: &Request<'_>) -> Result<Response, Failure> {
        let mut stream = self.begin(request)?;
        let response = read_head(&mut stream).and_then(|(status, fields)| {
            let mut response = Response { status, fields, body: Vec::new() };
            let length = response.field("content-length").and_then(|text| text.parse().ok());
            if response.field("transfer-encoding") == Some("chunked") {
                let mut chunks = Chunks { stream: &mut stream, left: 0, is_over: false };
                chunks.by_ref().take(MAX_BODY).read_to_end(&mut response.body)?;
            } else {
                let length = if status == 204 { 0 } else { length.unwrap_or(0) };
                let count = (&mut stream).take(length).read_to_end(&mut response.body)?;
                if (count as u64) < length {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(response)
        });
        let response = response.map_err(Failure::Unknown)?;
        if response.field("connection").is_none_or(|value| !value.eq_ignore_ascii_case("close")) {
            self.stream = Some(stream);
        }
        Ok(response)
    }

    /// Sends a request and passes each line of the body to `on_line`, until it returns false or the body
    /// ends. Returns the status.
    pub(super) fn lines(
        &mut self,
        request: &Request<'_>,
        mut on_line: impl FnMut(&str) -> bool,
    ) -> Result<u16, Failure> {
        let mut stream = self.begin(request)?;
        let mut read = || {
            let (status, fields) = read_head(&mut stream)?;
            let response = Response { status, fields, body: Vec::new() };
            if status == 200 && response.field("transfer-encoding") == Some("chunked") {
                let chunks = Chunks { stream: &mut stream, left: 0, is_over: false };
                for line in BufReader::new(chunks).lines() {
                    if !on_line(&line?) {
                        break;
                    }
                }
            }
            Ok(status)
        };
        read().map_err(Failure::Unknown)
    }

    /// Connects if there is no connection, and writes the request.
    fn begin(&mut self, request: &Request<'_>) -> Result<BufReader<TcpStream>, Failure> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect().map_err(Failure::NotSent)?,
        };
        let Request { method, target, fields, body } = request;
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in fields {
            // Writing into a String cannot fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let mut bytes = (head + &format!("Content-Length: {}\r\n\r\n", body.len())).into_bytes();
        bytes.extend_from_slice(body);
        stream.get_mut().write_all(&bytes).map_err(Failure::Unknown)?;
        Ok(stream)
    }

    fn connect(&self) -> io::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect_timeout(&self.address, CONNECT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.read_timeout))?;
        stream.set_write_timeout(Some(self.read_timeout))?;
        Ok(BufReader::new(stream))
    }
}

impl Response {
    /// The value of a field; `name` is in lower case.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, value)| &**value)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Failure {
    pub(super) const fn error(&self) -> &io::Error {
        match self {
            Self::NotSent(error) | Self::Unknown(error) => error,
        }
    }
}

fn read_head(stream: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    let mut next = |line: &mut String| {
        line.clear();
        if stream.take(16 << 10).read_line(line)? == 0 {
            return Err(io::Error::from(ErrorKind::UnexpectedEof));
        }
        Ok(())
    };
    next(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|text| text.parse().ok());
    let status = status.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, line.clone()))?;
    let mut fields = Vec::new();
    loop {
        next(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok((status, fields))
}

/// The content of a body in chunks.
struct Chunks<'s, R> {
    stream: &'s mut R,
    /// Bytes of the current chunk that are not read yet.
    left: u64,
    is_over: bool,
}

impl<R: BufRead> Read for Chunks<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 && !self.is_over {
            let mut line = String::new();
            // The line that ends the last chunk is empty.
            while line.trim().is_empty() {
                line.clear();
                if self.stream.take(1 << 10).read_line(&mut line)? == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            }
            let length = u64::from_str_radix(line.trim(), 16);
            self.left = length.map_err(|_| io::Error::new(ErrorKind::InvalidData, line))?;
            if self.left == 0 {
                self.is_over = true;
                // The empty line after the last chunk; there are no trailers.
                self.stream.read_line(&mut String::new())?;
            }
        }
        if self.is_over {
            return Ok(0);
        }
        let count = self.stream.take(self.left).read(to)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_chunks_to_their_end() {
        let mut bytes = &b"3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\nrest"[..];
        let mut text = String::new();
        let mut chunks = Chunks { stream: &mut bytes, left: 0, is_over: false };
        chunks.read_to_string(&mut text).expect("the chunks are valid");
        assert_eq!((&*text, bytes), ("abc0123456789abcdef", &b"rest"[..]));
    }

    #[test]
    fn reports_a_body_that_ends_early() {
        let mut bytes = &b"5\r\nabc"[..];
        let mut chunks = Chunks { stream: &mut bytes, left: 0, is_over: false };
        assert!(chunks.read_to_end(&mut Vec::new()).is_err());
    }
}
