//! Decides what is in a tab: the page that an answer makes, kept as its stream says.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Instant;

use bine_html::tree::{Element, Node, Tree};
use bine_http::Method;
use serde_json::Value;

use super::address;
use super::document;
use super::exchange::{Reply, Request};
use super::regions;
use super::stream::{News, Opened, Stream};
use super::visitor::Visitor;

/// A page as it is shown.
#[derive(Debug)]
pub(super) struct Shown {
    /// Path and query.
    pub(super) url: String,
    pub(super) status: u16,
    pub(super) tree: Tree,
    /// It has the script that sends forms and follows the page.
    pub(super) has_script: bool,
    markup: String,
    /// What is wrong with what the form of this number has sent.
    alert: Option<(usize, Vec<String>)>,
    /// Names of events that somebody listens to.
    on: Vec<String>,
    /// Those that came, by their cursors; nothing of one that was looked at.
    events: BTreeMap<String, Option<(String, Value)>>,
    stream: Option<Stream>,
    /// How often the stream was opened since anything came by it.
    attempts: usize,
    /// What has come by it.
    patches: usize,
    /// How often the page was to be asked for again since the test wanted something.
    reloads: usize,
    /// Why the page is no longer followed.
    left: Option<String>,
}

/// The script of this program's pages.
const SCRIPT: &str = "script[type=module][src^=\"/_bine/live-\"]";
/// A tab that is sent on more often goes in a circle.
const MOST_REDIRECTS: usize = 20;
/// A stream that ends so often without a word is given up.
const MOST_ATTEMPTS: usize = 5;
/// A page that is to be asked for again so often while one thing is expected goes in a circle.
const MOST_RELOADS: usize = 20;
/// What a browser would like to see in a tab.
const PAGES: &str = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";

impl Shown {
    /// The page that a request leads to.
    ///
    /// # Errors
    ///
    /// No answer came, or none of this site.
    pub(super) fn load(visitor: &Visitor, request: Request) -> Result<Self, String> {
        let answer = asked(visitor, request.field("Accept", PAGES))?;
        Ok(Self::of(visitor, answer))
    }

    /// The page that an answer makes, which is followed if it has regions.
    pub(super) fn of(visitor: &Visitor, answer: (String, Reply)) -> Self {
        let mut shown = Self::made_of(answer);
        shown.follow(visitor);
        shown
    }

    fn made_of((url, reply): (String, Reply)) -> Self {
        let text = String::from_utf8_lossy(reply.bytes());
        // Other text is shown as it is.
        let markup = match reply.media_type() {
            "text/html" => text.into_owned(),
            _ => format!("<pre>{}</pre>", text.replace('&', "&amp;").replace('<', "&lt;")),
        };
        let tree = document::read(&markup, true);
        let has_script = tree.find(SCRIPT).is_ok_and(|script| script.is_some());
        // Without that script a page is what a browser without any makes of it.
        let tree = if has_script { tree } else { document::read(&markup, false) };
        Self {
            url,
            status: reply.status(),
            tree,
            has_script,
            markup,
            alert: None,
            on: Vec::new(),
            events: BTreeMap::new(),
            stream: None,
            attempts: 0,
            patches: 0,
            reloads: 0,
            left: None,
        }
    }

    /// Listens to an event besides. False: it cannot be, and all is as it was.
    pub(super) fn listen(&mut self, visitor: &Visitor, event: &str) -> bool {
        if self.stream.is_some() && self.on.iter().any(|own| own == event) {
            return true;
        }
        self.on.push(event.to_owned());
        self.attempts = 0;
        self.follow(visitor);
        let is_heard = self.stream.is_some();
        if !is_heard {
            self.on.pop();
            self.follow(visitor);
        }
        is_heard
    }

    /// What came with the next event of this name, if one has come.
    pub(super) fn take_event(&mut self, event: &str) -> Option<Value> {
        let is_wanted = |one: &&mut Option<_>| {
            one.as_ref().is_some_and(|(name, _): &(String, _)| name == event)
        };
        self.events.values_mut().find(is_wanted)?.take().map(|(_, data)| data)
    }

    /// How the page is followed, for a message.
    pub(super) fn followed(&self) -> String {
        match (&self.left, self.patches) {
            (Some(reason), _) => format!(", and no longer followed: {reason}"),
            (None, _) if self.stream.is_none() => String::new(),
            (None, 1) => ", followed: 1 change came".to_owned(),
            (None, patches) => format!(", followed: {patches} changes came"),
        }
    }

    /// Something else is expected of it from here on.
    pub(super) const fn begin(&mut self) {
        self.reloads = 0;
    }

    /// Takes all that has come by the deadline.
    pub(super) fn catch_up(&mut self, visitor: &Visitor, deadline: Instant) {
        while self.hear(visitor, None) && Instant::now() < deadline {}
    }

    /// Waits until the page is what whoever asks for it now is shown, and with that behind all that was acknowledged
    /// before.
    ///
    /// # Errors
    ///
    /// Why that cannot be known.
    pub(super) fn settle(&mut self, visitor: &Visitor, deadline: Instant) -> Result<(), String> {
        let mut is_late = false;
        loop {
            let shown = regions::shown(&self.markup);
            if shown.is_empty() {
                // Nothing on it changes by itself.
                return Ok(());
            }
            if self.stream.is_none() {
                let why = self.left.as_deref().unwrap_or("nothing is told of it");
                return Err(format!("the tab no longer follows its page: {why}"));
            }
            // What is another each time it is made cannot be compared. Two are asked for only if they are needed.
            let now = self.asked_anew(visitor)?;
            if shown == now || regions::differ_as(&shown, &now, &self.asked_anew(visitor)?) {
                return Ok(());
            }
            if is_late {
                return Err(format!(
                    "the tab does not come to show what its page is now (regions {shown}, which are {now})"
                ));
            }
            is_late = !self.hear(visitor, Some(deadline)) || Instant::now() >= deadline;
        }
    }

    /// The regions of the page as whoever asks for it now is shown it.
    fn asked_anew(&self, visitor: &Visitor) -> Result<String, String> {
        let (_, reply) = asked(visitor, self.own_request())?;
        Ok(regions::shown(&String::from_utf8_lossy(reply.bytes())))
    }

    fn own_request(&self) -> Request {
        let request = Request::new(Method::Get, &self.url).field("Sec-Fetch-Site", "same-origin");
        request.field("Accept", PAGES)
    }

    /// Takes what comes next; false: nothing has come, or will by the deadline.
    pub(super) fn hear(&mut self, visitor: &Visitor, deadline: Option<Instant>) -> bool {
        let Some(stream) = &self.stream else { return false };
        let heard = match deadline {
            None => stream.news.try_recv().map_err(|error| error == TryRecvError::Disconnected),
            Some(deadline) => stream
                .news
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                .map_err(|error| error == RecvTimeoutError::Disconnected),
        };
        match heard {
            Ok(news) => {
                self.attempts = 0;
                self.heed(visitor, news);
                true
            }
            // As a browser does: what was missed is what differs from what is shown.
            Err(true) => {
                if let Some(400..500) = self.follow(visitor) {
                    // It is gone, or not for this visitor any more; a browser shows what is there instead.
                    self.reload(visitor);
                    return true;
                }
                self.stream.is_some()
            }
            Err(false) => false,
        }
    }

    fn heed(&mut self, visitor: &Visitor, news: News) {
        match news {
            News::Patch { number, hash, markup } => {
                self.patches += 1;
                if regions::patch(&mut self.markup, &number, &hash, &markup) {
                    self.draw();
                } else {
                    self.reload(visitor);
                }
            }
            News::Reload => self.reload(visitor),
            News::Event { cursor, text } => self.keep(cursor, &text),
        }
    }

    /// An event that came by two streams is one.
    fn keep(&mut self, cursor: String, text: &str) {
        let mut event: Value = serde_json::from_str(text).unwrap_or_default();
        let name = event["name"].as_str().unwrap_or_default().to_owned();
        self.events.entry(cursor).or_insert_with(|| Some((name, event["data"].take())));
    }

    /// Asks for the page again.
    fn reload(&mut self, visitor: &Visitor) {
        self.reloads += 1;
        let answer = if self.reloads > MOST_RELOADS {
            Err(format!("it is to be asked for again and again ({MOST_RELOADS} times)"))
        } else {
            asked(visitor, self.own_request())
        };
        match answer {
            Ok(answer) => {
                let mut page = Self::made_of(answer);
                page.on = std::mem::take(&mut self.on);
                page.events = std::mem::take(&mut self.events);
                page.stream = self.stream.take();
                (page.patches, page.reloads) = (self.patches, self.reloads);
                *self = page;
                self.follow(visitor);
            }
            Err(reason) => {
                self.stream = None;
                self.left = Some(reason);
            }
        }
    }

    /// Opens the stream of the page, telling what is shown, if there is anything to follow. The status is one that is
    /// none of a stream.
    fn follow(&mut self, visitor: &Visitor) -> Option<u16> {
        let before = self.stream.take();
        let status = self.open(visitor);
        // What changed is told by the new one, but events come once; that has begun, so none is missed in between.
        for news in before.into_iter().flat_map(Stream::end) {
            if let News::Event { cursor, text } = news {
                self.keep(cursor, &text);
            }
        }
        status
    }

    fn open(&mut self, visitor: &Visitor) -> Option<u16> {
        let (shown, on) = (regions::shown(&self.markup), self.on.join(","));
        if shown.is_empty() && on.is_empty() {
            return None;
        }
        self.attempts += 1;
        if self.attempts > MOST_ATTEMPTS {
            self.left = Some("its stream ends again and again".to_owned());
            return None;
        }
        let mut pairs = vec![("page", &*self.url), ("have", &shown)];
        if !on.is_empty() {
            pairs.push(("on", &on));
        }
        let target = format!("/_bine/live?{}", address::encoded(pairs));
        let mut request = Request::new(Method::Get, &target)
            .field("Accept", "text/event-stream")
            .field("Sec-Fetch-Site", "same-origin");
        visitor.dress(&mut request);
        self.left = None;
        match Stream::open(&request, visitor.site) {
            Ok(Opened::Stream(stream)) => self.stream = Some(stream),
            Ok(Opened::Not(204)) => self.left = Some("nothing on it is live".to_owned()),
            Ok(Opened::Not(status)) => {
                self.left = Some(format!("its stream has status {status}"));
                return Some(status);
            }
            Err(error) => self.left = Some(format!("its stream: {error}")),
        }
        None
    }

    /// Shows in a form what is wrong with what it has sent, or nothing.
    pub(super) fn alert(&mut self, alert: Option<(usize, Vec<String>)>) {
        self.alert = alert;
        self.draw();
    }

    /// Makes the tree anew of what is to be shown.
    fn draw(&mut self) {
        self.tree = document::read(&self.markup, self.has_script);
        let Some((place, texts)) = &self.alert else { return };
        // They are visited from the last to the first.
        let mut left = self.tree.find_all("form").into_iter().flatten().count();
        let alerted = self.tree.change("form", |form| {
            left -= 1;
            for text in texts.iter().filter(|_| left == *place) {
                let mut alert = Element::new("p")?;
                alert.set_attribute("class", "problem")?;
                alert.set_attribute("role", "alert")?;
                alert.push(Node::text(text.clone()));
                form.push(alert);
            }
            Ok(())
        });
        alerted.expect("its names are right");
    }
}

/// The answer to a request, or to where it is sent on, with its address (Fetch Standard section 4.4).
pub(super) fn asked(visitor: &Visitor, mut request: Request) -> Result<(String, Reply), String> {
    for _ in 0..=MOST_REDIRECTS {
        let reply = visitor.ask(request.clone())?;
        let location = match reply.status() {
            301 | 302 | 303 | 307 | 308 => reply.field("Location"),
            _ => None,
        };
        let Some(location) = location else { return Ok((request.target, reply)) };
        let target = match address::joined(&request.target, location, visitor.site) {
            Ok(target) => target,
            Err(other) => {
                return Err(format!("{} leads away from the site, to {other}", request.target));
            }
        };
        request.target = address::sent(&target);
        if reply.status() == 303 || (reply.status() < 303 && request.method == Method::Post) {
            request.method = Method::Get;
            request.body.clear();
            request.fields.retain(|(name, _)| !["Content-Type", "Origin"].contains(&&**name));
        }
    }
    Err(format!("sent on {MOST_REDIRECTS} times, at last to {}", request.target))
}

/// What the script shows in a form of an answer that says what was wrong (RFC 9457), a paragraph each: of its fields,
/// for which `has_field` knows the names, then whatever else there is to say.
pub(super) fn complaints(reply: &Reply, has_field: impl Fn(&str) -> bool) -> Vec<String> {
    let problem: Value = serde_json::from_slice(reply.bytes()).unwrap_or_default();
    let text = |of: &Value, name: &str| of[name].as_str().map(ToOwned::to_owned);
    let mut whole = vec![
        text(&problem, "detail")
            .or_else(|| text(&problem, "title"))
            .unwrap_or_else(|| reply.status().to_string()),
    ];
    let mut told = Vec::new();
    for error in problem["errors"].as_array().into_iter().flatten() {
        let name = text(error, "name").unwrap_or_default();
        let detail = text(error, "detail").unwrap_or_default();
        if has_field(&name) {
            told.push(detail);
        } else {
            whole.push(format!("{name}: {detail}"));
        }
    }
    if told.is_empty() || whole.len() > 1 {
        told.push(whole.join(" "));
    }
    told
}
