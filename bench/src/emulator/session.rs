//! Decides what one visitor does: asks, waits, thinks, comes back when the connection was closed, and gives up.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use super::answer::Answer;
use super::script::{Request, Script};
use super::tally::{Close, Tally};
use crate::surge::Embedded;

/// How often in a row a visitor tries to reach a server that closes or refuses the connection.
const TRIES: u32 = 5;
/// Between two of these tries.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);
/// Of one page; more go in circles.
const REDIRECTS: u32 = 5;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    /// Its first page was answered 503.
    Refused,
    /// A later one was.
    Dropped,
    /// An answer took longer than a visitor's patience.
    Late,
    /// The server could not be reached again and again.
    Unreachable,
    /// An answer that is none, or says that the server has failed.
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

/// What a session has had so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) pages: u64,
    pub(crate) requests: u64,
}

/// One visitor. Owns no socket and reads no clock: times are told, since the beginning of the run.
///
/// Tell it what happens by the methods `on_..`; then see what it wants: [`ended`](Self::ended),
/// [`wants_connection`](Self::wants_connection), [`unsent`](Self::unsent), [`deadline`](Self::deadline).
pub(crate) struct Session {
    script: Box<dyn Script>,
    patience: Duration,
    pub(crate) begun: Duration,
    /// Answered while the tally counts.
    pub(crate) counted: Work,
    pub(crate) answered: Work,
    cookies: Vec<(String, String)>,
    link: Link,
    /// Of requests, what the socket has not taken yet.
    out: Vec<u8>,
    /// Requests without an answer, in order.
    asked: VecDeque<Asked>,
    /// What the page embeds and was not asked for.
    parts: VecDeque<Embedded>,
    /// What is asked for when it was thought long enough.
    next: Option<(Duration, Request, Kind)>,
    answer: Answer,
    tries: u32,
    redirects: u32,
    ended: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// None before this time.
    None(Duration),
    Opening,
    /// Whether it has carried an answer.
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
    /// A visitor who comes `now`.
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

    /// The connection that it wanted is being opened.
    pub(crate) fn on_opening(&mut self) {
        self.link = Link::Opening;
    }

    /// It is open.
    pub(crate) fn on_open(&mut self) {
        if self.link == Link::Opening {
            self.link = Link::Open(false);
        }
    }

    /// The first `count` bytes of [`unsent`](Self::unsent) have left.
    pub(crate) fn on_sent(&mut self, count: usize) {
        self.out.drain(..count);
    }

    /// The server has closed or refused the connection.
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
            // A kept connection that is gone is opened again at once; a server that takes none is given time.
            self.link = Link::None(now + BETWEEN_TRIES);
        }
        self.ask_again();
    }

    /// These bytes have come.
    pub(crate) fn on_bytes(&mut self, mut bytes: &[u8], now: Duration, tally: &mut Tally) {
        while !bytes.is_empty() && self.ended.is_none() && !self.is_unlinked() {
            let Some(asked) = self.asked.front() else {
                tally.tell("bytes that nobody asked for");
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
                    tally.tell(&error.to_string());
                    self.ended = Some(End::Faulty);
                }
            }
        }
    }

    /// It is now later; the [`deadline`](Self::deadline) may have passed.
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

    /// Whether it has something to ask and nobody to ask; also after the server told that it closes.
    pub(crate) fn wants_connection(&self, now: Duration) -> bool {
        let is_there = matches!(self.link, Link::None(from) if from <= now);
        is_there && !self.asked.is_empty() && self.ended.is_none()
    }

    /// Whether the connection it has is of no more use.
    pub(crate) fn is_unlinked(&self) -> bool {
        matches!(self.link, Link::None(_))
    }

    pub(crate) fn unsent(&self) -> &[u8] {
        if matches!(self.link, Link::Open(_)) { &self.out } else { &[] }
    }

    /// When it must be told the time.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let late = self.asked.front().map(|asked| asked.at + self.patience);
        let next = self.next.as_ref().map(|(at, ..)| *at);
        let again = match self.link {
            Link::None(from) if !self.asked.is_empty() => Some(from),
            _ => None,
        };
        [late, next, again].into_iter().flatten().min()
    }

    /// Pages that it is to have if nothing stops it.
    pub(crate) fn length(&self) -> u64 {
        self.script.length()
    }

    fn on_answer(&mut self, now: Duration, tally: &mut Tally) {
        let answer = std::mem::take(&mut self.answer);
        let Some(asked) = self.asked.pop_front() else { return };
        let took = now.saturating_sub(asked.at);
        self.tries = 0;
        if answer.status == 503 {
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
            // Whoever is told that a bid is too low goes on; whoever is told that the server has failed does not.
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
            tally.on_closed(now, Close::Told);
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
                    tally.tell(&format!("{REDIRECTS} redirections, the last to {location}"));
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

    /// What comes when all that was asked for is there.
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

    /// On another connection: what was asked for and not answered. The times go on from the first asking.
    fn ask_again(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        for asked in &asked {
            self.write(&asked.request);
        }
        self.asked = asked;
    }

    fn write(&mut self, request: &Request) {
        let mut head =
            format!("{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\n", request.method, request.path);
        for (place, (name, value)) in self.cookies.iter().enumerate() {
            let before = if place == 0 { "Cookie: " } else { "; " };
            let _ = write!(head, "{before}{name}={value}");
        }
        if !self.cookies.is_empty() {
            head += "\r\n";
        }
        if let Some(body) = &request.body {
            let _ = write!(
                head,
                "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                 Content-Length: {}\r\n",
                body.len()
            );
        }
        head += "\r\n";
        head += request.body.as_deref().unwrap_or_default();
        self.out.extend_from_slice(head.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::script::{Page, Parts};

    const SECOND: Duration = Duration::from_secs(1);
    const PATIENCE: Duration = Duration::from_secs(10);
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    /// Pages `/0`, `/1` and so on, each with as many files.
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

        /// What is sent now: the targets.
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
    fn a_page_and_its_parts_are_asked_for_one_by_one_and_then_it_is_thought() {
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
    fn pipelined_parts_are_asked_for_behind_each_other() {
        let mut scene = Scene::new(1, 3, true);
        scene.open().sent();
        scene.receive(OK);
        assert_eq!(scene.sent(), ["/part0", "/part1", "/part2"]);
        scene.receive(&[OK, OK, OK].concat());
        assert_eq!(scene.session.ended(), Some(End::Completed));
    }

    #[test]
    fn a_connection_that_was_closed_meanwhile_is_counted_and_opened_with_the_next_page() {
        let mut scene = Scene::new(2, 0, false);
        scene.open().sent();
        scene.receive(OK);
        scene.close();
        assert_eq!(scene.tally.closed, [1, 0, 0]);
        assert!(!scene.session.wants_connection(scene.now), "nothing to ask yet");
        scene.pass(7 * SECOND);
        assert_eq!(scene.open().sent(), ["/1"]);
    }

    #[test]
    fn what_was_not_answered_is_asked_again_at_once_on_another_connection() {
        let mut scene = Scene::new(1, 2, true);
        scene.open().sent();
        scene.receive(OK);
        scene.sent();
        scene.receive(&[OK, &OK[..20]].concat());
        scene.close();
        assert_eq!(scene.tally.closed, [0, 1, 0]);
        assert_eq!(scene.open().sent(), ["/part1"]);
        scene.receive(OK);
        assert_eq!(scene.session.ended(), Some(End::Completed));
    }

    #[test]
    fn a_server_that_says_it_closes_is_left() {
        let mut scene = Scene::new(2, 0, false);
        scene.open().sent();
        scene.receive(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        assert!(scene.session.is_unlinked());
        assert_eq!(scene.tally.closed, [0, 0, 1]);
        scene.pass(7 * SECOND);
        assert_eq!(scene.open().sent(), ["/1"]);
    }

    #[test]
    fn whoever_cannot_be_reached_is_tried_five_times_a_second_apart() {
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
    fn an_answer_that_takes_longer_than_the_patience_ends_the_session() {
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
    fn a_503_refuses_at_the_door_and_drops_later() {
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
        assert_eq!(scene.tally.refusals.count(), 0, "the door alone");
    }

    #[test]
    fn cookies_are_kept_and_shown_and_redirections_followed() {
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
    fn what_is_wrong_is_told_and_only_a_failure_of_the_server_ends_the_session() {
        let mut scene = Scene::new(2, 0, false);
        scene.open().sent();
        scene.receive(b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nok");
        assert_eq!(scene.session.ended(), None);
        scene.pass(7 * SECOND);
        scene.receive(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(scene.session.ended(), Some(End::Faulty));
        assert_eq!(scene.tally.told, ["GET /0: 409", "GET /1: 500"]);
        assert_eq!(scene.tally.wrong, 2);
    }
}
