//! The stream by which a browser follows a page: the browser sends the hashes of its regions and
//! receives those that differ, then each change.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use bine_html::{RegionHash, VIEWER_MARK};
use bine_http::query::{self, Pairs};
use bine_http::{Event, Exchange, Limits, Method, RequestParser, Status};
use bine_push::{BodyFormat, GapPolicy, Message, Sequence, Start, View};
use bine_server::{
    Answer, Body, Clock, Done, Errand, Finished, Follow, Hold, Incoming, Outgoing, Peer, Retained,
    Then,
};

use super::address::address;
use super::events::Listener;
use super::guest::Guest;
use super::mailbox::News;
use super::part::{Part, WantedBy};
use super::render::Asker;
use super::run::{Notes, Run as OneRun};
use super::showing::{Showing, Showings};
use super::waiting::FOLLOWS_PAGE;
use super::{Events, Live, Unmade, draft, notes_of, patch};
use crate::app_state::AppState;
use crate::channels::{
    Attachment, ChannelName, Command, Draft, Durability, Manner, Pass, Regions, Retention,
    Settings, Watch, hold_for,
};
use crate::look::Look;
use crate::methods::Methods;
use crate::origin;
use crate::respond::{Asked, Replying, Response};
use crate::sessions::{Login, Visit};
use crate::text::Text;

/// The path of the stream.
pub(crate) const PATH: &str = "/_bine/live";
/// Bytes of a page's address.
const LONGEST: usize = 4096;
/// Regions of a page that can be followed.
const MOST_REGIONS: usize = 1000;
/// Digits of a region's hash in any version.
const LONGEST_HASH: usize = 32;
/// Events that one client listens to.
const MOST_EVENTS: usize = 64;
/// Patches, and their bytes, that a view keeps for slow readers; a client that misses some must
/// join again.
const KEPT: u64 = 256;
const KEPT_BYTES: u64 = 256 << 10;
/// Milliseconds that a poll waits.
const WAIT: u64 = 25_000;

/// What a browser asks to follow.
struct Wish {
    /// Address of the page; empty if the client only listens to events.
    address: Arc<str>,
    /// Names of events.
    on: Vec<String>,
    /// The client's name, and whether it is a logged-in user.
    name: Option<(Text, bool)>,
    /// The login, which ends the subscription when it ends.
    login: Option<Login>,
    request: Retained,
    /// The hashes that the browser has, by region.
    have: Vec<Option<RegionHash>>,
    /// The login for which the browser's page was rendered, if any.
    made_for: Option<u64>,
    manner: Manner,
    peer: Peer,
    exchange: Exchange,
}

impl Wish {
    /// Drops the login if the view has no scope, so that the subscription outlives it. The login is
    /// kept where it gives access to events or names a present user.
    fn for_all(self, events: &Events, shows_who: bool) -> Self {
        let is_named = shows_who && self.manner != Manner::Poll;
        let login = self.login.filter(|_| is_named || events.are_for_users(&self.on));
        Self { login, ..self }
    }

    /// Whether the browser's page was rendered for a login that is not the current one.
    fn is_of_another_login(&self) -> bool {
        self.made_for.is_some() && self.made_for != self.login.as_ref().map(Login::word)
    }

    /// The response that makes the browser fetch the page again.
    fn sent_away(&self) -> Response {
        let reload = vec![draft(&"".into(), "reload", "")];
        match self.manner {
            Manner::Poll => Response::bytes("application/json", encoded(View::Json, reload)),
            _ => Response::bytes("text/event-stream", encoded(View::Sse, reload)),
        }
    }
}

impl Wish {
    /// Parses a request, or returns the response that rejects it.
    fn read(request: &Incoming<'_>) -> Result<Self, Response> {
        let bad = |message: &'static str| Response::refusal(Status::BAD_REQUEST, message);
        let Incoming { head, who, peer, exchange, .. } = *request;
        match head.method() {
            Method::Get => {}
            Method::Head => return Err(Response::status(Status::NO_CONTENT)),
            other => return Err(Response::allowing(other, Methods::GET)),
        }
        if origin::is_foreign(&head) {
            let message = "Only pages of this site may follow its pages.";
            return Err(Response::refusal(Status::FORBIDDEN, message));
        }
        let asked = |name: &str| value(query::pairs(head.query().unwrap_or_default()), name);
        let on: Vec<String> = asked("on").map(|names| words(&names)).unwrap_or_default();
        if on.len() > MOST_EVENTS {
            return Err(bad("`on` names more than 64 events"));
        }
        let page = asked("page");
        let is_page = page.is_some();
        let target =
            page.or_else(|| (!on.is_empty()).then(|| "/".to_owned())).ok_or_else(|| {
                bad("`page` is missing: a page's path and query, encoded; or `on`: names of events")
            })?;
        let request = page_request(request, &target).map_err(bad)?;
        let (have, made_for) = have(&asked("have").unwrap_or_default()).ok_or_else(|| {
            bad("`have` is not the regions' numbers and hashes, `0.HASH,1.HASH`..")
        })?;
        let is_poll = !head.field_text("accept").unwrap_or_default().contains("event-stream");
        let visit = who.known::<Visit>();
        let login = visit.as_ref().and_then(|visit| visit.login());
        Ok(Self {
            address: if is_page { address(&request.incoming()) } else { "".into() },
            on,
            name: visit.map(|visit| (visit.name(), login.is_some())),
            login,
            request,
            have,
            made_for,
            manner: if is_poll { Manner::Poll } else { Manner::Events },
            peer,
            exchange,
        })
    }
}

/// Fields that describe the stream or a response that the client has cached. The page is requested
/// as by a browser without a cache.
const OWN: [&str; 12] = [
    "accept",
    "accept-encoding",
    "cache-control",
    "connection",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-event-id",
    "range",
    "upgrade",
];

/// The request for the page that the client follows, or why it is not valid.
fn page_request(request: &Incoming<'_>, target: &str) -> Result<Retained, &'static str> {
    let is_own = target.starts_with('/') && !target.starts_with("//");
    // Any other byte could start another line of the head.
    let is_plain = target.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_own || target.len() > LONGEST {
        return Err("`page` is no path of this site, or longer than 4096 bytes");
    }
    let not_encoded = "`page` is not encoded as an address is, once as a whole and once in itself";
    if !is_plain {
        return Err(not_encoded);
    }
    let mut bytes = format!("GET {target} HTTP/1.1\r\nAccept: text/html\r\n").into_bytes();
    for (name, value) in request.head.fields() {
        if !OWN.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
    }
    bytes.extend_from_slice(b"\r\n");
    // The stream's own head was within the program's limits.
    let limits = Limits { head: u32::MAX, target: u32::MAX, ..Limits::default() };
    let Event::Head(head) = RequestParser::new().receive(&bytes, &limits).event else {
        return Err(not_encoded);
    };
    if head.target() != target || head.raw().len() != bytes.len() {
        return Err(not_encoded);
    }
    // Checks the parsed path: the target may be written in several ways.
    if head.path().starts_with("/_bine/") {
        return Err("`page` is no page");
    }
    Ok(Retained::of(&Incoming { head, body: Body::None, ..*request }))
}

/// The patches for a client that has the regions `have`.
fn differences(have: &[Option<RegionHash>], notes: &Notes) -> Vec<Draft> {
    let channel: Arc<str> = "".into();
    if have.len() != notes.regions.len() {
        return vec![draft(&channel, "reload", "")];
    }
    let regions = notes.regions.iter().zip(have).enumerate();
    let others = regions.filter(|(_, (region, have))| Some(region.hash) != **have);
    others.map(|(number, (region, _))| draft(&channel, "patch", &patch(number, region))).collect()
}

/// Whether this is the path of the stream.
pub(crate) fn is_stream(path: &str) -> bool {
    path == PATH
}

impl Live {
    /// Answers a request to follow a page.
    pub(crate) fn respond(
        self: &Arc<Self>,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let answer = |response: Response, out: &mut Outgoing<'_>| {
            unkept(response).answer(Asked::by(request), clock, &app.look, out)
        };
        let wish = match Wish::read(request) {
            Ok(wish) => wish,
            Err(response) => return answer(response, out),
        };
        // Most clients follow a page that others follow too, and have its current content.
        let wish = match self.join_at_once(Box::new(wish)) {
            Ok(Ok(hold)) => return Answer::Hold(hold),
            Ok(Err(response)) => return answer(response, out),
            Err(wish) => wish,
        };
        let (own, asked) = (Arc::clone(self), Retained::of(request));
        let (app, clock) = (Arc::clone(app), Rc::clone(clock));
        Answer::WhileOpen(Box::pin(async move {
            let granted = own.grant(*wish).await;
            finished(granted, &asked, &clock, &app.look)
        }))
    }

    /// Follows an existing view without a render, if the client has its current content; or follows
    /// only events.
    fn join_at_once(&self, wish: Box<Wish>) -> Result<Result<Hold, Response>, Box<Wish>> {
        if wish.address.is_empty() {
            let watch = Watch { manner: wish.manner, ..followed(Box::default()) };
            return Ok(self.hold(*wish, &Arc::new(watch), false, None));
        }
        let mut showings = self.showings();
        let Some(name) = showings.settled(&wish.address) else { return Err(wish) };
        let Some(showing) = showings.get(name) else { return Err(wish) };
        let shown = showing.regions.iter().map(|region| region.hash);
        let is_shown = shown.eq(wish.have.iter().copied()) && !wish.have.contains(&None);
        if !is_shown || showing.is_deserted() {
            return Err(wish);
        }
        let watch = Arc::clone(&showing.watches[usize::from(wish.manner == Manner::Poll)]);
        let shows_who = showing.shows_who;
        showings.welcome(name, wish.peer.block());
        // Still under the lock: later patches are for this client.
        let wish = wish.for_all(self.events(), shows_who);
        Ok(self.hold(wish, &watch, shows_who, None))
    }

    async fn grant(self: &Arc<Self>, wish: Wish) -> Result<Hold, Response> {
        let generation = self.generation.load(Ordering::SeqCst);
        let (since, run) = (self.sequence(), self.new_run(&wish.request));
        let made = self.run(&wish, &run).await.ok_or_else(busy)?;
        self.join(wish, made, since, generation)
    }

    /// Renders a page for one client. `None`: no thread can be started.
    async fn run(
        self: &Arc<Self>,
        wish: &Wish,
        run: &Arc<OneRun>,
    ) -> Option<Result<Notes, Unmade>> {
        self.begin_inside()?;
        let (told, asker) = (Arc::new(Told::default()), Arc::<Asker>::default());
        let number = self.renders.number();
        let (own, teller, noted) = (Arc::clone(self), Arc::clone(&told), Arc::clone(run));
        let waiting = Arc::clone(&asker);
        let then = Then::new(move |reply| {
            own.renders.finish_join(number, noted.cost(), &waiting);
            teller.tell(notes_of(&noted, reply.as_deref()));
        });
        let wanted_by = WantedBy::Asker(Arc::clone(&asker));
        let around = Arc::new(Part { run: Arc::clone(run), wanted_by });
        let errand = Errand { request: wish.request.clone(), around, then };
        let block = wish.peer.block();
        // When the client leaves, the future is dropped, and the join with it.
        let _join = self.renders.submit_join(number, block, &wish.address, (errand, asker));
        Some(told.wait().await)
    }

    /// Lets a client follow a page that was rendered for it, and sends the regions that differ.
    fn join(
        &self,
        wish: Wish,
        made: Result<Notes, Unmade>,
        since: u64,
        generation: u64,
    ) -> Result<Hold, Response> {
        let mut notes = made.map_err(|unmade| match unmade {
            Unmade::Failed => busy(),
            // The page answers only POST, so there is no content to follow.
            Unmade::Refused(405) => Response::status(Status::NO_CONTENT),
            Unmade::Refused(_) if wish.is_of_another_login() => wish.sent_away(),
            Unmade::Refused(status) => {
                let status = Status::new(status).filter(|status| status.code() >= 400);
                let message = "This page is not to be had by whoever asks.";
                Response::refusal(status.unwrap_or(Status::NOT_FOUND), message)
            }
        })?;
        if notes.regions.is_empty() {
            if wish.on.is_empty() {
                return Err(Response::status(Status::NO_CONTENT));
            }
            let watch = Watch { manner: wish.manner, ..followed(Box::default()) };
            return self.hold(wish, &Arc::new(watch), false, None);
        }
        // The markup around the regions was rendered for that login too.
        if !notes.looks.is_empty() && wish.is_of_another_login() {
            return Err(wish.sent_away());
        }
        let news = differences(&wish.have, &notes);
        if wish.manner == Manner::Poll && !news.is_empty() {
            // The client polls again; the server keeps no state for it until then.
            return Err(Response::bytes("application/json", encoded(View::Json, news)));
        }
        let first = (!news.is_empty()).then(|| encoded(View::Sse, news).into());
        let shows_who = notes.here.is_some();
        let wish =
            if notes.looks.is_empty() { wish.for_all(self.events(), shows_who) } else { wish };
        let mut showings = self.showings();
        if self.generation.load(Ordering::SeqCst) != generation {
            return Err(busy());
        }
        let mut found = showings.find(&wish.address, &notes.looks);
        if let Some(name) = found
            && showings.get(name).is_some_and(|own| own.regions.len() != notes.regions.len())
        {
            // The server cannot know which of the two is newer, and patches of that view would not
            // fit this client's regions.
            self.send_away(&mut showings, name);
            found = None;
        }
        let name = match found {
            Some(name) => name,
            None if !showings.has_room(wish.peer.block()) => return Err(busy()),
            None => {
                let mut showing = self.begin(&mut showings, &wish, since).ok_or_else(busy)?;
                showing.set(&mut notes);
                showings.add(showing)
            }
        };
        showings.welcome(name, wish.peer.block());
        showings.meet(name, &notes);
        let showing = showings.get(name).ok_or_else(busy)?;
        if let Some(place) = notes.here.as_ref().filter(|_| wish.manner != Manner::Poll)
            && !self.places().adopt(&wish.address, place)
        {
            // This view's renders read another presence, so it would miss joins and leaves.
            showing.touch_all();
        }
        let watch = Arc::clone(&showing.watches[usize::from(wish.manner == Manner::Poll)]);
        let held = self.hold(wish, &watch, shows_who, first);
        showings.check(name, &notes, since, Instant::now());
        drop(showings);
        self.mailbox.put(News::Look);
        held
    }

    /// Follows `watch` and the events that the client asked for, after sending `first`. If the view
    /// displays presence (`is_seen`), the client is added to it.
    fn hold(
        &self,
        wish: Wish,
        watch: &Arc<Watch>,
        is_seen: bool,
        first: Option<Box<[u8]>>,
    ) -> Result<Hold, Response> {
        let Wish { address, on, name, manner, login, peer, exchange, .. } = wish;
        let pass = Pass::of_peer(&self.engine.parties, peer, login);
        let pass = pass.map_err(|no| Response::refusal(no.status(), no.reason()))?;
        let mut watch = Arc::clone(watch);
        let has_user = name.as_ref().is_some_and(|(_, is_user)| *is_user);
        let name = name.map(|(name, _)| name);
        if manner == Manner::Poll && !on.is_empty() {
            // A client that polls is not connected all the time, so `Events::signal` never picks
            // it.
            let more = self.events().channels(&on, has_user)?;
            let channels = watch.channels.iter().cloned().chain(more).collect();
            // The view has a follower as long as the poll waits.
            let guest = Guest { listener: None, presence: None, page: Arc::clone(&watch) };
            let attached = Some(Attachment(Arc::new(guest)));
            watch = Arc::new(Watch { channels, attached, ..Watch::clone(&watch) });
        } else if manner != Manner::Poll && (is_seen || !on.is_empty()) {
            let listener = (!on.is_empty()).then(|| self.events().listen(&on, has_user));
            let listener = listener.transpose()?;
            let more = listener.iter().flat_map(Listener::channels).map(|name| (**name).into());
            let channels = watch.channels.iter().cloned().chain(more).collect();
            let presence = is_seen.then(|| self.places().come(&address, name));
            let guest = Guest { listener, presence, page: Arc::clone(&watch) };
            watch = Arc::new(Watch {
                channels,
                attached: Some(Attachment(Arc::new(guest))),
                ..Watch::clone(&watch)
            });
        }
        if let Some(first) = first {
            let regions = Regions::Behind(first, Arc::clone(&watch));
            watch = Arc::new(Watch { regions, ..Watch::clone(&watch) });
        }
        let now = self.engine.hub(|hub| hub.watermark()).ok_or_else(busy)?;
        let hold = hold_for(pass, watch, Start::After(now), exchange);
        Ok(Hold { manner: hold.manner | FOLLOWS_PAGE, ..hold })
    }

    /// Creates a view with a channel of its own.
    fn begin(&self, showings: &mut Showings, wish: &Wish, since: u64) -> Option<Showing> {
        let channel: Arc<str> = format!("page-{}", showings.number()).into();
        let retention = Retention { messages: KEPT, bytes: KEPT_BYTES, ..Retention::default() };
        let durability = Durability::Memory;
        let settings = Settings { retention, durability, ..Settings::default() };
        let name = ChannelName::Given(Arc::clone(&channel));
        let made =
            Command::Create { name, settings, first: Vec::new(), is_closed: false, fork: None };
        self.engine.order(made).wait().ok()?;
        let watches = [Manner::Events, Manner::Poll]
            .map(|manner| Arc::new(Watch { manner, ..followed(Box::new([Box::from(&*channel)])) }));
        let (address, request) = (Arc::clone(&wish.address), wish.request.clone());
        Some(Showing::new(address, request, channel, watches, since, Instant::now()))
    }
}

/// A watch of these channels. A client that misses messages must join again.
fn followed(channels: Box<[Box<str>]>) -> Watch {
    Watch { holes: GapPolicy::Allow, regions: Regions::All, wait: WAIT, ..Watch::of(channels) }
}

/// Splits names at commas.
fn words(text: &str) -> Vec<String> {
    text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The reply to a request that had to wait for a render.
fn finished(
    granted: Result<Hold, Response>,
    asked: &Retained,
    clock: &Clock,
    look: &Look,
) -> Finished {
    let response = match granted {
        Ok(hold) => {
            let follow = Some(Follow::Hold(hold));
            return Finished { bytes: Vec::new(), follow, close: false };
        }
        Err(response) => response,
    };
    let (mut bytes, request) = (Vec::new(), asked.incoming());
    let mut keep = |_: &mut Vec<u8>| {};
    let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
    let to = Replying::new(&mut out, Asked::by(&request), clock, usize::MAX, look);
    let Done { follow, close } = to.finish(unkept(response));
    Finished { bytes, follow, close }
}

/// Encodes messages as the engine would if they were published.
fn encoded(view: View, drafts: Vec<Draft>) -> Vec<u8> {
    let messages = drafts.into_iter().map(|Draft { content, .. }| {
        let content_type = content.content_type.unwrap_or_else(|| "text/plain".into());
        Arc::new(Message {
            sequence: Sequence::START,
            time: 0,
            channels: Arc::from([]),
            publisher: None,
            format: BodyFormat::of(&content_type, &content.body),
            content_type,
            event: content.event,
            id: content.id,
            headers: content.headers,
            body: content.body,
        })
    });
    let (messages, mut bytes) = (messages.collect::<Vec<_>>(), Vec::new());
    view.encode(0, &messages, &mut bytes);
    bytes
}

/// Forbids caching: the response depends on the moment and on the client.
fn unkept(response: Response) -> Response {
    response.with_field("Cache-Control", "no-store")
}

fn busy() -> Response {
    Response::refusal(Status::SERVICE_UNAVAILABLE, "This page cannot be followed at the moment.")
        .with_field("Retry-After", "1")
}

/// The first value of a name, if its encoding is valid.
fn value(mut pairs: Pairs<'_>, name: &str) -> Option<String> {
    let (_, value) = pairs.find(|(key, _)| key.is(name))?;
    value.decode().ok().map(std::borrow::Cow::into_owned)
}

/// Parses `0.HASH,1.HASH,999.a1b2c3d4e5f60718`: the hashes by region number, and the mark of the
/// login for which the page was rendered. `None`: the text is not valid. A hash in the format of an
/// earlier version, which an open page may send after an upgrade, counts as unknown, so that the
/// browser receives the region.
fn have(text: &str) -> Option<(Vec<Option<RegionHash>>, Option<u64>)> {
    let (mut have, mut made_for) = (Vec::new(), None);
    for one in text.split(',').filter(|one| !one.is_empty()) {
        let (number, hash) = one.split_once('.')?;
        let number: usize = number.parse().ok().filter(|number| *number < MOST_REGIONS)?;
        if number == VIEWER_MARK as usize {
            made_for = Some(u64::from_str_radix(hash, 16).ok()?);
            continue;
        }
        let is_word = (1..=LONGEST_HASH).contains(&hash.len());
        if !is_word || !hash.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
            return None;
        }
        if have.len() <= number {
            have.resize(number + 1, None);
        }
        have[number] = RegionHash::parse(hash);
    }
    Some((have, made_for))
}

/// A value that another thread sends to a task exactly once.
struct Told<T>(Mutex<(Option<T>, Option<Waker>)>);

impl<T> Told<T> {
    fn tell(&self, what: T) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.0 = Some(what);
        if let Some(waker) = told.1.take() {
            waker.wake();
        }
    }

    async fn wait(&self) -> T {
        poll_fn(|task| {
            let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match told.0.take() {
                Some(what) => Poll::Ready(what),
                None => {
                    told.1 = Some(task.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl<T> Default for Told<T> {
    fn default() -> Self {
        Self(Mutex::new((None, None)))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use bine_html::RegionKey;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_told_comes_before_or_behind_the_question() {
        let task = &mut Context::from_waker(Waker::noop());
        for is_first in [true, false] {
            let told = Told::default();
            let mut wait = pin!(told.wait());
            if is_first {
                told.tell(7);
            } else {
                assert_eq!(wait.as_mut().poll(task), Poll::Pending);
                told.tell(7);
            }
            assert_eq!(wait.as_mut().poll(task), Poll::Ready(7));
        }
    }

    #[test]
    fn regions_come_in_any_order_and_one_that_is_left_out_is_not_known() {
        assert_eq!(have(""), Some((Vec::new(), None)));
        let [one, other] = [b"1", b"2"].map(|bytes| RegionHash::of(bytes, &RegionKey::default()));
        let text = format!("2.{one},0.{other}");
        assert_eq!(have(&text), Some((vec![Some(other), None, Some(one)], None)));
        assert_eq!(have(&format!("999.a,0.{one}")), Some((vec![Some(one)], Some(10))));
        let long = format!("0.{}", "1".repeat(33));
        for wrong in ["0", "0.", ".0", "a.0", "0.%", &long, "1000.0", "-1.0", "999.g"] {
            assert_eq!(have(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_hash_of_an_earlier_version_is_one_that_is_not_known() {
        assert_eq!(have("0.a1b2c3d4e5f60718,1.0f"), Some((vec![None, None], None)));
    }

    proptest! {
        #[test]
        fn what_a_browser_shows_is_read_as_it_was_written(contents in vec(any::<u64>(), 0..40)) {
            let key = RegionKey::default();
            let hashes = contents.iter().map(|content| RegionHash::of(&content.to_le_bytes(), &key));
            let hashes: Vec<_> = hashes.collect();
            let words = hashes.iter().enumerate();
            let words: Vec<_> = words.map(|(place, hash)| format!("{place}.{hash}")).collect();
            let hashes = hashes.into_iter().map(Some).collect();
            prop_assert_eq!(have(&words.join(",")), Some((hashes, None)));
        }

        #[test]
        fn nothing_that_is_said_of_regions_takes_much_memory(text in "[0-9a-g.,+]{0,60}") {
            if let Some((have, _)) = have(&text) {
                prop_assert!(have.len() <= MOST_REGIONS);
            }
        }
    }
}
