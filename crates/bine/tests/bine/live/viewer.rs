//! Decides how a test looks at a page as a browser does: it fetches it, follows it, and puts in place what it is sent.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use crate::harness::{PATIENCE, Peer, Program, Reply};

/// One open page.
pub(super) struct Viewer {
    address: SocketAddr,
    target: String,
    /// Lines of the head that it sends with every request.
    pub(super) fields: String,
    is_poll: bool,
    /// By which it follows.
    peer: Option<Peer>,
    /// What came of the stream and is no whole event yet.
    rest: String,
    events: VecDeque<Event>,
    pub(super) regions: Vec<Region>,
    /// What its page says of whom it was made for.
    made_for: Option<String>,
    /// All that the stream or the polls have brought since it was opened.
    pub(super) heard: String,
}

/// What a viewer is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// This region is another now.
    Patch(usize),
    /// The page is to be fetched again.
    Reload,
    /// Its stream is over, or was not granted, by this status.
    Over(u16),
}

/// What stands between two marks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Region {
    pub(super) hash: String,
    pub(super) markup: String,
}

impl Viewer {
    /// Fetches a page and follows it by events.
    pub(super) fn of(program: &Program, target: &str) -> Self {
        Self::with(program, target, "", false).opened()
    }

    /// The same by polls.
    pub(super) fn polling(program: &Program, target: &str) -> Self {
        Self::with(program, target, "", true).opened()
    }

    /// The same by events, as somebody of whom more is known.
    pub(super) fn known(program: &Program, target: &str, fields: &str) -> Self {
        Self::with(program, target, fields, false).opened()
    }

    /// One that has not looked at its page yet.
    pub(super) fn with(program: &Program, target: &str, fields: &str, is_poll: bool) -> Self {
        Self {
            address: program.address(),
            target: target.to_owned(),
            fields: fields.to_owned(),
            is_poll,
            peer: None,
            rest: String::new(),
            events: VecDeque::new(),
            regions: Vec::new(),
            made_for: None,
            heard: String::new(),
        }
    }

    fn opened(mut self) -> Self {
        self.load();
        assert_eq!(self.follow(), 200, "{}", self.target);
        self
    }

    /// Fetches the page.
    pub(super) fn fetch(&self) -> Reply {
        let mut peer = Peer::tcp(self.address);
        let Self { target, fields, .. } = self;
        peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        peer.reply()
    }

    /// Shows the page as it is now.
    pub(super) fn load(&mut self) {
        let page = self.fetch();
        assert_eq!(page.status(), 200, "{}: {page:?}", self.target);
        self.regions = regions(page.text());
        let mark =
            page.text().split_once("<!--/live 999 ").and_then(|(_, mark)| mark.split_once("-->"));
        self.made_for = mark.map(|(word, _)| word.to_owned());
    }

    /// What its regions would be if it were fetched now.
    pub(super) fn fresh(&self) -> Vec<Region> {
        let page = self.fetch();
        assert_eq!(page.status(), 200, "{}: {page:?}", self.target);
        regions(page.text())
    }

    /// Asks to follow what it shows. It says by which status it was granted: for one that polls, 200 is not known yet.
    pub(super) fn follow(&mut self) -> u16 {
        self.rest.clear();
        self.events.clear();
        self.ask();
        let Some(peer) = &mut self.peer else { return 200 };
        if self.is_poll {
            return 200;
        }
        let head = peer.await_text("\r\n\r\n");
        let status = head["HTTP/1.1 ".len()..][..3].parse().unwrap();
        if status == 200 {
            assert!(head.contains("text/event-stream"), "{head}");
            if head.contains("Content-Length") {
                // It is over as soon as it is read.
                let all = peer.await_text("\n\n");
                self.peer = None;
                self.take(&all);
            }
        } else {
            self.peer = None;
        }
        status
    }

    /// Its connection is lost.
    pub(super) fn leave(&mut self) {
        self.peer = None;
    }

    /// As after a lost connection, or a server that was started again: what it shows stays.
    pub(super) fn follow_at(&mut self, program: &Program) -> u16 {
        self.address = program.address();
        self.follow()
    }

    fn ask(&mut self) {
        let mut peer = Peer::tcp(self.address);
        peer.send(self.request());
        self.peer = Some(peer);
    }

    fn request(&self) -> String {
        let have = self.regions.iter().enumerate();
        let have = have.map(|(number, own)| format!("{number}.{}", own.hash));
        let have: Vec<_> =
            have.chain(self.made_for.iter().map(|word| format!("999.{word}"))).collect();
        let (page, have) = (encoded(&self.target), have.join(","));
        let accept = if self.is_poll { "*/*" } else { "text/event-stream" };
        let fields = &self.fields;
        format!(
            "GET /_bine/live?page={page}&have={have} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n{fields}\r\n"
        )
    }

    /// Waits for what comes next, and shows it.
    pub(super) fn next(&mut self) -> Event {
        // A stream shows that it lives, also when nothing else comes.
        let patience = Instant::now() + PATIENCE;
        while self.events.is_empty() {
            assert!(Instant::now() < patience, "nothing comes of {}", self.target);
            if self.is_poll {
                self.hear_poll();
            } else {
                self.hear_stream();
            }
        }
        self.events.pop_front().unwrap()
    }

    /// Waits until it is told that the page is not for it as it was, regions and all. What it has shown until then is what
    /// comes before.
    pub(super) fn await_farewell(&mut self) {
        loop {
            match self.next() {
                Event::Patch(_) => {}
                Event::Reload => return,
                Event::Over(status) => panic!("{} ended without a word: {status}", self.target),
            }
        }
    }

    /// Waits until a region shows this text, and says what came until then. Whatever else comes is shown too, and the
    /// page is fetched again if that is said.
    pub(super) fn await_shown(&mut self, text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        while !self.shows(text) {
            let event = self.next();
            match event {
                Event::Patch(_) => {}
                Event::Reload => {
                    self.load();
                    assert_eq!(self.follow(), 200, "{}", self.target);
                }
                Event::Over(status) => panic!("{} is over, by {status}", self.target),
            }
            events.push(event);
        }
        events
    }

    pub(super) fn shows(&self, text: &str) -> bool {
        self.regions.iter().any(|region| region.markup.contains(text))
    }

    /// The answer of one poll.
    fn hear_poll(&mut self) {
        // Polls of one browser go over one connection, which the server may close between them.
        let reply = self.peer.take().unwrap().reply();
        match reply.status() {
            200 => {
                self.heard.push_str(reply.text());
                let told: serde_json::Value = serde_json::from_str(reply.text()).unwrap();
                for event in told.as_array().unwrap() {
                    let data = event["data"].as_str().unwrap_or_default();
                    self.on_event(event["event"].as_str().unwrap(), data);
                }
                self.ask();
            }
            204 => self.ask(),
            status => self.events.push_back(Event::Over(status)),
        }
    }

    /// The next piece of the stream.
    fn hear_stream(&mut self) {
        let Some(peer) = &mut self.peer else { return self.events.push_back(Event::Over(200)) };
        let piece = String::from_utf8(peer.chunk()).unwrap();
        if piece.is_empty() {
            self.peer = None;
            return;
        }
        self.take(&piece);
    }

    fn take(&mut self, piece: &str) {
        self.heard.push_str(piece);
        self.rest.push_str(piece);
        while let Some((event, rest)) = self.rest.split_once("\n\n") {
            let value = |name: &str| {
                let lines = event.lines().filter_map(|line| line.strip_prefix(name));
                lines.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect::<Vec<_>>()
            };
            let (name, data) = (value("event:").concat(), value("data:").join("\n"));
            self.rest = rest.to_owned();
            // A comment or a mark shows that the stream lives.
            if !name.is_empty() {
                self.on_event(&name, &data);
            }
        }
    }

    fn on_event(&mut self, name: &str, data: &str) {
        let event = match name {
            "patch" => {
                let (first, markup) = data.split_once('\n').unwrap_or((data, ""));
                let (number, hash) = first.split_once(' ').unwrap();
                let number = number.parse().unwrap();
                let region = Region { hash: hash.to_owned(), markup: markup.to_owned() };
                self.regions[number] = region;
                Event::Patch(number)
            }
            "reload" => Event::Reload,
            other => panic!("no event of a page: {other} {data}"),
        };
        self.events.push_back(event);
    }
}

/// The regions of a page, by its marks.
pub(super) fn regions(page: &str) -> Vec<Region> {
    let (mut regions, mut rest) = (Vec::new(), page);
    loop {
        let number = regions.len();
        let (begin, end) = (format!("<!--live {number}-->"), format!("<!--/live {number} "));
        let Some((_, behind)) = rest.split_once(&begin) else { return regions };
        let (markup, behind) = behind.split_once(&end).unwrap();
        let (hash, behind) = behind.split_once("-->").unwrap();
        assert_eq!(hash.len(), 22, "{page}");
        regions.push(Region { hash: hash.to_owned(), markup: markup.to_owned() });
        rest = behind;
    }
}

/// As it stands in a query.
pub(super) fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
