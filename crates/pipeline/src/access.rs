//! Decides what a line of the access log says: one per reply, in the Combined format that every
//! log reader knows.

use std::io::Write;
use std::sync::Arc;

use bine_http::Date;

use crate::address::Peer;
use crate::handler::{FilePart, Incoming, Who};
use crate::log::Writer;

/// One thread's way to the access log. Lines are gathered here and handed over once per turn, or
/// when they become many.
pub(crate) struct AccessLog {
    writer: Option<Arc<Writer>>,
    lines: Vec<u8>,
}

/// What a line tells.
pub(crate) struct Entry<'a> {
    peer: Peer,
    who: &'a Who,
    arrival: u64,
    method: &'a str,
    target: &'a str,
    version: &'a str,
    size: Size,
    referer: &'a [u8],
    agent: &'a [u8],
}

/// What a line tells of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Size {
    pub(crate) status: u16,
    /// Of content, as it stands on the wire.
    pub(crate) bytes: u64,
}

impl Size {
    /// The size of a reply that stands whole in memory, up to the file behind it.
    pub(crate) fn of(reply: &[u8], file: Option<&FilePart>) -> Self {
        let (status, head) = measure(reply).unwrap_or_default();
        let behind = file.map_or(0, |part| part.length);
        Self { status, bytes: (reply.len() - head) as u64 + behind }
    }
}

/// Status and length of the head at the front of a reply.
pub(crate) fn measure(reply: &[u8]) -> Option<(u16, usize)> {
    let status = std::str::from_utf8(reply.get(9..12)?).ok()?.parse().ok()?;
    let head = reply.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    Some((status, head))
}

/// Lines are handed over when they reach this size, whatever the turn still brings.
const PILE: usize = 16 * 1024;
/// A peer's text in a line is cut here.
const LONGEST: usize = 2048;

impl<'a> Entry<'a> {
    pub(crate) fn of(request: &Incoming<'a>, size: Size) -> Self {
        let head = request.head;
        Self {
            peer: request.peer,
            who: request.who,
            arrival: request.arrival,
            method: head.method().as_str(),
            target: head.target(),
            version: match head.version() {
                bine_http::Version::Http10 => "HTTP/1.0",
                bine_http::Version::Http11 => "HTTP/1.1",
            },
            size,
            referer: head.field("referer").unwrap_or(b"-"),
            agent: head.field("user-agent").unwrap_or(b"-"),
        }
    }
}

impl AccessLog {
    pub(crate) const fn new(writer: Option<Arc<Writer>>) -> Self {
        Self { writer, lines: Vec::new() }
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.writer.is_some()
    }

    pub(crate) fn record(&mut self, entry: &Entry<'_>) {
        let lines = &mut self.lines;
        begin(lines, entry.peer, entry.who, entry.arrival);
        lines.push(b'"');
        lines.extend_from_slice(entry.method.as_bytes());
        lines.push(b' ');
        escape(lines, entry.target.as_bytes());
        // Writing into a Vec cannot fail.
        let Size { status, bytes } = entry.size;
        let _ = write!(lines, " {}\" {status} {bytes} \"", entry.version);
        escape(lines, entry.referer);
        lines.extend_from_slice(b"\" \"");
        escape(lines, entry.agent);
        lines.extend_from_slice(b"\"\n");
        self.bound();
    }

    /// A reply to a request that is not at hand: it could not be understood, or is with a worker.
    pub(crate) fn record_bare(&mut self, peer: Peer, arrival: u64, size: Size) {
        if !self.is_on() {
            return;
        }
        begin(&mut self.lines, peer, &Who::Anonymous, arrival);
        // Writing into a Vec cannot fail.
        let Size { status, bytes } = size;
        let _ = writeln!(self.lines, "\"-\" {status} {bytes} \"-\" \"-\"");
        self.bound();
    }

    /// Hands the gathered lines to the writer: once per turn, and before a thread waits for a peer
    /// or a handler, who may take long.
    pub(crate) fn flush(&mut self) {
        if let Some(writer) = &self.writer
            && !self.lines.is_empty()
        {
            writer.append(&self.lines);
            self.lines.clear();
        }
    }

    fn bound(&mut self) {
        if self.lines.len() >= PILE {
            self.flush();
        }
    }
}

/// `host ident user [time] `: ident (RFC 1413) is never known.
fn begin(lines: &mut Vec<u8>, peer: Peer, who: &Who, arrival: u64) {
    let user = match who {
        Who::Anonymous => "-",
        Who::User(name) => name,
    };
    // Writing into a Vec cannot fail.
    let _ = write!(lines, "{peer} - ");
    escape(lines, user.as_bytes());
    let date = Date::at(arrival);
    // `Fri, 20 Nov 2026 21:00:00 GMT`: the same numbers, in the order that logs have them.
    let text = date.as_str();
    let (day, month, year, time) = (&text[5..7], &text[8..11], &text[12..16], &text[17..25]);
    let _ = write!(lines, " [{day}/{month}/{year}:{time} +0000] ");
}

/// Nothing that a peer sends ends a line, a field or a terminal's patience.
fn escape(lines: &mut Vec<u8>, text: &[u8]) {
    for byte in &text[..text.len().min(LONGEST)] {
        match byte {
            b'"' | b'\\' => lines.extend_from_slice(&[b'\\', *byte]),
            b' '..=b'~' => lines.push(*byte),
            _ => {
                // Writing into a Vec cannot fail.
                let _ = write!(lines, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peers_text_cannot_break_out_of_its_field() {
        let mut line = Vec::new();
        escape(&mut line, b"a\"b\\c\r\n\x1b[31m\xe2\x80\xa8");
        assert_eq!(line, br#"a\"b\\c\x0d\x0a\x1b[31m\xe2\x80\xa8"#);
        line.clear();
        escape(&mut line, &vec![b'x'; 1 << 20]);
        assert_eq!(line.len(), LONGEST);
    }

    #[test]
    fn a_reply_is_measured_behind_its_head() {
        let reply = b"HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nabc";
        assert_eq!(Size::of(reply, None), Size { status: 404, bytes: 3 });
        assert_eq!(measure(b"HTTP/1.1"), None);
    }

    #[test]
    fn a_fault_has_a_line_too() {
        let mut log = AccessLog::new(Some(Arc::new(Writer::stopped())));
        let peer = Peer::tcp("192.0.2.7:1".parse().unwrap());
        log.record_bare(peer, 1_795_208_400, Size { status: 408, bytes: 36 });
        let line = String::from_utf8(log.lines.clone()).unwrap();
        let expected = "192.0.2.7 - - [20/Nov/2026:21:00:00 +0000] \"-\" 408 36 \"-\" \"-\"\n";
        assert_eq!(line, expected);
    }

    /// Lines gathered until a thread had nothing left to do for its connection, which a peer that
    /// never pauses puts off for ever: memory grew, and what a log holds was passed at once.
    #[test]
    fn lines_are_handed_over_before_they_pile_up() {
        let writer = Arc::new(Writer::stopped());
        let mut log = AccessLog::new(Some(writer));
        for _ in 0..10_000 {
            log.record_bare(Peer::UNIX, 0, Size::default());
            assert!(log.lines.len() < PILE);
        }
    }
}
