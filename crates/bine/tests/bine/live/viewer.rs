//! A viewer: loads a page, follows it and applies updates, as a browser does.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use crate::harness::{PATIENCE, Peer, Program, Reply};

/// One open page.
pub(super) struct Viewer {
    address: SocketAddr,
    target: String,
    /// Header fields of each request.
    pub(super) fields: String,
    is_poll: bool,
    /// Connection of the stream or poll.
    peer: Option<Peer>,
    /// The incomplete last event of the stream.
    rest: String,
    events: VecDeque<Event>,
    pub(super) regions: Vec<Region>,
    /// Marker of the page's audience.
    audience: Option<String>,
    /// Marker of the version of the program.
    pub(super) version: Option<String>,
    /// The data of the last request to load the page again.
    pub(super) reload_data: String,
    /// All data of the stream or the polls.
    pub(super) received: String,
}

/// An update for a viewer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The region has new markup.
    Patch(usize),
    /// The page must be loaded again.
    Reload,
    /// The stream has ended or was refused, with this status.
    Over(u16),
}

/// A region between its markers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Region {
    pub(super) hash: String,
    pub(super) markup: String,
}

impl Viewer {
    /// Loads a page and follows it by an event stream.
    pub(super) fn of(program: &Program, target: &str) -> Self {
        Self::with(program, target, "", false).opened()
    }

    /// Loads a page and follows it by polls.
    pub(super) fn polling(program: &Program, target: &str) -> Self {
        Self::with(program, target, "", true).opened()
    }

    /// Loads a page with these header fields and follows it by an event stream.
    pub(super) fn known(program: &Program, target: &str, fields: &str) -> Self {
        Self::with(program, target, fields, false).opened()
    }

    /// Returns a viewer that has not loaded its page yet.
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
            audience: None,
            version: None,
            reload_data: String::new(),
            received: String::new(),
        }
    }

    fn opened(mut self) -> Self {
        self.load();
        assert_eq!(self.follow(), 200, "{}", self.target);
        self
    }

    /// Requests the page.
    pub(super) fn fetch(&self) -> Reply {
        let mut peer = Peer::tcp(self.address);
        let Self { target, fields, .. } = self;
        peer.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        peer.reply()
    }

    /// Loads the current page.
    pub(super) fn load(&mut self) {
        let page = self.fetch();
        assert_eq!(page.status(), 200, "{}: {page:?}", self.target);
        self.regions = regions(page.text());
        let mark = |number: u32| {
            let (_, mark) = page.text().split_once(&format!("<!--/live {number} "))?;
            mark.split_once("-->").map(|(word, _)| word.to_owned())
        };
        (self.audience, self.version) = (mark(999), mark(998));
    }

    /// Returns the regions of a new response.
    pub(super) fn fresh(&self) -> Vec<Region> {
        let page = self.fetch();
        assert_eq!(page.status(), 200, "{}: {page:?}", self.target);
        regions(page.text())
    }

    /// Requests updates of the page. Returns the status; a poll assumes 200, which is not known
    /// yet.
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
                // A response with a length ends at once.
                let all = peer.await_text("\n\n");
                self.peer = None;
                self.take(&all);
            }
        } else {
            self.peer = None;
        }
        status
    }

    /// Drops the connection.
    pub(super) fn leave(&mut self) {
        self.peer = None;
    }

    /// Reconnects to a restarted server with the regions shown.
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
        let have: Vec<_> = have
            .chain(self.version.iter().map(|word| format!("998.{word}")))
            .chain(self.audience.iter().map(|word| format!("999.{word}")))
            .collect();
        let (page, have) = (encoded(&self.target), have.join(","));
        let accept = if self.is_poll { "*/*" } else { "text/event-stream" };
        let fields = &self.fields;
        format!(
            "GET /_bine/live?page={page}&have={have} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n{fields}\r\n"
        )
    }

    /// Waits for the next update and applies it.
    pub(super) fn next(&mut self) -> Event {
        // Keep-alive data may arrive while there is no update.
        let patience = Instant::now() + PATIENCE;
        while self.events.is_empty() {
            assert!(Instant::now() < patience, "no update of {}", self.target);
            if self.is_poll {
                self.read_poll();
            } else {
                self.read_stream();
            }
        }
        self.events.pop_front().unwrap()
    }

    /// Waits until the server asks for a reload because the audience has changed. Patches may
    /// arrive before.
    pub(super) fn await_reload(&mut self) {
        loop {
            match self.next() {
                Event::Patch(_) => {}
                Event::Reload => return,
                Event::Over(status) => panic!("{} ended without a word: {status}", self.target),
            }
        }
    }

    /// Waits until a region contains this text. Returns the updates until then, which are applied,
    /// with a reload if requested.
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

    /// Reads the response of a poll.
    fn read_poll(&mut self) {
        // A browser reuses one connection for polls, which the server may close in between.
        let reply = self.peer.take().unwrap().reply();
        match reply.status() {
            200 => {
                self.received.push_str(reply.text());
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

    /// Reads the next piece of the stream.
    fn read_stream(&mut self) {
        let Some(peer) = &mut self.peer else { return self.events.push_back(Event::Over(200)) };
        let piece = String::from_utf8(peer.chunk()).unwrap();
        if piece.is_empty() {
            self.peer = None;
            return;
        }
        self.take(&piece);
    }

    fn take(&mut self, piece: &str) {
        self.received.push_str(piece);
        self.rest.push_str(piece);
        while let Some((event, rest)) = self.rest.split_once("\n\n") {
            let value = |name: &str| {
                let lines = event.lines().filter_map(|line| line.strip_prefix(name));
                lines.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect::<Vec<_>>()
            };
            let (name, data) = (value("event:").concat(), value("data:").join("\n"));
            self.rest = rest.to_owned();
            // Comments and marks only keep the stream alive.
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
            "reload" => {
                data.clone_into(&mut self.reload_data);
                Event::Reload
            }
            other => panic!("no event of a page: {other} {data}"),
        };
        self.events.push_back(event);
    }
}

/// Parses the regions of a page by their markers.
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

/// Percent-encodes a text for a query.
pub(super) fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
