//! Parses responses: where a response begins and ends (RFC 9112 section 6.3), for clients and
//! proxies.

use core::str;

use crate::byte_class;
use crate::chunked::{Chunk, ChunkReader, TrailerReader};
use crate::fault::PeerFault;
use crate::head::Version;
use crate::limits::Limits;
use crate::line;
use crate::scan;
use crate::status::Status;

/// The maximum number of interim responses before the final one.
const MAX_INTERIM: u8 = 8;

/// Parses the response to one request. Performs no I/O and reads no clock.
///
/// Pass [`receive`](Self::receive) all bytes that were received and not yet consumed, until it
/// returns [`ResponseEvent::More`], then again when more bytes have arrived. When the connection
/// ends, call [`finish`](Self::finish).
#[derive(Debug)]
pub struct ResponseParser {
    state: ResponseState,
    /// Whether the request is a HEAD, whose response has no content.
    is_to_head: bool,
    interim: u8,
}

/// The position in the response.
#[derive(Debug)]
enum ResponseState {
    /// Inside a head. `scanned` bytes contain no line end that is not complete.
    Head { scanned: usize },
    /// Inside content with a Content-Length. `remaining` is never 0.
    Length { remaining: u64 },
    /// Inside chunked content, before the last chunk.
    Chunks(ChunkReader),
    /// After the last chunk, inside the trailer section.
    Trailers(TrailerReader),
    /// Inside content that ends with the connection.
    UntilClose,
    /// The content is complete, but [`ResponseEvent::End`] has not been returned yet.
    ContentComplete,
    /// After the end, or after a fault. The parser consumes no further input.
    Ended,
}

/// The result of one call of [`ResponseParser::receive`].
#[derive(Clone, Copy, Debug)]
pub struct ResponseStep<'b> {
    /// The number of bytes that the parser consumed from the front of the input.
    pub consumed: usize,
    /// The event that these bytes produced.
    pub event: ResponseEvent<'b>,
}

/// An event that the parser found in the input.
#[derive(Clone, Copy, Debug)]
pub enum ResponseEvent<'b> {
    /// The input contains no further event. Keep the unconsumed bytes and append to them.
    More,
    /// The head of an interim response, such as 103. The final response follows.
    Interim(ResponseHead<'b>),
    /// The head of the final response. After a 101 the connection speaks another protocol, and
    /// [`End`](Self::End) follows at once.
    Head(ResponseHead<'b>),
    /// Part of the content. Never empty.
    Body(&'b [u8]),
    /// The end of the response.
    End,
    /// The server violated the protocol. Close the connection.
    Fault(ResponseFault),
}

/// How the content of a response is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFraming {
    /// There is no content: the response is to HEAD, or its status forbids content.
    None,
    /// Content of this length, which may be 0.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// The end of the connection ends the content.
    UntilClose,
}

/// A violation of the protocol by a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFault {
    /// The first line is not a status line of HTTP/1.
    StatusLine,
    /// A field line or its line end is malformed.
    Field(PeerFault),
    /// The head has more bytes or fields than the limits allow.
    TooLarge,
    /// More than eight interim responses precede the final one.
    TooManyInterim,
    /// `Content-Length` is not one number.
    Length,
    /// The head has both a length and a transfer coding.
    LengthAndCoding,
    /// The transfer coding is not `chunked` alone.
    Coding,
    /// A chunk or the trailer section is malformed or too large.
    Chunks(PeerFault),
    /// The connection ended before the response was complete.
    Incomplete,
}

/// A complete, valid response head.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'b> {
    /// The fields with their line ends, without the empty line.
    fields: &'b [u8],
    status: Status,
    framing: ResponseFraming,
    length: Option<u64>,
    is_persistent: bool,
}

impl ResponseFault {
    /// Describes the fault for a log, as in "the origin sent ...".
    pub const fn description(self) -> &'static str {
        match self {
            Self::StatusLine => "a first line that is no status line of HTTP/1",
            Self::Field(_) => "a malformed field line",
            Self::TooLarge => "a head that is too large",
            Self::TooManyInterim => "too many interim responses",
            Self::Length => "a malformed or repeated Content-Length",
            Self::LengthAndCoding => "both Content-Length and Transfer-Encoding",
            Self::Coding => "a transfer coding other than chunked",
            Self::Chunks(_) => "malformed chunks",
            Self::Incomplete => "an incomplete response",
        }
    }
}

impl ResponseParser {
    /// Creates a parser for the response to a request, which is a HEAD or not.
    pub const fn new(is_to_head: bool) -> Self {
        Self { state: ResponseState::Head { scanned: 0 }, is_to_head, interim: 0 }
    }

    /// Parses the bytes that were received and not yet consumed, and returns the next event.
    /// [`Limits::body`] does not apply: the caller counts content.
    pub fn receive<'b>(&mut self, input: &'b [u8], limits: &Limits) -> ResponseStep<'b> {
        let mut consumed = 0;
        let event = self.advance(input, &mut consumed, limits).unwrap_or_else(|fault| {
            self.state = ResponseState::Ended;
            ResponseEvent::Fault(fault)
        });
        ResponseStep { consumed, event }
    }

    /// Reports the end of the connection. Call it when `receive` has returned
    /// [`ResponseEvent::More`].
    ///
    /// # Errors
    ///
    /// The response is incomplete.
    pub fn finish(&mut self) -> Result<(), ResponseFault> {
        match core::mem::replace(&mut self.state, ResponseState::Ended) {
            ResponseState::UntilClose | ResponseState::ContentComplete | ResponseState::Ended => {
                Ok(())
            }
            _ => Err(ResponseFault::Incomplete),
        }
    }

    /// Returns whether the response is complete.
    pub const fn is_complete(&self) -> bool {
        matches!(self.state, ResponseState::Ended)
    }

    fn advance<'b>(
        &mut self,
        input: &'b [u8],
        consumed: &mut usize,
        limits: &Limits,
    ) -> Result<ResponseEvent<'b>, ResponseFault> {
        loop {
            let rest = &input[*consumed..];
            match &mut self.state {
                ResponseState::Head { scanned } => {
                    let Some(end) = find_end(rest, scanned) else {
                        let is_long = rest.len() > limits.head as usize;
                        let fault = ResponseFault::TooLarge;
                        return if is_long { Err(fault) } else { Ok(ResponseEvent::More) };
                    };
                    if end > limits.head as usize {
                        return Err(ResponseFault::TooLarge);
                    }
                    let head = parse(&rest[..end], self.is_to_head, limits)?;
                    *consumed += end;
                    return self.after_head(head);
                }
                ResponseState::Length { .. }
                | ResponseState::Chunks(_)
                | ResponseState::Trailers(_)
                | ResponseState::UntilClose
                    if rest.is_empty() =>
                {
                    return Ok(ResponseEvent::More);
                }
                ResponseState::Length { remaining } => {
                    let length = rest.len().min(usize::try_from(*remaining).unwrap_or(usize::MAX));
                    *consumed += length;
                    *remaining -= length as u64;
                    if *remaining == 0 {
                        self.state = ResponseState::ContentComplete;
                    }
                    return Ok(ResponseEvent::Body(&rest[..length]));
                }
                ResponseState::Chunks(chunks) => {
                    let limits = Limits { body: u64::MAX, ..limits.clone() };
                    let (length, chunk) =
                        chunks.receive(rest, &limits).map_err(ResponseFault::Chunks)?;
                    *consumed += length;
                    match chunk {
                        Chunk::More => return Ok(ResponseEvent::More),
                        Chunk::Data(data) => return Ok(ResponseEvent::Body(data)),
                        Chunk::Last => {
                            self.state = ResponseState::Trailers(TrailerReader::default());
                        }
                    }
                }
                ResponseState::Trailers(trailers) => {
                    let (length, has_ended) =
                        trailers.receive(rest, limits).map_err(ResponseFault::Chunks)?;
                    *consumed += length;
                    if !has_ended {
                        return Ok(ResponseEvent::More);
                    }
                    self.state = ResponseState::ContentComplete;
                }
                ResponseState::UntilClose => {
                    *consumed += rest.len();
                    return Ok(ResponseEvent::Body(rest));
                }
                ResponseState::ContentComplete => {
                    self.state = ResponseState::Ended;
                    return Ok(ResponseEvent::End);
                }
                ResponseState::Ended => return Ok(ResponseEvent::More),
            }
        }
    }

    fn after_head<'b>(
        &mut self,
        head: ResponseHead<'b>,
    ) -> Result<ResponseEvent<'b>, ResponseFault> {
        if head.status < Status::OK && head.status != Status::SWITCHING_PROTOCOLS {
            self.state = ResponseState::Head { scanned: 0 };
            self.interim += 1;
            let is_endless = self.interim > MAX_INTERIM;
            let fault = ResponseFault::TooManyInterim;
            return if is_endless { Err(fault) } else { Ok(ResponseEvent::Interim(head)) };
        }
        self.state = match head.framing {
            ResponseFraming::None | ResponseFraming::Length(0) => ResponseState::ContentComplete,
            ResponseFraming::Length(remaining) => ResponseState::Length { remaining },
            ResponseFraming::Chunked => ResponseState::Chunks(ChunkReader::default()),
            ResponseFraming::UntilClose => ResponseState::UntilClose,
        };
        Ok(ResponseEvent::Head(head))
    }
}

impl<'b> ResponseHead<'b> {
    /// Returns the status.
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Returns how the content is delimited.
    pub const fn framing(&self) -> ResponseFraming {
        self.framing
    }

    /// Returns the value of `Content-Length`, which a response to HEAD may have without content.
    pub const fn content_length(&self) -> Option<u64> {
        self.length
    }

    /// Returns whether the connection can carry a further request after this response.
    pub const fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    /// Returns all fields in the order sent. Values are trimmed of surrounding white space.
    pub fn fields(&self) -> impl Iterator<Item = (&'b str, &'b [u8])> + use<'b> {
        line::lines(self.fields).filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            Some((str::from_utf8(&line[..colon]).ok()?, line::trim(&line[colon + 1..])))
        })
    }

    /// Returns the value of the first field with this name. The name is case-insensitive.
    pub fn field(&self, name: &str) -> Option<&'b [u8]> {
        self.fields().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Finds the end of a head: the position after its empty line. Reads no complete line twice.
fn find_end(input: &[u8], scanned: &mut usize) -> Option<usize> {
    while let Some(found) = scan::find_line_feed(&input[*scanned..]) {
        let start = *scanned;
        *scanned = start + found + 1;
        if matches!(&input[start..*scanned], [b'\n'] | [b'\r', b'\n']) && start > 0 {
            return Some(*scanned);
        }
    }
    None
}

/// Parses the bytes of a head with its empty line.
fn parse<'b>(
    raw: &'b [u8],
    is_to_head: bool,
    limits: &Limits,
) -> Result<ResponseHead<'b>, ResponseFault> {
    let first = scan::find_line_feed(raw).ok_or(ResponseFault::StatusLine)? + 1;
    let (version, status) = status_line(&raw[..first])?;
    let fields = raw[first..].strip_suffix(b"\r\n");
    let fields = fields.ok_or(ResponseFault::Field(PeerFault::BareLineFeed))?;
    let (mut length, mut is_coded) = (None, false);
    let (mut has_close, mut has_keep_alive) = (false, false);
    let (mut rest, mut count) = (fields, 0);
    while let Some(end) = scan::find_line_feed(rest) {
        count += 1;
        if count > limits.fields {
            return Err(ResponseFault::TooLarge);
        }
        let whole = line::end(&rest[..=end]).map_err(ResponseFault::Field)?;
        let (name, value) = line::field(whole).map_err(ResponseFault::Field)?;
        let value = line::trim(value);
        if name.eq_ignore_ascii_case(b"content-length") {
            let number = decimal(value).ok_or(ResponseFault::Length)?;
            if length.replace(number).is_some() {
                return Err(ResponseFault::Length);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if is_coded || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(ResponseFault::Coding);
            }
            is_coded = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
            for option in value.split(|&byte| byte == b',').map(line::trim) {
                has_close |= option.eq_ignore_ascii_case(b"close");
                has_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        rest = &rest[end + 1..];
    }
    if is_coded && length.is_some() {
        return Err(ResponseFault::LengthAndCoding);
    }
    if is_coded && version == Version::Http10 {
        return Err(ResponseFault::Coding);
    }
    let framing = match length {
        _ if is_to_head || status.forbids_content() => ResponseFraming::None,
        Some(length) => ResponseFraming::Length(length),
        None if is_coded => ResponseFraming::Chunked,
        None => ResponseFraming::UntilClose,
    };
    let is_persistent = !has_close
        && framing != ResponseFraming::UntilClose
        && (version == Version::Http11 || has_keep_alive);
    Ok(ResponseHead { fields, status, framing, length, is_persistent })
}

/// Parses `HTTP/1.1 200 OK` with its line end. The reason may be missing, with or without the space
/// before it.
fn status_line(line: &[u8]) -> Result<(Version, Status), ResponseFault> {
    let line = line::end(line).map_err(|_| ResponseFault::StatusLine)?;
    let (version, rest) = match line {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor, b' ', rest @ ..] => match minor {
            b'0' => (Version::Http10, rest),
            b'1' => (Version::Http11, rest),
            _ => return Err(ResponseFault::StatusLine),
        },
        _ => return Err(ResponseFault::StatusLine),
    };
    let (digits, reason) = rest.split_at_checked(3).ok_or(ResponseFault::StatusLine)?;
    let is_reason = matches!(reason, [] | [b' ', ..])
        && !reason.iter().any(|&byte| byte_class::is_control(byte) && byte != b'\t');
    let code = decimal(digits).filter(|_| is_reason).and_then(|code| Status::new(code as u16));
    let status = code.filter(|status| status.code() < 600).ok_or(ResponseFault::StatusLine)?;
    Ok((version, status))
}

/// Parses digits only, without overflow.
fn decimal(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(text).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// The events of a response that arrives in pieces of this size and is followed by the end of
    /// the connection, as text, and the bytes that the parser left.
    fn parsed(input: &[u8], is_to_head: bool, piece: usize) -> String {
        let (mut parser, mut told) = (ResponseParser::new(is_to_head), Vec::new());
        let (mut body, mut received, mut start) = (Vec::new(), Vec::new(), 0);
        'pieces: for piece in input.chunks(piece.max(1)) {
            received.extend_from_slice(piece);
            loop {
                let step = parser.receive(&received[start..], &Limits::default());
                match step.event {
                    ResponseEvent::More => {
                        start += step.consumed;
                        break;
                    }
                    ResponseEvent::Interim(head) => {
                        told.push(format!("interim {}; ", head.status().code()));
                    }
                    ResponseEvent::Head(head) => {
                        let kept = if head.is_persistent() { "kept" } else { "closes" };
                        let names: Vec<_> = head.fields().map(|(name, _)| name).collect();
                        told.push(format!(
                            "{} {:?} {kept} [{}]; ",
                            head.status().code(),
                            head.framing(),
                            names.join(" ")
                        ));
                    }
                    ResponseEvent::Body(piece) => body.extend_from_slice(piece),
                    ResponseEvent::End => {
                        told.push(format!("body {}; end; ", body.escape_ascii()));
                        body.clear();
                        start += step.consumed;
                        continue 'pieces;
                    }
                    ResponseEvent::Fault(fault) => return format!("{}{fault:?}", told.concat()),
                }
                start += step.consumed;
            }
        }
        let complete = parser.is_complete();
        if let Err(fault) = parser.finish() {
            return format!("{}{fault:?}", told.concat());
        }
        let (text, left) = (told.concat(), received[start..].escape_ascii());
        if complete {
            format!("{text}left {left}")
        } else {
            format!("{text}body {}; closed", body.escape_ascii())
        }
    }

    #[track_caller]
    fn check(input: &str, expected: &str) {
        for piece in [input.len(), 1, 7] {
            assert_eq!(parsed(input.as_bytes(), false, piece), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn parses_a_response_with_a_length() {
        check(
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nA: b\r\n\r\nabc",
            "200 Length(3) kept [Content-Length A]; body abc; end; left ",
        );
        check(
            "HTTP/1.1 200\r\nContent-Length: 0\r\nConnection: a, Close\r\n\r\nnext",
            "200 Length(0) closes [Content-Length Connection]; body ; end; left next",
        );
        check(
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
            "200 Length(1) kept [Connection Content-Length]; body a; end; left ",
        );
    }

    #[test]
    fn drops_the_trailers_of_a_chunked_response() {
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nT: v\r\n\r\nrest",
            "200 Chunked kept [Transfer-Encoding]; body abc; end; left rest",
        );
    }

    #[test]
    fn reads_a_response_without_a_length_until_the_end_of_the_connection() {
        check("HTTP/1.1 200 OK\r\n\r\nabc", "200 UntilClose closes []; body abc; closed");
        check("HTTP/1.1 204 No Content\r\n\r\n", "204 None kept []; body ; end; left ");
        check(
            "HTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n",
            "304 None kept [Content-Length]; body ; end; left ",
        );
    }

    #[test]
    fn expects_no_content_after_a_response_to_head() {
        let input = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        let expected = "200 None kept [Content-Length]; body ; end; left ";
        assert_eq!(parsed(input, true, 1), expected);
        let input = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(
            parsed(input, true, 100),
            "200 None kept [Transfer-Encoding]; body ; end; left "
        );
    }

    #[test]
    fn passes_interim_responses_and_stops_after_an_upgrade() {
        check(
            "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
            "interim 103; 200 Length(1) kept [Content-Length]; body a; end; left ",
        );
        check(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nframes",
            "101 None kept [Upgrade Connection]; body ; end; left frames",
        );
        let many = "HTTP/1.1 100 Continue\r\n\r\n".repeat(9);
        check(&many, &format!("{}TooManyInterim", "interim 100; ".repeat(8)));
    }

    #[test]
    fn rejects_what_two_clients_could_read_differently() {
        let ok = "HTTP/1.1 200 OK\r\n";
        for (input, fault) in [
            ("HTTP/2 200 OK\r\n\r\n", "StatusLine"),
            ("HTTP/1.1 20 OK\r\n\r\n", "StatusLine"),
            ("HTTP/1.1 2000 OK\r\n\r\n", "StatusLine"),
            ("HTTP/1.1  200 OK\r\n\r\n", "StatusLine"),
            ("HTTP/1.1 600 OK\r\n\r\n", "StatusLine"),
            ("HTTP/1.1 200 OK\n\r\n", "StatusLine"),
            ("ICY 200 OK\r\n\r\n", "StatusLine"),
            (&format!("{ok}Content-Length: 1\r\nContent-Length: 1\r\n\r\n"), "Length"),
            (&format!("{ok}Content-Length: +1\r\n\r\n"), "Length"),
            (&format!("{ok}Content-Length: 1, 1\r\n\r\n"), "Length"),
            (&format!("{ok}Content-Length: 18446744073709551616\r\n\r\n"), "Length"),
            (
                &format!("{ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
                "LengthAndCoding",
            ),
            (&format!("{ok}Transfer-Encoding: gzip, chunked\r\n\r\n"), "Coding"),
            (&format!("{ok}Transfer-Encoding: xchunked\r\n\r\n"), "Coding"),
            (
                &format!("{ok}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
                "Coding",
            ),
            ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "Coding"),
            (&format!("{ok}A : b\r\n\r\n"), "Field(SpaceBeforeColon)"),
            (&format!("{ok} A: b\r\n\r\n"), "Field(FoldedLine)"),
            (&format!("{ok}A: b\n\r\n"), "Field(BareLineFeed)"),
            (&format!("{ok}A: b\rc\r\n\r\n"), "Field(BareCarriageReturn)"),
            (&format!("{ok}A: b\r\n\n"), "Field(BareLineFeed)"),
            (&format!("{ok}{}\r\n", "A: b\r\n".repeat(101)), "TooLarge"),
            (&format!("{ok}A: {}\r\n\r\n", "b".repeat(16 << 10)), "TooLarge"),
        ] {
            check(input, fault);
        }
        check(
            &format!("{ok}Transfer-Encoding: chunked\r\n\r\nx\r\n"),
            "200 Chunked kept [Transfer-Encoding]; Chunks(ChunkSize)",
        );
    }

    #[test]
    fn detects_a_response_that_breaks_off() {
        for input in [
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        ] {
            let told = parsed(input.as_bytes(), false, 3);
            assert!(told.ends_with("Incomplete"), "{told}");
        }
    }

    #[test]
    fn stops_a_head_that_never_ends() {
        let mut parser = ResponseParser::new(false);
        let mut received = b"HTTP/1.1 200 OK\r\n".to_vec();
        let limit = Limits::default().head as usize;
        let fault = loop {
            received.extend_from_slice(b"A: b\r\n");
            match parser.receive(&received, &Limits::default()).event {
                ResponseEvent::More => assert!(received.len() <= limit + 6),
                ResponseEvent::Fault(fault) => break fault,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(fault, ResponseFault::TooLarge);
    }

    proptest! {
        /// The pieces in which a response arrives make no difference.
        #[test]
        fn pieces_make_no_difference(
            input in "(HTTP/1\\.[01] [12345]0[0-4] ?O?\r\n)((Content-Length: [0-9]{1,2}|Transfer-Encoding: chunked|Connection: close|a: b)\r\n){0,3}\r\n([0-9a-f]\r\n|[a-z\r\n]){0,12}",
            piece in 1usize..9,
        ) {
            let whole = parsed(input.as_bytes(), false, input.len());
            prop_assert_eq!(parsed(input.as_bytes(), false, piece), whole);
        }
    }
}
