//! Counters of a store's work, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counters of a store since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Committed changes of tables.
    pub commits: u64,
    /// Transactions that were retried or rejected because of a conflict.
    pub conflicts: u64,
    /// Groups of records written. The records of a group share one sync.
    pub groups: u64,
    /// Bytes of written records, without framing.
    pub bytes: u64,
    /// Syncs of the journal.
    pub syncs: u64,
    /// The total time that these syncs took.
    pub sync_time: Duration,
    /// Whether the store rejects all changes: the disk failed, or the store is closed.
    pub is_read_only: bool,
    /// Whether the store rejects changes until the disk has room again.
    pub is_full: bool,
}

/// The work of a store at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    /// Commits that wait until the journal writes them.
    pub waiting: usize,
    /// Whether a group of records is being written or synced.
    pub is_writing: bool,
    /// Whether a checkpoint is being written.
    pub is_checkpointing: bool,
}

/// The counters themselves, updated by atomic operations.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) conflicts: Counter,
    commits: Counter,
    groups: Counter,
    bytes: Counter,
    syncs: Counter,
    sync_nanoseconds: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// Counts a written group.
    pub(crate) fn count_group(&self, commits: usize, bytes: usize) {
        self.commits.add(commits as u64);
        self.groups.add(1);
        self.bytes.add(bytes as u64);
    }

    /// Counts a sync that began at `begun`.
    pub(crate) fn count_sync(&self, begun: Instant) {
        self.syncs.add(1);
        self.sync_nanoseconds.add(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn stats(&self, is_read_only: bool, is_full: bool) -> Stats {
        Stats {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_groups_commits_bytes_and_syncs() {
        let counters = Counters::default();
        assert_eq!(counters.stats(false, false), Stats::default());
        counters.count_group(3, 100);
        counters.count_group(2, 50);
        counters.conflicts.add(4);
        let begun = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
        (0..3).for_each(|_| counters.count_sync(begun));
        let stats = counters.stats(true, false);
        assert_eq!((stats.commits, stats.groups, stats.bytes), (5, 2, 150));
        assert_eq!((stats.conflicts, stats.syncs), (4, 3));
        assert_eq!((stats.is_read_only, stats.is_full), (true, false));
        assert!(stats.sync_time >= Duration::from_secs(6), "{:?}", stats.sync_time);
    }
}
