//! One visitor: requests, waits, thinks, reconnects and gives up.

use std::collections::VecDeque;
use std::time::Duration;

use super::answer::Answer;
use super::script::{Request, Script};
use super::tally::{Close, Tally};
use crate::surge::Embedded;

/// The number of consecutive attempts to reach a server that closes or refuses the connection.
const TRIES: u32 = 5;
/// The time between two attempts.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);
/// The limit of redirects per page; more are a loop.
const REDIRECTS: u32 = 5;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    /// Its first page was answered 503.
    Refused,
    /// A later page was answered 503.
    Dropped,
    /// A response took longer than a visitor's patience.
    Late,
    /// Repeated connections failed.
    Unreachable,
    /// An invalid response, or one with a server error.
    Faulty,
}

impl End {
    pub(crate) const ALL: [Self; 6] = [
        Self::Completed,
        Self::Refused,
        Self::Dropped,
        Self::Late,
        Self::Unreachable,
        Self::Faulty,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Refused => "refused",
            Self::Dropped => "dropped",
            Self::Late => "late",
            Self::Unreachable => "unreachable",
            Self::Faulty => "faulty",
        }
    }
}

/// The pages and requests of a session so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) pages: u64,
    pub(crate) requests: u64,
}

/// One visitor. Owns no socket and reads no clock: callers pass times since the beginning of the
/// run.
///
/// Report events by the methods `on_..`; then query the next actions: [`ended`](Self::ended),
/// [`wants_connection`](Self::wants_connection), [`unsent`](Self::unsent),
/// [`deadline`](Self::deadline).
pub(crate) struct Session {
    script: Box<dyn Script>,
    patience: Duration,
    pub(crate) begun: Duration,
    /// Answered while the tally counts.
    pub(crate) counted: Work,
    pub(crate) answered: Work,
    cookies: Vec<(String, String)>,
    link: Link,
    /// Bytes of requests that the socket has not accepted yet.
    out: Vec<u8>,
    /// Requests without a response, in order.
    asked: VecDeque<Asked>,
    /// Embedded files that were not requested yet.
    parts: VecDeque<Embedded>,
    /// The next request after the think time.
    next: Option<(Duration, Request, Kind)>,
    answer: Answer,
    tries: u32,
    redirects: u32,
    ended: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// No connection before this time.
    None(Duration),
    Opening,
    /// Whether it has carried a response.
    Open(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Page,
    Part,
}

#[derive(Debug)]
struct Asked {
    at: Duration,
    request: Request,
    kind: Kind,
}

impl Session {
    /// A visitor who arrives `now`.
    pub(crate) fn new(script: Box<dyn Script>, patience: Duration, now: Duration) -> Self {
        let mut session = Self {
            script,
            patience,
            begun: now,
            counted: Work::default(),
            answered: Work::default(),
            cookies: Vec::new(),
            link: Link::None(now),
            out: Vec::new(),
            asked: VecDeque::new(),
            parts: VecDeque::new(),
            next: None,
            answer: Answer::default(),
            tries: 0,
            redirects: 0,
            ended: None,
        };
        session.turn(now);
        session
    }

    /// Reports that the wanted connection is being opened.
    pub(crate) fn on_opening(&mut self) {
        self.link = Link::Opening;
    }

    /// Reports that the connection is open.
    pub(crate) fn on_open(&mut self) {
        if self.link == Link::Opening {
            self.link = Link::Open(false);
        }
    }

    /// Reports that the first `count` bytes of [`unsent`](Self::unsent) were sent.
    pub(crate) fn on_sent(&mut self, count: usize) {
        self.out.drain(..count);
    }

    /// Reports that the server closed or refused the connection.
    pub(crate) fn on_closed(&mut self, now: Duration, tally: &mut Tally) {
        let was = self.link;
        self.out.clear();
        self.answer = Answer::default();
        self.link = Link::None(now);
        if was != Link::Opening {
            tally.on_closed(now, if self.asked.is_empty() { Close::Idle } else { Close::Asked });
        }
        if self.asked.is_empty() {
            return;
        }
        self.tries += 1;
        if self.tries > TRIES {
            self.ended = Some(End::Unreachable);
        } else if was != Link::Open(true) {
            // A kept connection that was closed is reopened at once; a server that refuses
            // connections is given time.
            self.link = Link::None(now + BETWEEN_TRIES);
        }
        self.ask_again();
    }

    /// Reports received bytes.
    pub(crate) fn on_bytes(&mut self, mut bytes: &[u8], now: Duration, tally: &mut Tally) {
        while !bytes.is_empty() && self.ended.is_none() && !self.is_unlinked() {
            let Some(asked) = self.asked.front() else {
                tally.record_error("bytes without a request");
                self.ended = Some(End::Faulty);
                return;
            };
            let keeps = asked.kind == Kind::Page && self.script.reads();
            match self.answer.receive(bytes, keeps) {
                Ok((taken, is_whole)) => {
                    bytes = &bytes[taken..];
                    if is_whole {
                        self.on_answer(now, tally);
                    }
                }
                Err(error) => {
                    tally.record_error(&error.to_string());
                    self.ended = Some(End::Faulty);
                }
            }
        }
    }

    /// Reports the time; the [`deadline`](Self::deadline) may have passed.
    pub(crate) fn on_time(&mut self, now: Duration, tally: &mut Tally) {
        let late = self.asked.front().filter(|asked| asked.at + self.patience <= now);
        if let Some(late) = late.filter(|_| self.ended.is_none()) {
            tally.on_late(now, now.saturating_sub(late.at), late.kind == Kind::Page);
            self.ended = Some(End::Late);
        }
        if let Some((_, request, kind)) = self.next.take_if(|(at, ..)| *at <= now) {
            self.ask(request, kind, now);
        }
    }

    pub(crate) fn ended(&self) -> Option<End> {
        self.ended
    }

    /// Whether it has requests and no connection; also after the server announced that it closes.
    pub(crate) fn wants_connection(&self, now: Duration) -> bool {
        let is_there = matches!(self.link, Link::None(from) if from <= now);
        is_there && !self.asked.is_empty() && self.ended.is_none()
    }

    /// Whether its connection is no longer usable.
    pub(crate) fn is_unlinked(&self) -> bool {
        matches!(self.link, Link::None(_))
    }

    pub(crate) fn unsent(&self) -> &[u8] {
        if matches!(self.link, Link::Open(_)) { &self.out } else { &[] }
    }

    /// The time of the next call of [`on_time`](Self::on_time).
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let late = self.asked.front().map(|asked| asked.at + self.patience);
        let next = self.next.as_ref().map(|(at, ..)| *at);
        let again = match self.link {
            Link::None(from) if !self.asked.is_empty() => Some(from),
            _ => None,
        };
        [late, next, again].into_iter().flatten().min()
    }

    /// The number of pages of an undisturbed session.
    pub(crate) fn length(&self) -> u64 {
        self.script.length()
    }

    fn on_answer(&mut self, now: Duration, tally: &mut Tally) {
        let answer = std::mem::take(&mut self.answer);
        let Some(asked) = self.asked.pop_front() else { return };
        let took = now.saturating_sub(asked.at);
        self.tries = 0;
        if answer.status == 503 {
            if answer.closes {
                tally.on_closed(now, Close::Refused);
            }
            let is_first = self.answered.pages == 0;
            tally.on_refusal(now, took, is_first, answer.retry_after);
            self.ended = Some(if is_first { End::Refused } else { End::Dropped });
            return;
        }
        let is_page = asked.kind == Kind::Page;
        let work = Work { pages: u64::from(is_page), requests: 1 };
        self.answered.pages += work.pages;
        self.answered.requests += work.requests;
        if tally.on_reply(now, took, is_page, answer.bytes) {
            self.counted.pages += work.pages;
            self.counted.requests += work.requests;
        }
        if answer.status >= 400 {
            // A client error (a bid that is too low) does not end the session; a server error does.
            let Request { method, path, .. } = &asked.request;
            tally.on_wrong(now, &format!("{method} {path}: {}", answer.status));
            if answer.status >= 500 {
                self.ended = Some(End::Faulty);
                return;
            }
        }
        for (name, value) in answer.cookies {
            self.cookies.retain(|(known, _)| *known != name);
            if !value.is_empty() {
                self.cookies.push((name, value));
            }
        }
        if answer.closes {
            tally.on_closed(now, Close::Announced);
            self.out.clear();
            self.link = Link::None(now);
            self.ask_again();
        } else {
            self.link = Link::Open(true);
        }
        match (asked.kind, answer.location) {
            (Kind::Page, Some(location)) if (300..400).contains(&answer.status) => {
                self.redirects += 1;
                if self.redirects > REDIRECTS {
                    tally
                        .record_error(&format!("{REDIRECTS} redirections, the last to {location}"));
                    self.ended = Some(End::Faulty);
                } else {
                    self.ask(Request::get(location), Kind::Page, now);
                }
                return;
            }
            (Kind::Page, _) => {
                self.redirects = 0;
                let parts = self.script.parts(&answer.body);
                self.parts = parts.files.into();
                if parts.is_pipelined {
                    for part in std::mem::take(&mut self.parts) {
                        self.ask(Request::get(part.path), Kind::Part, now);
                    }
                }
            }
            (Kind::Part, _) => {}
        }
        if self.asked.is_empty() {
            self.turn(now);
        }
    }

    /// Continues when all requests have responses.
    fn turn(&mut self, now: Duration) {
        let (wait, request, kind) = if let Some(part) = self.parts.pop_front() {
            (part.off, Request::get(part.path), Kind::Part)
        } else if let Some(page) = self.script.next() {
            (page.wait, page.request, Kind::Page)
        } else {
            self.ended = Some(End::Completed);
            return;
        };
        if wait > 0.0 {
            self.next = Some((now + Duration::from_secs_f64(wait), request, kind));
        } else {
            self.ask(request, kind, now);
        }
    }

    fn ask(&mut self, request: Request, kind: Kind, now: Duration) {
        self.write(&request);
        self.asked.push_back(Asked { at: now, request, kind });
    }

    /// Writes the unanswered requests for a new connection. Their times still count from the first
    /// attempt.
    fn ask_again(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        for asked in &asked {
            self.write(&asked.request);
        }
        self.asked = asked;
    }

    fn write(&mut self, request: &Request) {
        self.out.extend_from_slice(request.text(&self.cookies).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::script::{Page, Parts};

    const SECOND: Duration = Duration::from_secs(1);
    const PATIENCE: Duration = Duration::from_secs(10);
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    /// A script with pages `/0`, `/1` and so on, each with a number of files.
    struct Counting {
        pages: u64,
        next: u64,
        files: u64,
        is_pipelined: bool,
    }

    impl Script for Counting {
        fn next(&mut self) -> Option<Page> {
            let number = self.next;
            self.next += 1;
            let wait = if number == 0 { 0.0 } else { 7.0 };
            let request = Request::get(format!("/{number}"));
            (number < self.pages).then_some(Page { wait, request })
        }

        fn parts(&mut self, body: &[u8]) -> Parts {
            assert_eq!(body, b"ok");
            let part = |number| Embedded { off: 2.0, path: format!("/part{number}") };
            Parts { files: (0..self.files).map(part).collect(), is_pipelined: self.is_pipelined }
        }

        fn reads(&self) -> bool {
            true
        }

        fn length(&self) -> u64 {
            self.pages
        }
    }

    /// A visitor, the tally, and the time.
    struct Scene {
        session: Session,
        tally: Tally,
        now: Duration,
    }

    impl Scene {
        fn new(pages: u64, files: u64, is_pipelined: bool) -> Self {
            let script = Box::new(Counting { pages, next: 0, files, is_pipelined });
            let session = Session::new(script, PATIENCE, Duration::ZERO);
            let tally = Tally::new(Duration::ZERO..1000 * SECOND, &[1]);
            Self { session, tally, now: Duration::ZERO }
        }

        /// Opens a connection, which must be wanted.
        fn open(&mut self) -> &mut Self {
            assert!(self.session.wants_connection(self.now));
            self.session.on_opening();
            assert!(self.session.unsent().is_empty());
            self.session.on_open();
            self
        }

        /// The targets of the requests sent now.
        fn sent(&mut self) -> Vec<String> {
            let text = String::from_utf8(self.session.unsent().to_vec()).unwrap();
            self.session.on_sent(text.len());
            let lines = text.lines().filter(|line| line.starts_with("GET "));
            lines.map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
        }

        fn receive(&mut self, bytes: &[u8]) {
            self.session.on_bytes(bytes, self.now, &mut self.tally);
        }

        fn close(&mut self) {
            self.session.on_closed(self.now, &mut self.tally);
        }

        fn pass(&mut self, time: Duration) {
            self.now += time;
            self.session.on_time(self.now, &mut self.tally);
        }
    }

    #[test]
    fn requests_a_page_and_its_files_in_order_then_thinks() {
        let mut scene = Scene::new(2, 1, false);
        assert_eq!(scene.open().sent(), ["/0"]);
        scene.receive(&OK[..9]);
        scene.receive(&OK[9..]);
        assert_eq!(scene.session.deadline(), Some(2 * SECOND));
        scene.pass(2 * SECOND);
        assert_eq!(scene.sent(), ["/part0"]);
        scene.receive(OK);
        scene.pass(6 * SECOND);
        assert!(scene.sent().is_empty(), "a second too early");
        scene.pass(SECOND);
        assert_eq!(scene.sent(), ["/1"]);
        scene.receive(OK);
        scene.pass(2 * SECOND);
        scene.receive(OK);
        assert_eq!(scene.session.ended(), Some(End::Completed));
        assert_eq!(scene.session.answered, Work { pages: 2, requests: 4 });
        assert_eq!((scene.tally.pages.count(), scene.tally.files.count()), (2, 2));
    }

    #[test]
    fn pipelines_files() {
        let mut scene = Scene::new(1, 3, true);
        scene.open().sent();
        scene.receive(OK);
        assert_eq!(scene.sent(), ["/part0", "/part1", "/part2"]);
        scene.receive(&[OK, OK, OK].concat());
        assert_eq!(scene.session.ended(), Some(End::Completed));
    }

    #[test]
    fn reopens_a_closed_idle_connection_with_the_next_page() {
        let mut scene = Scene::new(2, 0, false);
        scene.open().sent();
        scene.receive(OK);
        scene.close();
        assert_eq!(scene.tally.closed, [1, 0, 0, 0]);
        assert!(!scene.session.wants_connection(scene.now), "no request yet");
        scene.pass(7 * SECOND);
        assert_eq!(scene.open().sent(), ["/1"]);
    }

    #[test]
    fn repeats_unanswered_requests_on_a_new_connection() {
        let mut scene = Scene::new(1, 2, true);
        scene.open().sent();
        scene.receive(OK);
        scene.sent();
        scene.receive(&[OK, &OK[..20]].concat());
        scene.close();
        assert_eq!(scene.tally.closed, [0, 1, 0, 0]);
        assert_eq!(scene.open().sent(), ["/part1"]);
        scene.receive(OK);
        assert_eq!(scene.session.ended(), Some(End::Completed));
    }

    #[test]
    fn leaves_a_server_that_announces_a_close() {
        let mut scene = Scene::new(2, 0, false);
        scene.open().sent();
        scene.receive(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        assert!(scene.session.is_unlinked());
        assert_eq!(scene.tally.closed, [0, 0, 1, 0]);
        scene.pass(7 * SECOND);
        assert_eq!(scene.open().sent(), ["/1"]);
    }

    #[test]
    fn retries_an_unreachable_server_five_times_a_second_apart() {
        let mut scene = Scene::new(1, 0, false);
        for _ in 0..5 {
            scene.open();
            scene.close();
            assert!(!scene.session.wants_connection(scene.now));
            assert_eq!(scene.session.deadline(), Some(scene.now + SECOND));
            scene.pass(SECOND);
        }
        scene.open();
        scene.close();
        assert_eq!(scene.session.ended(), Some(End::Unreachable));
    }

    #[test]
    fn ends_a_session_after_the_patience() {
        let mut scene = Scene::new(1, 0, false);
        scene.open().sent();
        scene.pass(9 * SECOND);
        assert_eq!(scene.session.ended(), None);
        scene.pass(SECOND);
        assert_eq!(scene.session.ended(), Some(End::Late));
        assert_eq!(
            scene.tally.page_waits.quantile(0.99).to_bits(),
            1e7_f64.to_bits(),
            "it waited, too"
        );
        assert_eq!(scene.tally.pages.count(), 0, "and had no answer");
    }

    #[test]
    fn refuses_on_a_first_503_and_drops_on_a_later_one() {
        let refusal = b"HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n";
        let mut scene = Scene::new(2, 0, false);
        scene.open().sent();
        scene.receive(refusal);
        assert_eq!(scene.session.ended(), Some(End::Refused));
        assert_eq!((scene.tally.refusals.count(), scene.tally.retry_after), (1, 9));

        let mut scene = Scene::new(2, 0, false);
        scene.open().sent();
        scene.receive(OK);
        scene.pass(7 * SECOND);
        scene.receive(refusal);
        assert_eq!(scene.session.ended(), Some(End::Dropped));
        assert_eq!(scene.tally.refusals.count(), 0, "the first page only");
    }

    #[test]
    fn counts_a_503_that_closes_as_a_close_by_the_server() {
        let closing = b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let mut scene = Scene::new(2, 0, false);
        scene.open().sent();
        scene.receive(closing);
        assert_eq!(scene.session.ended(), Some(End::Refused));
        assert_eq!(scene.tally.closed, [0, 0, 0, 1]);

        let mut scene = Scene::new(2, 0, false);
        scene.open().sent();
        scene.receive(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(scene.tally.closed, [0; 4], "the connection stays open");
    }

    #[test]
    fn returns_cookies_and_follows_redirects() {
        let mut scene = Scene::new(1, 0, false);
        scene.open().sent();
        scene.receive(
            b"HTTP/1.1 303 See Other\r\nLocation: /there\r\nSet-Cookie: ticket=t; Path=/\r\nSet-Cookie: a=b\r\n\
              Content-Length: 0\r\n\r\n",
        );
        let text = String::from_utf8(scene.session.unsent().to_vec()).unwrap();
        assert!(text.starts_with("GET /there HTTP/1.1\r\n"), "{text}");
        assert!(text.contains("\r\nCookie: ticket=t; a=b\r\n"), "{text}");
        scene.receive(OK);
        assert_eq!(scene.session.ended(), Some(End::Completed));
    }

    #[test]
    fn records_errors_and_ends_the_session_on_server_errors_only() {
        let mut scene = Scene::new(2, 0, false);
        scene.open().sent();
        scene.receive(b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nok");
        assert_eq!(scene.session.ended(), None);
        scene.pass(7 * SECOND);
        scene.receive(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(scene.session.ended(), Some(End::Faulty));
        assert_eq!(scene.tally.errors, ["GET /0: 409", "GET /1: 500"]);
        assert_eq!(scene.tally.wrong, 2);
    }
}
