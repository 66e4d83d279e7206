//! Live regions: keeps the content between `<Live>` and `</Live>` equal to a fresh response.
//!
//! A region depends on all data that the render of its page read before it and in it. Clients whose
//! renders read the same data about the visitor (the scope) share one view. When a row changes, the
//! server renders each affected page again, once per scope, and sends a region to the view's
//! clients if its content differs. The server stores only what the clients follow: a client that
//! reconnects sends the hashes of its regions and receives those that differ.

mod address;
mod choices;
mod events;
mod fair_queue;
mod mailbox;
mod pace;
mod page_presence;
mod part;
mod presence;
mod present_visitor;
mod render;
mod render_queue;
mod schedule;
mod shared_region_key;
mod shared_tab;
mod shared_tabs;
mod shared_view;
mod stream;
mod subsystem;
#[cfg(test)]
pub(crate) mod testing;
mod thread_waiters;
mod viewer;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bine_admission::Admission;
use bine_log as log;
use bine_server::{
    Handler, Incoming, InternalRequest, InternalRequestSource, InternalRunner, ReplyHandler,
    Retained,
};

use crate::app_state::States;
use crate::channels::{Command, Content, Draft, Engine, HIDE, Publish};
use crate::shared_state::SharedState;
use crate::staleness::Staleness;
use crate::store::Store;
use crate::trace::RequestDependency;

use events::create_channel;
use mailbox::{Mailbox, Notification};
use pace::MIN_INTERVAL;
use part::{Part, WantedBy};
use presence::PresenceMap;
use render::{Render, RenderRecord, RenderedRegion, Scope};
use render_queue::{RenderQueue, RenderSource};
use schedule::RenderLimits;
use shared_tabs::SharedTabs;
use shared_view::{SharedView, SharedViews, ViewId};

pub use events::{Events, ListenerChange, Monitor};
pub use page_presence::Presence;
pub use render::seen;
#[cfg(feature = "script")]
pub(crate) use render::{RegionReads, reads_so_far, seen_after};

/// The live pages of a program and the clients that follow them.
pub(crate) struct Live {
    /// The engine whose channels carry the patches. It persists no data.
    engine: Arc<Engine>,
    events: Events,
    presence: PresenceMap,
    mailbox: Arc<Mailbox>,
    views: Mutex<SharedViews>,
    /// Whether a client has followed a page since the start: only then do commits matter.
    is_watched: Arc<AtomicBool>,
    store: OnceLock<Store>,
    handler: Mutex<Option<Arc<dyn Handler>>>,
    runner: Mutex<Option<InternalRunner>>,
    /// How often the handler was replaced: a render by an older handler is discarded.
    generation: AtomicU64,
    /// How often a page was rendered again because of a change.
    rerenders: AtomicU64,
    /// The pages that wait for a render or are being rendered, for all followers or for one that
    /// joins.
    queue: RenderQueue,
    /// Whether a middleware of the program's own runs before the handler. It may read any part of
    /// the request and records no dependency.
    has_middleware: bool,
    /// The channel about this node, which all clients follow in a program with several nodes.
    node_channel: OnceLock<Box<str>>,
}

/// The metrics of live pages.
pub(crate) struct LiveMetrics {
    /// Pages with followers, counted once per scope.
    pub(crate) showings: usize,
    /// How often a page was rendered again.
    pub(crate) runs: u64,
    /// Patches and events published, each counted once however many clients receive it.
    pub(crate) patches: u64,
    /// Browsers that follow a page now.
    pub(crate) viewers: u32,
    /// Browsers that wait until a page is rendered for them.
    pub(crate) waiting: usize,
    /// Threads that run a page now, among those that render joins.
    pub(crate) busy_threads: usize,
    /// Joins that were refused because too many waited.
    pub(crate) refused: u64,
}

/// Without notifications, the thread looks for views without followers this often.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// The channel about this node. Channels of views and events have longer names.
const NODE_CHANNEL: &str = "node";
/// A render that takes longer than this is aborted.
const RENDER_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a render has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RenderError {
    /// The render failed; the next may succeed.
    Failed,
    /// The page is not available to this client; the status gives the reason.
    Refused(u16),
}

impl Live {
    /// Creates the live pages of a program with these events. `has_middleware`: see the field.
    pub(crate) fn new(events: &[(&'static str, bool)], has_middleware: bool) -> Self {
        let engine = Arc::new(Engine::passing());
        Self {
            events: Events::new(&engine, events),
            engine,
            presence: PresenceMap::default(),
            mailbox: Arc::default(),
            views: Mutex::default(),
            is_watched: Arc::default(),
            store: OnceLock::new(),
            handler: Mutex::default(),
            runner: Mutex::default(),
            generation: AtomicU64::new(0),
            rerenders: AtomicU64::new(0),
            queue: RenderQueue::default(),
            has_middleware,
            node_channel: OnceLock::new(),
        }
    }

    /// Tells all followers when the data of this node becomes old, and when it is current again.
    pub(crate) fn report_staleness(self: &Arc<Self>, staleness: &Staleness) {
        // The program is defined once.
        let _ = self.node_channel.set(NODE_CHANNEL.into());
        create_channel(&self.engine, &NODE_CHANNEL.into());
        let own = Arc::downgrade(self);
        staleness.observe(Box::new(move |is_stale| {
            if let Some(own) = own.upgrade() {
                let messages = vec![draft(&NODE_CHANNEL.into(), "stale", &is_stale.to_string())];
                let publish = Command::Publish(Publish { messages, ..Publish::default() });
                // The server may have stopped.
                let _ = own.engine.execute(publish).wait();
            }
        }));
    }

    /// The engine that publishes the patches.
    pub(crate) const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Registers the state that handlers and services take as arguments.
    pub(crate) fn register(&self, states: &mut States) {
        states.add(self.events.clone());
        states.add(self.presence.clone());
    }

    /// The events that clients may listen to.
    pub(crate) const fn events(&self) -> &Events {
        &self.events
    }

    /// The clients that are present on each page.
    const fn presence(&self) -> &PresenceMap {
        &self.presence
    }

    /// Shares presence and events with other nodes by this state. Call it before the store is open.
    pub(crate) fn share(&self, state: &SharedState) {
        self.presence.share(state.clone());
        state.observe(Arc::new(SharedTabs::new(self.presence.clone(), state.clone())));
        self.events.share(state);
    }

    /// Follows the program's tables.
    pub(crate) fn follow(&self, store: &Store) {
        // The observer holds no `Live`: the thread that commits must not be the one that drops it.
        let (mailbox, is_watched) = (Arc::clone(&self.mailbox), Arc::clone(&self.is_watched));
        store.observe(move |changes| {
            if is_watched.load(Ordering::SeqCst) {
                mailbox.put(Notification::Commit(Arc::clone(changes)));
            }
        });
        // The program starts once, so the cell is empty.
        let _ = self.store.set(store.clone());
    }

    /// Renders within these limits and reports waiting times to `admission`. Call it before a
    /// client follows a page.
    pub(crate) fn limit(&self, limits: RenderLimits, admission: &Arc<Admission>) {
        self.queue.limit(limits, admission);
    }

    /// Renders pages with this handler from now on. Its pages may differ from those before.
    pub(crate) fn serve_with(&self, handler: &Arc<dyn Handler>) {
        let mut own = self.handler.lock().unwrap_or_else(PoisonError::into_inner);
        *own = Some(Arc::clone(handler));
        self.generation.fetch_add(1, Ordering::SeqCst);
        if let Some(runner) = &*self.runner.lock().unwrap_or_else(PoisonError::into_inner) {
            runner.replace(handler);
            self.mailbox.put(Notification::All);
        }
    }

    /// Stops all renders and closes all channels.
    pub(crate) fn end(&self) {
        self.engine.end();
        self.mailbox.end();
        self.queue.end();
        self.handler.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.runner.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Returns the current metrics.
    pub(crate) fn figures(&self) -> LiveMetrics {
        let engine = self.engine.figures();
        let (waiting, refused) = self.queue.figures();
        LiveMetrics {
            showings: self.views().len(),
            runs: self.rerenders.load(Ordering::Relaxed),
            patches: engine.messages,
            viewers: engine.holds,
            waiting,
            busy_threads: self.queue.busy_threads(),
            refused,
        }
    }

    /// Describes the renders that run or wait.
    pub(crate) fn unfinished_work(&self) -> Option<String> {
        let (running, waiting) = self.queue.unfinished();
        let text = || format!("live pages (renders that run: {running}, that wait: {waiting})");
        (running + waiting > 0).then(text)
    }

    /// Starts the threads that render when the first client follows a page. `None`: they could not
    /// be started.
    fn start_threads(self: &Arc<Self>) -> Option<()> {
        let handler = self.handler.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let mut runner = self.runner.lock().unwrap_or_else(PoisonError::into_inner);
        if runner.is_none() {
            let own = Arc::clone(self);
            let source: Arc<dyn InternalRequestSource> = Arc::new(RenderSource(Arc::clone(self)));
            let threads = self.queue.threads();
            let started = InternalRunner::begin(&handler, RENDER_TIMEOUT, threads, &source)
                .and_then(|runner| {
                    thread::Builder::new()
                        .name("live".to_owned())
                        .spawn(move || own.keep_current())?;
                    Ok(runner)
                });
            match started {
                Ok(started) => *runner = Some(started),
                Err(error) => log::error(format_args!(
                    "cannot start the threads that render live pages: {error}"
                )),
            }
        }
        runner.as_ref().map(drop)
    }

    /// Creates a render of the page that this request names.
    fn new_render(&self, request: &Retained) -> Arc<Render> {
        let whole_request = || {
            let Incoming { head, peer, .. } = request.incoming();
            [head.raw(), format!("{peer:?}").as_bytes()].concat().into()
        };
        Arc::new(Render::new(Arc::clone(&self.mailbox), self.has_middleware.then(whole_request)))
    }

    /// Starts to observe commits and returns the store's sequence: no later commit is missed.
    fn sequence(&self) -> u64 {
        self.is_watched.store(true, Ordering::SeqCst);
        self.store.get().map_or(0, |store| store.read().without_tracking().sequence())
    }

    /// Renders views again when their data changes, until the server stops.
    fn keep_current(self: &Arc<Self>) {
        let mut timeout = SWEEP_INTERVAL;
        let mut swept = Instant::now();
        while let Some(notifications) = self.mailbox.take(timeout) {
            let (sequence, now, second) = (self.sequence(), Instant::now(), unix());
            let mut views = self.views();
            views.handle(notifications, sequence, now, second);
            if now.duration_since(swept) >= SWEEP_INTERVAL || views.is_sweep_due() {
                swept = now;
                for id in views.without_followers() {
                    self.drop_view(&mut views, id);
                }
                self.presence.prune();
                for retired in views.take_retired(now, SWEEP_INTERVAL) {
                    self.remove_channel(retired);
                }
            }
            while let Some(id) = views.take_due(now) {
                if let Some(view) = views.get(id) {
                    self.queue.submit_change(id, view.owner, &view.address);
                }
            }
            timeout =
                views.next_due(now, second).map_or(SWEEP_INTERVAL, |due| due.min(SWEEP_INTERVAL));
        }
    }

    /// Starts to render a view whose turn it is. Returns `None` if it has no followers.
    fn begin_change(self: Arc<Self>, id: ViewId, number: u64) -> Option<InternalRequest> {
        let mut views = self.views();
        let (sequence, now) = (self.sequence(), Instant::now());
        let view = views.get(id)?;
        if view.has_no_followers() {
            self.drop_view(&mut views, id);
            return None;
        }
        views.begin_render(id, now, sequence);
        let view = views.get(id)?;
        let render = self.new_render(&view.request);
        let request = view.request.clone();
        let followers = [0, 1].map(|manner| Arc::downgrade(&view.watches[manner]));
        drop(views);
        let wanted_by = WantedBy::Followers(followers);
        let around = Arc::new(Part { render: Arc::clone(&render), wanted_by });
        let then = ReplyHandler::new(move |reply| {
            self.finish_change(id, record_of(&render, reply.as_deref()), sequence);
            self.queue.finish(number, render.cost());
        });
        Some(InternalRequest { request, around, then })
    }

    /// Applies the result of a render and publishes the regions that have changed.
    fn finish_change(&self, id: ViewId, result: Result<RenderRecord, RenderError>, since: u64) {
        self.rerenders.fetch_add(1, Ordering::Relaxed);
        let mut views = self.views();
        self.apply_result(&mut views, id, result, since);
        drop(views);
        // The view may be due again.
        self.mailbox.put(Notification::Wake);
    }

    fn apply_result(
        &self,
        views: &mut SharedViews,
        id: ViewId,
        result: Result<RenderRecord, RenderError>,
        since: u64,
    ) {
        let now = Instant::now();
        let Some(view) = views.end_render(id) else { return };
        let before = view.expires_at;
        let record = match result {
            Ok(record) => record,
            Err(RenderError::Failed) => {
                // The clients keep the content that they have.
                view.fail();
                return views.schedule(id, now);
            }
            Err(RenderError::Refused(_)) => return self.reload_clients(views, id, HIDE),
        };
        if record.has_written {
            static TOLD: Once = Once::new();
            let page = Arc::clone(&view.address);
            TOLD.call_once(|| {
                log::warn(format_args!(
                    "{page} changes tables while it renders, so it may cause its own next render: it renders once a second at most, instead of up to {} times; change tables in services",
                    1000 / MIN_INTERVAL.as_millis()
                ));
            });
        }
        let channel = Arc::clone(&view.channel);
        let is_other_visitor = is_of_other_visitor(&view.scope, &record.scope);
        let newer_version = record.version.filter(|_| record.version != view.version);
        let Some(changed) = views.follow(id, &record) else {
            let version = newer_version.map(reload_for).unwrap_or_default();
            return self.reload_clients(views, id, if is_other_visitor { HIDE } else { &version });
        };
        let patches = changed.into_iter();
        let patches = patches.map(|(number, new)| draft(&channel, "patch", &patch(number, new)));
        let patches: Vec<Draft> = patches.collect();
        if !patches.is_empty() && !self.publish(patches) {
            return self.reload_clients(views, id, "");
        }
        views.index_expiry(id, before);
        views.catch_up(id, &record, since, now);
    }

    /// Makes all clients of a view fetch the page again. `data`: [`HIDE`] if they may no longer see
    /// it, the text of [`reload_for`] for a newer version, or empty.
    fn reload_clients(&self, views: &mut SharedViews, id: ViewId, data: &str) {
        let Some(view) = views.remove(id) else { return };
        self.publish(vec![draft(&view.channel, "reload", data)]);
        // The channel is kept until the clients have read the message.
        views.retire(view, Instant::now());
    }

    fn drop_view(&self, views: &mut SharedViews, id: ViewId) {
        if let Some(view) = views.remove(id) {
            self.remove_channel(view);
        }
    }

    fn remove_channel(&self, view: SharedView) {
        let _ = self.engine.execute(Command::Remove(view.channel)).wait();
    }

    /// Returns whether the engine accepted the messages; it rejects too large ones.
    fn publish(&self, messages: Vec<Draft>) -> bool {
        let published = self
            .engine
            .execute(Command::Publish(Publish { messages, ..Publish::default() }))
            .wait();
        if let Err(error) = &published {
            log::warn(format_args!("cannot publish a patch of a live page: {error}"));
        }
        published.is_ok()
    }

    fn views(&self) -> MutexGuard<'_, SharedViews> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The record of a render whose reply is a page.
fn record_of(render: &Render, reply: Option<&[u8]>) -> Result<RenderRecord, RenderError> {
    let status = reply.and_then(|reply| str::from_utf8(reply.get(9..12)?).ok()?.parse().ok());
    match status {
        Some(200..300) => Ok(render.take()),
        // The rate limit rejected this render; a later one may succeed.
        Some(429) => Err(RenderError::Failed),
        Some(status @ 300..500) => Err(RenderError::Refused(status)),
        _ => Err(RenderError::Failed),
    }
}

/// Whether the same request reads a different user or session than before: a login has ended. A
/// value that only one render read does not count.
fn is_of_other_visitor(before: &Scope, now: &Scope) -> bool {
    use RequestDependency::{Session, User, Whole};
    before.iter().filter(|(kind, _)| matches!(kind, User | Session | Whole)).any(|(kind, value)| {
        let mut again = now.iter().filter(|(own, _)| own == kind).peekable();
        again.peek().is_some() && again.all(|(_, own)| own != value)
    })
}

/// The text of a region's patch: its number and hash on one line, then its markup.
fn patch(number: usize, region: &RenderedRegion) -> String {
    format!("{number} {}\n{}", region.hash, String::from_utf8_lossy(&region.markup))
}

/// The data of a reload for a page of this version.
fn reload_for(version: u64) -> String {
    format!("{version:016x}")
}

fn draft(channel: &Arc<str>, event: &str, body: &str) -> Draft {
    let content_type = Some("text/plain; charset=utf-8".into());
    let (event, body) = (Some(event.into()), body.as_bytes().into());
    let content = Content { content_type, event, body, ..Content::default() };
    Draft { channels: vec![Arc::clone(channel)], content }
}

fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl fmt::Debug for Live {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Live")
    }
}
