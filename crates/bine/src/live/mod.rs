//! Live regions: what a page shows between `<Live>` and `</Live>` stays as it would be if it were asked for again.
//!
//! A region depends on all that the run of its page has read before it and in it, and is the same for all of whom that
//! run has seen the same. So when a row changes, each page that is touched is made again, once for each such scope, as if
//! it were asked for; what stands between its marks is sent to all who look at it, if it is another. The server knows of
//! them what they wait for, nothing else: whoever comes again says what they show, and gets what differs.

mod address;
mod events;
mod fair;
mod guest;
mod here;
mod mailbox;
mod mark;
mod part;
mod place;
mod render;
mod run;
mod schedule;
mod showing;
mod stream;
#[cfg(test)]
pub(crate) mod testing;
mod waiting;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bine_admission::Admission;
use bine_log as log;
use bine_server::{Errand, Errands, Handler, Incoming, Inside, Retained, Then};

use crate::app_state::States;
use crate::channels::{Command, Content, Draft, Engine, Publish};
use crate::store::Store;

use mailbox::{Mailbox, News};
use part::{Part, WantedBy};
use place::Places;
use render::{RenderSource, Renders};
use run::{Notes, Run as OneRun, Written};
use showing::{Name, QUIET, Showing, Showings};

pub use events::{Events, Listening, Monitor};
pub use here::Here;
pub use mark::Has;
pub use run::seen;
pub(crate) use schedule::RenderLimits;
pub(crate) use stream::{PATH, is_stream};
pub(crate) use waiting::waiters;

/// The pages of a program that somebody looks at.
pub(crate) struct Live {
    /// In whose channels their patches are published. Nothing of it is kept.
    engine: Arc<Engine>,
    events: Events,
    places: Places,
    mailbox: Arc<Mailbox>,
    showings: Mutex<Showings>,
    /// Somebody has looked at a page: commits matter.
    is_watched: Arc<AtomicBool>,
    store: OnceLock<Store>,
    handler: Mutex<Option<Arc<dyn Handler>>>,
    inside: Mutex<Option<Inside>>,
    /// How often another handler was given: what an older one has made is nothing to go by.
    generation: AtomicU64,
    /// How often a page was made again since something changed.
    runs: AtomicU64,
    /// Pages that wait to be made or are being made, for all who follow them or for one who comes.
    renders: Renders,
    /// What stands before the program sees whom it lets pass, and notes nothing.
    has_step: bool,
}

/// What live pages tell of themselves in figures.
pub(crate) struct Figures {
    /// Pages that somebody looks at, each once for all who see the same.
    pub(crate) showings: usize,
    /// How often one was made again.
    pub(crate) runs: u64,
    /// What was sent of that, and events, each once however many have got it.
    pub(crate) patches: u64,
    /// Browsers that follow at this moment.
    pub(crate) viewers: u32,
    /// Browsers that wait until a page is rendered for them.
    pub(crate) waiting: usize,
    /// Threads that run a page at this moment, of those that render for single browsers.
    pub(crate) busy_threads: usize,
    /// How many were told to come again, because too many waited.
    pub(crate) refused: u64,
}

/// Without any news, it is looked so often whether somebody still looks at a page.
const SWEEP: Duration = Duration::from_secs(30);
/// A page that takes longer to be made is not.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a run has come to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unmade {
    /// It has failed; another may not.
    Failed,
    /// The page is not for whoever asks: this status says why.
    Refused(u16),
}

impl Live {
    /// With these events, of a program that may have another step from request to response.
    pub(crate) fn new(events: &[(&'static str, bool)], has_step: bool) -> Self {
        let engine = Arc::new(Engine::passing());
        Self {
            events: Events::new(&engine, events),
            engine,
            places: Places::default(),
            mailbox: Arc::default(),
            showings: Mutex::default(),
            is_watched: Arc::default(),
            store: OnceLock::new(),
            handler: Mutex::default(),
            inside: Mutex::default(),
            generation: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            renders: Renders::default(),
            has_step,
        }
    }

    /// Who is told of the patches.
    pub(crate) const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Registers what handlers and services take of it.
    pub(crate) fn register(&self, states: &mut States) {
        states.add(self.events.clone());
        states.add(self.places.clone());
    }

    /// What those who listen can be told.
    pub(crate) const fn events(&self) -> &Events {
        &self.events
    }

    /// Who is at which page.
    const fn places(&self) -> &Places {
        &self.places
    }

    /// Follows the program's tables.
    pub(crate) fn follow(&self, store: &Store) {
        // Not this itself: whoever commits must not be the last to have it.
        let (mailbox, is_watched) = (Arc::clone(&self.mailbox), Arc::clone(&self.is_watched));
        store.observe(move |changes| {
            if is_watched.load(Ordering::SeqCst) {
                mailbox.put(News::Commit(Arc::clone(changes)));
            }
        });
        // There is one start.
        let _ = self.store.set(store.clone());
    }

    /// Renders within these limits, and reports the waits to `admission`. To be called before the first page is followed.
    pub(crate) fn limit(&self, limits: RenderLimits, admission: &Arc<Admission>) {
        self.renders.limit(limits, admission);
    }

    /// Asks this for pages from here on; what it answers may be another than before.
    pub(crate) fn serve_with(&self, handler: &Arc<dyn Handler>) {
        let mut own = self.handler.lock().unwrap_or_else(PoisonError::into_inner);
        *own = Some(Arc::clone(handler));
        self.generation.fetch_add(1, Ordering::SeqCst);
        if let Some(inside) = &*self.inside.lock().unwrap_or_else(PoisonError::into_inner) {
            inside.replace(handler);
            self.mailbox.put(News::Everything);
        }
    }

    /// Nothing is made any more, nobody is asked, and nobody is told anything.
    pub(crate) fn end(&self) {
        self.engine.end();
        self.mailbox.end();
        self.renders.end();
        self.handler.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.inside.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// What there is, and what was done.
    pub(crate) fn figures(&self) -> Figures {
        let engine = self.engine.figures();
        let (waiting, refused) = self.renders.figures();
        Figures {
            showings: self.showings().len(),
            runs: self.runs.load(Ordering::Relaxed),
            patches: engine.messages,
            viewers: engine.holds,
            waiting,
            busy_threads: self.renders.busy_threads(),
            refused,
        }
    }

    /// Has threads that render, from the first time on that somebody wants to follow a page. `None`: there are none.
    fn begin_inside(self: &Arc<Self>) -> Option<()> {
        let handler = self.handler.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if inside.is_none() {
            let own = Arc::clone(self);
            let errands: Arc<dyn Errands> = Arc::new(RenderSource(Arc::clone(self)));
            let threads = self.renders.threads();
            let begun = Inside::begin(&handler, PATIENCE, threads, &errands).and_then(|inside| {
                thread::Builder::new().name("live".to_owned()).spawn(move || own.look())?;
                Ok(inside)
            });
            match begun {
                Ok(begun) => *inside = Some(begun),
                Err(error) => log::error(format_args!("pages cannot be kept up to date: {error}")),
            }
        }
        inside.as_ref().map(drop)
    }

    /// A run of the page that is asked for so.
    fn new_run(&self, request: &Retained) -> Arc<OneRun> {
        let seen = || {
            let Incoming { head, peer, .. } = request.incoming();
            [head.raw(), format!("{peer:?}").as_bytes()].concat().into()
        };
        Arc::new(OneRun::new(Arc::clone(&self.mailbox), self.has_step.then(seen)))
    }

    /// Begins to look whether something changes, and says up to which commit nothing can have been missed.
    fn sequence(&self) -> u64 {
        self.is_watched.store(true, Ordering::SeqCst);
        self.store.get().map_or(0, |store| store.read().without_tracking().sequence())
    }

    /// Has what is touched made again, until the end.
    fn look(self: &Arc<Self>) {
        let mut patience = SWEEP;
        let mut swept = Instant::now();
        while let Some(news) = self.mailbox.take(patience) {
            let (sequence, now, second) = (self.sequence(), Instant::now(), unix());
            let mut showings = self.showings();
            showings.heed(news, sequence, now, second);
            if now.duration_since(swept) >= SWEEP || showings.are_many() {
                swept = now;
                for name in showings.deserted() {
                    self.drop_showing(&mut showings, name);
                }
                self.places.prune();
                for departed in showings.take_departed(now, SWEEP) {
                    self.forget(departed);
                }
            }
            while let Some(name) = showings.take_due(now) {
                if let Some(showing) = showings.get(name) {
                    self.renders.submit_change(name, showing.owner, &showing.address);
                }
            }
            patience = showings.next_due(now, second).map_or(SWEEP, |due| due.min(SWEEP));
        }
    }

    /// Begins to make a showing again whose turn has come, if anybody looks at it.
    fn begin_change(self: Arc<Self>, name: Name, number: u64) -> Option<Errand> {
        let mut showings = self.showings();
        let (sequence, now) = (self.sequence(), Instant::now());
        let showing = showings.get(name)?;
        if showing.is_deserted() {
            self.drop_showing(&mut showings, name);
            return None;
        }
        showings.begin_making(name, now, sequence);
        let showing = showings.get(name)?;
        let run = self.new_run(&showing.request);
        let request = showing.request.clone();
        let followers = [0, 1].map(|manner| Arc::downgrade(&showing.watches[manner]));
        drop(showings);
        let wanted_by = WantedBy::Followers(followers);
        let around = Arc::new(Part { run: Arc::clone(&run), wanted_by });
        let then = Then::new(move |reply| {
            self.made(name, notes_of(&run, reply.as_deref()), sequence);
            self.renders.finish(number, run.cost());
        });
        Some(Errand { request, around, then })
    }

    /// A showing was made again: tells all who look at it what has changed.
    fn made(&self, name: Name, made: Result<Notes, Unmade>, since: u64) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let mut showings = self.showings();
        self.settle(&mut showings, name, made, since);
        drop(showings);
        // It may be due again.
        self.mailbox.put(News::Look);
    }

    fn settle(&self, showings: &mut Showings, name: Name, made: Result<Notes, Unmade>, since: u64) {
        let now = Instant::now();
        let Some(showing) = showings.end_making(name) else { return };
        let before = showing.ends;
        let notes = match made {
            Ok(notes) => notes,
            Err(Unmade::Failed) => {
                // They see what they saw.
                showing.fail();
                return showings.schedule(name, now);
            }
            Err(Unmade::Refused(_)) => return self.send_away(showings, name),
        };
        if notes.has_written {
            static TOLD: Once = Once::new();
            let page = Arc::clone(&showing.address);
            TOLD.call_once(|| {
                log::warn(format_args!(
                    "{page} changes tables while it is made, and so may move itself: it is made again once a second, not {} times; services are for changes",
                    1000 / QUIET.as_millis()
                ));
            });
        }
        let channel = Arc::clone(&showing.channel);
        let Some(changed) = showings.follow(name, &notes) else {
            return self.send_away(showings, name);
        };
        let patches = changed.into_iter();
        let patches = patches.map(|(number, new)| draft(&channel, "patch", &patch(number, new)));
        let patches: Vec<Draft> = patches.collect();
        if !patches.is_empty() && !self.publish(patches) {
            return self.send_away(showings, name);
        }
        showings.keep_end(name, before);
        showings.check(name, &notes, since, now);
    }

    /// Whoever looks at this page is to ask for it again.
    fn send_away(&self, showings: &mut Showings, name: Name) {
        let Some(showing) = showings.remove(name) else { return };
        self.publish(vec![draft(&showing.channel, "reload", "")]);
        // Its channel stays for those who have not read that yet.
        showings.depart(showing, Instant::now());
    }

    fn drop_showing(&self, showings: &mut Showings, name: Name) {
        if let Some(showing) = showings.remove(name) {
            self.forget(showing);
        }
    }

    fn forget(&self, showing: Showing) {
        let _ = self.engine.order(Command::Remove(showing.channel)).wait();
    }

    /// Whether it was taken: what is too large is not.
    fn publish(&self, messages: Vec<Draft>) -> bool {
        let published =
            self.engine.order(Command::Publish(Publish { messages, ..Publish::default() })).wait();
        if let Err(error) = &published {
            log::warn(format_args!("a change of a page could not be sent: {error}"));
        }
        published.is_ok()
    }

    fn showings(&self) -> MutexGuard<'_, Showings> {
        self.showings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a run has noted, if its reply is a page.
fn notes_of(run: &OneRun, reply: Option<&[u8]>) -> Result<Notes, Unmade> {
    let status = reply.and_then(|reply| str::from_utf8(reply.get(9..12)?).ok()?.parse().ok());
    match status {
        Some(200..300) => Ok(run.take()),
        // Too much for the moment, which another is not.
        Some(429) => Err(Unmade::Failed),
        Some(status @ 300..500) => Err(Unmade::Refused(status)),
        _ => Err(Unmade::Failed),
    }
}

/// A region as it is sent: its number and hash on a line, then its markup.
fn patch(number: usize, region: &Written) -> String {
    format!("{number} {}\n{}", region.hash, String::from_utf8_lossy(&region.markup))
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
