//! Parses a response incrementally.

use anyhow::{Context, Result, bail, ensure};

/// The limit of a head or a line.
const MOST_HEAD: usize = 16 << 10;
/// The limit of a stored body; further bytes are dropped.
const MOST_KEPT: usize = 1 << 20;

/// A response that arrives in pieces. [`Answer::default`] waits for the first byte.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The cookies of the response, names and values; an empty value deletes the cookie.
    pub(crate) cookies: Vec<(String, String)>,
    pub(crate) location: Option<String>,
    /// In seconds.
    pub(crate) retry_after: Option<u64>,
    /// Whether the server closes the connection after this response.
    pub(crate) closes: bool,
    pub(crate) body: Vec<u8>,
    /// Bytes of head and body so far.
    pub(crate) bytes: u64,
    /// An incomplete head, or an incomplete line between chunks.
    line: Vec<u8>,
    part: Part,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Part {
    #[default]
    Head,
    /// The number of remaining body bytes.
    Body(u64),
    /// A line with the length of a chunk.
    Size,
    /// The number of remaining bytes in a chunk, with its line end.
    Chunk(u64),
    /// Lines after the last chunk.
    Trailer,
    Whole,
}

impl Answer {
    /// Consumes the bytes of this response from the front of `bytes`; returns their number and
    /// whether the response is complete.
    pub(crate) fn receive(&mut self, bytes: &[u8], keeps_body: bool) -> Result<(usize, bool)> {
        let mut taken = 0;
        while taken < bytes.len() && self.part != Part::Whole {
            let rest = &bytes[taken..];
            taken += match self.part {
                Part::Head => {
                    let (count, is_whole) = self.take_line(rest, b"\r\n\r\n")?;
                    if is_whole {
                        self.read_head()?;
                    }
                    count
                }
                Part::Body(left) => {
                    let count = self.take_body(rest, left, keeps_body);
                    let left = left - count as u64;
                    self.part = if left == 0 { Part::Whole } else { Part::Body(left) };
                    count
                }
                Part::Size => {
                    let (count, is_whole) = self.take_line(rest, b"\r\n")?;
                    if is_whole {
                        self.read_size()?;
                    }
                    count
                }
                Part::Chunk(left) => {
                    // The last two bytes are the line end of the chunk.
                    let count = match left {
                        1 | 2 => 1,
                        _ => self.take_body(rest, left - 2, keeps_body),
                    };
                    let left = left - count as u64;
                    self.part = if left == 0 { Part::Size } else { Part::Chunk(left) };
                    count
                }
                Part::Trailer => {
                    let (count, is_whole) = self.take_line(rest, b"\r\n")?;
                    if is_whole {
                        self.part = if self.line.len() == 2 { Part::Whole } else { Part::Trailer };
                        self.line.clear();
                    }
                    count
                }
                Part::Whole => 0,
            };
        }
        self.bytes += taken as u64;
        Ok((taken, self.part == Part::Whole))
    }

    fn take_body(&mut self, rest: &[u8], left: u64, keeps_body: bool) -> usize {
        let count = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if keeps_body {
            let room = MOST_KEPT.saturating_sub(self.body.len());
            self.body.extend_from_slice(&rest[..count.min(room)]);
        }
        count
    }

    fn take_line(&mut self, rest: &[u8], end: &[u8]) -> Result<(usize, bool)> {
        for (at, byte) in rest.iter().enumerate() {
            self.line.push(*byte);
            if *byte == b'\n' && self.line.ends_with(end) {
                return Ok((at + 1, true));
            }
        }
        ensure!(self.line.len() <= MOST_HEAD, "a head of more than {MOST_HEAD} bytes");
        Ok((rest.len(), false))
    }

    fn read_head(&mut self) -> Result<()> {
        let head = std::mem::take(&mut self.line);
        let head = std::str::from_utf8(&head).context("a head that is not text")?;
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        self.status = status
            .and_then(|status| status.parse().ok())
            .with_context(|| format!("a response that begins with `{first}`"))?;
        let mut length = None;
        let mut is_chunked = false;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = Some(value.parse().context("Content-Length")?),
                "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
                "connection" => self.closes |= value.eq_ignore_ascii_case("close"),
                "location" => self.location = Some(value.to_owned()),
                "retry-after" => self.retry_after = value.parse().ok(),
                "set-cookie" => self.cookies.extend(cookie(value)),
                _ => {}
            }
        }
        self.part = match (self.status, is_chunked, length) {
            (204 | 304, _, _) | (_, false, Some(0)) => Part::Whole,
            (_, true, _) => Part::Size,
            (_, false, Some(length)) => Part::Body(length),
            (_, false, None) => bail!("a response without a length"),
        };
        Ok(())
    }

    fn read_size(&mut self) -> Result<()> {
        let line = std::mem::take(&mut self.line);
        let digits = String::from_utf8_lossy(&line);
        let digits = digits.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).context("the length of a chunk")?;
        ensure!(size < u64::from(u32::MAX), "a chunk of {size} bytes");
        self.part = if size == 0 { Part::Trailer } else { Part::Chunk(size + 2) };
        Ok(())
    }
}

/// The name and value; the value is empty if the cookie has ended.
fn cookie(field: &str) -> Option<(String, String)> {
    let mut words = field.split(';').map(str::trim);
    let (name, value) = words.next()?.split_once('=')?;
    let has_ended = words.any(|word| word.eq_ignore_ascii_case("max-age=0"));
    Some((name.to_owned(), if has_ended { String::new() } else { value.to_owned() }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHUNKED: &[u8] =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nSet-Cookie: ticket=a.b; \
        Path=/; HttpOnly\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nTrailer: 1\r\n\r\n";
    const REFUSAL: &[u8] =
        b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nConnection: close\r\n\
        Content-Length:          4\r\n\r\nlate";

    fn whole(bytes: &[u8], piece: usize) -> (Answer, usize) {
        let mut answer = Answer::default();
        let mut taken = 0;
        for piece in bytes.chunks(piece) {
            let (count, is_whole) = answer.receive(piece, true).unwrap();
            taken += count;
            if is_whole {
                return (answer, taken);
            }
        }
        panic!("not whole after {taken} of {}", bytes.len());
    }

    #[test]
    fn parses_a_response_in_any_pieces() {
        for piece in 1..CHUNKED.len() {
            let (answer, taken) = whole(CHUNKED, piece);
            assert_eq!((answer.body.as_slice(), taken), (&b"hello!"[..], CHUNKED.len()));
            assert_eq!(answer.cookies, [("ticket".to_owned(), "a.b".to_owned())]);
            let (answer, taken) = whole(REFUSAL, piece);
            assert_eq!((answer.status, answer.retry_after, answer.closes), (503, Some(7), true));
            assert_eq!((answer.body.as_slice(), taken), (&b"late"[..], REFUSAL.len()));
        }
    }

    #[test]
    fn leaves_bytes_after_a_response_for_the_next() {
        let both = [REFUSAL, CHUNKED].concat();
        let (answer, taken) = whole(&both, both.len());
        assert_eq!((answer.status, taken), (503, REFUSAL.len()));
        assert_eq!(whole(&both[taken..], 1000).0.status, 200);
    }

    #[test]
    fn returns_no_value_for_an_ended_cookie() {
        assert_eq!(cookie("a=b; Max-Age=0"), Some(("a".into(), String::new())));
        assert_eq!(cookie("nothing"), None);
    }

    proptest! {
        #[test]
        fn never_panics_or_consumes_too_much(
            bytes in prop::collection::vec(any::<u8>(), 0..200)
        ) {
            for start in [&b""[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"] {
                let all = [start, &bytes].concat();
                if let Ok((taken, _)) = Answer::default().receive(&all, true) {
                    prop_assert!(taken <= all.len());
                }
            }
        }
    }
}
