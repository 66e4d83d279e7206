//! Exchanges raw bytes with a server, without a third-party client.

use std::fmt::{self, Display, Formatter};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};

/// Every server under test answers or closes within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// A whole response, as received.
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
}

/// Sends all bytes at once and reads until the server closes the connection.
pub(super) fn exchange(address: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(bytes)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).with_context(|| {
        format!("not closed after {:?}", String::from_utf8_lossy(&answer).into_owned())
    })?;
    // The server may already have closed; no data can be lost.
    let _ = stream.shutdown(Shutdown::Both);
    Ok(answer)
}

impl Answer {
    /// The bytes after the head; empty if the head has no end.
    pub(super) fn body(&self) -> &[u8] {
        let end = self.bytes.windows(4).position(|window| window == b"\r\n\r\n");
        end.map_or(&[], |end| &self.bytes[end + 4..])
    }
}

impl Answer {
    /// The status code; 0 if there is no valid one.
    pub(super) fn status(&self) -> u16 {
        let digits = self.bytes.get(9..12).and_then(|digits| str::from_utf8(digits).ok());
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// The value of a header field.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes);
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.map(str::to_owned)
    }
}

impl Display for Answer {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "answer {:?}", String::from_utf8_lossy(&self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_body_after_the_first_empty_line() {
        let answer = Answer { bytes: b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nx\r\n\r\ny".to_vec() };
        assert_eq!(answer.body(), b"x\r\n\r\ny");
    }

    #[test]
    fn returns_no_body_for_an_unfinished_head() {
        assert_eq!(Answer { bytes: b"HTTP/1.1 200 OK\r\n".to_vec() }.body(), b"");
    }
}
