//! Decides where one request ends and the next begins.

use crate::chunked::{Chunk, ChunkReader, TrailerReader};
use crate::fault::PeerFault;
use crate::head::{Framing, Head};
use crate::head_parser::HeadParser;
use crate::limits::Limits;

/// Line ends that may stand before a request line (RFC 9112 section 2.2).
const BLANK_LINES: u8 = 4;

/// The receiving half of one connection. Owns no buffer, no socket and no clock.
///
/// Give [`receive`](Self::receive) all bytes received and not yet consumed, again and again until it says
/// [`Event::More`]; it is then worth asking again only with more bytes. After a reply that closes the
/// connection call [`end`](Self::end), or the next pipelined request would be read.
#[derive(Debug, Default)]
pub struct RequestParser {
    state: State,
}

/// All the states there are.
#[derive(Debug)]
enum State {
    /// Between requests, or inside a head.
    Head { parser: HeadParser, blank_lines: u8 },
    /// Inside content of known length, never 0.
    Length { left: u64 },
    /// Inside chunks.
    Chunks(ChunkReader),
    /// Behind the last chunk.
    Trailers(TrailerReader),
    /// The content ended and that is still to be said.
    ContentComplete,
    /// Nothing further is understood.
    Ended,
}

/// What became of some input: how much of it is done with, and what it meant.
#[derive(Clone, Copy, Debug)]
pub struct Step<'b> {
    /// Bytes at the front of the input that must not be given again.
    pub consumed: usize,
    /// What they meant.
    pub event: Event<'b>,
}

/// What the machine has to say.
#[derive(Clone, Copy, Debug)]
pub enum Event<'b> {
    /// Nothing further: keep what is not consumed and call again with more behind it.
    More,
    /// A request begins.
    Head(Head<'b>),
    /// A piece of content, never empty.
    Body(&'b [u8]),
    /// The content ended.
    End,
    /// The peer did wrong: answer it, then close.
    Fault(PeerFault),
}

/// Where the machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Between requests or inside a head.
    Head,
    /// Behind a head, before the end of its content.
    Body,
    /// Nothing further will be understood.
    Ended,
}

impl RequestParser {
    /// A machine that awaits its first request.
    pub const fn new() -> Self {
        Self { state: State::START }
    }

    /// Looks at all bytes received and not yet consumed.
    ///
    /// A request without content is complete with its [`Event::Head`]; behind any other an [`Event::End`]
    /// follows its content, and it may need no further byte. An unfinished head, and an unfinished line of
    /// trailers, are not consumed, and neither grows past [`Limits::head`].
    #[inline]
    pub fn receive<'b>(&mut self, input: &'b [u8], limits: &Limits) -> Step<'b> {
        let mut consumed = 0;
        let event = self.advance(input, &mut consumed, limits).unwrap_or_else(|fault| {
            self.state = State::Ended;
            Event::Fault(fault)
        });
        Step { consumed, event }
    }

    /// Nothing further will be answered: all further input is consumed and ignored.
    pub const fn end(&mut self) {
        self.state = State::Ended;
    }

    /// Where the machine is.
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

    /// The transitions between requests and into one.
    #[inline]
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
            Framing::Length(left) => State::Length { left },
            Framing::Chunked => State::Chunks(ChunkReader::default()),
        };
        Ok(Event::Head(head))
    }

    /// The transitions behind a head. Apart, so that a head has the registers for itself.
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
                State::Length { left } => {
                    let length = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *consumed += length;
                    *left -= length as u64;
                    if *left == 0 {
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
                // A head is read by `advance`.
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

/// Counts and skips whole line ends before a request line; a carriage return alone may still become one.
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
        if *blank_lines == BLANK_LINES {
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
    fn an_idle_connection_costs_little() {
        assert!(size_of::<RequestParser>() <= 32);
        assert!(size_of::<HeadIndex>() <= 48);
    }

    #[test]
    fn the_phases_follow_a_request() {
        let limits = Limits::default();
        let mut machine = RequestParser::new();
        assert_eq!(machine.phase(), Phase::Head);
        machine.receive(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", &limits);
        assert_eq!(machine.phase(), Phase::Body);
        assert!(matches!(machine.receive(b"x", &limits).event, Event::Body(b"x")));
        // The end needs no further byte, but it must be asked for.
        assert_eq!(machine.phase(), Phase::Body);
        assert!(matches!(machine.receive(b"", &limits).event, Event::End));
        assert_eq!(machine.phase(), Phase::Head);
    }

    #[test]
    fn behind_the_end_everything_is_discarded() {
        let mut machine = RequestParser::new();
        machine.end();
        let step = machine.receive(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &Limits::default());
        assert_eq!(step.consumed, 27);
        assert!(matches!(step.event, Event::More));
        assert_eq!(machine.phase(), Phase::Ended);
    }

    #[test]
    fn wider_limits_take_more_fields_than_are_usual() {
        let limits = Limits { fields: 300, ..Limits::default() };
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(299));
        let event = RequestParser::new().receive(head.as_bytes(), &limits).event;
        assert!(matches!(event, Event::Head(head) if head.fields().count() == 300));
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(300));
        let event = RequestParser::new().receive(head.as_bytes(), &limits).event;
        assert!(matches!(event, Event::Fault(PeerFault::TooManyFields)));
    }

    #[test]
    fn limits_may_shrink_while_a_head_or_trailers_come() {
        let small = Limits { head: 8, fields: 0, ..Limits::default() };
        let mut machine = RequestParser::new();
        let half = b"GET / HTTP/1.1\r\nHost: a\r\nB: ";
        machine.receive(half, &Limits::default());
        let event = machine.receive(half, &small).event;
        assert!(matches!(event, Event::Fault(PeerFault::HeadTooLarge)));

        let mut machine = RequestParser::new();
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        machine.receive(head, &Limits::default());
        machine.receive(b"0\r\nA: bcdefgh\r\n", &Limits::default());
        let event = machine.receive(b"A", &small).event;
        assert!(matches!(event, Event::Fault(PeerFault::HeadTooLarge)));
    }
}
