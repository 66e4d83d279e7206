//! One render of a page: records the data that it reads, from the store and about its visitor, and
//! the regions that it writes.
//!
//! Only renders for followers are recorded; any other render pays for one look at a thread-local
//! variable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bine_html::{Region, RegionHash};

use super::mailbox::Mailbox;
use super::place::Place;
use crate::signal_core::{SignalCore, SignalListener, SignalRead};
use crate::store::{ReadSet, Recorder};
use crate::trace::{self, RenderTrace, RequestDependency};

/// One render of a page.
pub(crate) struct Run {
    recorder: Recorder,
    notes: Mutex<Notes>,
    /// Run time of its parts so far, in nanoseconds.
    spent: AtomicU64,
    /// Notified when a signal changes that the render has read.
    mailbox: Arc<Mailbox>,
}

/// The data that a render records.
#[derive(Default)]
pub(super) struct Notes {
    /// What the render read about its visitor, each once, in order: its scope.
    pub(super) looks: Looks,
    pub(super) regions: Vec<Written>,
    /// The rows and ranges that it read.
    pub(super) reads: ReadSet,
    /// The signals that it read, with their versions.
    pub(super) signals: Vec<SignalRead>,
    /// When the session that it read expires, in seconds since 1970.
    pub(super) ends: Option<u64>,
    /// The presence of the page, if the render read it.
    pub(super) here: Option<Arc<Place>>,
    /// Whether it changed tables, which it may also display.
    pub(super) has_written: bool,
}

/// What a render read about its visitor: each property with its value.
pub(super) type Looks = Vec<(RequestDependency, Box<[u8]>)>;

/// A region as one render wrote it.
pub(super) struct Written {
    pub(super) hash: RegionHash,
    pub(super) markup: Box<[u8]>,
    /// How many of the render's reads happened before the region's end.
    pub(super) reads: usize,
    /// How many of the render's signals were read before the region's end.
    pub(super) signals: usize,
}

impl Run {
    /// `seen`: the whole request, if a middleware that records no dependency may have read it.
    pub(super) fn new(mailbox: Arc<Mailbox>, seen: Option<Box<[u8]>>) -> Self {
        let looks = seen.map(|seen| (RequestDependency::Whole, seen)).into_iter().collect();
        let notes = Mutex::new(Notes { looks, ..Notes::default() });
        Self { recorder: Recorder::default(), notes, spent: AtomicU64::new(0), mailbox }
    }

    /// The render that this thread runs, if any.
    pub(crate) fn current() -> Option<Arc<Self>> {
        trace::current_as()
    }

    /// Runs a part of the render on this thread.
    pub(crate) fn within<T>(self: &Arc<Self>, part: impl FnOnce() -> T) -> T {
        let own: Arc<dyn RenderTrace> = Arc::<Self>::clone(self);
        trace::within(&own, part)
    }

    /// Adds the run time of a part.
    pub(super) fn spend(&self, time: Duration) {
        let spent = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.spent.fetch_add(spent, Ordering::Relaxed);
    }

    /// The run time of all parts so far.
    pub(super) fn cost(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    /// Records that the page displays its present users.
    pub(super) fn show_who_is_here(&self, place: &Arc<Place>) {
        self.notes().here = Some(Arc::clone(place));
    }

    fn write(&self, region: Region<'_>) {
        let reads = self.recorder.count();
        let mut notes = self.notes();
        let signals = notes.signals.len();
        notes.regions.push(Written {
            hash: region.hash,
            markup: region.markup.into(),
            reads,
            signals,
        });
    }

    /// Takes the record. Anything recorded later is lost.
    pub(super) fn take(&self) -> Notes {
        let (reads, has_written) = (self.recorder.reads(), self.recorder.has_written());
        let mut notes = std::mem::take(&mut *self.notes());
        notes.has_written |= has_written;
        Notes { reads, ..notes }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RenderTrace for Run {
    fn record(&self, dependency: RequestDependency, value: Box<[u8]>) {
        let (mut notes, look) = (self.notes(), (dependency, value));
        if !notes.looks.contains(&look) {
            notes.looks.push(look);
        }
    }

    fn record_expiry(&self, second: u64) {
        let mut notes = self.notes();
        notes.ends = Some(notes.ends.map_or(second, |ends| ends.min(second)));
    }

    fn record_signal(&self, signal: &Arc<SignalCore>) {
        let listener: Arc<dyn SignalListener> = Arc::<Mailbox>::clone(&self.mailbox);
        let read = signal.read(&listener);
        let mut notes = self.notes();
        if !notes.signals.iter().any(|known| known.is_same(&read)) {
            notes.signals.push(read);
        }
    }

    fn record_write(&self) {
        self.notes().has_written = true;
    }

    fn observe(&self, part: &mut dyn FnMut()) {
        self.recorder.scope(part);
    }
}

/// Records a region. `html!` writes calls of this function.
#[doc(hidden)]
pub fn seen(region: Region<'_>) {
    if let Some(run) = Run::current() {
        run.write(region);
    }
}
