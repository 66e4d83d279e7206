//! Operation on a full disk: the store serves reads, rejects changes, and checks for room by
//! itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use super::{Commits, Rung, run, told};
use crate::error::Error;
use crate::extension::Then;
use crate::journal::{self, Journal};
use crate::reads::Changes;

/// Whether the disk has room, as of the last write or check.
#[derive(Default)]
pub(super) struct Room {
    is_full: AtomicBool,
    /// Records of a start on a full disk, in the order of their sequences. They are written before
    /// all later records.
    owed: Mutex<Vec<Vec<u8>>>,
    observers: RwLock<Vec<RoomObserver>>,
}

/// A callback: true when the disk becomes full, false when it has room again.
pub(super) type RoomObserver = Box<dyn Fn(bool) + Send + std::marker::Sync>;

/// How often the store checks a full disk for room while no change does.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The free bytes that end the state of a full disk, unless a segment is smaller.
const ENOUGH: u64 = 64 * 1024;
/// The free bytes below which a disk counts as full at the start.
const LEAST: u64 = 2 * 1024;

impl Room {
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

    pub(super) fn observe(&self, observer: RoomObserver) {
        self.observers.write().unwrap_or_else(PoisonError::into_inner).push(observer);
    }

    /// Writes the records that a start found no room for, as a group of their own.
    pub(super) fn write_owed(&self, journal: &mut dyn Journal) -> Result<(), journal::Error> {
        let mut owed = self.owed();
        if owed.is_empty() {
            return Ok(());
        }
        owed.iter().try_for_each(|record| journal.append(record).map(drop))?;
        journal.write(true)?;
        owed.clear();
        Ok(())
    }

    fn owed(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Commits {
    /// Accepts a record that a start found no room for, and calls `then` with its sequence. The
    /// record is written before the next commit or as soon as there is room. If the program ends
    /// before, its next start must submit it again.
    ///
    /// # Errors
    ///
    /// The store rejects commits.
    pub(crate) fn owe(self: &Arc<Self>, record: Vec<u8>, then: Then) -> Result<(), Error> {
        loop {
            let journal = self.journal();
            let mut head = self.head();
            if let Some(failure) = &head.failure {
                return Err(failure.clone());
            }
            if !head.staged.is_empty() {
                drop(head);
                run(self.lead(journal));
                continue;
            }
            let sequence = head.advance(record.len(), None).sequence;
            head.unmarked = 0;
            head.note(&Arc::new(Changes::none(sequence)));
            self.visible.store(Arc::clone(&head.state));
            drop(head);
            self.room.owed().push(record);
            then(sequence);
            self.room.set_full(true);
            drop(journal);
            self.call_next();
            self.bell.ring(Rung::Later);
            return Ok(());
        }
    }

    /// Accepts the record of all tables, which a start found no room for. The state counts it
    /// already.
    pub(crate) fn owe_tables(&self, record: Vec<u8>) {
        self.room.owed().insert(0, record);
        self.room.set_full(true);
    }

    /// Determines at the start whether the disk is full, if the folder reports little free space.
    pub(crate) fn expect_room(&self, available: u64) {
        if available >= ENOUGH || self.is_full() {
            return;
        }
        let found = self.journal().find_room(LEAST);
        if let Err(journal::Error::Full { .. }) = found {
            self.room.set_full(true);
            self.bell.ring(Rung::Later);
        }
    }

    /// Whether changes are rejected because the disk is full.
    pub(crate) fn is_full(&self) -> bool {
        self.room.is_full()
    }

    pub(crate) fn observe_disk_space(&self, observer: RoomObserver) {
        self.room.observe(observer);
    }

    /// Checks whether a full disk has room again.
    pub(crate) fn probe_disk_space(&self) {
        let mut journal = self.journal();
        if self.room.is_full() {
            let found =
                self.room.write_owed(&mut **journal).and_then(|()| journal.find_room(ENOUGH));
            match found {
                Ok(()) => self.room.set_full(false),
                Err(journal::Error::Full { .. }) => {}
                Err(error) => self.fall_back(Vec::new(), &told(&error)),
            }
        }
        drop(journal);
        self.call_next();
    }
}
