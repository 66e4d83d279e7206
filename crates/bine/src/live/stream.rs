//! Decides how a browser follows a page: it says which, and what it shows of it; it gets what differs, then what changes.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use bine_http::query::{self, Pairs};
use bine_http::{Event, Exchange, Limits, Machine, Method, Status};
use bine_pipeline::{
    Answer, Body, Clock, Done, Errand, Finished, Hold, Incoming, Outgoing, Retained,
};
use bine_push::{Form, Holes, Message, Sequence, Start, View};

use super::events::Listener;
use super::mailbox::News;
use super::run::{Notes, Part, Run as OneRun};
use super::showing::{MOST, Showing, Showings};
use super::signal::Watched;
use super::waiting::FOLLOWS_PAGE;
use super::{Guest, Live, Unmade, draft, notes_of, patch};
use crate::channels::{
    Draft, Durability, Manner, Name as ChannelName, Order, Pass, Regions, Retention, Settings,
    Watch, hold_for,
};
use crate::filter::rewritten;
use crate::look::Look;
use crate::respond::{Asked, Replying, Response};
use crate::route::House;
use crate::sessions::Visit;
use crate::text::Text;

/// Where pages are followed.
const PATH: &str = "/_bine/live";
/// Bytes of the address of a page.
const LONGEST: usize = 4096;
/// Regions of a page that are heeded.
const MOST_REGIONS: usize = 1000;
/// Events that one listens to.
const MOST_EVENTS: usize = 64;
/// A showing keeps so many patches for those who read slowly; who misses more comes again.
const KEPT: u64 = 32;
/// Milliseconds for which a poll waits.
const WAIT: u64 = 25_000;

/// What a browser asks for.
struct Wish {
    /// Host and target of the page; nothing, of one who only listens.
    address: Arc<str>,
    /// Names of events.
    on: Vec<String>,
    /// What whoever asks is called.
    name: Option<Text>,
    request: Retained,
    /// The hash that it has of each region.
    have: Vec<Option<u64>>,
    manner: Manner,
    pass: Pass,
    exchange: Exchange,
}

/// What becomes of a wish.
enum Granted {
    Hold(Hold),
    /// At once.
    Response(Response),
}

impl Live {
    /// Answers a request that follows a page. `None`: it does not.
    pub(crate) fn respond(
        self: &Arc<Self>,
        path: &str,
        request: &Incoming<'_>,
        house: &Arc<House>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Option<Answer> {
        if path != PATH {
            return None;
        }
        let answer = |response: Response, out: &mut Outgoing<'_>| {
            response.answer(Asked::by(request), clock, &house.look, out)
        };
        let method = request.head.method();
        if !matches!(method, Method::Get) {
            let allowed = crate::methods::Methods::GET;
            return Some(answer(Response::allowing(method, allowed), out));
        }
        let wish = match self.wish(request) {
            Ok(wish) => wish,
            Err(response) => return Some(answer(response, out)),
        };
        // Most look at what others look at too, and show what it is.
        let wish = match self.join_at_once(wish) {
            Ok(Granted::Hold(hold)) => return Some(Answer::Hold(hold)),
            Ok(Granted::Response(response)) => return Some(answer(response, out)),
            Err(wish) => wish,
        };
        let asked = Retained::of(request);
        let (own, house, clock) = (Arc::clone(self), Arc::clone(house), Rc::clone(clock));
        Some(Answer::Later(Box::pin(async move {
            let granted = own.grant(wish).await;
            finished(granted, &asked, &clock, &house.look)
        })))
    }

    /// What a request wishes.
    fn wish(&self, request: &Incoming<'_>) -> Result<Wish, Response> {
        let refused = |message: &'static str| Response::refusal(Status::BAD_REQUEST, message);
        let asked =
            |name: &str| value(query::pairs(request.head.query().unwrap_or_default()), name);
        let on: Vec<String> = asked("on").map(|names| words(&names)).unwrap_or_default();
        if on.len() > MOST_EVENTS {
            return Err(refused("`on` names more than 64 events"));
        }
        let page = asked("page");
        let is_page = page.is_some();
        let listens = || (!on.is_empty()).then(|| "/".to_owned());
        let target = page.or_else(listens).ok_or_else(|| {
            refused("`page` is missing: a page's path and query, encoded; or `on`: names of events")
        })?;
        let is_path = target.starts_with('/') && !target.starts_with("//");
        if !is_path || target.len() > LONGEST {
            return Err(refused("`page` is no path of this site, or longer than 4096 bytes"));
        }
        let unfit = || refused("`page` is not encoded as an address is");
        let bytes = rewritten(&request.head, &target).ok_or_else(unfit)?;
        // The head itself was within the program's own.
        let limits = Limits { head: u32::MAX, target: u32::MAX, ..Limits::default() };
        let Event::Head(head) = Machine::new().receive(&bytes, &limits).event else {
            return Err(unfit());
        };
        let is_poll =
            !request.head.field_text("accept").unwrap_or_default().contains("event-stream");
        let pass = Pass::of_peer(&self.engine.parties, request.peer, None)
            .map_err(|denied| Response::refusal(denied.status(), denied.reason()))?;
        let page = Incoming { head, body: Body::None, ..*request };
        Ok(Wish {
            address: if is_page { address(&page) } else { "".into() },
            on,
            name: request.who.known::<Visit>().map(|visit| visit.name()),
            request: Retained::of(&page),
            have: have(&asked("have").unwrap_or_default()),
            manner: if is_poll { Manner::Poll } else { Manner::Events },
            pass,
            exchange: request.exchange,
        })
    }

    /// Follows a page that is the same for all and is as it should be, for who shows all of it; or no page.
    fn join_at_once(&self, wish: Wish) -> Result<Granted, Wish> {
        if wish.address.is_empty() {
            let watch = Watch { manner: wish.manner, ..followed(Box::default()) };
            return Ok(self.hold(wish, &Arc::new(watch), false, None));
        }
        let mut showings = self.showings();
        let Some(name) = showings.settled(&wish.address) else { return Err(wish) };
        let Some(showing) = showings.get(name) else { return Err(wish) };
        let shown = showing.regions.iter().map(|region| Some(region.hash));
        if !shown.eq(wish.have.iter().copied()) || showing.is_deserted() {
            return Err(wish);
        }
        let watch = Arc::clone(&showing.watches[usize::from(wish.manner == Manner::Poll)]);
        let shows_who = showing.shows_who;
        Ok(self.hold(wish, &watch, shows_who, None))
    }

    async fn grant(self: &Arc<Self>, wish: Wish) -> Result<Hold, Response> {
        let (since, run) = (self.sequence(), Arc::new(OneRun::new(Arc::clone(&self.mailbox))));
        let Some(made) = self.run(&wish.request, &run).await else { return Err(busy()) };
        match self.join(wish, made, since) {
            Granted::Hold(hold) => Ok(hold),
            Granted::Response(response) => Err(response),
        }
    }

    /// Makes a page for somebody.
    async fn run(
        self: &Arc<Self>,
        request: &Retained,
        run: &Arc<OneRun>,
    ) -> Option<Result<Notes, Unmade>> {
        let inside = self.inside()?;
        let told = Arc::new(Told::default());
        let (teller, noted) = (Teller(Arc::clone(&told)), Arc::clone(run));
        let then = Box::new(move |reply: Option<Vec<u8>>| {
            teller.0.tell(notes_of(&noted, reply.as_deref()));
        });
        let around = Arc::new(Part(Arc::clone(run)));
        inside.ask(Errand { request: request.clone(), around, then });
        told.wait().await
    }

    /// Lets somebody follow a page that was made for them, and tells what differs from what they show.
    fn join(&self, wish: Wish, made: Result<Notes, Unmade>, since: u64) -> Granted {
        let mut notes = match made {
            Ok(notes) => notes,
            Err(Unmade::Failed) => return Granted::Response(busy()),
            Err(Unmade::Refused(status)) => {
                let status = Status::new(status).unwrap_or(Status::NOT_FOUND);
                let is_elsewhere = status.code() < 400;
                let status = if is_elsewhere { Status::NOT_FOUND } else { status };
                let message = "This page is not to be had by whoever asks.";
                return Granted::Response(Response::refusal(status, message));
            }
        };
        if notes.regions.is_empty() && !wish.on.is_empty() {
            let watch = Watch { manner: wish.manner, ..followed(Box::default()) };
            return self.hold(wish, &Arc::new(watch), false, None);
        }
        if notes.regions.is_empty() {
            let nothing = Response::status(Status::NO_CONTENT);
            return Granted::Response(nothing.with_field("Cache-Control", "no-store"));
        }
        let differs = |(number, have): (usize, &Option<u64>)| {
            let region = notes.regions.get(number)?;
            (Some(region.hash) != *have).then(|| patch(number, region))
        };
        let patches: Vec<_> = wish.have.iter().enumerate().filter_map(differs).collect();
        let mut showings = self.showings();
        let name = match showings.find(&wish.address, &notes.looks) {
            Some(name) => name,
            None if showings.len() >= MOST => return Granted::Response(busy()),
            None => match self.begin(&mut showings, &wish, since) {
                Some(showing) => {
                    let mut showing = showing;
                    showing.set(&mut notes);
                    showings.add(showing)
                }
                None => return Granted::Response(busy()),
            },
        };
        let Some(showing) = showings.get(name) else { return Granted::Response(busy()) };
        if showing.since > since || !notes.signals.iter().all(Watched::is_current) {
            // What others got meanwhile, this one would never get: all get it once more.
            showing.forget();
        } else {
            showing.refresh(&notes);
        }
        let watch = Arc::clone(&showing.watches[usize::from(wish.manner == Manner::Poll)]);
        let granted = self.granted(wish, &watch, &notes, &patches);
        showings.check(name, &notes, Instant::now());
        drop(showings);
        self.mailbox.put(News::Look);
        granted
    }

    fn granted(
        &self,
        wish: Wish,
        watch: &Arc<Watch>,
        notes: &Notes,
        patches: &[String],
    ) -> Granted {
        let channel: Arc<str> = "".into();
        let is_other = wish.have.len() != notes.regions.len();
        let drafts = || {
            let patches = patches.iter().map(|patch| draft(&channel, "patch", patch));
            if is_other { vec![draft(&channel, "reload", "")] } else { patches.collect() }
        };
        let is_news = is_other || !patches.is_empty();
        if wish.manner == Manner::Poll && is_news {
            let bytes = encoded(View::Json, drafts());
            let response = Response::bytes("application/json", bytes);
            return Granted::Response(response.with_field("Cache-Control", "no-store"));
        }
        let first = is_news.then(|| encoded(View::Sse, drafts()).into());
        self.hold(wish, watch, notes.shows_who, first)
    }

    /// Has what `watch` says followed from now on, and the events that are wished, behind what comes `first`. Where it
    /// `is_seen` who follows, this one is.
    fn hold(
        &self,
        wish: Wish,
        watch: &Arc<Watch>,
        is_seen: bool,
        first: Option<Box<[u8]>>,
    ) -> Granted {
        let mut watch = Arc::clone(watch);
        if is_seen || !wish.on.is_empty() {
            let names: Vec<&str> = wish.on.iter().map(String::as_str).collect();
            let listener = (!names.is_empty()).then(|| self.events().listen(&names));
            let listener = match listener.transpose() {
                Ok(listener) => listener,
                Err(reason) => {
                    return Granted::Response(Response::refusal(Status::NOT_FOUND, reason));
                }
            };
            let more = listener.iter().flat_map(Listener::channels).map(|name| (**name).into());
            let channels = watch.channels.iter().cloned().chain(more).collect();
            let presence = is_seen.then(|| self.places().come(&wish.address, wish.name.clone()));
            let guest = Guest { listener, presence, page: Arc::clone(&watch) };
            let guest = Some(Arc::new(guest));
            watch = Arc::new(Watch { channels, guest, ..Watch::clone(&watch) });
        }
        if let Some(first) = first {
            let regions = Regions::Behind(first, Arc::clone(&watch));
            watch = Arc::new(Watch { regions, ..Watch::clone(&watch) });
        }
        match self.engine.hub(|hub| hub.watermark()) {
            Some(now) => {
                let hold = hold_for(wish.pass, watch, Start::After(now), wish.exchange);
                Granted::Hold(Hold { manner: hold.manner | FOLLOWS_PAGE, ..hold })
            }
            None => Granted::Response(busy()),
        }
    }

    /// A showing of what is wished, with a channel of its own.
    fn begin(&self, showings: &mut Showings, wish: &Wish, since: u64) -> Option<Showing> {
        let channel: Arc<str> = format!("page-{}", showings.number()).into();
        let retention = Retention { messages: KEPT, ..Retention::default() };
        let durability = Durability::Memory;
        let settings = Settings { retention, durability, ..Settings::default() };
        let name = ChannelName::Given(Arc::clone(&channel));
        let made =
            Order::Create { name, settings, first: Vec::new(), is_closed: false, fork: None };
        self.engine.order(made).wait().ok()?;
        let watches = [Manner::Events, Manner::Poll]
            .map(|manner| Arc::new(Watch { manner, ..followed(Box::new([Box::from(&*channel)])) }));
        let (address, request) = (Arc::clone(&wish.address), wish.request.clone());
        Some(Showing::new(address, request, channel, watches, since, Instant::now()))
    }
}

/// Where a page is, for all who ask for it so.
pub(super) fn address(request: &Incoming<'_>) -> Arc<str> {
    let scheme = if request.peer.is_secure() { "https" } else { "http" };
    let host = request.head.authority().unwrap_or_default();
    format!("{scheme}://{host}{}", request.head.target()).into()
}

/// What is followed in these channels, of which one who misses something comes again.
fn followed(channels: Box<[Box<str>]>) -> Watch {
    Watch { holes: Holes::Tell, regions: Regions::All, wait: WAIT, ..Watch::of(channels) }
}

/// Names between commas.
fn words(text: &str) -> Vec<String> {
    text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The reply to a wish that was not granted at once.
fn finished(
    granted: Result<Hold, Response>,
    asked: &Retained,
    clock: &Clock,
    look: &Look,
) -> Finished {
    let response = match granted {
        Ok(hold) => {
            let follow = Some(bine_pipeline::Follow::Hold(hold));
            return Finished { bytes: Vec::new(), follow, close: false };
        }
        Err(response) => response,
    };
    let (mut bytes, request) = (Vec::new(), asked.incoming());
    let mut keep = |_: &mut Vec<u8>| {};
    let mut out = Outgoing { buffer: &mut bytes, drain: &mut keep };
    let to = Replying::new(&mut out, Asked::by(&request), clock, usize::MAX, look);
    let Done { follow, close } = to.finish(response);
    Finished { bytes, follow, close }
}

/// As it would be if it were published.
fn encoded(view: View, drafts: Vec<Draft>) -> Vec<u8> {
    let messages = drafts.into_iter().map(|Draft { content, .. }| {
        let content_type = content.content_type.unwrap_or_else(|| "text/plain".into());
        Arc::new(Message {
            sequence: Sequence::START,
            time: 0,
            channels: Arc::from([]),
            form: Form::of(&content_type, &content.body),
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

fn busy() -> Response {
    Response::refusal(Status::SERVICE_UNAVAILABLE, "This page cannot be followed at the moment.")
        .with_field("Retry-After", "1")
}

/// The first value of a name, if it is encoded as it should be.
fn value(mut pairs: Pairs<'_>, name: &str) -> Option<String> {
    let (_, value) = pairs.find(|(key, _)| key.is(name))?;
    value.decode().ok().map(std::borrow::Cow::into_owned)
}

/// `0.a1b2c3d4e5f60718,1.0f..`: the hashes by the regions' numbers.
fn have(text: &str) -> Vec<Option<u64>> {
    let mut have = Vec::new();
    for (number, hash) in text.split(',').filter_map(|one| one.split_once('.')) {
        let Some(number) = number.parse().ok().filter(|number| *number < MOST_REGIONS) else {
            continue;
        };
        if have.len() <= number {
            have.resize(number + 1, None);
        }
        have[number] = u64::from_str_radix(hash, 16).ok();
    }
    have
}

/// What another thread will tell a task.
struct Told<T>(Mutex<(Option<Option<T>>, Option<Waker>)>);

/// Tells that there is nothing to tell, if it goes before.
struct Teller<T>(Arc<Told<T>>);

impl<T> Told<T> {
    fn tell(&self, what: T) {
        self.set(Some(what));
    }

    fn set(&self, what: Option<T>) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.0.is_none() {
            told.0 = Some(what);
        }
        if let Some(waker) = told.1.take() {
            waker.wake();
        }
    }

    /// `None`: nobody is left who could tell.
    async fn wait(&self) -> Option<T> {
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

impl<T> Drop for Teller<T> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
