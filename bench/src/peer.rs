//! An HTTP client for benchmarks, which checks that responses are complete.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A measurement fails after this long without a response.
const PATIENCE: Duration = Duration::from_secs(5);

/// One connection to a server on loopback.
pub(crate) struct Peer {
    stream: TcpStream,
    /// The last response, head and body.
    answer: Vec<u8>,
    /// The time from the request to the first byte of the response.
    first_byte: Duration,
}

impl Peer {
    /// Connects with `TCP_NODELAY`, so that only the server's own delays are measured.
    pub(crate) fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(address(port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, answer: Vec::new(), first_byte: Duration::ZERO })
    }

    /// Requests `path` and reads the whole response, which must be a 200; returns its bytes.
    pub(crate) fn get(&mut self, path: &str) -> Result<&[u8]> {
        self.ask(&request(path))
    }

    /// Requests `path` with further header fields, each with its line end; otherwise like
    /// [`get`](Self::get).
    pub(crate) fn get_with(&mut self, path: &str, fields: &str) -> Result<&[u8]> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n"))
    }

    /// The first header field with this name in the last response.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let end = self.answer.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&self.answer[..end]).ok()?;
        let mut fields = head.split("\r\n").filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }

    /// Posts JSON to `path`; otherwise like [`get`](Self::get).
    pub(crate) fn post(&mut self, path: &str, json: &str) -> Result<&[u8]> {
        self.ask(&posting(path, json))
    }

    /// The time to the first byte of the last response.
    pub(crate) fn first_byte(&self) -> Duration {
        self.first_byte
    }

    fn ask(&mut self, request: &str) -> Result<&[u8]> {
        self.answer.clear();
        let begun = Instant::now();
        self.stream.write_all(request.as_bytes())?;
        let mut chunk = [0; 16384];
        let mut whole = None;
        while whole.is_none_or(|length| self.answer.len() < length) {
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                bail!("closed after {} bytes of a response", self.answer.len());
            }
            if self.answer.is_empty() {
                self.first_byte = begun.elapsed();
            }
            self.answer.extend_from_slice(&chunk[..count]);
            if whole.is_none() {
                whole = length(&self.answer)?;
            }
        }
        if whole != Some(self.answer.len()) {
            bail!("more bytes than the response has by its head");
        }
        Ok(&self.answer)
    }
}

/// Loopback, where all benchmarks run.
pub(crate) fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The request for `path`.
pub(crate) fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
}

fn posting(path: &str, json: &str) -> String {
    let fields = "Accept: application/json\r\nContent-Type: application/json\r\n";
    let length = json.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}Content-Length: {length}\r\n\r\n{json}"
    )
}

/// The length of head and body, once it is known: with the head, or with the last chunk.
fn length(answer: &[u8]) -> Result<Option<usize>> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&answer[..end]).context("a head that is not text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200") {
        bail!("answered `{status}`");
    }
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let field = |name: &str| {
        let found = fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim())
    };
    if field("transfer-encoding") == Some("chunked") {
        return Ok(chunks(&answer[end + 4..])?.map(|body| end + 4 + body));
    }
    let body = field("content-length").context("a response without Content-Length")?;
    let body: usize = body.parse().with_context(|| format!("Content-Length: {body}"))?;
    Ok(Some(end + 4 + body))
}

/// The length of a body in chunks without trailers, once it is complete (RFC 9112, section 7.1).
fn chunks(body: &[u8]) -> Result<Option<usize>> {
    let mut place = 0;
    loop {
        let rest = body.get(place..).unwrap_or_default();
        let Some(line) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&rest[..line]).context("a chunk without a size")?;
        let size = usize::from_str_radix(size, 16).with_context(|| format!("a chunk of {size}"))?;
        place += line + 2 + size + 2;
        if size == 0 {
            return Ok((body.len() >= place).then_some(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_length_once_the_head_is_complete() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length:         19\r\n\r\n";
        assert_eq!(length(&head[..20]).unwrap(), None);
        assert_eq!(length(head).unwrap(), Some(head.len() + 19));
    }

    #[test]
    fn knows_the_length_with_the_last_chunk() {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let whole =
            [&head[..], b"5\r\nhello\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n"].concat();
        for end in 0..whole.len() {
            assert_eq!(length(&whole[..end]).unwrap(), None, "{end}");
        }
        assert_eq!(length(&whole).unwrap(), Some(whole.len()));
        assert!(length(&[&head[..], b"x\r\n"].concat()).is_err());
    }

    #[test]
    fn reports_other_statuses_as_errors() {
        let error = length(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap_err();
        assert_eq!(error.to_string(), "answered `HTTP/1.1 404 Not Found`");
        assert!(length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
