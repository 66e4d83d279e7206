//! Decides what is known of one run of a page: what it looked at, in the store and of its visitor, and which regions it
//! wrote.
//!
//! Only a page that is made for those who follow it is run so; any other costs a look at a thread's variable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bine_html::{Region, RegionHash};

use super::mailbox::Mailbox;
use super::place::Place;
use crate::signal_core::{SignalCore, SignalListener, SignalRead};
use crate::store::{ReadSet, Recorder};
use crate::trace::{self, RenderTrace, RequestDependency};

/// One run of a page.
pub(crate) struct Run {
    recorder: Recorder,
    notes: Mutex<Notes>,
    /// Nanoseconds for which its parts have run.
    spent: AtomicU64,
    /// Who is told when a signal changes that it has read.
    mailbox: Arc<Mailbox>,
}

/// What was noted until now.
#[derive(Default)]
pub(super) struct Notes {
    /// What it looked at of its visitor, each once, in the order of the looks: its scope.
    pub(super) looks: Looks,
    pub(super) regions: Vec<Written>,
    /// What it has read of the tables.
    pub(super) reads: ReadSet,
    /// The signals that it read, and which of their values.
    pub(super) signals: Vec<SignalRead>,
    /// When the session ends by itself that it looked at, in seconds since 1970.
    pub(super) ends: Option<u64>,
    /// It has looked who is there.
    pub(super) here: Option<Arc<Place>>,
    /// It has changed tables, which perhaps it shows.
    pub(super) has_written: bool,
}

/// What was looked at, each with what was seen.
pub(super) type Looks = Vec<(RequestDependency, Box<[u8]>)>;

/// A region as one run has written it.
pub(super) struct Written {
    pub(super) hash: RegionHash,
    pub(super) markup: Box<[u8]>,
    /// So many of the run's reads: those before it and in it.
    pub(super) reads: usize,
    /// So many of the run's signals.
    pub(super) signals: usize,
}

impl Run {
    /// `seen` is what stands before the program and may have seen: a step of its own, which notes nothing.
    pub(super) fn new(mailbox: Arc<Mailbox>, seen: Option<Box<[u8]>>) -> Self {
        let looks = seen.map(|seen| (RequestDependency::Whole, seen)).into_iter().collect();
        let notes = Mutex::new(Notes { looks, ..Notes::default() });
        Self { recorder: Recorder::default(), notes, spent: AtomicU64::new(0), mailbox }
    }

    /// The run that this thread is in, if it is in one.
    pub(crate) fn current() -> Option<Arc<Self>> {
        trace::current_as()
    }

    /// Runs a part of it on this thread.
    pub(crate) fn within<T>(self: &Arc<Self>, part: impl FnOnce() -> T) -> T {
        let own: Arc<dyn RenderTrace> = Arc::<Self>::clone(self);
        trace::within(&own, part)
    }

    /// A part of it has run for this long.
    pub(super) fn spend(&self, time: Duration) {
        let spent = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.spent.fetch_add(spent, Ordering::Relaxed);
    }

    /// For how long its parts have run.
    pub(super) fn cost(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    /// Its page shows who is there.
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

    /// What was noted; a run that is over notes nothing more.
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

/// A page has written a region: a call that `html!` writes.
#[doc(hidden)]
pub fn seen(region: Region<'_>) {
    if let Some(run) = Run::current() {
        run.write(region);
    }
}
