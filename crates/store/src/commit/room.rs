//! What a store does while the disk has no room: it serves reads, refuses changes, and looks for room by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use super::{Commits, Rung, run, told};
use crate::error::Error;
use crate::guest::Then;
use crate::journal::{self, Journal};
use crate::reads::Changes;

/// Whether the disk has room, as far as the last write or search found out.
#[derive(Default)]
pub(super) struct Room {
    is_full: AtomicBool,
    /// Records of a start on a full disk, in the order of their sequences. They are written before all others.
    owed: Mutex<Vec<Vec<u8>>>,
    observers: RwLock<Vec<RoomObserver>>,
}

/// Is told when the disk has no room any more (true), and when it has some again.
pub(super) type RoomObserver = Box<dyn Fn(bool) + Send + std::marker::Sync>;

/// While the disk is full and nobody changes anything, it is asked for room this often.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// A disk that was full has room again if it has so many bytes for the journal, or a segment if that is less.
const ENOUGH: u64 = 64 * 1024;
/// A disk that has no room for so many bytes is full at the start.
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

    /// Writes what a start could not write, as a group of its own.
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
    /// Counts a record that a start found no room for as kept. `then` is called with its sequence. It is written before
    /// the next commit, or as soon as there is room; a program that ends before writes it at its next start.
    ///
    /// # Errors
    ///
    /// Nothing is taken any more.
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

    /// The record that says what tables consist of, which a start found no room for. The state counts it already.
    pub(crate) fn owe_tables(&self, record: Vec<u8>) {
        self.room.owed().insert(0, record);
        self.room.set_full(true);
    }

    /// Finds out at the start whether the disk is full, if its folder says that it has little room.
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

    /// Whether changes are refused for want of room.
    pub(crate) fn is_full(&self) -> bool {
        self.room.is_full()
    }

    pub(crate) fn observe_room(&self, observer: RoomObserver) {
        self.room.observe(observer);
    }

    /// Looks whether a full disk has room again.
    pub(crate) fn look_for_room(&self) {
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
