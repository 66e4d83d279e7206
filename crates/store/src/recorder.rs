//! Decides to whom besides itself a snapshot's looks are told: to the run under way on its thread.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::reads::{Read, ReadSet};

thread_local! {
    /// Whose run this thread is in.
    static CURRENT: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// What one run of a function looks at, in all snapshots and changes that it begins, wherever these go.
///
/// ```
/// use bine_store::{Options, Recorder, Store};
///
/// let store = Store::in_memory(Options::new())?;
/// let recorder = Recorder::default();
/// let snapshot = recorder.around(|| store.read());
/// // What the snapshot is asked from here on is told to the recorder too.
/// assert!(recorder.reads().is_empty());
/// # drop(snapshot);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct Recorder(Arc<Own>);

#[derive(Default, Debug)]
struct Own {
    reads: Mutex<ReadSet>,
    has_written: AtomicBool,
}

impl Recorder {
    /// Runs a part of the function: what is begun meanwhile on this thread is told to this recorder alone.
    pub fn around<T>(&self, run: impl FnOnce() -> T) -> T {
        let _outer = Outer(CURRENT.replace(Some(self.clone())));
        run()
    }

    /// What was looked at until now.
    pub fn reads(&self) -> ReadSet {
        self.set().clone()
    }

    /// How many looks were noted until now.
    pub fn count(&self) -> usize {
        self.set().len()
    }

    /// Whether a change was committed that it was told of.
    pub fn has_written(&self) -> bool {
        self.0.has_written.load(Ordering::Acquire)
    }

    pub(crate) fn note_write(&self) {
        self.0.has_written.store(true, Ordering::Release);
    }

    /// The recorder of the part that this thread runs, if it runs one.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    pub(crate) fn note(&self, read: Read) {
        self.set().note(read);
    }

    fn set(&self) -> MutexGuard<'_, ReadSet> {
        self.0.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose run it was before, which it is again when this goes, by a panic too.
struct Outer(Option<Recorder>);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}
