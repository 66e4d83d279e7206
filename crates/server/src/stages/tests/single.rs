//! Single stages on a socket pair: the state of the connection after each.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bine_http::{Exchange, Head, Reply, SecurityHeaders, Status};
use bine_log::LogSettings;
use bine_log::test_support::{ScratchFolder, capture};

use super::program;
use crate::access::{AccessLog, AccessSettings};
use crate::address::ClientAddress;
use crate::connection::{Connection, DeferredWork, MAX_REQUESTS, NO_HOLD, Phase, ThreadContext};
use crate::generation::ThreadConfig;
use crate::handler::{
    Answer, Body, Done, FilePart, Identity, Incoming, Outgoing, Responder, Retained, Stream,
    SuspendedResponse, Upgrade, Work,
};
use crate::metrics::Ending;
use crate::next::{Next, ResponseKind};
use crate::settings::{Settings, Timeouts};
use crate::stages;
use crate::test_support::{request, sockets};
use crate::time::Clock;
use crate::transport::Nonblocking;

/// Answers each request as its path says, without further effects.
struct Answers(Rc<Clock>);

/// Writes a page of this length, with or without a drain before its last byte.
struct PageWork {
    length: usize,
    drains: bool,
    panics: bool,
}

impl Work for PageWork {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let (exchange, date) = (request.exchange, clock.date());
        let content = vec![b'p'; self.length];
        Reply::begin(out.buffer, exchange, Status::OK, &date).whole(&content);
        if self.drains {
            (out.drain)(out.buffer);
        }
        if self.panics {
            resume_unwind(Box::new("a handler's fault"));
        }
        Done::default()
    }

    fn name(&self) -> &'static str {
        "page"
    }
}

impl Responder for Answers {
    fn identify(&mut self, head: &Head<'_>, _peer: ClientAddress) -> Identity {
        head.field("name").map_or(Identity::Anonymous, |_| Identity::named("ann"))
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let (exchange, date) = (request.exchange, self.0.date());
        let begin = |out: &mut Vec<u8>| {
            Reply::begin(out, exchange, Status::OK, &date).content_length(10);
        };
        match request.head.path().as_ref() {
            "/file" => {
                begin(out.buffer);
                Answer::File(FilePart { file: program::file(), offset: 0, length: 10 })
            }
            "/stream" => {
                let framing = Reply::begin(out.buffer, exchange, Status::OK, &date).stream();
                Answer::Stream(Stream::new(framing, |_sender| Box::pin(async { Ok(()) })))
            }
            "/upgrade" => {
                Reply::begin(out.buffer, exchange, Status::SWITCHING_PROTOCOLS, &date).empty();
                Answer::Upgrade(Upgrade::new(|_connection| Box::pin(async { Ok(()) })))
            }
            "/collect" if matches!(request.body, Body::Pending) => {
                Answer::Collect { limit: 5, on_disk: false }
            }
            "/twice" => Answer::Collect { limit: 5, on_disk: false },
            "/later" => Answer::Later(Box::pin(std::future::pending())),
            "/open" => Answer::WhileOpen(Box::pin(std::future::pending())),
            "/suspend" => {
                let subject = Arc::new(());
                let hold =
                    SuspendedResponse { subject, position: 0, detail: 0, manner: 0, exchange };
                Answer::Suspend(hold)
            }
            "/work" => {
                Answer::Work(Arc::new(PageWork { length: 10, drains: false, panics: false }))
            }
            "/long-work" => {
                Answer::Work(Arc::new(PageWork { length: 60_000, drains: false, panics: false }))
            }
            "/drained-work" => {
                Answer::Work(Arc::new(PageWork { length: 10, drains: true, panics: false }))
            }
            "/slow" => {
                self.0.advance(Duration::from_millis(11));
                begin(out.buffer);
                Answer::Written { close: false }
            }
            "/drained-panic" => {
                Answer::Work(Arc::new(PageWork { length: 10, drains: true, panics: true }))
            }
            "/drained" => {
                Reply::begin(out.buffer, exchange, Status::OK, &date).whole(b"page");
                (out.drain)(out.buffer);
                Answer::Written { close: false }
            }
            path => {
                Reply::begin(out.buffer, exchange, Status::OK, &date).whole(path.as_bytes());
                Answer::Written { close: path == "/close" }
            }
        }
    }

    fn last(&self) -> &'static str {
        "answers"
    }
}

pub(super) struct Stage {
    pub(super) connection: Connection<Nonblocking>,
    pub(super) context: ThreadContext,
    client: UnixStream,
}

impl Stage {
    pub(super) fn new(access: Option<AccessSettings>) -> Self {
        let clock = Rc::new(Clock::told(1_795_208_400));
        let settings = Settings { unsent: 50_000, unread_body: 7, ..Settings::default() };
        let responder = Box::new(Answers(Rc::clone(&clock)));
        let config = ThreadConfig::new(Arc::new(settings), responder, AccessLog::new(access));
        let mut context = ThreadContext::new(config, clock, Arc::default());
        let (socket, client) = sockets();
        rustix::io::ioctl_fionbio(&socket, true).unwrap();
        client.set_nonblocking(true).unwrap();
        let transport = |session| Nonblocking::new(socket, session);
        let connection = Connection::new(transport, ClientAddress::UNIX, &mut context);
        Self { connection, context, client }
    }

    /// Runs the request stage and the response stage for this head.
    pub(super) fn respond(&mut self, head: &str) -> Next {
        self.client.write_all(head.as_bytes()).unwrap();
        self.context.make_current(&mut self.connection);
        let next = stages::request(&mut self.connection, &mut self.context);
        assert_eq!(next, Next::Response(ResponseKind::Static), "{head}");
        stages::response(&mut self.connection, &mut self.context)
    }

    fn received(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.client.read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    fn left(&self) -> Duration {
        self.connection.deadline.since(self.context.clock.now())
    }
}

pub(super) fn head(method: &str, path: &str, lines: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

/// Whether the connection closes afterwards, whether the log names the request, and where the
/// next stage runs.
#[test]
fn continues_each_answer_in_its_own_way() {
    let work = Next::Response(ResponseKind::Dynamic);
    for (path, takes_longer, next) in [
        ("/written", false, Next::Reply),
        ("/file", true, Next::Reply),
        ("/stream", true, Next::Reply),
        ("/upgrade", false, Next::Reply),
        ("/later", true, Next::Park),
        ("/open", true, Next::Park),
        ("/suspend", false, Next::Park),
        ("/work", true, work),
    ] {
        for (lines, closes) in [("", false), ("Connection: close\r\n", path != "/upgrade")] {
            let mut stage = Stage::new(None);
            assert_eq!(stage.respond(&head("GET", path, lines)), next, "{path}");
            assert_eq!(stage.connection.closing, closes, "{path} {lines}");
            let busy = stage.connection.busy.as_deref();
            let named = busy.is_some_and(|busy| !busy.answered.is_empty());
            assert_eq!(named, takes_longer, "{path}");
            let deferred = match stage.context.deferred_work.take() {
                None => ("none", false),
                Some(DeferredWork::Work(..)) => ("/work", true),
                Some(DeferredWork::Suspend(_, request)) => ("/suspend", request.is_some()),
                Some(DeferredWork::Later(_, request)) => ("/later", request.is_some()),
                Some(DeferredWork::WhileOpen(_, request)) => ("/open", request.is_some()),
                Some(DeferredWork::WarmUp(_)) => ("warm up", false),
            };
            let is_deferred = next != Next::Reply;
            let expected = if is_deferred { path } else { "none" };
            // Without an access log only work needs the request.
            assert_eq!(deferred, (expected, path == "/work"), "{path}");
        }
    }
}

#[test]
fn keeps_the_request_of_a_long_reply_for_the_access_log() {
    let folder = ScratchFolder::new();
    for (path, in_entry, in_work) in [
        ("/written", false, false),
        ("/file", true, false),
        ("/stream", true, false),
        ("/upgrade", true, false),
        ("/later", false, true),
        ("/open", false, true),
        ("/suspend", false, true),
        ("/work", false, true),
    ] {
        let writer = bine_log::Writer::open(LogSettings::at(folder.path("log"))).unwrap();
        let format = Arc::new(bine_log::Format::parse("combined").unwrap());
        let mut stage = Stage::new(Some(AccessSettings { writer, format }));
        stage.respond(&head("GET", path, ""));
        let busy = stage.connection.busy.as_deref();
        assert_eq!(busy.is_some_and(|busy| busy.pending_entry.is_some()), in_entry, "{path}");
        let kept = match stage.context.deferred_work.take() {
            Some(
                DeferredWork::Suspend(_, request)
                | DeferredWork::Later(_, request)
                | DeferredWork::WhileOpen(_, request),
            ) => request.is_some(),
            Some(DeferredWork::Work(..)) => true,
            _ => false,
        };
        assert_eq!(kept, in_work, "{path}");
    }
}

#[test]
fn notes_the_client_and_the_method() {
    let mut stage = Stage::new(None);
    stage.respond(&head("GET", "/written", ""));
    assert!(!stage.connection.is_known && stage.connection.busy.is_none());
    let mut stage = Stage::new(None);
    stage.respond(&head("HEAD", "/file", "Name: ann\r\n"));
    assert!(stage.connection.is_known && stage.connection.busy.as_ref().unwrap().is_head);
    let mut stage = Stage::new(None);
    stage.respond(&head("HEAD", "/written", ""));
    assert!(stage.connection.busy.is_none(), "its reply is complete");
}

#[test]
fn collects_a_body_up_to_the_limit_of_its_handler() {
    let length = |number: usize| format!("Content-Length: {number}\r\n");
    let mut stage = Stage::new(None);
    assert_eq!(stage.respond(&head("POST", "/collect", &length(5))), Next::Request);
    let busy = stage.connection.busy.as_ref().unwrap();
    assert!(busy.request.is_some() && busy.collect == 5 && !busy.on_disk);
    // One byte more.
    let mut stage = Stage::new(None);
    assert_eq!(stage.respond(&head("POST", "/collect", &length(6))), Next::Reply);
    assert!(stage.context.output.starts_with(b"HTTP/1.1 413 "));
    assert_eq!(stage.connection.ending, Some(Ending::Fault));
    // A chunked body shows its length only when it arrives.
    for (chunk, fits) in [("5\r\nabcde\r\n0\r\n\r\n", true), ("6\r\nabcdef\r\n0\r\n\r\n", false)] {
        let mut stage = Stage::new(None);
        let chunked = head("POST", "/collect", "Transfer-Encoding: chunked\r\n");
        assert_eq!(stage.respond(&chunked), Next::Request);
        stage.client.write_all(chunk.as_bytes()).unwrap();
        stage.context.is_socket_empty = false;
        let next = stages::request(&mut stage.connection, &mut stage.context);
        let expected = if fits { Next::Response(ResponseKind::Static) } else { Next::Reply };
        assert_eq!(next, expected);
        assert_eq!(stage.context.output.starts_with(b"HTTP/1.1 413 "), !fits);
    }
}

#[test]
fn asks_a_waiting_client_for_its_body() {
    let expects = "Content-Length: 5\r\nExpect: 100-continue\r\n";
    let mut stage = Stage::new(None);
    stage.respond(&head("POST", "/collect", expects));
    assert!(stage.context.output.starts_with(b"HTTP/1.1 100 "));
    let mut stage = Stage::new(None);
    stage.respond(&(head("POST", "/collect", expects) + "abcde"));
    assert!(stage.context.output.is_empty(), "it has sent the body already");
    let mut stage = Stage::new(None);
    stage.respond(&head("POST", "/collect", "Content-Length: 5\r\n"));
    assert!(stage.context.output.is_empty());
}

/// A body that no handler wants is dropped if it is short; otherwise the connection closes.
#[test]
fn keeps_the_connection_for_a_short_unread_body() {
    for (lines, closes) in [
        ("Content-Length: 7\r\n", false),
        ("Content-Length: 8\r\n", true),
        ("Transfer-Encoding: chunked\r\n", true),
        ("Content-Length: 7\r\nExpect: 100-continue\r\n", true),
    ] {
        let mut stage = Stage::new(None);
        assert_eq!(stage.respond(&head("POST", "/written", lines)), Next::Reply);
        assert_eq!(stage.connection.closing, closes, "{lines}");
        assert_eq!(stage.connection.discard_allowance, 7);
        let output = std::str::from_utf8(&stage.context.output).unwrap();
        assert_eq!(output.contains("Connection: close"), closes, "{lines}");
    }
}

#[test]
fn fails_a_request_that_is_collected_twice_or_upgraded_with_a_body() {
    let messages = capture();
    let mut stage = Stage::new(None);
    stage.respond(&head("POST", "/twice", "Content-Length: 3\r\n"));
    stage.client.write_all(b"abc").unwrap();
    stage.context.is_socket_empty = false;
    stages::request(&mut stage.connection, &mut stage.context);
    let next = stages::response(&mut stage.connection, &mut stage.context);
    assert_eq!((next, stage.connection.closing), (Next::Reply, true));
    assert!(stage.context.output.starts_with(b"HTTP/1.1 500 "));
    let mut stage = Stage::new(None);
    let next = stage.respond(&head("POST", "/upgrade", "Content-Length: 3\r\n"));
    assert_eq!((next, stage.connection.closing), (Next::Reply, true));
    assert!(stage.context.output.starts_with(b"HTTP/1.1 500 "), "not 101");
    assert_eq!(stage.connection.ending, Some(Ending::Fault));
    let messages = messages.end();
    assert_eq!(messages.len(), 2);
    assert!(messages[0].ends_with("answers asked for the body twice"), "{messages:?}");
    assert!(messages[1].contains("accepts an upgrade of a request with a body"), "{messages:?}");
}

#[test]
fn removes_the_content_of_a_reply_to_head() {
    let mut stage = Stage::new(None);
    let reply = b"HTTP/1.1 503 Busy\r\nA: b\r\n\r\ncontent";
    let mut output = [b"earlier\r\n\r\nreply", &reply[..]].concat();
    stages::remove_content_for_head(&stage.connection, &mut output, 16);
    assert!(output.ends_with(b"content"));
    stage.connection.busy(&mut stage.context).is_head = true;
    stages::remove_content_for_head(&stage.connection, &mut output, 16);
    assert_eq!(output, b"earlier\r\n\r\nreplyHTTP/1.1 503 Busy\r\nA: b\r\n\r\n");
}

/// Replies to requests that were received together are sent together, up to a size and a number.
#[test]
fn gathers_replies_while_there_is_more_input() {
    let gathers = |length: usize, requests_left: u32, has_input: bool, closing: bool| {
        let mut stage = Stage::new(None);
        let Stage { connection, context, .. } = &mut stage;
        context.make_current(connection);
        context.output = vec![b'x'; length];
        (context.requests_left, context.has_new_input) = (requests_left, has_input);
        connection.closing = closing;
        stages::reply(connection, context);
        stage.received().is_empty()
    };
    assert!(gathers(100, 1, true, false));
    assert!(gathers(64 * 1024 - 1, 1, true, false));
    assert!(!gathers(64 * 1024, 1, true, false));
    assert!(!gathers(100, 0, true, false));
    assert!(!gathers(100, 1, false, false));
    assert!(!gathers(100, 1, true, true));
    // A suspended response and an upgrade are the last of their connection, too.
    for is_upgrade in [false, true] {
        let mut stage = Stage::new(None);
        let Stage { connection, context, .. } = &mut stage;
        context.make_current(connection);
        (context.output, context.has_new_input) = (b"head".to_vec(), true);
        let expected = if is_upgrade {
            let upgrade = Upgrade::new(|_connection| Box::pin(async { Ok(()) }));
            connection.busy(context).upgrade = Some(upgrade);
            Next::Depart
        } else {
            connection.hold = 1;
            Next::Held
        };
        assert_eq!(stages::reply(connection, context), expected);
        assert_eq!(stage.received(), "head");
    }
}

/// After its last request of a turn, a connection with more input waits for its next turn.
#[test]
fn waits_for_its_turn_after_sixteen_requests() {
    for (requests_left, has_input, is_empty, expected) in [
        (0, true, true, Next::Idle),
        (0, false, false, Next::Idle),
        (0, false, true, Next::Request),
        (1, false, false, Next::Request),
    ] {
        let mut stage = Stage::new(None);
        let Stage { connection, context, .. } = &mut stage;
        context.make_current(connection);
        assert_eq!(context.requests_left, MAX_REQUESTS);
        context.output = b"reply".to_vec();
        (context.requests_left, context.has_new_input) = (requests_left, has_input);
        context.is_socket_empty = is_empty;
        assert_eq!(stages::reply(connection, context), expected);
        assert_eq!(connection.wants_turn, expected == Next::Idle);
    }
}

#[test]
fn sends_a_long_reply_in_slices_that_all_connections_share() {
    let mut stage = Stage::new(None);
    let Stage { connection, context, .. } = &mut stage;
    context.make_current(connection);
    context.send_allowance = 1000;
    let busy = connection.busy(context);
    busy.output = vec![b'x'; 1500];
    assert_eq!(stages::reply(connection, context), Next::Idle);
    assert!(connection.wants_turn);
    assert_eq!((context.send_allowance, context.tally.sent.read()), (0, 1000));
    assert_eq!(stage.received().len(), 1000);
    let Stage { connection, context, .. } = &mut stage;
    (connection.wants_turn, context.send_allowance) = (false, 1000);
    context.is_socket_empty = true;
    assert_eq!(stages::reply(connection, context), Next::Request);
    assert_eq!((context.send_allowance, context.tally.sent.read()), (500, 1500));
    assert!(!connection.wants_turn && connection.busy.is_none());
    assert_eq!(stage.received().len(), 500);
}

#[test]
fn sends_a_file_after_the_rest_of_its_head() {
    let mut stage = Stage::new(None);
    let Stage { connection, context, .. } = &mut stage;
    context.make_current(connection);
    let busy = connection.busy(context);
    (busy.output, busy.sent) = (b"head".to_vec(), 1);
    busy.file = Some(FilePart { file: program::file(), offset: 250, length: 4 });
    context.is_socket_empty = true;
    assert_eq!(stages::reply(connection, context), Next::Request);
    assert_eq!(context.tally.sent.read(), 7);
    assert!(!connection.has_unsent());
    let mut bytes = [0; 10];
    let count = stage.client.read(&mut bytes).unwrap();
    let more = stage.client.read(&mut bytes[count..]).unwrap_or(0);
    assert_eq!(&bytes[..count + more], [b'e', b'a', b'd', 250, 0, 1, 2]);
}

/// The bytes that a page reserved while it was written stay reserved until its client reads them.
#[test]
fn keeps_the_reservation_of_an_unsent_reply() {
    let mut stage = Stage::new(None);
    let Stage { connection, context, .. } = &mut stage;
    context.make_current(connection);
    context.output = vec![b'x'; 1 << 20];
    let (owner, budgets) = (crate::quota::Owner::default(), Arc::clone(&context.budgets));
    let claim = crate::limits::Claim { block: ClientAddress::UNIX.block(), owner: &owner };
    context.output_reservation.reach(1 << 20, &budgets.unsent, claim).unwrap();
    assert_eq!(stages::reply(connection, context), Next::Idle);
    assert!(connection.busy(context).output_reservation.is_some());
    assert!(!context.output_reservation.is_some());
    assert_eq!(budgets.metrics()[2].held, 1 << 20);
    while stage.connection.has_unsent() {
        stage.received();
        stages::reply(&mut stage.connection, &mut stage.context);
    }
    assert_eq!(budgets.metrics()[2].held, 0);
}

/// The access log counts the bytes of a stream.
#[test]
fn sends_the_content_of_a_stream_and_waits_for_more() {
    let mut stage = Stage::new(None);
    let stream = Stream::new(bine_http::BodyFraming::CloseDelimited, |mut sender| {
        Box::pin(async move {
            sender.send("12345").await.map_err(|gone| gone.to_string())?;
            std::future::pending().await
        })
    });
    let Stage { connection, context, .. } = &mut stage;
    context.make_current(connection);
    connection.follow(crate::handler::Follow::Stream(stream), context);
    context.output = b"head".to_vec();
    assert_eq!(stages::reply(connection, context), Next::Park, "the writer begins");
    assert_eq!(connection.phase, Phase::Streaming);
    let (clock, slowness) = (Rc::clone(&context.clock), Rc::default());
    let stream = connection.busy(context).stream.as_mut().unwrap();
    let writing = stream.begin(&clock, &slowness, "writer").unwrap();
    stream.poll_in_place(writing);
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(stream.poll(&mut task).is_ready());
    assert_eq!(stages::reply(connection, context), Next::Park);
    let timeout = Timeouts::default().handler;
    assert_eq!(connection.deadline.since(clock.now()), timeout, "for the next piece");
    assert_eq!(connection.busy(context).stream.as_ref().unwrap().taken, 5);
    assert_eq!(stage.received(), "head12345");
}

#[test]
fn runs_work_on_its_own_thread() {
    let messages = capture();
    for (path, status, closes, sent) in [
        ("/work", "HTTP/1.1 200 ", false, false),
        ("/long-work", "HTTP/1.1 500 ", true, false),
        ("/drained-work", "HTTP/1.1 200 ", false, true),
    ] {
        let mut stage = Stage::new(None);
        assert_eq!(stage.respond(&head("GET", path, "")), Next::Response(ResponseKind::Dynamic));
        let next = stages::dynamic(&mut stage.connection, &mut stage.context);
        assert_eq!((next, stage.connection.closing), (Next::Reply, closes), "{path}");
        let output = String::from_utf8(stage.context.output.clone()).unwrap();
        let received = stage.received();
        assert_eq!((received.is_empty(), output.is_empty()), (!sent, sent), "{path}");
        assert!((received + &output).starts_with(status), "{path}");
        assert_eq!(stage.connection.ending, None);
    }
    assert!(messages.end()[0].contains("exceeds the limit of 50000"));
}

/// Symptom: in a build with overflow checks the server panicked when a client left before the first
/// part of a page from a worker's handler was sent. Cause: the length for the access log was computed
/// although the unsent bytes were dropped. Fix: it is computed for whole replies only.
#[test]
fn closes_a_connection_whose_client_has_left_during_its_reply() {
    for path in ["/drained", "/drained-work"] {
        let mut stage = Stage::new(None);
        stage.client.write_all(head("GET", path, "").as_bytes()).unwrap();
        let Stage { mut connection, mut context, client } = stage;
        context.make_current(&mut connection);
        stages::request(&mut connection, &mut context);
        drop(client);
        let mut next = stages::response(&mut connection, &mut context);
        if path == "/drained-work" {
            next = stages::dynamic(&mut connection, &mut context);
        }
        assert_eq!((next, connection.ending), (Next::Closed, Some(Ending::Peer)), "{path}");
    }
}

/// No further event reports the end of a stream that arrived together with its last bytes.
#[test]
fn notices_the_end_of_a_half_closed_connection() {
    for hung_up in [false, true] {
        let mut stage = Stage::new(None);
        stage.client.write_all(b"GET / HT").unwrap();
        stage.client.shutdown(std::net::Shutdown::Write).unwrap();
        let Stage { connection, context, .. } = &mut stage;
        connection.hung_up = hung_up;
        context.make_current(connection);
        let expected = if hung_up { Next::Closed } else { Next::Idle };
        assert_eq!(stages::request(connection, context), expected);
    }
}

/// The log has the bytes of the content that the socket took.
#[test]
fn logs_the_bytes_of_an_incomplete_reply() {
    for (path, expected) in [("/file", 6), ("/suspended", 5), ("/stream", 4)] {
        let folder = ScratchFolder::new();
        let writer = bine_log::Writer::open(LogSettings::at(folder.path("log"))).unwrap();
        let format = Arc::new(bine_log::Format::parse("combined").unwrap());
        let access = AccessSettings { writer: Arc::clone(&writer), format };
        let mut stage = Stage::new(Some(access));
        stage.respond(&head("GET", if path == "/stream" { path } else { "/file" }, ""));
        let Stage { connection, context, .. } = &mut stage;
        let busy = connection.busy(context);
        match path {
            "/file" => busy.file.as_mut().unwrap().length = 4,
            "/stream" => busy.stream.as_mut().unwrap().taken = 9,
            // Bytes of a waiter.
            _ => busy.file = None,
        }
        if path != "/file" {
            (busy.output, busy.sent) = (vec![b'x'; 30], 25);
        }
        stages::log_pending_entry(connection, context);
        stages::log_pending_entry(connection, context);
        context.config.access.flush();
        writer.finish();
        let log = std::fs::read_to_string(folder.path("log")).unwrap();
        assert_eq!(log.lines().count(), 1);
        assert!(log.contains(&format!("HTTP/1.1\" 200 {expected} \"")), "{path}: {log}");
    }
}

/// Each byte buys time at the minimum rate, up to a full timeout from now.
#[test]
fn extends_the_deadline_of_a_slow_client_by_its_bytes() {
    let timeouts = Timeouts::default();
    for (phase, bytes, expected) in [
        (Phase::Body, 512, 1500),
        (Phase::Body, 1, 1001),
        (Phase::Body, 0, 1000),
        (Phase::Body, 1 << 30, timeouts.body.as_millis() as u64),
        (Phase::Writing, 1024, 2000),
        (Phase::Writing, 1 << 30, timeouts.write.as_millis() as u64),
        (Phase::Head, 1024, 1000),
    ] {
        let mut stage = Stage::new(None);
        let Stage { connection, context, .. } = &mut stage;
        connection.phase = phase;
        connection.deadline = context.clock.now().after(Duration::from_secs(1));
        stages::extend_deadline(connection, context, bytes);
        assert_eq!(stage.left(), Duration::from_millis(expected), "{phase:?} {bytes}");
    }
}

#[test]
fn ends_each_phase_at_its_deadline() {
    let _messages = capture();
    for (phase, collects, stopping, next, ending, status) in [
        (Phase::Idle, false, false, Next::Closed, Ending::Idle, ""),
        (Phase::Idle, false, true, Next::Closed, Ending::Drain, ""),
        (Phase::First, false, true, Next::Closed, Ending::Drain, ""),
        (Phase::First, false, false, Next::Closed, Ending::Timeout, ""),
        (Phase::Handshake, false, true, Next::Closed, Ending::Timeout, ""),
        (Phase::Writing, false, false, Next::Closed, Ending::Timeout, ""),
        (Phase::Lingering, false, false, Next::Closed, Ending::Timeout, ""),
        (Phase::Streaming, false, false, Next::Closed, Ending::Timeout, ""),
        (Phase::Body, false, false, Next::Closed, Ending::Timeout, ""),
        (Phase::Body, true, false, Next::Reply, Ending::Timeout, "HTTP/1.1 408 "),
        (Phase::Head, false, false, Next::Reply, Ending::Timeout, "HTTP/1.1 408 "),
        (Phase::Handler, false, false, Next::Reply, Ending::Timeout, "HTTP/1.1 504 "),
    ] {
        let mut stage = Stage::new(None);
        let Stage { connection, context, .. } = &mut stage;
        (connection.phase, context.stopping) = (phase, stopping);
        if collects {
            connection.busy(context).request = Some(request("/"));
        }
        assert_eq!(stages::expire(connection, context), next, "{phase:?}");
        assert_eq!(connection.ending, Some(ending), "{phase:?}");
        let output = std::str::from_utf8(&context.output).unwrap();
        assert!(output.starts_with(status) && output.is_empty() == status.is_empty(), "{output}");
        assert_eq!(connection.lingers, next == Next::Reply, "{phase:?}");
        assert!(!stages::is_collecting(connection));
    }
}

#[test]
fn lingers_until_the_client_closes_or_sends_too_much() {
    let mut stage = Stage::new(None);
    let Stage { connection, context, .. } = &mut stage;
    context.make_current(connection);
    context.has_new_input = true;
    stages::linger(connection, context);
    assert_eq!((connection.phase, connection.discard_allowance), (Phase::Lingering, 256 * 1024));
    assert!(context.input.is_empty() && !context.has_new_input);
    assert_eq!(stage.left(), Timeouts::default().linger);
    stage.client.write_all(&[b'x'; 1000]).unwrap();
    let Stage { connection, context, .. } = &mut stage;
    assert_eq!(stages::request(connection, context), Next::Idle);
    assert_eq!(connection.discard_allowance, 256 * 1024 - 1000);
    connection.discard_allowance = 5;
    context.is_socket_empty = false;
    stage.client.write_all(b"12345").unwrap();
    let Stage { connection, context, .. } = &mut stage;
    assert_eq!(stages::request(connection, context), Next::Idle, "exactly as much as allowed");
    context.is_socket_empty = false;
    stage.client.write_all(b"6").unwrap();
    let Stage { connection, context, .. } = &mut stage;
    assert_eq!(stages::request(connection, context), Next::Closed);
    assert_eq!(connection.ending, Some(Ending::Fault));
}

#[test]
fn sets_the_deadline_of_the_next_input_once() {
    let timeouts = Timeouts::default();
    let mut stage = Stage::new(None);
    stage.client.write_all(b"GET / HTTP").unwrap();
    stage.context.make_current(&mut stage.connection);
    let Stage { connection, context, .. } = &mut stage;
    assert_eq!(stages::request(connection, context), Next::Idle);
    assert_eq!((stage.connection.phase, stage.left()), (Phase::Head, timeouts.head));
    stage.context.clock.advance(Duration::from_secs(2));
    stage.client.write_all(b"/1.1\r\nHost").unwrap();
    stage.context.make_current(&mut stage.connection);
    let Stage { connection, context, .. } = &mut stage;
    assert_eq!(stages::request(connection, context), Next::Idle);
    // A head has a limit for its total time.
    let left = timeouts.head.saturating_sub(Duration::from_secs(2));
    assert_eq!((stage.connection.phase, stage.left()), (Phase::Head, left));
    let read = stage.context.tally.received.read();
    assert_eq!(read, 20);
    for (stopping, expected) in [(false, timeouts.idle), (true, stages::GRACE)] {
        let mut stage = Stage::new(None);
        stage.respond(&head("GET", "/written", ""));
        stage.context.stopping = stopping;
        let Stage { connection, context, .. } = &mut stage;
        assert_eq!(stages::reply(connection, context), Next::Request);
        assert_eq!(stages::request(connection, context), Next::Idle);
        assert_eq!((stage.connection.phase, stage.left()), (Phase::Idle, expected));
    }
}

#[test]
fn closes_after_its_last_reply_or_lingers() {
    for (lingers, input, stopping, expected) in [
        (false, 0..0, false, (Next::Closed, Ending::Reply)),
        (false, 0..0, true, (Next::Closed, Ending::Drain)),
        (false, 0..1, false, (Next::Request, Ending::Reply)),
        (true, 0..0, false, (Next::Request, Ending::Reply)),
    ] {
        let mut stage = Stage::new(None);
        let Stage { connection, context, .. } = &mut stage;
        context.make_current(connection);
        context.output = b"reply".to_vec();
        (connection.closing, connection.lingers) = (true, lingers);
        (context.input, context.stopping) = (input, stopping);
        let next = stages::reply(connection, context);
        assert_eq!((next, connection.ending.unwrap()), expected);
        assert_eq!(connection.phase == Phase::Lingering, next == Next::Request);
        assert_eq!(connection.hold, NO_HOLD);
    }
}

#[test]
fn hides_nothing_of_its_security_in_its_own_replies() {
    let mut stage = Stage::new(None);
    let settings = Settings { security: SecurityHeaders::NOSNIFF, ..Settings::default() };
    stage.context.config.settings = Arc::new(settings);
    let closing = stages::closing_exchange(&stage.context);
    let expected = Exchange { security: SecurityHeaders::NOSNIFF, ..Exchange::closing() };
    assert_eq!(closing, expected);
}
