//! The page in a tab, and its updates by the event stream.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Instant;

use bine_html::tree::{Element, Node, Tree};
use bine_http::Method;
use serde_json::Value;

use super::address;
use super::client::Client;
use super::document;
use super::exchange::{Reply, TestRequest};
use super::regions;
use super::stream::{OpenedStream, Stream, Update};

/// A page as the tab shows it.
#[derive(Debug)]
pub(super) struct LoadedPage {
    /// Path and query.
    pub(super) url: String,
    pub(super) status: u16,
    pub(super) tree: Tree,
    /// Whether the page has the script that sends forms and follows the stream.
    pub(super) has_script: bool,
    markup: String,
    /// Problems with the submission of a form, and the form's index on the page.
    alert: Option<(usize, Vec<String>)>,
    /// Names of the events that the test listens to.
    event_names: Vec<String>,
    /// Received events by cursor. `None` once the test has taken the event.
    events: BTreeMap<String, Option<(String, Value)>>,
    stream: Option<Stream>,
    /// Attempts to open the stream since it last delivered a message.
    attempts: usize,
    /// Number of patches received.
    patches: usize,
    /// Number of reloads since the current expectation began.
    reloads: usize,
    /// Why the tab no longer follows the page.
    stop_reason: Option<String>,
}

/// Selector of the script that the framework adds to pages.
const SCRIPT: &str = "script[type=module][src^=\"/_bine/live-\"]";
/// A tab that follows more redirects is in a loop.
const MOST_REDIRECTS: usize = 20;
/// The tab gives up a stream after this many attempts without a message.
const MOST_ATTEMPTS: usize = 5;
/// A page that reloads more often during one expectation is in a loop.
const MOST_RELOADS: usize = 20;
/// The `Accept` field of a browser tab.
const ACCEPT: &str = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";

impl LoadedPage {
    /// Loads the page of a request.
    ///
    /// # Errors
    ///
    /// No response arrives, or a redirect leads to another site.
    pub(super) fn load(client: &Client, request: TestRequest) -> Result<Self, String> {
        let answer = request_page(client, request.header("Accept", ACCEPT))?;
        Ok(Self::of(client, answer))
    }

    /// Shows a response and follows its page if that has regions.
    pub(super) fn of(client: &Client, answer: (String, Reply)) -> Self {
        let mut shown = Self::from_reply(answer);
        shown.follow(client);
        shown
    }

    fn from_reply((url, reply): (String, Reply)) -> Self {
        let text = String::from_utf8_lossy(reply.bytes());
        // Show other media types as plain text.
        let markup = match reply.media_type() {
            "text/html" => text.into_owned(),
            _ => format!("<pre>{}</pre>", text.replace('&', "&amp;").replace('<', "&lt;")),
        };
        let tree = document::read(&markup, true);
        let has_script = tree.find(SCRIPT).is_ok_and(|script| script.is_some());
        // Without that script, parse the page as a browser without scripts does.
        let tree = if has_script { tree } else { document::read(&markup, false) };
        Self {
            url,
            status: reply.status(),
            tree,
            has_script,
            markup,
            alert: None,
            event_names: Vec::new(),
            events: BTreeMap::new(),
            stream: None,
            attempts: 0,
            patches: 0,
            reloads: 0,
            stop_reason: None,
        }
    }

    /// Listens to one more event. Returns false, with nothing changed, if the server refuses it.
    pub(super) fn listen(&mut self, client: &Client, event: &str) -> bool {
        if self.stream.is_some() && self.event_names.iter().any(|own| own == event) {
            return true;
        }
        self.event_names.push(event.to_owned());
        self.attempts = 0;
        self.follow(client);
        let is_heard = self.stream.is_some();
        if !is_heard {
            self.event_names.pop();
            self.follow(client);
        }
        is_heard
    }

    /// Returns the data of the next event with this name, if one has arrived.
    pub(super) fn take_event(&mut self, event: &str) -> Option<Value> {
        let is_wanted = |one: &&mut Option<_>| {
            one.as_ref().is_some_and(|(name, _): &(String, _)| name == event)
        };
        self.events.values_mut().find(is_wanted)?.take().map(|(_, data)| data)
    }

    /// Describes for a message how the page is followed.
    pub(super) fn followed(&self) -> String {
        match (&self.stop_reason, self.patches) {
            (Some(reason), _) => format!(", and no longer followed: {reason}"),
            (None, _) if self.stream.is_none() => String::new(),
            (None, 1) => ", followed: 1 change came".to_owned(),
            (None, patches) => format!(", followed: {patches} changes came"),
        }
    }

    /// Begins a new expectation.
    pub(super) const fn begin_expectation(&mut self) {
        self.reloads = 0;
    }

    /// Applies all messages that have arrived, until the deadline at most.
    pub(super) fn catch_up(&mut self, client: &Client, deadline: Instant) {
        while self.receive(client, None) && Instant::now() < deadline {}
    }

    /// Waits until the tab shows what a new request for the page returns, and with it everything
    /// acknowledged before.
    ///
    /// # Errors
    ///
    /// The tab cannot know that, for this reason.
    pub(super) fn settle(&mut self, client: &Client, deadline: Instant) -> Result<(), String> {
        let mut is_late = false;
        loop {
            let shown = regions::listed(&self.markup);
            if shown.is_empty() {
                // A page without regions does not change.
                return Ok(());
            }
            if self.stream.is_none() {
                let why = self.stop_reason.as_deref().unwrap_or("nothing is told of it");
                return Err(format!("the tab no longer follows its page: {why}"));
            }
            // Regions that render differently each time cannot be compared; only a second response
            // shows which they are. It is requested only if the first one differs.
            let now = self.current_regions(client)?;
            if shown == now
                || regions::differ_only_in_unstable(&shown, &now, &self.current_regions(client)?)
            {
                return Ok(());
            }
            if is_late {
                return Err(format!(
                    "the tab does not come to show what its page is now (regions {shown}, which are {now})"
                ));
            }
            is_late = !self.receive(client, Some(deadline)) || Instant::now() >= deadline;
        }
    }

    /// Returns the regions of a new response for this page.
    fn current_regions(&self, client: &Client) -> Result<String, String> {
        let (_, reply) = request_page(client, self.reload_request())?;
        Ok(regions::listed(&String::from_utf8_lossy(reply.bytes())))
    }

    fn reload_request(&self) -> TestRequest {
        let request =
            TestRequest::new(Method::Get, &self.url).header("Sec-Fetch-Site", "same-origin");
        request.header("Accept", ACCEPT)
    }

    /// Applies the next message. Returns false if none arrives by the deadline.
    pub(super) fn receive(&mut self, client: &Client, deadline: Option<Instant>) -> bool {
        let Some(stream) = &self.stream else { return false };
        let heard = match deadline {
            None => stream.updates.try_recv().map_err(|error| error == TryRecvError::Disconnected),
            Some(deadline) => stream
                .updates
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                .map_err(|error| error == RecvTimeoutError::Disconnected),
        };
        match heard {
            Ok(update) => {
                self.attempts = 0;
                self.apply(client, update);
                true
            }
            // Reconnect as a browser does: the server sends the regions that differ from those
            // shown.
            Err(true) => {
                if let Some(400..500) = self.follow(client) {
                    // The page is gone or the visitor lost access. A browser then shows the new
                    // response.
                    self.reload(client);
                    return true;
                }
                self.stream.is_some()
            }
            Err(false) => false,
        }
    }

    fn apply(&mut self, client: &Client, update: Update) {
        match update {
            Update::Patch { number, hash, markup } => {
                self.patches += 1;
                if regions::patch(&mut self.markup, &number, &hash, &markup) {
                    self.rebuild_tree();
                } else {
                    self.reload(client);
                }
            }
            Update::Reload => self.reload(client),
            Update::Event { cursor, text } => self.record_event(cursor, &text),
        }
    }

    /// Stores an event. Two streams may deliver the same one.
    fn record_event(&mut self, cursor: String, text: &str) {
        let mut event: Value = serde_json::from_str(text).unwrap_or_default();
        let name = event["name"].as_str().unwrap_or_default().to_owned();
        self.events.entry(cursor).or_insert_with(|| Some((name, event["data"].take())));
    }

    /// Loads the page again.
    fn reload(&mut self, client: &Client) {
        self.reloads += 1;
        let answer = if self.reloads > MOST_RELOADS {
            Err(format!("it is to be asked for again and again ({MOST_RELOADS} times)"))
        } else {
            request_page(client, self.reload_request())
        };
        match answer {
            Ok(answer) => {
                let mut page = Self::from_reply(answer);
                page.event_names = std::mem::take(&mut self.event_names);
                page.events = std::mem::take(&mut self.events);
                page.stream = self.stream.take();
                (page.patches, page.reloads) = (self.patches, self.reloads);
                *self = page;
                self.follow(client);
            }
            Err(reason) => {
                self.stream = None;
                self.stop_reason = Some(reason);
            }
        }
    }

    /// Opens the page's stream with the regions shown, if there is anything to follow. Returns the
    /// status if the server refuses the stream.
    fn follow(&mut self, client: &Client) -> Option<u16> {
        let before = self.stream.take();
        let status = self.open(client);
        // The new stream sends changed regions, but events arrive once. It has already begun, so
        // closing the old one now loses no event.
        for update in before.into_iter().flat_map(Stream::end) {
            if let Update::Event { cursor, text } = update {
                self.record_event(cursor, &text);
            }
        }
        status
    }

    fn open(&mut self, client: &Client) -> Option<u16> {
        let (shown, on) = (regions::listed(&self.markup), self.event_names.join(","));
        if shown.is_empty() && on.is_empty() {
            return None;
        }
        self.attempts += 1;
        if self.attempts > MOST_ATTEMPTS {
            self.stop_reason = Some("its stream ends again and again".to_owned());
            return None;
        }
        let mut pairs = vec![("page", &*self.url), ("have", &shown)];
        if !on.is_empty() {
            pairs.push(("on", &on));
        }
        let target = format!("/_bine/live?{}", address::encoded(pairs));
        let mut request = TestRequest::new(Method::Get, &target)
            .header("Accept", "text/event-stream")
            .header("Sec-Fetch-Site", "same-origin");
        client.add_cookies(&mut request);
        self.stop_reason = None;
        match Stream::open(&request, client.site) {
            Ok(OpenedStream::Stream(stream)) => self.stream = Some(stream),
            Ok(OpenedStream::Not(204)) => {
                self.stop_reason = Some("nothing on it is live".to_owned());
            }
            Ok(OpenedStream::Not(status)) => {
                self.stop_reason = Some(format!("its stream has status {status}"));
                return Some(status);
            }
            Err(error) => self.stop_reason = Some(format!("its stream: {error}")),
        }
        None
    }

    /// Shows the problems of a submission in its form, or removes them.
    pub(super) fn alert(&mut self, alert: Option<(usize, Vec<String>)>) {
        self.alert = alert;
        self.rebuild_tree();
    }

    /// Parses the page again and adds the form's problems.
    fn rebuild_tree(&mut self) {
        self.tree = document::read(&self.markup, self.has_script);
        let Some((place, texts)) = &self.alert else { return };
        // `change` visits forms from the last to the first.
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

/// Sends a request, follows its redirects, and returns the response with its address (Fetch
/// Standard section 4.4).
pub(super) fn request_page(
    client: &Client,
    mut request: TestRequest,
) -> Result<(String, Reply), String> {
    for _ in 0..=MOST_REDIRECTS {
        let reply = client.ask(request.clone())?;
        let location = match reply.status() {
            301 | 302 | 303 | 307 | 308 => reply.header("Location"),
            _ => None,
        };
        let Some(location) = location else { return Ok((request.target, reply)) };
        let target = match address::joined(&request.target, location, client.site) {
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

/// Returns the paragraphs that the script shows in a form for a problem document (RFC 9457): those
/// of fields that `has_field` knows, then the rest.
pub(super) fn problem_texts(reply: &Reply, has_field: impl Fn(&str) -> bool) -> Vec<String> {
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
