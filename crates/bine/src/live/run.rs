//! Decides what is known of one run of a page: what it looked at, in the store and of its visitor, and which regions it
//! wrote.
//!
//! Only a page that is made for those who follow it is run so; any other costs a look at a thread's variable.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_html::Region;
use bine_pipeline::Around;

use super::mailbox::Mailbox;
use super::signal::Watched;
use crate::arguments::Looked;
use crate::store::{ReadSet, Recorder};

thread_local! {
    /// The run that this thread is in.
    static CURRENT: RefCell<Option<Arc<Run>>> = const { RefCell::new(None) };
}

/// One run of a page.
pub(crate) struct Run {
    recorder: Recorder,
    notes: Mutex<Notes>,
    /// Who is told when a signal changes that it has read.
    pub(super) mailbox: Arc<Mailbox>,
}

/// What was noted until now.
#[derive(Default)]
pub(super) struct Notes {
    /// What it looked at of its visitor, each once, in the order of the looks: its scope.
    pub(super) looks: Looks,
    pub(super) regions: Vec<Written>,
    /// The signals that it read, and which of their values.
    pub(super) signals: Vec<Watched>,
    /// When the session ends by itself that it looked at, in seconds since 1970.
    pub(super) ends: Option<u64>,
    /// It has looked who is there.
    pub(super) shows_who: bool,
}

/// What was looked at, each with what was seen.
pub(super) type Looks = Vec<(Looked, Box<[u8]>)>;

/// A region as one run has written it.
pub(super) struct Written {
    pub(super) hash: u64,
    pub(super) markup: Box<[u8]>,
    /// What the run had read when the region ended: before it and in it.
    pub(super) reads: ReadSet,
    /// So many of the run's signals.
    pub(super) signals: usize,
}

impl Run {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Self {
        Self { recorder: Recorder::default(), notes: Mutex::default(), mailbox }
    }

    /// The run that this thread is in, if it is in one.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Its page has looked at this, and seen that.
    pub(crate) fn look(&self, looked: Looked, seen: Box<[u8]>) {
        let (mut notes, look) = (self.notes(), (looked, seen));
        if !notes.looks.contains(&look) {
            notes.looks.push(look);
        }
    }

    /// Has the run of this thread know that what it looked at ends by itself then, in seconds since 1970.
    pub(crate) fn note_end(second: u64) {
        if let Some(run) = Self::current() {
            let mut notes = run.notes();
            notes.ends = Some(notes.ends.map_or(second, |ends| ends.min(second)));
        }
    }

    /// Its page shows who is there.
    pub(super) fn show_who_is_here(&self) {
        self.notes().shows_who = true;
    }

    pub(super) fn read(&self, signal: Watched) {
        let mut notes = self.notes();
        if !notes.signals.iter().any(|known| known.is_same(&signal)) {
            notes.signals.push(signal);
        }
    }

    fn write(&self, region: Region<'_>) {
        let reads = self.recorder.reads();
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
        std::mem::take(&mut *self.notes())
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a run: a poll of its handler, or all of one that may block.
pub(super) struct Part(pub(super) Arc<Run>);

impl Around for Part {
    fn around(&self, part: &mut dyn FnMut()) {
        let _outer = Outer(CURRENT.replace(Some(Arc::clone(&self.0))));
        self.0.recorder.around(part);
    }
}

/// The run that the thread was in before, also after a panic.
struct Outer(Option<Arc<Run>>);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// A page has written a region: a call that `html!` writes.
#[doc(hidden)]
pub fn seen(region: Region<'_>) {
    if let Some(run) = Run::current() {
        run.write(region);
    }
}
