//! Decides how raw bytes are exchanged with a server, with no tool in between.

use std::fmt::{self, Display, Formatter};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};

/// No server here may leave a peer without a word for longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A whole answer, as it came.
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
}

/// Sends all bytes at once and reads until the server closes.
pub(super) fn exchange(address: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(bytes)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).with_context(|| {
        format!("not closed after {:?}", String::from_utf8_lossy(&answer).into_owned())
    })?;
    // The server may have closed first; there is nothing left to lose.
    let _ = stream.shutdown(Shutdown::Both);
    Ok(answer)
}

impl Answer {
    /// What follows the head; nothing where the head never ends.
    pub(super) fn body(&self) -> &[u8] {
        let end = self.bytes.windows(4).position(|window| window == b"\r\n\r\n");
        end.map_or(&[], |end| &self.bytes[end + 4..])
    }
}

impl Answer {
    /// Its status; 0 where there is none.
    pub(super) fn status(&self) -> u16 {
        let digits = self.bytes.get(9..12).and_then(|digits| str::from_utf8(digits).ok());
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// The value of a field.
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
    fn the_body_begins_behind_the_first_empty_line() {
        let answer = Answer { bytes: b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nx\r\n\r\ny".to_vec() };
        assert_eq!(answer.body(), b"x\r\n\r\ny");
    }

    #[test]
    fn a_head_without_an_end_has_no_body() {
        assert_eq!(Answer { bytes: b"HTTP/1.1 200 OK\r\n".to_vec() }.body(), b"");
    }
}
