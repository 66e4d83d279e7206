//! Single stages over a transport that records what it sends, and whether more is announced.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use bine_log::LogSettings;
use bine_log::test_support::{ScratchFolder, capture};

use super::program;
use super::single::{Stage, head};
use crate::access::AccessSettings;
use crate::address::ClientAddress;
use crate::connection::{Connection, NO_HOLD, Phase, ThreadContext};
use crate::handler::FilePart;
use crate::handler::page_cache::{CHECK_SIZE, CachedParts};
use crate::metrics::Ending;
use crate::next::Next;
use crate::settings::Timeouts;
use crate::stages;
use crate::system::Transfer;
use crate::transport::Transport;

/// A transport whose results the test determines. It records the sizes of sends, and whether more
/// was announced.
#[derive(Default)]
struct Recorder {
    sends: Vec<(usize, bool)>,
    /// Whether the client does not read.
    is_full: bool,
    /// The bytes that have arrived.
    input: Vec<u8>,
    received: Option<Transfer>,
    is_shaking_hands: bool,
}

impl Transport for Recorder {
    const BLOCKS: bool = false;

    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        if !self.input.is_empty() {
            let input = std::mem::take(&mut self.input);
            space[..input.len()].copy_from_slice(&input);
            return Transfer::Moved(input.len());
        }
        self.received.unwrap_or(Transfer::Again)
    }

    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer {
        if self.is_full {
            return Transfer::Again;
        }
        self.sends.push((bytes.len(), more));
        Transfer::Moved(bytes.len())
    }

    fn send_file(&mut self, _: BorrowedFd<'_>, _offset: u64, count: usize) -> Transfer {
        self.sends.push((count, false));
        Transfer::Moved(count)
    }

    fn finish(&mut self) {}

    fn is_shaking_hands(&self) -> bool {
        self.is_shaking_hands
    }
}

/// A new connection over a recorder, as a current one of its thread.
fn recorded(recorder: Recorder) -> (Connection<Recorder>, ThreadContext) {
    let Stage { mut context, .. } = Stage::new(None);
    let mut connection = Connection::new(|_session| recorder, ClientAddress::UNIX, &mut context);
    context.make_current(&mut connection);
    context.is_socket_empty = true;
    (connection, context)
}

/// The kernel waits for more before it sends a small segment, so the last send must not announce
/// any.
#[test]
fn announces_more_bytes_only_if_they_follow() {
    for (output, file, allowance, expected) in [
        (10, None, 100, vec![(10, false)]),
        (10, Some(7), 100, vec![(10, true), (7, false)]),
        (10, Some(0), 100, vec![(10, false)]),
        (10, None, 4, vec![(4, true)]),
        (10, None, 10, vec![(10, false)]),
        (0, Some(7), 100, vec![(7, false)]),
        (0, Some(7), 5, vec![(5, false)]),
    ] {
        let (mut connection, mut context) = recorded(Recorder::default());
        context.send_allowance = allowance;
        let busy = connection.busy(&mut context);
        busy.output = vec![b'x'; output];
        busy.file = file.map(|length| FilePart { file: program::file(), offset: 0, length });
        stages::reply(&mut connection, &mut context);
        assert_eq!(connection.transport.sends, expected, "{output} {file:?} {allowance}");
    }
}

/// A reply that was sent at once needs no buffer of the connection.
#[test]
fn sends_a_small_reply_without_a_buffer_of_its_connection() {
    let (mut connection, mut context) = recorded(Recorder::default());
    connection.hold = 1;
    context.output = b"reply".to_vec();
    assert_eq!(stages::reply(&mut connection, &mut context), Next::Held);
    assert_eq!(connection.transport.sends, [(5, false)]);
    assert!(connection.busy.is_none() && context.output.is_empty());
    assert_eq!(context.tally.sent.read(), 5);
    connection.hold = NO_HOLD;
}

/// The loop checks a file for the page cache in parts, each once.
#[test]
fn checks_the_next_part_of_a_file_after_the_last_one() {
    let (mut connection, mut context) = recorded(Recorder::default());
    (context.cached_parts, context.send_allowance) = (Some(CachedParts::default()), CHECK_SIZE);
    let (offset, length) = (100, 2 * CHECK_SIZE + 1);
    connection.busy(&mut context).file = Some(FilePart { file: program::file(), offset, length });
    for part in 1..=2 {
        // A turn sends a slice, which is as long as a part.
        assert_eq!(stages::reply(&mut connection, &mut context), Next::Idle);
        let busy = connection.busy(&mut context);
        assert_eq!(busy.warm_to, offset + part * CHECK_SIZE);
        assert_eq!(busy.file.as_ref().unwrap().offset, busy.warm_to);
        context.send_allowance = CHECK_SIZE;
    }
    // The end of the file is shorter than a part.
    let (mut connection, mut context) = recorded(Recorder::default());
    (context.cached_parts, context.send_allowance) = (Some(CachedParts::default()), 1);
    connection.busy(&mut context).file =
        Some(FilePart { file: program::file(), offset, length: 7 });
    stages::reply(&mut connection, &mut context);
    assert_eq!(connection.busy(&mut context).warm_to, offset + 7);
    // A thread that may wait for the disk does not check.
    let (mut connection, mut context) = recorded(Recorder::default());
    context.send_allowance = 1;
    connection.busy(&mut context).file =
        Some(FilePart { file: program::file(), offset, length: 7 });
    stages::reply(&mut connection, &mut context);
    assert_eq!(connection.busy(&mut context).warm_to, 0);
}

#[test]
fn gives_a_client_time_for_its_first_byte_after_the_handshake() {
    let timeouts = Timeouts::default();
    for (is_shaking_hands, phase, wait) in
        [(true, Phase::Handshake, timeouts.handshake), (false, Phase::First, timeouts.first_byte)]
    {
        let (mut connection, mut context) =
            recorded(Recorder { is_shaking_hands, ..Recorder::default() });
        connection.phase = Phase::Handshake;
        connection.deadline = context.clock.now().after(timeouts.handshake);
        assert_eq!(stages::request(&mut connection, &mut context), Next::Idle);
        assert_eq!(connection.phase, phase);
        assert_eq!(connection.deadline.since(context.clock.now()), wait, "{phase:?}");
    }
}

/// A page that panics in the middle of its reply has no line in the access log, and the line of a
/// whole one needs a log.
#[test]
fn logs_only_whole_pages() {
    for (path, lines) in [("/drained-work", 1), ("/drained-panic", 0)] {
        let folder = ScratchFolder::new();
        let writer = bine_log::Writer::open(LogSettings::at(folder.path("log"))).unwrap();
        let format = Arc::new(bine_log::Format::parse("combined").unwrap());
        let access = AccessSettings { writer: Arc::clone(&writer), format };
        let mut stage = Stage::new(Some(access));
        let messages = capture();
        stage.respond(&head("GET", path, ""));
        let next = stages::dynamic(&mut stage.connection, &mut stage.context);
        assert_eq!(next, if lines == 1 { Next::Reply } else { Next::Closed });
        assert_eq!(stage.connection.ending, (lines == 0).then_some(Ending::Fault));
        assert_eq!(messages.end().is_empty(), lines == 1);
        stage.context.config.access.flush();
        writer.finish();
        let log = std::fs::read_to_string(folder.path("log")).unwrap();
        assert_eq!(log.lines().count(), lines, "{log}");
    }
}

/// A blocking thread may serve another connection while a handshake makes no progress.
#[test]
fn ends_the_wait_for_a_handshake_at_each_interval() {
    for (left, expected) in [(1, Next::Request), (0, Next::Closed)] {
        let received = Some(Transfer::TimedOut);
        let (mut connection, mut context) =
            recorded(Recorder { received, is_shaking_hands: true, ..Recorder::default() });
        context.is_socket_empty = false;
        connection.phase = Phase::Handshake;
        connection.deadline = context.clock.now().after(Duration::from_secs(left));
        assert_eq!(stages::request(&mut connection, &mut context), expected);
        let ending = (left == 0).then_some(Ending::Timeout);
        assert_eq!((connection.phase, connection.ending), (Phase::Handshake, ending));
    }
}

/// The budget counts the bytes of a reply that were not sent, together with those of earlier ones.
#[test]
fn reserves_memory_for_unsent_bytes_only() {
    const MIB: usize = 1 << 20;
    let recorder = Recorder { is_full: true, ..Recorder::default() };
    let (mut connection, mut context) = recorded(recorder);
    let busy = connection.busy(&mut context);
    (busy.output, busy.sent) = (vec![b'e'; 3 * MIB], 2 * MIB);
    context.output = vec![b'x'; MIB];
    assert_eq!(stages::reply(&mut connection, &mut context), Next::Idle);
    assert_eq!(context.budgets.metrics()[2].held, 2 * MIB as u64);
    connection.transport.is_full = false;
    assert_eq!(stages::reply(&mut connection, &mut context), Next::Idle);
    assert_eq!(context.budgets.metrics()[2].held, 2 * MIB as u64);
}

/// Other connections of a loop wait for a handler that computes for long.
#[test]
fn warns_of_a_handler_that_blocks_its_loop() {
    let messages = capture();
    let mut stage = Stage::new(None);
    assert_eq!(stage.respond(&head("GET", "/written", "")), Next::Reply);
    let mut stage = Stage::new(None);
    assert_eq!(stage.respond(&head("GET", "/slow", "")), Next::Reply);
    let messages = messages.end();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("answers blocked its event loop for 11 ms"), "{messages:?}");
}

/// A page that is sent while it is written announces more. The reply to a HEAD ends with its head.
#[test]
fn announces_the_content_of_a_page_but_not_after_a_head() {
    for path in ["/drained", "/drained-work"] {
        for (method, more) in [("GET", true), ("HEAD", false)] {
            let input = head(method, path, "").into_bytes();
            let (mut connection, mut context) = recorded(Recorder { input, ..Recorder::default() });
            context.is_socket_empty = false;
            stages::request(&mut connection, &mut context);
            if stages::response(&mut connection, &mut context) != Next::Reply {
                stages::dynamic(&mut connection, &mut context);
            }
            let sends: Vec<bool> =
                connection.transport.sends.iter().map(|(_, more)| *more).collect();
            assert_eq!(sends, [more], "{method} {path}");
        }
    }
}
