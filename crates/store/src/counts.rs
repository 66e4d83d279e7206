//! Decides what a store counts of its work, for whoever watches it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a store has done since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Changes of tables that were made.
    pub commits: u64,
    /// Changes that were begun again or refused, since others had changed what they looked at.
    pub conflicts: u64,
    /// Groups of records that were written: what shares one wait for the disk.
    pub groups: u64,
    /// Bytes of these records, without what frames them.
    pub bytes: u64,
    /// How often something was made durable.
    pub syncs: u64,
    /// How long that took in all.
    pub sync_time: Duration,
    /// Nothing is taken any more: the disk has failed, or the store is closed.
    pub is_read_only: bool,
    /// Changes are refused until the disk has room again.
    pub is_full: bool,
}

/// The same as it is counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) conflicts: Count,
    commits: Count,
    groups: Count,
    bytes: Count,
    syncs: Count,
    sync_nanoseconds: Count,
}

#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counts {
    /// A group was written.
    pub(crate) fn wrote(&self, commits: usize, bytes: usize) {
        self.commits.add(commits as u64);
        self.groups.add(1);
        self.bytes.add(bytes as u64);
    }

    /// Something was made durable, which was begun then.
    pub(crate) fn synced(&self, begun: Instant) {
        self.syncs.add(1);
        self.sync_nanoseconds.add(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn figures(&self, is_read_only: bool, is_full: bool) -> Figures {
        Figures {
            commits: self.commits.read(),
            conflicts: self.conflicts.read(),
            groups: self.groups.read(),
            bytes: self.bytes.read(),
            syncs: self.syncs.read(),
            sync_time: Duration::from_nanos(self.sync_nanoseconds.read()),
            is_read_only,
            is_full,
        }
    }
}
