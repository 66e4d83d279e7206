//! Request framing: where one request ends and the next begins.

use crate::chunked::{Chunk, ChunkReader, TrailerReader};
use crate::fault::PeerFault;
use crate::head::{Framing, Head};
use crate::head_parser::HeadParser;
use crate::limits::Limits;

/// The maximum number of empty lines before a request line (RFC 9112 section 2.2).
const MAX_BLANK_LINES: u8 = 4;

/// Parses the requests of one connection. Performs no I/O and reads no clock.
///
/// Pass [`receive`](Self::receive) all bytes that were received and not yet consumed. Call it until
/// it returns [`Event::More`], then again when more bytes have arrived. After a response that
/// closes the connection, call [`end`](Self::end), so that the parser ignores further pipelined
/// requests.
#[derive(Debug, Default)]
pub struct RequestParser {
    state: State,
}

/// The position of the parser in the sequence of requests.
#[derive(Debug)]
enum State {
    /// Between requests, or inside a head.
    Head { parser: HeadParser, blank_lines: u8 },
    /// Inside content with a Content-Length. `remaining` is never 0.
    Length { remaining: u64 },
    /// Inside chunked content, before the last chunk.
    Chunks(ChunkReader),
    /// After the last chunk, inside the trailer section.
    Trailers(TrailerReader),
    /// The content is complete, but [`Event::End`] has not been returned yet.
    ContentComplete,
    /// After a fault, or after [`RequestParser::end`]. Input is ignored.
    Ended,
}

/// The result of one call of [`RequestParser::receive`].
#[derive(Clone, Copy, Debug)]
pub struct Step<'b> {
    /// The number of bytes that the parser consumed from the front of the input.
    pub consumed: usize,
    /// The event that these bytes produced.
    pub event: Event<'b>,
}

/// An event that the parser found in the input.
#[derive(Clone, Copy, Debug)]
pub enum Event<'b> {
    /// The input contains no further event. Keep the unconsumed bytes and append to them.
    More,
    /// The head of a request.
    Head(Head<'b>),
    /// Part of the content. Never empty.
    Body(&'b [u8]),
    /// The end of the content.
    End,
    /// The client violated the protocol. Send the error response, then close the connection.
    Fault(PeerFault),
}

/// The position of a parser within a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Between requests, or inside a head.
    Head,
    /// After a head whose content is not complete.
    Body,
    /// The parser ignores all further input.
    Ended,
}

impl RequestParser {
    /// Creates a parser for a new connection.
    pub const fn new() -> Self {
        Self { state: State::START }
    }

    /// Parses the bytes that were received and not yet consumed, and returns the next event.
    ///
    /// A request without content is complete with its [`Event::Head`]. For any other request,
    /// [`Event::End`] follows the content, possibly without a further byte of input. An incomplete
    /// head, and an incomplete line of the trailer section, stay unconsumed. Neither exceeds
    /// [`Limits::head`].
    #[inline]
    pub fn receive<'b>(&mut self, input: &'b [u8], limits: &Limits) -> Step<'b> {
        let mut consumed = 0;
        let event = self.advance(input, &mut consumed, limits).unwrap_or_else(|fault| {
            self.state = State::Ended;
            Event::Fault(fault)
        });
        Step { consumed, event }
    }

    /// Ends parsing. The parser consumes and ignores all further input.
    pub const fn end(&mut self) {
        self.state = State::Ended;
    }

    /// Returns the position of the parser within a request.
    pub const fn phase(&self) -> Phase {
        match self.state {
            State::Head { .. } => Phase::Head,
            State::Length { .. }
            | State::Chunks(_)
            | State::Trailers(_)
            | State::ContentComplete => Phase::Body,
            State::Ended => Phase::Ended,
        }
    }

    /// The state transitions between requests and at a request head.
    #[expect(clippy::inline_always, reason = "its caller would copy the event that it returns")]
    #[inline(always)]
    fn advance<'b>(
        &mut self,
        input: &'b [u8],
        consumed: &mut usize,
        limits: &Limits,
    ) -> Result<Event<'b>, PeerFault> {
        let State::Head { parser, blank_lines } = &mut self.state else {
            return self.advance_content(input, consumed, limits);
        };
        *consumed = skip_blank_lines(input, blank_lines)?;
        let rest = &input[*consumed..];
        if matches!(rest, [] | [b'\r']) {
            return Ok(Event::More);
        }
        let Some(head) = parser.receive(rest, limits)? else {
            return Ok(Event::More);
        };
        *consumed += head.raw().len();
        self.state = match head.framing() {
            Framing::None => State::START,
            Framing::Length(remaining) => State::Length { remaining },
            Framing::Chunked => State::Chunks(ChunkReader::default()),
        };
        Ok(Event::Head(head))
    }

    /// The state transitions after a head. A separate function leaves the registers to
    /// [`advance`](Self::advance).
    #[inline(never)]
    fn advance_content<'b>(
        &mut self,
        input: &'b [u8],
        consumed: &mut usize,
        limits: &Limits,
    ) -> Result<Event<'b>, PeerFault> {
        loop {
            let rest = &input[*consumed..];
            match &mut self.state {
                State::Length { .. } if rest.is_empty() => return Ok(Event::More),
                State::Length { remaining } => {
                    let length = rest.len().min(usize::try_from(*remaining).unwrap_or(usize::MAX));
                    *consumed += length;
                    *remaining -= length as u64;
                    if *remaining == 0 {
                        self.state = State::ContentComplete;
                    }
                    return Ok(Event::Body(&rest[..length]));
                }
                State::Chunks(chunks) => {
                    let (length, chunk) = chunks.receive(rest, limits)?;
                    *consumed += length;
                    match chunk {
                        Chunk::More => return Ok(Event::More),
                        Chunk::Data(data) => return Ok(Event::Body(data)),
                        Chunk::Last => self.state = State::Trailers(TrailerReader::default()),
                    }
                }
                State::Trailers(trailers) => {
                    let (length, ended) = trailers.receive(rest, limits)?;
                    *consumed += length;
                    if !ended {
                        return Ok(Event::More);
                    }
                    self.state = State::ContentComplete;
                }
                State::ContentComplete => {
                    self.state = State::START;
                    return Ok(Event::End);
                }
                // `advance` handles this state.
                State::Head { .. } => return Ok(Event::More),
                State::Ended => {
                    *consumed = input.len();
                    return Ok(Event::More);
                }
            }
        }
    }
}

impl State {
    const START: Self = Self::Head { parser: HeadParser::new(), blank_lines: 0 };
}

impl Default for State {
    fn default() -> Self {
        Self::START
    }
}

/// Skips empty lines before a request line and counts them. A carriage return at the end of the
/// input stays unconsumed, because its line feed may follow.
#[inline]
fn skip_blank_lines(input: &[u8], blank_lines: &mut u8) -> Result<usize, PeerFault> {
    let mut rest = input;
    loop {
        rest = match rest {
            [b'\r', b'\n', rest @ ..] => rest,
            [b'\r', _, ..] => return Err(PeerFault::BareCarriageReturn),
            [b'\n', ..] => return Err(PeerFault::BareLineFeed),
            _ => return Ok(input.len() - rest.len()),
        };
        if *blank_lines == MAX_BLANK_LINES {
            return Err(PeerFault::BlankLines);
        }
        *blank_lines += 1;
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::{Event, Phase, RequestParser};
    use crate::fault::PeerFault;
    use crate::head::HeadIndex;
    use crate::limits::Limits;

    #[test]
    fn idle_connection_is_small() {
        assert!(size_of::<RequestParser>() <= 32);
        assert!(size_of::<HeadIndex>() <= 48);
    }

    #[test]
    fn reports_phase_of_request() {
        let limits = Limits::default();
        let mut parser = RequestParser::new();
        assert_eq!(parser.phase(), Phase::Head);
        parser.receive(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", &limits);
        assert_eq!(parser.phase(), Phase::Body);
        assert!(matches!(parser.receive(b"x", &limits).event, Event::Body(b"x")));
        // The end of the content needs no further byte, but a further call of `receive`.
        assert_eq!(parser.phase(), Phase::Body);
        assert!(matches!(parser.receive(b"", &limits).event, Event::End));
        assert_eq!(parser.phase(), Phase::Head);
    }

    #[test]
    fn discards_input_after_end() {
        let mut parser = RequestParser::new();
        parser.end();
        let step = parser.receive(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &Limits::default());
        assert_eq!(step.consumed, 27);
        assert!(matches!(step.event, Event::More));
        assert_eq!(parser.phase(), Phase::Ended);
    }

    #[test]
    fn accepts_more_fields_under_raised_limit() {
        let limits = Limits { fields: 300, ..Limits::default() };
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(299));
        let event = RequestParser::new().receive(head.as_bytes(), &limits).event;
        assert!(matches!(event, Event::Head(head) if head.fields().count() == 300));
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(300));
        let event = RequestParser::new().receive(head.as_bytes(), &limits).event;
        assert!(matches!(event, Event::Fault(PeerFault::TooManyFields)));
    }

    #[test]
    fn applies_lowered_limits_to_partial_head_and_trailers() {
        let small = Limits { head: 8, fields: 0, ..Limits::default() };
        let mut parser = RequestParser::new();
        let half = b"GET / HTTP/1.1\r\nHost: a\r\nB: ";
        parser.receive(half, &Limits::default());
        let event = parser.receive(half, &small).event;
        assert!(matches!(event, Event::Fault(PeerFault::HeadTooLarge)));

        let mut parser = RequestParser::new();
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        parser.receive(head, &Limits::default());
        parser.receive(b"0\r\nA: bcdefgh\r\n", &Limits::default());
        let event = parser.receive(b"A", &small).event;
        assert!(matches!(event, Event::Fault(PeerFault::HeadTooLarge)));
    }
}
