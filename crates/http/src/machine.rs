//! Decides where one request ends and the next begins.

use crate::chunked::{Chunk, Chunks, Trailers};
use crate::fault::PeerFault;
use crate::head::{Framing, Head};
use crate::limits::Limits;
use crate::parse::Progress;

/// Line ends that may stand before a request line (RFC 9112 section 2.2).
const BLANK_LINES: u8 = 4;

/// The receiving half of one connection. Owns no buffer, no socket and no clock.
///
/// Give [`receive`](Self::receive) all bytes received and not yet consumed, again and again until it says
/// [`Event::More`]; it is then worth asking again only with more bytes. After a reply that closes the
/// connection call [`end`](Self::end), or the next pipelined request would be read.
#[derive(Debug, Default)]
pub struct Machine {
    state: State,
}

/// All the states there are.
#[derive(Debug)]
enum State {
    /// Between requests, or inside a head.
    Head { progress: Progress, blank: u8 },
    /// Inside content of known length, never 0.
    Length { left: u64 },
    /// Inside chunks.
    Chunks(Chunks),
    /// Behind the last chunk.
    Trailers(Trailers),
    /// The content ended and that is still to be said.
    Behind,
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

impl Machine {
    /// A machine that awaits its first request.
    pub const fn new() -> Self {
        Self { state: State::START }
    }

    /// Looks at all bytes received and not yet consumed.
    ///
    /// A request without content is complete with its [`Event::Head`]; behind any other an [`Event::End`]
    /// follows its content, and it may need no further byte. An unfinished head, and an unfinished line of
    /// trailers, are not consumed, and neither grows past [`Limits::head`].
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
            State::Length { .. } | State::Chunks(_) | State::Trailers(_) | State::Behind => {
                Phase::Body
            }
            State::Ended => Phase::Ended,
        }
    }

    /// The transitions between the states.
    fn advance<'b>(
        &mut self,
        input: &'b [u8],
        consumed: &mut usize,
        limits: &Limits,
    ) -> Result<Event<'b>, PeerFault> {
        loop {
            let rest = &input[*consumed..];
            match &mut self.state {
                State::Head { progress, blank } => {
                    let skipped = skip_blank_lines(rest, blank)?;
                    *consumed += skipped;
                    let rest = &rest[skipped..];
                    if matches!(rest, [] | [b'\r']) {
                        return Ok(Event::More);
                    }
                    let Some(head) = progress.receive(rest, limits)? else {
                        return Ok(Event::More);
                    };
                    *consumed += head.raw().len();
                    self.state = match head.framing() {
                        Framing::None => State::START,
                        Framing::Length(left) => State::Length { left },
                        Framing::Chunked => State::Chunks(Chunks::default()),
                    };
                    return Ok(Event::Head(head));
                }
                State::Length { .. } if rest.is_empty() => return Ok(Event::More),
                State::Length { left } => {
                    let length = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *consumed += length;
                    *left -= length as u64;
                    if *left == 0 {
                        self.state = State::Behind;
                    }
                    return Ok(Event::Body(&rest[..length]));
                }
                State::Chunks(chunks) => {
                    let (length, chunk) = chunks.receive(rest, limits)?;
                    *consumed += length;
                    match chunk {
                        Chunk::More => return Ok(Event::More),
                        Chunk::Data(data) => return Ok(Event::Body(data)),
                        Chunk::Last => self.state = State::Trailers(Trailers::default()),
                    }
                }
                State::Trailers(trailers) => {
                    let (length, ended) = trailers.receive(rest, limits)?;
                    *consumed += length;
                    if !ended {
                        return Ok(Event::More);
                    }
                    self.state = State::Behind;
                }
                State::Behind => {
                    self.state = State::START;
                    return Ok(Event::End);
                }
                State::Ended => {
                    *consumed = input.len();
                    return Ok(Event::More);
                }
            }
        }
    }
}

impl State {
    const START: Self = Self::Head { progress: Progress::new(), blank: 0 };
}

impl Default for State {
    fn default() -> Self {
        Self::START
    }
}

/// Counts and skips whole line ends before a request line; a carriage return alone may still become one.
fn skip_blank_lines(input: &[u8], blank: &mut u8) -> Result<usize, PeerFault> {
    let mut rest = input;
    loop {
        rest = match rest {
            [b'\r', b'\n', rest @ ..] => rest,
            [b'\r', _, ..] => return Err(PeerFault::BareCarriageReturn),
            [b'\n', ..] => return Err(PeerFault::BareLineFeed),
            _ => return Ok(input.len() - rest.len()),
        };
        if *blank == BLANK_LINES {
            return Err(PeerFault::BlankLines);
        }
        *blank += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Machine;
    use crate::head::HeadIndex;

    #[test]
    fn an_idle_connection_costs_little() {
        assert!(size_of::<Machine>() <= 32);
        assert!(size_of::<HeadIndex>() <= 48);
    }
}
