//! Recorders: collect the reads of one run of a function across snapshots and threads.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::reads::{Read, ReadSet};

thread_local! {
    /// The recorder of the run that this thread executes.
    static CURRENT: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// The reads of one run of a function, in all snapshots and transactions that it begins, on any
/// thread.
///
/// ```
/// use bine_store::{Options, Recorder, Store};
///
/// let store = Store::in_memory(Options::new())?;
/// let recorder = Recorder::default();
/// let snapshot = recorder.scope(|| store.read());
/// // The recorder notes later reads of the snapshot too.
/// assert!(recorder.reads().is_empty());
/// # drop(snapshot);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct Recorder(Arc<Recording>);

#[derive(Default, Debug)]
struct Recording {
    reads: Mutex<ReadSet>,
    has_written: AtomicBool,
}

impl Recorder {
    /// Runs a part of the function. Snapshots and transactions that begin on this thread meanwhile
    /// report to this recorder alone.
    pub fn scope<T>(&self, run: impl FnOnce() -> T) -> T {
        let _outer = RestoreOuter(CURRENT.replace(Some(self.clone())));
        run()
    }

    /// The reads so far.
    pub fn reads(&self) -> ReadSet {
        self.set().clone()
    }

    /// The number of reads so far.
    pub fn count(&self) -> usize {
        self.set().len()
    }

    /// Whether a transaction with this recorder has committed a write.
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

/// Restores the thread's previous recorder on drop, also after a panic.
struct RestoreOuter(Option<Recorder>);

impl Drop for RestoreOuter {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}
