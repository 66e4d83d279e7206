//! The access log: each thread gathers one line per reply and hands the lines over once per turn.

use std::sync::Arc;

use bine_log::{Entry, Format, Stamp, Writer};

use crate::address::ClientAddress;
use crate::handler::{Follow, Incoming, Retained};
use crate::time::Clock;

/// The destination and the format of the access log.
#[derive(Clone, Debug)]
pub struct AccessSettings {
    /// The log.
    pub writer: Arc<Writer>,
    /// The fields of a line.
    pub format: Arc<Format>,
}

/// The access log of one thread.
pub(crate) struct AccessLog(Option<OpenLog>);

struct OpenLog {
    settings: AccessSettings,
    lines: Vec<u8>,
    stamp: Stamp,
}

/// The data of a reply for its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Replied<'a> {
    pub(crate) status: u16,
    /// The number of content bytes as sent, including chunk framing.
    pub(crate) bytes: u64,
    /// Status line and header fields, if they are available.
    pub(crate) head: &'a [u8],
}

impl<'a> Replied<'a> {
    /// The data of a reply that is complete in memory.
    pub(crate) fn of(reply: &'a [u8]) -> Self {
        let (status, head) = measure(reply).unwrap_or_default();
        Self { status, bytes: (reply.len() - head) as u64, head: &reply[..head] }
    }
}

/// A reply that is sent over time. Its line is written at the end, with the number of bytes that
/// were sent.
pub(crate) struct PendingEntry {
    pub(crate) request: Box<Retained>,
    pub(crate) status: u16,
    /// Status line and header fields, if the format needs them.
    pub(crate) head: Vec<u8>,
    /// The length of the file after the head, or the number of bytes that a waiter has sent so far.
    pub(crate) length: u64,
}

/// Returns the status and the length of the head at the start of a reply.
pub(crate) fn measure(reply: &[u8]) -> Option<(u16, usize)> {
    let status = std::str::from_utf8(reply.get(9..12)?).ok()?.parse().ok()?;
    // Searches for the last byte of the end, so that it examines every fourth byte of most heads.
    let mut at = 3;
    loop {
        at += match reply.get(at)? {
            b'\n' if reply[at - 3..at] == *b"\r\n\r" => return Some((status, at + 1)),
            b'\r' | b'\n' => 1,
            _ => 4,
        };
    }
}

/// Gathered lines are handed over at this size, even within a turn.
const FLUSH_SIZE: usize = 16 * 1024;

impl AccessLog {
    pub(crate) fn new(settings: Option<AccessSettings>) -> Self {
        let open = |settings| OpenLog { settings, lines: Vec::new(), stamp: Stamp::at(0) };
        Self(settings.map(open))
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The current time in microseconds, at the arrival of a request or at its reply. Reads no
    /// clock if the format has no duration.
    pub(crate) fn timestamp(&self, clock: &Clock) -> u64 {
        let wanted = self.0.as_ref().is_some_and(|open| open.settings.format.wants_duration());
        if wanted { clock.microseconds() } else { 0 }
    }

    /// Whether the head of a reply must be kept while the reply is sent.
    pub(crate) fn wants_head(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.settings.format.wants_reply_head())
    }

    /// Writes the line of the reply to `request`, which arrived at `began`.
    pub(crate) fn record(
        &mut self,
        request: &Incoming<'_>,
        began: u64,
        clock: &Clock,
        replied: Replied<'_>,
    ) {
        let took = self.timestamp(clock).saturating_sub(began);
        self.push(
            request.arrival,
            &Entry {
                client: request.peer.socket_address(),
                user: request.identity.user(),
                request: Some(&request.head),
                status: replied.status,
                bytes: replied.bytes,
                reply_head: replied.head,
                microseconds: Some(took),
            },
        );
    }

    /// Writes the line of a reply without its request, which was malformed or is with a worker.
    pub(crate) fn record_bare(&mut self, peer: ClientAddress, arrival: u64, replied: Replied<'_>) {
        self.push(
            arrival,
            &Entry {
                client: peer.socket_address(),
                status: replied.status,
                bytes: replied.bytes,
                reply_head: replied.head,
                ..Entry::default()
            },
        );
    }

    /// Begins the log entry of a reply that is sent over time and whose head is in `reply`.
    pub(crate) fn begin(
        &self,
        request: Box<Retained>,
        reply: &[u8],
        follow: &Follow,
    ) -> PendingEntry {
        let (status, head) = measure(reply).unwrap_or_default();
        let head = if self.wants_head() { reply[..head].to_vec() } else { Vec::new() };
        let length = match follow {
            Follow::File(part) => part.length,
            Follow::Stream(_) | Follow::Upgrade(_) | Follow::Suspend(_) | Follow::Again(_) => 0,
        };
        PendingEntry { request, status, head, length }
    }

    /// Begins the log entry of a suspended response, of which `reply` contains the head and perhaps
    /// some content.
    pub(crate) fn begin_suspended(&self, request: Box<Retained>, reply: &[u8]) -> PendingEntry {
        let (status, head) = measure(reply).unwrap_or_default();
        let length = (reply.len() - head) as u64;
        let head = if self.wants_head() { reply[..head].to_vec() } else { Vec::new() };
        PendingEntry { request, status, head, length }
    }

    /// Hands the gathered lines to the writer: once per turn, and before a thread waits for a
    /// client or a handler, which may take long.
    pub(crate) fn flush(&mut self) {
        if let Some(open) = &mut self.0 {
            open.flush();
        }
    }

    fn push(&mut self, arrival: u64, entry: &Entry<'_>) {
        let Some(open) = &mut self.0 else { return };
        open.stamp.move_to(arrival);
        entry.write(&mut open.lines, &open.settings.format, &open.stamp);
        if open.lines.len() >= FLUSH_SIZE {
            open.flush();
        }
    }
}

impl OpenLog {
    fn flush(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        self.settings.writer.append(&self.lines, self.settings.format.gap());
        self.lines.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bine_log::LogSettings;
    use bine_log::test_support::ScratchFolder;

    fn log_with(format: &str, folder: &ScratchFolder) -> AccessLog {
        let writer = Writer::open(LogSettings::at(folder.path("log"))).unwrap();
        let format = Arc::new(Format::parse(format).unwrap());
        AccessLog::new(Some(AccessSettings { writer, format }))
    }

    fn lines(log: &AccessLog) -> &str {
        std::str::from_utf8(&log.0.as_ref().unwrap().lines).unwrap()
    }

    #[test]
    fn counts_content_bytes_after_the_head() {
        let reply = b"HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nabc";
        let head = &reply[..32];
        assert_eq!(Replied::of(reply), Replied { status: 404, bytes: 3, head });
        assert_eq!(measure(b"HTTP/1.1"), None);
        for length in 0..20 {
            let reply = format!("HTTP/1.1 200 {}\r\nA:\r\r\n\r\n\n", "x".repeat(length));
            assert_eq!(measure(reply.as_bytes()), Some((200, reply.len() - 1)), "{length}");
            assert_eq!(measure(&reply.as_bytes()[..reply.len() - 2]), None);
        }
    }

    #[test]
    fn counts_the_content_of_a_suspended_response_from_its_first_part() {
        let folder = ScratchFolder::new();
        let reply = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nnews";
        let request = || crate::test_support::request("/");
        let entry = log_with("combined", &folder).begin_suspended(request(), reply);
        assert_eq!((entry.status, entry.length), (200, 4));
        let off = AccessLog::new(None);
        assert!(!off.is_on() && !off.wants_head());
        assert!(log_with("combined", &folder).is_on());
    }

    #[test]
    fn logs_a_reply_without_a_parsed_request() {
        let folder = ScratchFolder::new();
        let peer = ClientAddress::tcp("192.0.2.7:1".parse().unwrap());
        let replied = Replied { status: 408, bytes: 36, head: b"" };
        let mut log = log_with("combined", &folder);
        log.record_bare(peer, 1_795_208_400, replied);
        let expected = "192.0.2.7 - - [20/Nov/2026:21:00:00 +0000] \"-\" 408 36 \"-\" \"-\"\n";
        assert_eq!(lines(&log), expected);
        let mut log = log_with("json", &folder);
        log.record_bare(peer, 1_795_208_400, replied);
        let expected = "{\"time\":\"2026-11-20T21:00:00Z\",\"peer\":\"192.0.2.7\",\"user\":\"-\",\
            \"host\":\"-\",\"method\":\"-\",\"target\":\"-\",\"version\":\"-\",\"status\":408,\
            \"bytes\":36,\"microseconds\":null,\"referer\":\"-\",\"agent\":\"-\"}\n";
        assert_eq!(lines(&log), expected);
    }

    /// Symptom: memory grew without limit, and the log lost lines. Cause: a thread handed its lines
    /// over only when its connection was idle, which a client that never pauses prevents. Fix: it
    /// also hands them over when they reach a fixed size.
    #[test]
    fn hands_lines_over_before_they_accumulate() {
        let folder = ScratchFolder::new();
        let mut log = log_with("common", &folder);
        for _ in 0..10_000 {
            log.record_bare(ClientAddress::UNIX, 0, Replied::default());
            assert!(lines(&log).len() < FLUSH_SIZE);
        }
    }
}
