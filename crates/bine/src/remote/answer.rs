//! Response framing of HTTP/1.1: where a response begins and ends (RFC 9112 section 6.3), in
//! whatever pieces it arrives.

use httparse::{EMPTY_HEADER, Status, parse_chunk_size};

/// The response to one request; the default is for any method but HEAD. Append bytes to
/// [`incoming`](Self::incoming), then call [`head`](Self::head) until it returns the head, and
/// [`body`](Self::body) until it is complete.
#[derive(Debug, Default)]
pub(crate) struct RemoteResponse {
    /// Whether the request is a HEAD, whose response has no body.
    is_to_head: bool,
    received: Vec<u8>,
    /// Number of parsed bytes. They are removed when more bytes are appended, not after each small
    /// chunk.
    parsed_bytes: usize,
    /// The part that is parsed next.
    next: Expected,
    /// Interim responses so far.
    interim: usize,
    /// Bytes of trailers so far.
    trailing: usize,
}

/// A parsed response head.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// All fields, as they were sent.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    /// The `Content-Type` field.
    pub(super) kind: String,
    /// Whether the connection can carry a further request.
    pub(super) is_reusable: bool,
    /// Whether only the end of the connection ends the body, so that a truncated body cannot be
    /// detected.
    pub(super) is_close_delimited: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Expected {
    #[default]
    Head,
    /// A body with this number of bytes to follow.
    Exactly(u64),
    /// The size line of a chunk.
    Size,
    /// A chunk with this number of bytes to follow.
    Chunk(u64),
    /// The line end after a chunk.
    ChunkEnd,
    /// The trailers.
    Trailers,
    /// A body until the end of the connection.
    Rest,
    Nothing,
}

const MAX_FIELDS: usize = 100;
/// Interim responses (such as 103) before the final one.
const MAX_INTERIM: usize = 8;
/// Bytes of a head, of a chunk's size line, and of all trailers.
const MAX_HEAD: usize = 16 << 10;

const NO_HTTP: &str = "the answer is not valid HTTP";
const WRONG_CHUNKS: &str = "the answer's chunks are malformed";

impl RemoteResponse {
    /// The response to a request, which is a HEAD or not.
    pub(super) fn to_request(is_head: bool) -> Self {
        Self { is_to_head: is_head, ..Self::default() }
    }

    /// The buffer for received bytes.
    pub(crate) fn incoming(&mut self) -> &mut Vec<u8> {
        self.received.drain(..self.parsed_bytes);
        self.parsed_bytes = 0;
        &mut self.received
    }

    /// The bytes that are not parsed yet.
    fn rest(&self) -> &[u8] {
        &self.received[self.parsed_bytes..]
    }

    /// Parses the head of the final response; `None`: it is incomplete.
    pub(crate) fn head(&mut self) -> Result<Option<Head>, &'static str> {
        loop {
            let mut fields = [EMPTY_HEADER; MAX_FIELDS];
            let mut parsed = httparse::Response::new(&mut fields);
            let end = match parsed.parse(self.rest()).map_err(|_| NO_HTTP)? {
                Status::Complete(end) if end <= MAX_HEAD => end,
                Status::Partial if self.rest().len() <= MAX_HEAD => return Ok(None),
                _ => return Err("the answer's head is too long"),
            };
            let (head, next) = interpret(&parsed, self.is_to_head)?;
            self.parsed_bytes += end;
            if let Some(next) = next {
                self.next = next;
                return Ok(Some(head));
            }
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Err("the answer has too many interim responses");
            }
        }
    }

    /// Moves the received part of the body to `to`. Returns true if the body is complete.
    /// `has_ended`: the connection has ended.
    pub(crate) fn body(&mut self, has_ended: bool, to: &mut Vec<u8>) -> Result<bool, &'static str> {
        loop {
            let is_over = match self.next {
                Expected::Nothing => return Ok(true),
                Expected::Rest => {
                    to.extend_from_slice(self.rest());
                    self.parsed_bytes = self.received.len();
                    return Ok(has_ended);
                }
                Expected::Exactly(left) => {
                    self.pass(left, to, Expected::Exactly, Expected::Nothing)
                }
                Expected::Chunk(left) => self.pass(left, to, Expected::Chunk, Expected::ChunkEnd),
                Expected::Size => self.size()?,
                Expected::ChunkEnd => match self.line(Expected::Size)? {
                    Some(0) => true,
                    Some(_) => return Err(WRONG_CHUNKS),
                    None => false,
                },
                // The trailers are discarded.
                Expected::Trailers => match self.line(Expected::Trailers)? {
                    Some(0) => {
                        self.next = Expected::Nothing;
                        true
                    }
                    Some(length) => {
                        self.trailing += length;
                        if self.trailing > MAX_HEAD {
                            return Err("the answer's trailers are too long");
                        }
                        true
                    }
                    None => false,
                },
                Expected::Head => return Err(NO_HTTP),
            };
            if !is_over {
                return if has_ended { Err("the answer broke off") } else { Ok(false) };
            }
        }
    }

    /// Whether no bytes follow the body, so that the connection can be reused.
    pub(super) fn is_clean(&self) -> bool {
        self.next == Expected::Nothing && self.rest().is_empty()
    }

    /// Whether no byte was received.
    pub(super) fn is_untouched(&self) -> bool {
        self.next == Expected::Head && self.rest().is_empty()
    }

    /// Moves at most `left` bytes of the body. Returns true if that was the rest of this part.
    fn pass(
        &mut self,
        left: u64,
        to: &mut Vec<u8>,
        same: fn(u64) -> Expected,
        then: Expected,
    ) -> bool {
        let count = self.rest().len().min(usize::try_from(left).unwrap_or(usize::MAX));
        to.extend_from_slice(&self.rest()[..count]);
        self.parsed_bytes += count;
        let left = left - count as u64;
        self.next = if left == 0 { then } else { same(left) };
        left == 0
    }

    /// Parses a chunk's size line; false: it is incomplete.
    fn size(&mut self) -> Result<bool, &'static str> {
        match parse_chunk_size(self.rest()).map_err(|_| WRONG_CHUNKS)? {
            Status::Complete((end, size)) if end <= MAX_HEAD => {
                self.parsed_bytes += end;
                self.next = if size == 0 { Expected::Trailers } else { Expected::Chunk(size) };
                Ok(true)
            }
            Status::Partial if self.rest().len() <= MAX_HEAD => Ok(false),
            _ => Err(WRONG_CHUNKS),
        }
    }

    /// Skips a line and returns its length; `None`: it is incomplete.
    fn line(&mut self, then: Expected) -> Result<Option<usize>, &'static str> {
        let Some(end) = self.rest().iter().position(|byte| *byte == b'\n') else {
            let is_endless = self.rest().len() > MAX_HEAD;
            return if is_endless { Err(WRONG_CHUNKS) } else { Ok(None) };
        };
        if end == 0 || self.rest()[end - 1] != b'\r' || end >= MAX_HEAD {
            return Err(WRONG_CHUNKS);
        }
        self.parsed_bytes += end + 1;
        self.next = then;
        Ok(Some(end - 1))
    }
}

/// Interprets a head: its fields and the framing of the body; `None` for the body: the response is
/// an interim one.
fn interpret(
    parsed: &httparse::Response<'_, '_>,
    is_to_head: bool,
) -> Result<(Head, Option<Expected>), &'static str> {
    let status = parsed.code.ok_or(NO_HTTP)?;
    let mut head = Head { status, is_reusable: parsed.version == Some(1), ..Head::default() };
    if status < 100 {
        return Err(NO_HTTP);
    }
    if status == 101 {
        return Err("the answer switches to another protocol");
    }
    if (100..200).contains(&status) {
        return Ok((head, None));
    }
    let (mut length, mut is_chunked) = (None, false);
    for field in parsed.headers.iter() {
        head.fields.push((field.name.to_owned(), field.value.to_vec()));
        let value = std::str::from_utf8(field.value).unwrap_or_default().trim();
        match field.name.to_ascii_lowercase().as_str() {
            "content-type" => value.clone_into(&mut head.kind),
            "connection" if value.to_ascii_lowercase().contains("close") => {
                head.is_reusable = false;
            }
            "content-length" => {
                let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
                let number = value.parse().ok().filter(|_| is_number).ok_or(NO_HTTP)?;
                if length.replace(number).is_some_and(|before| before != number) {
                    return Err("the answer has two different lengths");
                }
            }
            "transfer-encoding" if is_chunked || !value.eq_ignore_ascii_case("chunked") => {
                return Err("the answer has an unsupported transfer coding");
            }
            "transfer-encoding" => is_chunked = true,
            _ => {}
        }
    }
    if is_to_head {
        // The fields describe the body of a GET (RFC 9110 section 9.3.2).
        return Ok((head, Some(Expected::Nothing)));
    }
    let next = match (status, is_chunked, length) {
        (204 | 304, ..) | (_, false, Some(0)) => Expected::Nothing,
        // A sign of request smuggling.
        (_, true, Some(_)) => return Err("the answer has a length and chunks"),
        (_, true, None) => Expected::Size,
        (_, false, Some(length)) => Expected::Exactly(length),
        (_, false, None) => Expected::Rest,
    };
    head.is_close_delimited = next == Expected::Rest;
    // There is no body (RFC 9112 section 6.3), but a faulty server may send one, so the connection
    // is not reused.
    let names_body =
        next == Expected::Nothing && (is_chunked || length.is_some_and(|length| length > 0));
    head.is_reusable &= !head.is_close_delimited && !names_body;
    Ok((head, Some(next)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parses these bytes in pieces of this size, followed by the end of the connection.
    fn read(bytes: &[u8], piece: usize) -> Result<(Head, String, bool), &'static str> {
        let (mut answer, mut head, mut body) = (RemoteResponse::default(), None, Vec::new());
        for piece in bytes.chunks(piece) {
            answer.incoming().extend_from_slice(piece);
            if head.is_none() {
                head = answer.head()?;
            }
            if head.is_some() && answer.body(false, &mut body)? {
                break;
            }
        }
        let head = head.ok_or("broke off")?;
        answer.body(true, &mut body)?;
        Ok((head, String::from_utf8_lossy(&body).into_owned(), answer.is_clean()))
    }

    fn check(text: &str, expected: Result<(u16, &str, bool), &str>) {
        for piece in [1, 2, 3, 7, usize::MAX] {
            let found = read(text.as_bytes(), piece);
            let found =
                found.as_ref().map(|(head, body, _)| (head.status, &**body, head.is_reusable));
            assert_eq!(found, expected.as_ref().map(|all| *all), "{text:?} in pieces of {piece}");
        }
    }

    #[test]
    fn response_ends_where_its_framing_says() {
        let ok = "HTTP/1.1 200 OK\r\n";
        check(&format!("{ok}Content-Length: 2\r\n\r\nab"), Ok((200, "ab", true)));
        check(&format!("{ok}Content-Length: 0\r\n\r\n"), Ok((200, "", true)));
        check(&format!("{ok}Content-Length: 3\r\n\r\nab"), Err("the answer broke off"));
        check(&format!("{ok}Content-Length: +2\r\n\r\nab"), Err(NO_HTTP));
        check(
            &format!("{ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nab"),
            Err("the answer has two different lengths"),
        );
        check(
            &format!("{ok}Connection: Close\r\nContent-Length: 1\r\n\r\na"),
            Ok((200, "a", false)),
        );
        check("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", Ok((200, "a", false)));
        check("HTTP/1.1 204 No Content\r\n\r\n", Ok((204, "", true)));
        // A faulty server may send the body nevertheless.
        check("HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", Ok((204, "", false)));
        check(
            "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
            Ok((304, "", false)),
        );
        check(
            &format!("HTTP/1.1 103 Early Hints\r\n\r\n{ok}Content-Length: 1\r\n\r\na"),
            Ok((200, "a", true)),
        );
        check(
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
            Err("the answer switches to another protocol"),
        );
        check("SSH-2.0-OpenSSH\r\n", Err(NO_HTTP));
        check("HTTP/1.1 099 Less\r\nContent-Length: 0\r\n\r\n", Err(NO_HTTP));
        check(&format!("{ok}\r\nab"), Ok((200, "ab", false)));
    }

    #[test]
    fn response_to_head_has_no_body() {
        for field in ["Content-Length: 7", "Transfer-Encoding: chunked", "A: b"] {
            let mut answer = RemoteResponse::to_request(true);
            let text = format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n");
            answer.incoming().extend_from_slice(text.as_bytes());
            let head = answer.head().unwrap().unwrap();
            let mut body = Vec::new();
            assert_eq!(answer.body(false, &mut body), Ok(true), "{field}");
            assert!(head.is_reusable && answer.is_clean() && body.is_empty(), "{field}");
        }
    }

    #[test]
    fn joins_chunks() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
        let check_body = |body: &str, expected| check(&format!("{head}\r\n{body}"), expected);
        check_body("3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n", Ok((200, "abcd", true)));
        check_body("0\r\nA: b\r\nC: d\r\n\r\n", Ok((200, "", true)));
        check_body("3\r\nabc\r\n1", Err("the answer broke off"));
        check_body("3\r\nabcd\r\n", Err(WRONG_CHUNKS));
        check_body("3\r\nabc\n0\r\n\r\n", Err(WRONG_CHUNKS));
        check_body("fffffffffffffffff\r\n", Err(WRONG_CHUNKS));
        check(
            &format!("{head}Content-Length: 3\r\n\r\n0\r\n\r\n"),
            Err("the answer has a length and chunks"),
        );
        let other = head.replace("chunked", "gzip, chunked");
        check(&format!("{other}\r\n"), Err("the answer has an unsupported transfer coding"));
    }

    #[test]
    fn reuses_no_connection_with_surplus_bytes() {
        let (_, body, is_clean) =
            read(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", 99).unwrap();
        assert_eq!((&*body, is_clean), ("a", false));
    }

    #[test]
    fn bounds_length_of_head() {
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(MAX_HEAD));
        assert_eq!(read(endless.as_bytes(), 4000), Err("the answer's head is too long"));
        // In one piece too.
        let long = format!("{endless}\r\n\r\n");
        assert_eq!(read(long.as_bytes(), usize::MAX), Err("the answer's head is too long"));
    }

    #[test]
    fn bounds_interim_responses_and_trailers() {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
        let hints = |count| "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count) + ok;
        check(&hints(8), Ok((200, "a", true)));
        check(&hints(9), Err("the answer has too many interim responses"));
        let trailers = "A: b\r\n".repeat(MAX_HEAD / 4 + 1);
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
        let found = read(format!("{head}\r\n0\r\n{trailers}").as_bytes(), 4000);
        assert_eq!(found, Err("the answer's trailers are too long"));
    }

    proptest! {
        #[test]
        fn parses_any_bytes_without_panic(bytes: Vec<u8>, is_chunked: bool, piece in 1_usize..9) {
            let head: &[u8] = if is_chunked {
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            } else {
                b"HTTP/1.1 "
            };
            let bytes = [head, &bytes].concat();
            prop_assert_eq!(read(&bytes, piece).is_ok(), read(&bytes, usize::MAX).is_ok());
        }
    }
}
