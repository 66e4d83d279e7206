//! Reads the response that this server wrote in HTTP/1.1, as parts of a response of HTTP/2.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::http2::known_lines::KnownLines;

/// A part of a response.
#[derive(Debug)]
pub(super) enum Part {
    /// An interim response, such as `100 Continue`.
    Informational(Response<()>),
    /// Status and fields. `is_last`: no content follows.
    Head { response: Response<()>, is_last: bool },
    /// Content, which may be empty only if `is_last`.
    Data { bytes: Bytes, is_last: bool },
}

/// The bytes are no response that this server writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed;

/// Takes bytes and returns parts.
pub(super) struct ResponseReader {
    stage: ResponseStage,
    /// Bytes that no part has taken yet.
    rest: Bytes,
    /// The response has no content, whatever its head says (RFC 9110, section 9.3.2).
    is_head: bool,
    /// The request asks for another protocol.
    is_tunnel: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ResponseStage {
    Head,
    /// Content of this length.
    Length(u64),
    /// Between two chunks.
    ChunkSize,
    /// The rest of a chunk.
    Chunk(u64),
    /// Content up to the end of the connection.
    UntilEnd,
    Over,
}

/// The longest head that a program can write.
const MAX_HEAD: usize = 1 << 20;

impl ResponseReader {
    pub(super) const fn new(is_head: bool, is_tunnel: bool) -> Self {
        Self { stage: ResponseStage::Head, rest: Bytes::new(), is_head, is_tunnel }
    }

    /// Adds bytes. The caller first takes all parts of the earlier ones.
    pub(super) fn push(&mut self, bytes: Bytes) {
        if self.rest.is_empty() {
            self.rest = bytes;
        } else {
            let mut joined = BytesMut::with_capacity(self.rest.len() + bytes.len());
            joined.extend_from_slice(&self.rest);
            joined.extend_from_slice(&bytes);
            self.rest = joined.freeze();
        }
    }

    /// The next part. `None`: more bytes are needed, or the response is complete.
    ///
    /// # Errors
    ///
    /// The bytes are no response.
    pub(super) fn next(&mut self) -> Result<Option<Part>, Malformed> {
        loop {
            match self.stage {
                ResponseStage::Over => return Ok(None),
                ResponseStage::Head => return self.read_head(),
                _ if self.rest.is_empty() => return Ok(None),
                ResponseStage::UntilEnd => {
                    let bytes = std::mem::take(&mut self.rest);
                    return Ok(Some(Part::Data { bytes, is_last: false }));
                }
                ResponseStage::Length(left) => {
                    let bytes = self.take_up_to(left);
                    let left = left - bytes.len() as u64;
                    self.stage =
                        if left == 0 { ResponseStage::Over } else { ResponseStage::Length(left) };
                    return Ok(Some(Part::Data { bytes, is_last: left == 0 }));
                }
                ResponseStage::Chunk(0) => {
                    // The line end after the content of a chunk.
                    if self.rest.len() < 2 {
                        return Ok(None);
                    }
                    let _ = self.rest.split_to(2);
                    self.stage = ResponseStage::ChunkSize;
                }
                ResponseStage::Chunk(left) => {
                    let bytes = self.take_up_to(left);
                    self.stage = ResponseStage::Chunk(left - bytes.len() as u64);
                    // Often the end is there already: one frame less.
                    let is_last = *self.rest == *b"\r\n0\r\n\r\n";
                    if is_last && self.stage == ResponseStage::Chunk(0) {
                        self.stage = ResponseStage::Over;
                        return Ok(Some(Part::Data { bytes, is_last }));
                    }
                    return Ok(Some(Part::Data { bytes, is_last: false }));
                }
                ResponseStage::ChunkSize => {
                    let Some(line) = self.rest.windows(2).position(|pair| pair == b"\r\n") else {
                        return Ok(None);
                    };
                    let size = std::str::from_utf8(&self.rest[..line]).map_err(|_| Malformed)?;
                    let size = u64::from_str_radix(size, 16).map_err(|_| Malformed)?;
                    let _ = self.rest.split_to(line + 2);
                    if size == 0 {
                        self.stage = ResponseStage::Over;
                        return Ok(Some(Part::Data { bytes: Bytes::new(), is_last: true }));
                    }
                    self.stage = ResponseStage::Chunk(size);
                }
            }
        }
    }

    /// The end of the bytes. Returns the last part of a response without a length.
    ///
    /// # Errors
    ///
    /// The response is not complete.
    pub(super) fn end(&mut self) -> Result<Option<Part>, Malformed> {
        match self.stage {
            ResponseStage::Over => Ok(None),
            ResponseStage::UntilEnd => {
                self.stage = ResponseStage::Over;
                Ok(Some(Part::Data { bytes: Bytes::new(), is_last: true }))
            }
            _ => Err(Malformed),
        }
    }

    /// Whether the response is complete.
    pub(super) fn is_over(&self) -> bool {
        self.stage == ResponseStage::Over
    }

    /// Whether the rest of the response exists already, such as that of a file.
    pub(super) fn expects_more(&self) -> bool {
        matches!(self.stage, ResponseStage::Length(_))
    }

    /// Whether no part of the response has been returned.
    pub(super) fn is_at_head(&self) -> bool {
        self.stage == ResponseStage::Head
    }

    fn take_up_to(&mut self, most: u64) -> Bytes {
        let count = usize::try_from(most).unwrap_or(usize::MAX).min(self.rest.len());
        self.rest.split_to(count)
    }

    fn read_head(&mut self) -> Result<Option<Part>, Malformed> {
        let parsed = KNOWN_LINES.with_borrow_mut(|known| parse_head(&self.rest, known))?;
        let Some(ParsedHead { mut response, framing, length }) = parsed else {
            return if self.rest.len() > MAX_HEAD { Err(Malformed) } else { Ok(None) };
        };
        let _ = self.rest.split_to(length);
        let status = response.status();
        if status == StatusCode::SWITCHING_PROTOCOLS && self.is_tunnel {
            // RFC 8441 section 5: the tunnel is open with a status of success.
            *response.status_mut() = StatusCode::OK;
            response.headers_mut().remove("sec-websocket-accept");
            self.stage = ResponseStage::UntilEnd;
            return Ok(Some(Part::Head { response, is_last: false }));
        }
        if status.is_informational() {
            return Ok(Some(Part::Informational(response)));
        }
        let is_bodiless = self.is_head
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED
            || framing == ResponseStage::Length(0);
        self.stage = if is_bodiless { ResponseStage::Over } else { framing };
        Ok(Some(Part::Head { response, is_last: is_bodiless }))
    }
}

struct ParsedHead {
    response: Response<()>,
    framing: ResponseStage,
    /// The number of bytes, with the empty line.
    length: usize,
}

/// More fields than most responses have, so that the map is allocated once.
const FIELDS: usize = 12;

thread_local! {
    static KNOWN_LINES: RefCell<KnownLines> = const { RefCell::new(KnownLines::new()) };
}

/// Reads the head at the beginning of `bytes`. `None`: its end has not arrived.
fn parse_head(bytes: &Bytes, known: &mut KnownLines) -> Result<Option<ParsedHead>, Malformed> {
    let Some(end) = line_end(bytes, 0)? else { return Ok(None) };
    let status = bytes[..end].get(9..12).ok_or(Malformed)?;
    let status = StatusCode::from_bytes(status).map_err(|_| Malformed)?;
    let mut headers = HeaderMap::with_capacity(FIELDS);
    let mut framing = ResponseStage::UntilEnd;
    let mut start = end + 2;
    for place in 0.. {
        if let Some(line) = known.find(place, &bytes[start..]) {
            headers.append(line.name.clone(), line.value.clone());
            start += line.length();
            continue;
        }
        let Some(end) = line_end(bytes, start)? else { return Ok(None) };
        if end == start {
            let mut response = Response::new(());
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            return Ok(Some(ParsedHead { response, framing, length: end + 2 }));
        }
        let line = &bytes[start..end];
        let colon = line.iter().position(|byte| *byte == b':').ok_or(Malformed)?;
        let name = HeaderName::from_bytes(&line[..colon]).map_err(|_| Malformed)?;
        let value = line[colon + 1..].trim_ascii();
        if name == CONTENT_LENGTH {
            let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            framing = ResponseStage::Length(length.ok_or(Malformed)?);
        }
        if name == TRANSFER_ENCODING {
            framing = ResponseStage::ChunkSize;
        } else if name != CONNECTION && name != UPGRADE && name != "keep-alive" {
            let value = HeaderValue::from_maybe_shared(bytes.slice_ref(value));
            let value = value.map_err(|_| Malformed)?;
            known.note(place, &bytes[start..end + 2], &name, &value);
            headers.append(name, value);
        }
        start = end + 2;
    }
    unreachable!("the range of places has no end")
}

/// The end of the line at `start`, without its line break. `None`: it has not arrived.
fn line_end(bytes: &[u8], start: usize) -> Result<Option<usize>, Malformed> {
    let Some(count) = bytes[start..].iter().position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    match bytes[start..start + count].last() {
        Some(b'\r') => Ok(Some(start + count - 1)),
        _ => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of `bytes`, which arrive in pieces of `piece` bytes.
    fn read(bytes: &[u8], piece: usize, is_head: bool, is_tunnel: bool) -> (String, bool) {
        let mut reader = ResponseReader::new(is_head, is_tunnel);
        let mut text = String::new();
        let mut note = |part: Part| match part {
            Part::Informational(response) => text.push_str(response.status().as_str()),
            Part::Head { response, is_last } => {
                text.push_str(response.status().as_str());
                for (name, value) in response.headers() {
                    text.extend([" ", name.as_str(), "=", value.to_str().unwrap()]);
                }
                text.push_str(if is_last { "." } else { "|" });
            }
            Part::Data { bytes, is_last } => {
                text.push_str(std::str::from_utf8(&bytes).unwrap());
                text.push_str(if is_last { "." } else { "" });
            }
        };
        for piece in bytes.chunks(piece) {
            reader.push(Bytes::copy_from_slice(piece));
            while let Some(part) = reader.next().unwrap() {
                note(part);
            }
        }
        let is_over = reader.is_over();
        if !is_over && let Ok(Some(part)) = reader.end() {
            note(part);
        }
        (text, is_over)
    }

    #[track_caller]
    fn check(response: &str, (is_head, is_tunnel): (bool, bool), expected: &str, is_over: bool) {
        let response = response.replace('\n', "\r\n");
        for piece in [1, 2, 3, 7, response.len()] {
            let (text, over) = read(response.as_bytes(), piece, is_head, is_tunnel);
            assert_eq!((text.as_str(), over), (expected, is_over), "pieces of {piece}");
        }
    }

    const PLAIN: (bool, bool) = (false, false);

    #[test]
    fn reads_content_with_a_length() {
        let response = "HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 5\n\nhello";
        check(response, PLAIN, "200 content-type=text/plain content-length=5|hello.", true);
        check(
            response.trim_end_matches("hello"),
            (true, false),
            "200 content-type=text/plain content-length=5.",
            true,
        );
        check(
            "HTTP/1.1 404 Not Found\nContent-Length: 0\n\n",
            PLAIN,
            "404 content-length=0.",
            true,
        );
    }

    #[test]
    fn reads_chunks() {
        let response = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nConnection: close\n\n\
                        5\nhello\n0000000A\n, 0123456.\n0\n\n";
        check(response, PLAIN, "200|hello, 0123456..", true);
    }

    #[test]
    fn reads_responses_without_content() {
        check("HTTP/1.1 204 No Content\n\n", PLAIN, "204.", true);
        check("HTTP/1.1 304 Not Modified\nETag: \"a\"\n\n", PLAIN, "304 etag=\"a\".", true);
    }

    #[test]
    fn reads_content_up_to_the_end() {
        check("HTTP/1.1 200 OK\n\nabc", PLAIN, "200|abc.", false);
    }

    #[test]
    fn reads_an_interim_response_first() {
        let response = "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Length: 1\n\na";
        check(response, PLAIN, "100200 content-length=1|a.", true);
    }

    #[test]
    fn reads_a_tunnel() {
        let response = "HTTP/1.1 101 Switching Protocols\nConnection: upgrade\n\
                        Upgrade: websocket\nSec-WebSocket-Accept: x\n\nframes";
        check(response, (false, true), "200|frames.", false);
    }

    proptest::proptest! {
        #[test]
        fn ends_for_any_bytes(
            head in "HTTP/1\\.1 (200|304|100)[ A-Za-z]{0,5}\r\n(Content-Length: [0-9]{1,3}\r\n|Transfer-Encoding: chunked\r\n)?\r\n",
            rest in proptest::collection::vec(proptest::sample::select(b"0aF\r\n;x".to_vec()), 0..60),
            piece in 1_usize..20,
        ) {
            let mut reader = ResponseReader::new(false, false);
            let bytes = [head.as_bytes(), &rest].concat();
            let mut left = bytes.len() * 2 + 2;
            'reads: for piece in bytes.chunks(piece) {
                reader.push(Bytes::copy_from_slice(piece));
                while let Ok(part) = reader.next() {
                    let Some(_) = part else { continue 'reads };
                    left -= 1;
                    proptest::prop_assert!(left > 0, "more parts than bytes");
                }
                break;
            }
        }
    }

    #[test]
    fn rejects_what_is_no_response() {
        for bytes in [
            "HTTP/1.1\r\n\r\n",
            "HTTP/1.1 2x0 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        ] {
            let mut reader = ResponseReader::new(false, false);
            reader.push(Bytes::from_static(bytes.as_bytes()));
            let first = reader.next();
            let is_malformed = first.is_err() || reader.next().is_err();
            assert!(is_malformed, "{bytes:?}");
        }
        let mut reader = ResponseReader::new(false, false);
        reader.push(Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"));
        while reader.next().unwrap().is_some() {}
        assert_eq!(reader.end().map(|_| ()), Err(Malformed), "the content is cut");
    }
}
