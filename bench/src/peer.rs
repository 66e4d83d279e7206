//! Decides how a measuring program asks a server and knows that the answer is whole.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A server that is silent for this long has failed the measurement.
const PATIENCE: Duration = Duration::from_secs(5);

/// One connection to a server on loopback.
pub(crate) struct Peer {
    stream: TcpStream,
    /// The last answer, head and body.
    answer: Vec<u8>,
    /// From before its request was sent until some of it was there.
    first_byte: Duration,
}

impl Peer {
    /// Connects, without Nagle's delay: only the server's own delays shall show.
    pub(crate) fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(address(port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, answer: Vec::new(), first_byte: Duration::ZERO })
    }

    /// Asks for `path` and reads the whole answer, which must be a 200; returns its bytes.
    pub(crate) fn get(&mut self, path: &str) -> Result<&[u8]> {
        self.ask(&request(path))
    }

    /// Posts JSON to `path`; else as [`get`](Self::get).
    pub(crate) fn post(&mut self, path: &str, json: &str) -> Result<&[u8]> {
        self.ask(&posting(path, json))
    }

    /// How long the last answer was awaited until its first byte came.
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
                bail!("closed after {} bytes of an answer", self.answer.len());
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
            bail!("more bytes than the answer's Content-Length");
        }
        Ok(&self.answer)
    }
}

/// Loopback, where every measurement stays.
pub(crate) fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The bytes that ask for `path`.
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

/// The length of head and body, once the head is whole.
fn length(answer: &[u8]) -> Result<Option<usize>> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&answer[..end]).context("a head that is not text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200") {
        bail!("answered `{status}`");
    }
    let body = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .context("an answer without Content-Length")?
        .1;
    let body: usize = body.trim().parse().with_context(|| format!("Content-Length:{body}"))?;
    Ok(Some(end + 4 + body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is_there() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length:         19\r\n\r\n";
        assert_eq!(length(&head[..20]).unwrap(), None);
        assert_eq!(length(head).unwrap(), Some(head.len() + 19));
    }

    #[test]
    fn other_answers_are_told_in_the_error() {
        let error = length(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap_err();
        assert_eq!(error.to_string(), "answered `HTTP/1.1 404 Not Found`");
        assert!(length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
