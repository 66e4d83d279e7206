//! The stream by which a browser follows a page: the browser sends the hashes of its regions and
//! receives those that differ, then each change.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use bine_html::{RegionHash, VERSION_MARK, VIEWER_MARK};
use bine_http::query::{self, Pairs};
use bine_http::{Exchange, Method, Status};
use bine_push::{BodyFormat, GapPolicy, Message, Sequence, Start, View};
use bine_server::{
    Answer, ClientAddress, Clock, Done, Finished, Follow, Incoming, InternalRequest, Outgoing,
    ReplyHandler, Retained, SuspendedResponse,
};

use super::address::address;
use super::events::EventListener;
use super::mailbox::Notification;
use super::part::{Part, WantedBy};
use super::present_visitor::{Person, PresentVisitor};
use super::render::{Render, RenderRecord};
use super::render_queue::JoinCancellation;
use super::shared_view::{SharedView, SharedViews};
use super::thread_waiters::FOLLOWS_PAGE;
use super::viewer::Viewer;
use super::{Events, Live, RenderError, draft, patch, record_of, reload_for};
use crate::app_state::AppState;
use crate::channels::{
    Attachment, ChannelName, Command, DeliveryMode, Draft, Durability, HIDE, HoldPermit, Regions,
    Retention, Settings, SubscriptionSpec, hold_for,
};
use crate::methods::Methods;
use crate::origin;
use crate::page_request::page_request;
use crate::respond::{RequestSummary, Response, ResponseWriter};
use crate::sessions::{Login, VisitorSession};
use crate::templates::Templates;

/// The path of the stream.
pub(super) const PATH: &str = "/_bine/live";
/// Regions of a page that can be followed.
const MAX_REGIONS: usize = 1000;
/// Digits of a region's hash in any version.
const MAX_HASH_DIGITS: usize = 32;
/// Events that one client listens to.
const MAX_EVENTS: usize = 64;
/// Patches, and their bytes, that a view keeps for slow readers; a client that misses some must
/// join again.
const PATCHES_KEPT: u64 = 256;
const PATCH_BYTES_KEPT: u64 = 256 << 10;
/// Milliseconds that a poll waits.
const POLL_WAIT: u64 = 25_000;

/// A request to follow a page or events.
struct PageFollowRequest {
    /// Address of the page; empty if the client only listens to events.
    address: Arc<str>,
    /// Names of events.
    on: Vec<String>,
    /// The client, if it has a session.
    visitor: Option<PresentVisitor>,
    /// The login, which ends the subscription when it ends.
    login: Option<Login>,
    request: Retained,
    /// The hashes that the browser has, by region.
    client_hashes: Vec<Option<RegionHash>>,
    /// The login for which the browser's page was rendered, if any.
    made_for: Option<u64>,
    /// The version of the browser's page.
    made_by: Option<u64>,
    manner: DeliveryMode,
    peer: ClientAddress,
    exchange: Exchange,
}

impl PageFollowRequest {
    /// The response if the page could not be rendered.
    fn error_response(&self, error: RenderError) -> Response {
        match error {
            RenderError::Failed => busy(),
            // The page answers only POST, so there is no content to follow.
            RenderError::Refused(405) => Response::status(Status::NO_CONTENT),
            RenderError::Refused(_) if self.is_of_another_login() => self.reload_response(HIDE),
            RenderError::Refused(status) => {
                let status = Status::new(status).filter(|status| status.code() >= 400);
                let message = "This page is not available to you.";
                Response::error(status.unwrap_or(Status::NOT_FOUND), message)
            }
        }
    }

    /// Drops the login if the view has no scope, so that the subscription outlives it. The login is
    /// kept where it gives access to events or names a present user.
    fn without_scope(self, events: &Events, shows_presence: bool) -> Self {
        let is_named = shows_presence && self.manner != DeliveryMode::Poll;
        let login = self.login.filter(|_| is_named || events.are_for_users(&self.on));
        Self { login, ..self }
    }

    /// Whether the browser's page was rendered for a login that is not the current one, or that has
    /// ended since the request arrived.
    fn is_of_another_login(&self) -> bool {
        let current = || self.login.as_ref().filter(|login| login.holds()).map(Login::word);
        self.made_for.is_some() && self.made_for != current()
    }

    /// The response that makes the browser fetch the page again, if its page is not of the version
    /// of the server's. The browser sends that version from then on, whichever version the fetched
    /// page has: it may come from a cache, and must not be fetched in a loop.
    fn refresh_response(&self, version: Option<u64>) -> Option<Response> {
        let version = version.filter(|version| self.made_by.is_some_and(|own| own != *version));
        Some(self.reload_response(&reload_for(version?)))
    }

    /// The response that makes the browser fetch the page again. `data`: a version, or [`HIDE`].
    fn reload_response(&self, data: &str) -> Response {
        let reload = vec![draft(&"".into(), "reload", data)];
        match self.manner {
            DeliveryMode::Poll => Response::bytes("application/json", encoded(View::Json, reload)),
            _ => Response::bytes("text/event-stream", encoded(View::Sse, reload)),
        }
    }
}

impl PageFollowRequest {
    /// Parses a request, or returns the response that rejects it.
    fn read(request: &Incoming<'_>) -> Result<Self, Response> {
        let bad = |message: &'static str| Response::error(Status::BAD_REQUEST, message);
        let Incoming { head, identity, peer, exchange, .. } = *request;
        match head.method() {
            Method::Get => {}
            Method::Head => return Err(Response::status(Status::NO_CONTENT)),
            other => return Err(Response::allowing(other, Methods::GET)),
        }
        if origin::is_foreign(&head) {
            let message = "Only pages of this site may follow its pages.";
            return Err(Response::error(Status::FORBIDDEN, message));
        }
        let asked = |name: &str| value(query::pairs(head.query().unwrap_or_default()), name);
        let on: Vec<String> = asked("on").map(|names| split_names(&names)).unwrap_or_default();
        if on.len() > MAX_EVENTS {
            return Err(bad("`on` names more than 64 events"));
        }
        let page = asked("page");
        let is_page = page.is_some();
        let target =
            page.or_else(|| (!on.is_empty()).then(|| "/".to_owned())).ok_or_else(|| {
                bad("`page` is missing: a page's path and query, encoded; or `on`: names of events")
            })?;
        let request = page_request(request, &target).map_err(bad)?;
        let Shown { client_hashes, made_for, made_by } =
            Shown::parse(&asked("have").unwrap_or_default()).ok_or_else(|| {
                bad("`have` is not the regions' numbers and hashes, `0.HASH,1.HASH`..")
            })?;
        let is_poll = !head.field_text("accept").unwrap_or_default().contains("event-stream");
        let visitor_session = identity.known::<VisitorSession>();
        let login = visitor_session.as_ref().and_then(|visitor_session| visitor_session.login());
        Ok(Self {
            address: if is_page { address(&request.incoming()) } else { "".into() },
            on,
            visitor: visitor_session.map(|visitor_session| {
                let name = visitor_session.name();
                let person = match &login {
                    Some(_) => Some(Person::User(name.clone())),
                    None => visitor_session.id().map(Person::Session),
                };
                PresentVisitor { name, person }
            }),
            login,
            request,
            client_hashes,
            made_for,
            made_by,
            manner: if is_poll { DeliveryMode::Poll } else { DeliveryMode::Events },
            peer,
            exchange,
        })
    }
}

/// The patches for a client that has regions with these hashes.
fn differences(client_hashes: &[Option<RegionHash>], record: &RenderRecord) -> Vec<Draft> {
    let channel: Arc<str> = "".into();
    if client_hashes.len() != record.regions.len() {
        return vec![draft(&channel, "reload", "")];
    }
    let regions = record.regions.iter().zip(client_hashes).enumerate();
    let changed =
        regions.filter(|(_, (region, client_hashes))| Some(region.hash) != **client_hashes);
    changed.map(|(number, (region, _))| draft(&channel, "patch", &patch(number, region))).collect()
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
            uncached(response).answer(RequestSummary::by(request), clock, &app.templates, out)
        };
        let follow_request = match PageFollowRequest::read(request) {
            Ok(follow_request) => follow_request,
            Err(response) => return answer(response, out),
        };
        // Most clients follow a page with other followers, and have its current content.
        let follow_request = match self.join_existing(Box::new(follow_request)) {
            Ok(Ok(hold)) => return Answer::Suspend(hold),
            Ok(Err(response)) => return answer(response, out),
            Err(follow_request) => follow_request,
        };
        let (own, asked) = (Arc::clone(self), Retained::of(request));
        let (app, clock) = (Arc::clone(app), Rc::clone(clock));
        Answer::WhileOpen(Box::pin(async move {
            let granted = own.render_and_join(*follow_request).await;
            finished(granted, &asked, &clock, &app.templates)
        }))
    }

    /// Follows an existing view without a render, if the client has its current content; or follows
    /// only events.
    fn join_existing(
        &self,
        follow_request: Box<PageFollowRequest>,
    ) -> Result<Result<SuspendedResponse, Response>, Box<PageFollowRequest>> {
        if follow_request.address.is_empty() {
            let watch = SubscriptionSpec { manner: follow_request.manner, ..self.watch_of(None) };
            return Ok(self.hold(*follow_request, &Arc::new(watch), false, None));
        }
        let mut views = self.views();
        let Some(view_id) = views.find_idle(&follow_request.address) else {
            return Err(follow_request);
        };
        let Some(view) = views.get(view_id) else { return Err(follow_request) };
        // The view shows that the page can be fetched.
        if let Some(refresh) = follow_request.refresh_response(view.version) {
            return Ok(Err(refresh));
        }
        let shown = view.regions.iter().map(|region| region.hash);
        let is_shown = shown.eq(follow_request.client_hashes.iter().copied())
            && !follow_request.client_hashes.contains(&None);
        if !is_shown || view.has_no_followers() {
            return Err(follow_request);
        }
        let watch =
            Arc::clone(&view.watches[usize::from(follow_request.manner == DeliveryMode::Poll)]);
        let shows_presence = view.shows_presence;
        views.add_client(view_id, follow_request.peer.block());
        // Still under the lock: later patches are for this client.
        let follow_request = follow_request.without_scope(self.events(), shows_presence);
        Ok(self.hold(follow_request, &watch, shows_presence, None))
    }

    async fn render_and_join(
        self: &Arc<Self>,
        follow_request: PageFollowRequest,
    ) -> Result<SuspendedResponse, Response> {
        let generation = self.generation.load(Ordering::SeqCst);
        let (since, render) = (self.sequence(), self.new_render(&follow_request.request));
        let create = self.render_for(&follow_request, &render).await.ok_or_else(busy)?;
        self.join(follow_request, create, since, generation)
    }

    /// Renders a page for one client. `None`: no thread can be started.
    async fn render_for(
        self: &Arc<Self>,
        follow_request: &PageFollowRequest,
        render: &Arc<Render>,
    ) -> Option<Result<RenderRecord, RenderError>> {
        self.start_threads()?;
        let (result, cancellation) =
            (Arc::new(Oneshot::default()), Arc::<JoinCancellation>::default());
        let number = self.queue.number();
        let (own, sender, rendered) = (Arc::clone(self), Arc::clone(&result), Arc::clone(render));
        let waiting = Arc::clone(&cancellation);
        let then = ReplyHandler::new(move |reply| {
            own.queue.finish_join(number, rendered.cost(), &waiting);
            sender.send(record_of(&rendered, reply.as_deref()));
        });
        let wanted_by = WantedBy::Client(Arc::clone(&cancellation));
        let around = Arc::new(Part { render: Arc::clone(render), wanted_by });
        let internal_request =
            InternalRequest { request: follow_request.request.clone(), around, then };
        let block = follow_request.peer.block();
        // When the client disconnects, the future is dropped, and the join with it.
        let _join = self.queue.submit_join(
            number,
            block,
            &follow_request.address,
            (internal_request, cancellation),
        );
        Some(result.receive().await)
    }

    /// Lets a client follow a page that was rendered for it, and sends the regions that differ.
    fn join(
        &self,
        follow_request: PageFollowRequest,
        create: Result<RenderRecord, RenderError>,
        since: u64,
        generation: u64,
    ) -> Result<SuspendedResponse, Response> {
        let mut record = create.map_err(|error| follow_request.error_response(error))?;
        if record.regions.is_empty() {
            if follow_request.on.is_empty() {
                return Err(Response::status(Status::NO_CONTENT));
            }
            let watch = SubscriptionSpec { manner: follow_request.manner, ..self.watch_of(None) };
            return self.hold(follow_request, &Arc::new(watch), false, None);
        }
        // The markup around the regions was rendered for that login too.
        if !record.scope.is_empty() && follow_request.is_of_another_login() {
            return Err(follow_request.reload_response(HIDE));
        }
        // Only now, since the direct response to a form cannot be fetched.
        if let Some(refresh) = follow_request.refresh_response(record.version) {
            return Err(refresh);
        }
        let patches = differences(&follow_request.client_hashes, &record);
        if follow_request.manner == DeliveryMode::Poll && !patches.is_empty() {
            // The client polls again; the server keeps no state for it until then.
            return Err(Response::bytes("application/json", encoded(View::Json, patches)));
        }
        let first = (!patches.is_empty()).then(|| encoded(View::Sse, patches).into());
        let shows_presence = record.presence.is_some();
        let follow_request = if record.scope.is_empty() {
            follow_request.without_scope(self.events(), shows_presence)
        } else {
            follow_request
        };
        let mut views = self.views();
        if self.generation.load(Ordering::SeqCst) != generation {
            return Err(busy());
        }
        let mut found = views.find(&follow_request.address, &record.scope);
        if let Some(view_id) = found
            && let Some(own) = views.get(view_id)
            && (own.regions.len() != record.regions.len() || own.version != record.version)
        {
            // The server cannot know which of the two is newer, and patches of that view would not
            // fit this client's regions.
            self.reload_clients(&mut views, view_id, "");
            found = None;
        }
        let view_id = match found {
            Some(view_id) => view_id,
            None if !views.has_room(follow_request.peer.block()) => return Err(busy()),
            None => {
                let mut view =
                    self.create_view(&mut views, &follow_request, since).ok_or_else(busy)?;
                view.set(&mut record);
                views.add(view)
            }
        };
        views.add_client(view_id, follow_request.peer.block());
        views.merge_join(view_id, &record);
        let view = views.get(view_id).ok_or_else(busy)?;
        if let Some(slot) =
            record.presence.as_ref().filter(|_| follow_request.manner != DeliveryMode::Poll)
            && !self.presence().register(&follow_request.address, slot)
        {
            // This view's renders read a different presence, so it would miss changes.
            view.mark_all_stale();
        }
        let watch =
            Arc::clone(&view.watches[usize::from(follow_request.manner == DeliveryMode::Poll)]);
        let held = self.hold(follow_request, &watch, shows_presence, first);
        views.catch_up(view_id, &record, since, Instant::now());
        drop(views);
        self.mailbox.put(Notification::Wake);
        held
    }

    /// Follows `watch` and the events that the client asked for, after sending `first`. If the view
    /// displays presence (`shows_presence`), the client is added to it.
    fn hold(
        &self,
        follow_request: PageFollowRequest,
        watch: &Arc<SubscriptionSpec>,
        shows_presence: bool,
        first: Option<Box<[u8]>>,
    ) -> Result<SuspendedResponse, Response> {
        let has_user = follow_request.login.is_some();
        let login = follow_request.login.clone();
        let pass = HoldPermit::of_peer(&self.engine.parties, follow_request.peer, login, None);
        let pass = pass.map_err(|no| match no.status() {
            // The login ended while the page was rendered.
            Status::UNAUTHORIZED if !follow_request.address.is_empty() => {
                follow_request.reload_response(HIDE)
            }
            status => Response::error(status, no.reason()),
        })?;
        let PageFollowRequest { address, on, visitor, manner, exchange, .. } = follow_request;
        let mut watch = Arc::clone(watch);
        if manner == DeliveryMode::Poll && !on.is_empty() {
            // A client that polls is not connected all the time, so `Events::notify_one` never
            // picks it.
            let more = self.events().channels(&on, has_user)?;
            let channels = watch.channels.iter().cloned().chain(more).collect();
            // The view has a follower while the poll waits.
            let viewer = Viewer { listener: None, presence: None, page: Arc::clone(&watch) };
            let attached = Some(Attachment(Arc::new(viewer)));
            watch = Arc::new(SubscriptionSpec {
                channels,
                attached,
                ..SubscriptionSpec::clone(&watch)
            });
        } else if manner != DeliveryMode::Poll && (shows_presence || !on.is_empty()) {
            let listener = (!on.is_empty()).then(|| self.events().listen(&on, has_user));
            let listener = listener.transpose()?;
            let more =
                listener.iter().flat_map(EventListener::channels).map(|name| (**name).into());
            let channels = watch.channels.iter().cloned().chain(more).collect();
            let presence = shows_presence.then(|| self.presence().add(&address, visitor));
            let viewer = Viewer { listener, presence, page: Arc::clone(&watch) };
            watch = Arc::new(SubscriptionSpec {
                channels,
                attached: Some(Attachment(Arc::new(viewer))),
                ..SubscriptionSpec::clone(&watch)
            });
        }
        if let Some(first) = first {
            let regions = Regions::Behind(first, Arc::clone(&watch));
            watch = Arc::new(SubscriptionSpec { regions, ..SubscriptionSpec::clone(&watch) });
        }
        let now = self.engine.hub(|hub| hub.watermark()).ok_or_else(busy)?;
        let hold = hold_for(pass, watch, Start::After(now), exchange);
        Ok(SuspendedResponse { manner: hold.manner | FOLLOWS_PAGE, ..hold })
    }

    /// Watches a channel, and the one about this node. A client that misses messages must join again.
    fn watch_of(&self, channel: Option<&str>) -> SubscriptionSpec {
        let channels = channel.into_iter().chain(self.node_channel.get().map(|name| &**name));
        SubscriptionSpec {
            holes: GapPolicy::Allow,
            regions: Regions::All,
            wait: POLL_WAIT,
            ..SubscriptionSpec::of(channels.map(Box::from).collect())
        }
    }

    /// Creates a view and its channel.
    fn create_view(
        &self,
        views: &mut SharedViews,
        follow_request: &PageFollowRequest,
        since: u64,
    ) -> Option<SharedView> {
        let channel: Arc<str> = format!("page-{}", views.number()).into();
        let retention =
            Retention { messages: PATCHES_KEPT, bytes: PATCH_BYTES_KEPT, ..Retention::default() };
        let durability = Durability::Memory;
        let settings = Settings { retention, durability, ..Settings::default() };
        let name = ChannelName::Given(Arc::clone(&channel));
        let create =
            Command::Create { name, settings, first: Vec::new(), is_closed: false, fork: None };
        self.engine.execute(create).wait().ok()?;
        let watches = [DeliveryMode::Events, DeliveryMode::Poll]
            .map(|manner| Arc::new(SubscriptionSpec { manner, ..self.watch_of(Some(&channel)) }));
        let (address, request) =
            (Arc::clone(&follow_request.address), follow_request.request.clone());
        Some(SharedView::new(address, request, channel, watches, since, Instant::now()))
    }
}

/// Splits names at commas.
fn split_names(text: &str) -> Vec<String> {
    text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The reply to a request that had to wait for a render.
fn finished(
    granted: Result<SuspendedResponse, Response>,
    asked: &Retained,
    clock: &Clock,
    look: &Templates,
) -> Finished {
    let response = match granted {
        Ok(hold) => {
            let follow = Some(Follow::Suspend(hold));
            return Finished { bytes: Vec::new(), follow, close: false };
        }
        Err(response) => response,
    };
    let (mut bytes, request) = (Vec::new(), asked.incoming());
    let mut keep = |_: &mut Vec<u8>| {};
    let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
    let to = ResponseWriter::new(&mut out, RequestSummary::by(&request), clock, usize::MAX, look);
    let Done { follow, close } = to.finish(uncached(response));
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
fn uncached(response: Response) -> Response {
    response.with_header("Cache-Control", "no-store")
}

fn busy() -> Response {
    Response::error(Status::SERVICE_UNAVAILABLE, "This page cannot be followed at the moment.")
        .with_header("Retry-After", "1")
}

/// The first value of a name, if its encoding is valid.
fn value(mut pairs: Pairs<'_>, name: &str) -> Option<String> {
    let (_, value) = pairs.find(|(key, _)| key.is(name))?;
    value.decode().ok().map(std::borrow::Cow::into_owned)
}

/// The content that a browser shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Shown {
    /// The hashes by region number.
    client_hashes: Vec<Option<RegionHash>>,
    /// The mark of the login for which the page was rendered.
    made_for: Option<u64>,
    /// The version of the program and of the page that rendered it.
    made_by: Option<u64>,
}

impl Shown {
    /// Parses `0.HASH,1.HASH,998.0123456789abcdef,999.a1b2c3d4e5f60718`: regions and marks. `None`:
    /// the text is not valid. A hash in the format of an earlier version, which an open page may
    /// send after an upgrade, counts as unknown, so that the browser receives the region.
    fn parse(text: &str) -> Option<Self> {
        let mut shown = Self::default();
        for one in text.split(',').filter(|one| !one.is_empty()) {
            let (number, hash) = one.split_once('.')?;
            let number: usize = number.parse().ok().filter(|number| *number < MAX_REGIONS)?;
            let mark = match number as u32 {
                VIEWER_MARK => Some(&mut shown.made_for),
                VERSION_MARK => Some(&mut shown.made_by),
                _ => None,
            };
            if let Some(mark) = mark {
                *mark = Some(u64::from_str_radix(hash, 16).ok()?);
                continue;
            }
            let is_word = (1..=MAX_HASH_DIGITS).contains(&hash.len());
            if !is_word || !hash.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
                return None;
            }
            if shown.client_hashes.len() <= number {
                shown.client_hashes.resize(number + 1, None);
            }
            shown.client_hashes[number] = RegionHash::parse(hash);
        }
        Some(shown)
    }
}

/// A value that one thread sends once to a task.
struct Oneshot<T>(Mutex<(Option<T>, Option<Waker>)>);

impl<T> Oneshot<T> {
    fn send(&self, value: T) {
        let mut result = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        result.0 = Some(value);
        if let Some(waker) = result.1.take() {
            waker.wake();
        }
    }

    async fn receive(&self) -> T {
        poll_fn(|task| {
            let mut result = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match result.0.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    result.1 = Some(task.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl<T> Default for Oneshot<T> {
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
    fn oneshot_delivers_before_or_after_receive() {
        let task = &mut Context::from_waker(Waker::noop());
        for is_first in [true, false] {
            let result = Oneshot::default();
            let mut wait = pin!(result.receive());
            if is_first {
                result.send(7);
            } else {
                assert_eq!(wait.as_mut().poll(task), Poll::Pending);
                result.send(7);
            }
            assert_eq!(wait.as_mut().poll(task), Poll::Ready(7));
        }
    }

    #[test]
    fn parses_regions_in_any_order_with_gaps() {
        let regions = |client_hashes| Shown { client_hashes, ..Shown::default() };
        assert_eq!(Shown::parse(""), Some(Shown::default()));
        let [one, other] = [b"1", b"2"].map(|bytes| RegionHash::of(bytes, &RegionKey::default()));
        let text = format!("2.{one},0.{other}");
        assert_eq!(Shown::parse(&text), Some(regions(vec![Some(other), None, Some(one)])));
        let marked = Shown { made_for: Some(10), made_by: Some(11), ..regions(vec![Some(one)]) };
        assert_eq!(Shown::parse(&format!("999.a,0.{one},998.b")), Some(marked));
        let long = format!("0.{}", "1".repeat(33));
        for wrong in ["0", "0.", ".0", "a.0", "0.%", &long, "1000.0", "-1.0", "998.g", "999.g"] {
            assert_eq!(Shown::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn treats_hash_of_earlier_version_as_unknown() {
        let unknown = Shown { client_hashes: vec![None, None], ..Shown::default() };
        assert_eq!(Shown::parse("0.a1b2c3d4e5f60718,1.0f"), Some(unknown));
    }

    proptest! {
        #[test]
        fn parses_region_hashes_as_written(contents in vec(any::<u64>(), 0..40)) {
            let key = RegionKey::default();
            let hashes = contents.iter().map(|content| RegionHash::of(&content.to_le_bytes(), &key));
            let hashes: Vec<_> = hashes.collect();
            let split_names = hashes.iter().enumerate();
            let split_names: Vec<_> = split_names.map(|(slot, hash)| format!("{slot}.{hash}")).collect();
            let client_hashes = hashes.into_iter().map(Some).collect();
            let shown = Shown { client_hashes, ..Shown::default() };
            prop_assert_eq!(Shown::parse(&split_names.join(",")), Some(shown));
        }

        #[test]
        fn bounds_memory_of_parsed_region_hashes(text in "[0-9a-g.,+]{0,60}") {
            if let Some(shown) = Shown::parse(&text) {
                prop_assert!(shown.client_hashes.len() <= MAX_REGIONS);
            }
        }
    }
}
