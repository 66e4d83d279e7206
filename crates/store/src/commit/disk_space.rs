//! Operation on a full disk: the store serves reads, rejects changes, and checks for room by
//! itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use super::{Committer, Wakeup, commit_error, run_actions};
use crate::error::Error;
use crate::extension::OnDurable;
use crate::journal::{self, Journal};
use crate::reads::Changes;

/// Whether the disk has room, as of the last write or check.
#[derive(Default)]
pub(super) struct DiskSpace {
    is_full: AtomicBool,
    /// Records of a start on a full disk, in the order of their sequences. They are written before
    /// all later records.
    deferred: Mutex<Vec<Vec<u8>>>,
    observers: RwLock<Vec<DiskSpaceObserver>>,
}

/// A callback: true when the disk becomes full, false when it has room again.
pub(super) type DiskSpaceObserver = Box<dyn Fn(bool) + Send + std::marker::Sync>;

/// How often the store checks a full disk for room while no change does.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The free bytes that end the state of a full disk, unless a segment is smaller.
const RESUME_BYTES: u64 = 64 * 1024;
/// The free bytes below which a disk counts as full at the start.
const MIN_FREE_BYTES: u64 = 2 * 1024;

impl DiskSpace {
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    pub(super) fn set_full(&self, is_full: bool) {
        if self.is_full.swap(is_full, Ordering::AcqRel) == is_full {
            return;
        }
        for observer in self.observers.read().unwrap_or_else(PoisonError::into_inner).iter() {
            observer(is_full);
        }
    }

    pub(super) fn observe(&self, observer: DiskSpaceObserver) {
        self.observers.write().unwrap_or_else(PoisonError::into_inner).push(observer);
    }

    /// Writes the records that a start found no room for, as a group of their own.
    pub(super) fn write_deferred(&self, journal: &mut dyn Journal) -> Result<(), journal::Error> {
        let mut deferred = self.deferred();
        if deferred.is_empty() {
            return Ok(());
        }
        deferred.iter().try_for_each(|record| journal.append(record).map(drop))?;
        journal.write(true)?;
        deferred.clear();
        Ok(())
    }

    fn deferred(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Committer {
    /// Accepts a record for which a start found no room, and calls `on_durable` with its sequence.
    /// The record is written before the next commit or as soon as there is room. If the program
    /// ends before, its next start must submit it again.
    ///
    /// # Errors
    ///
    /// The store rejects commits.
    pub(crate) fn append_deferred(
        self: &Arc<Self>,
        record: Vec<u8>,
        on_durable: OnDurable,
    ) -> Result<(), Error> {
        loop {
            let journal = self.journal();
            let mut head = self.head();
            if let Some(failure) = &head.failure {
                return Err(failure.clone());
            }
            if !head.staged.is_empty() {
                drop(head);
                run_actions(self.write_next_group(journal));
                continue;
            }
            let sequence = head.advance(record.len(), None).sequence;
            head.unmarked_bytes = 0;
            head.remember(&Arc::new(Changes::empty(sequence)));
            self.visible.store(Arc::clone(&head.state));
            drop(head);
            self.disk_space.deferred().push(record);
            on_durable(sequence);
            self.disk_space.set_full(true);
            drop(journal);
            self.wake_next_leader();
            self.notifier.notify(Wakeup::Deadline);
            return Ok(());
        }
    }

    /// Accepts the record of all tables, which a start found no room for. The state counts it
    /// already.
    pub(crate) fn defer_tables(&self, record: Vec<u8>) {
        self.disk_space.deferred().insert(0, record);
        self.disk_space.set_full(true);
    }

    /// Determines at the start whether the disk is full, if the folder reports little free space.
    pub(crate) fn check_free_space(&self, available: u64) {
        if available >= RESUME_BYTES || self.is_full() {
            return;
        }
        let found = self.journal().find_room(MIN_FREE_BYTES);
        if let Err(journal::Error::Full { .. }) = found {
            self.disk_space.set_full(true);
            self.notifier.notify(Wakeup::Deadline);
        }
    }

    /// Whether changes are rejected because the disk is full.
    pub(crate) fn is_full(&self) -> bool {
        self.disk_space.is_full()
    }

    pub(crate) fn observe_disk_space(&self, observer: DiskSpaceObserver) {
        self.disk_space.observe(observer);
    }

    /// Checks whether a full disk has room again.
    pub(crate) fn probe_disk_space(&self) {
        let mut journal = self.journal();
        if self.disk_space.is_full() {
            let found = self
                .disk_space
                .write_deferred(&mut **journal)
                .and_then(|()| journal.find_room(RESUME_BYTES));
            match found {
                Ok(()) => self.disk_space.set_full(false),
                Err(journal::Error::Full { .. }) => {}
                Err(error) => self.fall_back(Vec::new(), &commit_error(&error)),
            }
        }
        drop(journal);
        self.wake_next_leader();
    }
}
