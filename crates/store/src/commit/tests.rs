//! Tests of the order of commits across threads and disk failures.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;

use super::*;
use crate::IndexOf;
use crate::disk::SimulatedFolder;
use crate::id::{Id, RowId};
use crate::journal::{Compaction, MemoryJournal, Sequence, SnapshotWriter};
use crate::options::Options;
use crate::record::Record;
use crate::schema::{Column, Index, Schema, Table};
use crate::snapshot::Snapshot;
use crate::stats::Activity;
use crate::store::Store;
use crate::value::{Field, Value};

/// A row with a number and an index over half the number.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Counter {
    pub(super) id: Id<Counter>,
    pub(super) half: u64,
    pub(super) number: u64,
}

const HALF: IndexOf<Counter, (u64,)> = IndexOf::position(0);

impl Table for Counter {
    const NAME: &'static str = "counter";

    fn schema() -> Schema {
        Schema {
            columns: vec![Column::new("half", u64::kind()), Column::new("number", u64::kind())],
            indexes: vec![Index { columns: vec![0], is_unique: false }],
            ..Schema::new("counter")
        }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        to.extend([self.half.value(), self.number.value()]);
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        let [half, number] = values else { return None };
        let (half, number) = (Field::from_value(*half)?, Field::from_value(*number)?);
        Some(Self { id: Id::of(id), half, number })
    }
}

/// A row of any length.
#[derive(Clone)]
struct Blob {
    id: Id<Blob>,
    bytes: Vec<u8>,
}

impl Table for Blob {
    const NAME: &'static str = "sack";

    fn schema() -> Schema {
        Schema { columns: vec![Column::new("bytes", Vec::<u8>::kind())], ..Schema::new("sack") }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        to.push(self.bytes.value());
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        Some(Self { id: Id::of(id), bytes: Field::from_value(*values.first()?)? })
    }
}

/// A journal in memory whose disk is full or broken, driven by a seed.
struct FlakyJournal {
    kept: Arc<Mutex<Vec<Vec<u8>>>>,
    group: Vec<Vec<u8>>,
    random: Random,
    /// The percentage of groups that find the disk full.
    full: Arc<AtomicU64>,
    /// The number of groups after which the disk fails or the journal panics.
    breaks_after: Option<u64>,
    panics: bool,
}

/// A reproducible random generator (Marsaglia's xorshift).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

impl Journal for FlakyJournal {
    fn append(&mut self, record: &[u8]) -> Result<Sequence, journal::Error> {
        self.group.push(record.to_vec());
        Ok((self.kept.lock().unwrap().len() + self.group.len()) as u64)
    }

    fn write(&mut self, _: bool) -> Result<Sequence, journal::Error> {
        let group = std::mem::take(&mut self.group);
        if let Some(left) = &mut self.breaks_after {
            if *left == 0 {
                assert!(!self.panics, "a fault of the journal");
                return Err(journal::Error::Broken { why: "a scheduled failure".to_owned() });
            }
            *left -= 1;
        }
        if self.random.below(100) < self.full.load(Ordering::Relaxed) {
            let error = std::io::ErrorKind::StorageFull.into();
            return Err(journal::Error::Full { file: "a disk of the tests".to_owned(), error });
        }
        let mut kept = self.kept.lock().unwrap();
        kept.extend(group);
        Ok(kept.len() as u64)
    }

    fn sync(&mut self) -> Result<Sequence, journal::Error> {
        Ok(self.durable())
    }

    fn durable(&self) -> Sequence {
        self.kept.lock().unwrap().len() as u64
    }

    fn snapshot(&mut self, sequence: Sequence) -> Result<Box<dyn SnapshotWriter>, journal::Error> {
        MemoryJournal::new().snapshot(sequence)
    }

    fn compaction(&mut self, snapshot: Sequence) -> Result<Compaction, journal::Error> {
        MemoryJournal::new().compaction(snapshot)
    }

    fn close(&mut self) -> Result<(), journal::Error> {
        Ok(())
    }
}

/// The reads and writes of a transaction.
#[derive(Debug)]
struct Transcript {
    /// The commit after which the reads hold; for a transaction with writes, its own commit.
    sequence: u64,
    reads: Vec<(RowId, Option<u64>)>,
    index_reads: Vec<(u64, Vec<RowId>)>,
    writes: Vec<(RowId, Option<u64>)>,
}

/// Runs random operations: reads rows and an index; changes, adds and removes rows depending on
/// what it read.
fn act(
    change: &mut Transaction,
    ids: &[Id<Counter>],
    random: &mut Random,
) -> Result<Transcript, Error> {
    let mut transcript =
        Transcript { sequence: 0, reads: vec![], index_reads: vec![], writes: vec![] };
    let mut sum = 0;
    for _ in 0..=random.below(3) {
        let id = ids[random.below(ids.len() as u64) as usize];
        let seen = change.get(id).map(|row| row.number);
        if transcript.writes.is_empty() {
            transcript.reads.push((id.row(), seen));
        }
        sum += seen.unwrap_or(1);
    }
    if random.below(3) == 0 {
        let half = random.below(4);
        let mut found: Vec<RowId> = change.find(HALF, half).map(|row| row.id.row()).collect();
        found.sort_unstable();
        sum += found.len() as u64;
        transcript.index_reads.push((half, found));
    }
    for _ in 0..random.below(3) {
        let id = ids[random.below(ids.len() as u64) as usize];
        let number = (sum + random.below(9)) % 8;
        match random.below(5) {
            0 => {
                if change.remove(id)? {
                    transcript.writes.push((id.row(), None));
                }
            }
            1 => {
                let row = Counter { id: Id::unassigned(), half: number / 2, number };
                let id = change.insert(row)?;
                transcript.writes.push((id.row(), Some(number)));
            }
            _ => {
                let known = change.update(id, |row: &mut Counter| {
                    row.half = number / 2;
                    row.number = number;
                });
                if known.is_ok() {
                    transcript.writes.push((id.row(), Some(number)));
                }
            }
        }
    }
    Ok(transcript)
}

/// A store on such a journal.
pub(super) struct Fixture {
    pub(super) store: Store,
    kept: Arc<Mutex<Vec<Vec<u8>>>>,
    pub(super) full: Arc<AtomicU64>,
}

pub(super) fn flaky_store(seed: u64, full: u64, breaks_after: Option<u64>) -> Fixture {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let often = full;
    let full = Arc::new(AtomicU64::new(0));
    let journal = FlakyJournal {
        kept: Arc::clone(&kept),
        group: Vec::new(),
        random: Random(seed),
        full: Arc::clone(&full),
        breaks_after,
        panics: false,
    };
    let options = Options::new().table::<Counter>();
    let store = Store::with_journal(options, Box::new(journal)).unwrap();
    full.store(often, Ordering::Relaxed);
    Fixture { store, kept, full }
}

pub(super) fn counters(store: &Store, count: u64) -> Vec<Id<Counter>> {
    let add = |number| loop {
        let row = Counter { id: Id::unassigned(), half: number / 2, number };
        match store.insert(row.clone()).wait() {
            Err(Error::Full) => {}
            id => break id.unwrap(),
        }
    };
    (0..count).map(|number| add(number % 8)).collect()
}

/// All rows with their numbers.
fn rows(snapshot: &Snapshot) -> BTreeMap<RowId, u64> {
    snapshot.all::<Counter>().map(|row| (row.id.row(), row.number)).collect()
}

/// Replays the transactions in order on a plain map: each must have read the state at its turn.
fn replay(mut map: BTreeMap<RowId, u64>, transcripts: &mut [Transcript]) -> BTreeMap<RowId, u64> {
    // A read-only transaction follows the last commit that it saw.
    transcripts.sort_by_key(|transcript| (transcript.sequence, transcript.writes.is_empty()));
    for pair in transcripts.windows(2) {
        assert!(
            pair[0].sequence < pair[1].sequence || pair[1].writes.is_empty(),
            "two commits of one number: {pair:?}"
        );
    }
    for transcript in transcripts {
        for (id, seen) in &transcript.reads {
            assert_eq!(map.get(id), seen.as_ref(), "row {id} of {transcript:?}");
        }
        for (half, found) in &transcript.index_reads {
            let expected: Vec<RowId> =
                map.iter().filter(|(_, number)| **number / 2 == *half).map(|(id, _)| *id).collect();
            assert_eq!(found, &expected, "half {half} of {transcript:?}");
        }
        for (id, number) in &transcript.writes {
            match number {
                Some(number) => drop(map.insert(*id, *number)),
                None => drop(map.remove(id)),
            }
        }
    }
    map
}

/// The rows that a restart would find.
fn recovered(records: &[Vec<u8>], store: &Store) -> BTreeMap<RowId, u64> {
    let definitions = &store.read().definitions;
    let mut state = State::empty(definitions);
    // The first record holds the table definitions.
    for record in &records[1..] {
        let Some(Record::Rows(writes)) = record::read(record) else { panic!("no record") };
        for write in &writes {
            state.apply(definitions, write);
        }
    }
    rows(&Snapshot::new(Arc::new(state)))
}

/// Runs several threads on few rows, a third of the transactions on the staged head.
fn run_history(seed: u64, full: u64) {
    const THREADS: u64 = 4;
    let Fixture { store, kept, .. } = flaky_store(seed, full, None);
    let ids = counters(&store, 6);
    let before = rows(&store.read());
    let conflicts = AtomicU64::new(0);
    let mut transcripts: Vec<Transcript> = thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS)
            .map(|number| {
                let (store, ids) = (&store, &ids);
                let conflicts = &conflicts;
                scope.spawn(move || {
                    let mut random = Random(seed * THREADS + number);
                    let mut transcripts = Vec::new();
                    for _ in 0..40 {
                        let mut change = match random.below(3) {
                            0 => store.begin_at_head(),
                            _ => store.begin(),
                        };
                        // Lets a concurrent thread commit in between.
                        thread::yield_now();
                        let Ok(mut transcript) = act(&mut change, ids, &mut random) else {
                            continue;
                        };
                        // Before the commit a read-only transaction knows the sequence that it has
                        // seen.
                        if transcript.writes.is_empty() {
                            transcript.sequence = change.base.sequence;
                        }
                        match store.commit(change).and_then(Pending::wait) {
                            Ok(sequence) => {
                                // Reads that no staged commit has touched are also those of the
                                // visible state, which is older than the one seen.
                                transcript.sequence = if transcript.writes.is_empty() {
                                    transcript.sequence.min(sequence)
                                } else {
                                    sequence
                                };
                                transcripts.push(transcript);
                            }
                            Err(Error::Conflict) => drop(conflicts.fetch_add(1, Ordering::Relaxed)),
                            Err(Error::Full) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    transcripts
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let after = replay(before, &mut transcripts);
    assert_eq!(rows(&store.read()), after, "seed {seed}");
    assert_eq!(recovered(&kept.lock().unwrap(), &store), after, "seed {seed}");
}

#[test]
fn full_disk_commits_atomically() {
    for seed in 1..60 {
        run_history(seed, 30);
    }
}

/// Symptom: waiting threads hung after the leader had panicked.
#[test]
fn panicking_journal_fails_all_waiting_commits() {
    let journal = FlakyJournal {
        kept: Arc::default(),
        group: Vec::new(),
        random: Random(1),
        full: Arc::default(),
        breaks_after: Some(1),
        panics: true,
    };
    let store = Store::with_journal(Options::new().table::<Counter>(), Box::new(journal)).unwrap();
    let row = || Counter { id: Id::unassigned(), half: 1, number: 2 };
    let pending: Vec<_> = (0..4)
        .map(|_| {
            let mut change = store.begin();
            change.insert(row()).unwrap();
            store.commit(change).unwrap()
        })
        .collect();
    let outcomes: Vec<_> = thread::scope(|scope| {
        let waiting = pending.into_iter().map(|pending| scope.spawn(|| pending.wait()));
        let waiting: Vec<_> = waiting.collect();
        waiting.into_iter().map(|waiting| waiting.join().unwrap()).collect()
    });
    for outcome in outcomes {
        assert!(matches!(outcome, Err(Error::Broken(_))), "{outcome:?}");
    }
    assert!(matches!(store.insert(row()).wait(), Err(Error::Broken(_))));
    assert_eq!(store.read().count::<Counter>(), 0);
}

#[test]
fn disk_failure_stops_writes_but_not_reads() {
    let Fixture { store, kept, .. } = flaky_store(1, 0, Some(3));
    let row = || Counter { id: Id::unassigned(), half: 1, number: 2 };
    let id = store.change(|change| change.insert(row())).wait().unwrap();
    store.change(|change| change.insert(row())).wait().unwrap();
    assert!(!store.stats().is_read_only);
    for _ in 0..2 {
        let outcome = store.change(|change| change.remove(id)).wait();
        assert_eq!(outcome, Err(Error::Broken("a scheduled failure".into())));
        assert!(store.stats().is_read_only && !store.stats().is_full);
    }
    // A change is rejected before it is staged.
    let mut change = store.begin();
    change.remove(id).unwrap();
    let refused = store.commit(change).map(drop);
    assert_eq!(refused, Err(Error::Broken("a scheduled failure".into())));
    assert_eq!(store.read().count::<Counter>(), 2);
    assert_eq!(kept.lock().unwrap().len(), 3);
}

#[test]
fn reuses_the_spare_state_without_readers() {
    let store = Store::in_memory(Options::new().table::<Counter>()).unwrap();
    let id = counters(&store, 1)[0];
    let state = |number: u64| {
        store.update(id, |row: &mut Counter| row.number = number).wait().unwrap();
        Arc::as_ptr(&store.read().state)
    };
    let [first, second, third, fourth] = [1, 2, 3, 4].map(state);
    assert!(first != second && first == third && second == fourth);
    let read = store.read();
    let number = |read: &Snapshot| read.get(id).unwrap().number;
    // A state in use is copied instead of reused.
    let later = [5, 6, 7].map(state);
    assert!(!later.contains(&fourth));
    assert_eq!((number(&read), number(&store.read())), (4, 7));
}

/// Guards against keeping the rows that a change removed in memory until the next change.
#[test]
fn frees_rows_that_a_large_change_removed() {
    let store = Store::in_memory(Options::new().table::<Counter>()).unwrap();
    let ids = counters(&store, 100);
    store.update(ids[0], |row: &mut Counter| row.number = 1).wait().unwrap();
    let before = Arc::downgrade(&store.read().state);
    let all = |change: &mut Transaction| -> Result<(), Error> {
        ids.iter().try_for_each(|id| change.remove(*id).map(drop))
    };
    store.change(all).wait().unwrap();
    assert!(before.upgrade().is_none());
}

/// Symptom: with many removals in one group, the spare state kept all removed rows until the next
/// change.
#[test]
fn frees_large_rows_that_several_changes_removed() {
    let store = Store::in_memory(Options::new().table::<Counter>().table::<Blob>()).unwrap();
    let number = counters(&store, 1)[0];
    for (length, is_kept) in [(100, true), (MAX_REMOVED_BYTES / 3, false)] {
        let blob =
            || store.insert(Blob { id: Id::unassigned(), bytes: vec![7; length] }).wait().unwrap();
        let blobs: Vec<Id<Blob>> = (0..4).map(|_| blob()).collect();
        store.update(number, |row: &mut Counter| row.number += 1).wait().unwrap();
        let before = Arc::downgrade(&store.read().state);
        let remove = |id: &Id<Blob>| {
            let mut change = store.begin();
            assert!(change.remove(*id).unwrap());
            store.commit(change).unwrap()
        };
        let removals: Vec<Pending> = blobs.iter().map(remove).collect();
        for removal in removals {
            removal.wait().unwrap();
        }
        assert_eq!(before.upgrade().is_some(), is_kept, "{length}");
    }
}

/// The worker does this one second after a commit.
#[test]
fn syncs_the_mark_of_durable_commits() {
    for seed in 0..10 {
        let disk = SimulatedFolder::new(seed, 1 << 24);
        let options = Options::new().table::<Counter>().segment(4096);
        let folder = Arc::new(disk.process());
        let store = Store::in_folder(folder, options, &mut |_, _| {}).unwrap();
        counters(&store, 3);
        let committer = Arc::clone(&store.commit(store.begin()).unwrap().committer);
        committer.sync_mark();
        assert!(!committer.needs_mark_sync.load(Ordering::Acquire));
        let mark = disk.content("synced").unwrap();
        disk.lose_power();
        assert_eq!(disk.content("synced"), Some(mark), "{seed}");
    }
}

#[test]
fn counts_the_bytes_of_removed_and_replaced_rows() {
    let store = Store::in_memory(Options::new().table::<Blob>()).unwrap();
    let blob = |length| Blob { id: Id::unassigned(), bytes: vec![7; length] };
    let ids = [100, 200, 400].map(|length| store.insert(blob(length)).wait().unwrap());
    let (sender, receiver) = mpsc::channel();
    store.observe(move |changes| sender.send(changes.removed_bytes()).unwrap());
    // A row has a few bytes more than its value.
    let removed = || receiver.recv().unwrap() / 100 * 100;
    let remove_two = |change: &mut Transaction| -> Result<(), Error> {
        change.remove(ids[0])?;
        change.update(ids[1], |row: &mut Blob| row.bytes = vec![8])?;
        // The writes are applied for this read, and the commit uses the result.
        assert!(change.get(ids[0]).is_none());
        Ok(())
    };
    store.change(remove_two).wait().unwrap();
    assert_eq!(removed(), 300);
    store.insert(blob(1000)).wait().unwrap();
    assert_eq!(removed(), 0);
    // As above, but with a commit in between.
    let mut change = store.begin();
    change.remove(ids[1]).unwrap();
    change.remove(ids[2]).unwrap();
    store.insert(blob(1000)).wait().unwrap();
    store.commit(change).unwrap().wait().unwrap();
    assert_eq!((removed(), removed()), (0, 400));
}

/// Symptom: memory grew by gigabytes. Cause: the conflict check kept eight thousand change sets of
/// four thousand rows each.
#[test]
fn bounds_the_memory_of_recent_changes() {
    let Fixture { store, full, .. } = flaky_store(1, 0, None);
    let all: Vec<Id<Counter>> = store
        .change(|change| {
            let row = |number| Counter { id: Id::unassigned(), half: number, number };
            (0..4000).map(|number| change.insert(row(number))).collect::<Result<_, Error>>()
        })
        .wait()
        .unwrap();
    let change_all = || {
        let change = |change: &mut Transaction| -> Result<(), Error> {
            all.iter().try_for_each(|id| change.update(*id, |row: &mut Counter| row.number += 1))
        };
        store.change(change).wait()
    };
    let begin = || {
        let mut change = store.begin();
        change.insert(Counter { id: Id::unassigned(), half: 1, number: 2 }).unwrap();
        change
    };
    let old = begin();
    for _ in 0..30 {
        change_all().unwrap();
    }
    let young = begin();
    change_all().unwrap();
    full.store(100, Ordering::Relaxed);
    assert_eq!(change_all(), Err(Error::Full));
    full.store(0, Ordering::Relaxed);
    let pending = store.commit(store.begin()).unwrap();
    let head = pending.committer.head();
    let bytes: usize = head.recent.iter().map(|changes| changes.bytes()).sum();
    assert_eq!(bytes, head.recent_bytes);
    assert!(head.recent.len() < 30 && (1..=MAX_RECENT_BYTES).contains(&bytes), "{bytes}");
    drop(head);
    assert_eq!(store.commit(old).map(drop), Err(Error::Conflict));
    assert!(store.commit(young).unwrap().wait().is_ok());
}

/// Symptom: an off-by-one boundary that missed a conflict passed all tests. Cause: no test began a
/// change right before the oldest remembered one.
#[test]
fn checks_all_changes_since_the_base_or_conflicts() {
    let Fixture { store, .. } = flaky_store(1, 0, None);
    let all = counters(&store, 20);
    let pending = store.commit(store.begin()).unwrap();
    let mut head = pending.committer.head();
    // Many commits drop the oldest changes.
    head.recent.drain(..5);
    let base_at = |sequence| {
        let mut base = State::clone(&head.state);
        base.sequence = sequence;
        base
    };
    let oldest = head.recent.front().unwrap().sequence;
    let newest = head.state.sequence;
    assert!(newest >= oldest + 10 && all.len() == 20);
    let has_no_conflict = |sequence| head.has_no_conflict(&base_at(sequence), |_| false);
    assert!(has_no_conflict(oldest - 1), "all changes since are kept");
    assert!(!has_no_conflict(oldest - 2), "one is missing, which may have touched what was read");
    // Changes after the base count; the base's own change does not.
    let is_clear_of = |change, sequence| {
        head.has_no_conflict(&base_at(sequence), |changes: &Changes| changes.sequence == change)
    };
    for change in [oldest, oldest + 3, newest] {
        assert!(!is_clear_of(change, change - 1), "{change}");
        assert!(is_clear_of(change, change), "{change}");
    }
}

/// Symptom: the store's thread panicked. Cause: it added a very long interval to the current time.
#[test]
fn accepts_any_sync_interval() {
    for interval in [Duration::ZERO, Duration::MAX] {
        let options = Options::new().table::<Counter>().sync(Sync::Interval(interval));
        let store = Store::in_memory(options).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        store.observe(move |changes| sender.send(changes.sequence).unwrap());
        let mut change = store.begin();
        change.insert(Counter { id: Id::unassigned(), half: 1, number: 2 }).unwrap();
        drop(store.commit(change).unwrap());
        assert_eq!(receiver.recv_timeout(Duration::from_mins(1)), Ok(2));
    }
}

#[test]
fn publishes_exactly_the_written_groups() {
    let Fixture { store, kept, .. } = flaky_store(1, 0, None);
    let seen = Arc::new(Mutex::new(Vec::new()));
    // A group has room for three records of this length.
    let record = vec![0; MAX_SHARED_GROUP_LENGTH / 3 - 1];
    let keep = || {
        let now = store.clone();
        let (kept, seen) = (Arc::clone(&kept), Arc::clone(&seen));
        let then = move |sequence| {
            let ends = (now.read().sequence(), kept.lock().unwrap().len() as u64);
            seen.lock().unwrap().push((sequence, ends));
        };
        store.append(&record, Sync::Commit, then).unwrap()
    };
    let staged: Vec<Pending> = (0..7).map(|_| keep()).collect();
    let outcomes: Vec<_> = staged.into_iter().map(Pending::wait).collect();
    assert_eq!(outcomes, (2..9).map(Ok).collect::<Vec<_>>());
    let groups = [(2, 4), (3, 4), (4, 4), (5, 7), (6, 7), (7, 7), (8, 8)];
    assert_eq!(*seen.lock().unwrap(), groups.map(|(sequence, end)| (sequence, (end, end))));
}

/// Symptom: a group that was one record shorter than its limit passed all tests. Cause: no test had
/// records that reach the limit exactly.
#[test]
fn fills_groups_up_to_their_limit() {
    for (length, groups) in [(MAX_SHARED_GROUP_LENGTH / 4, [4, 4, 2]), (1 << 10, [10, 0, 0])] {
        let Fixture { store, .. } = flaky_store(1, 0, None);
        let record = vec![0; length];
        let committer = Arc::clone(&store.commit(store.begin()).unwrap().committer);
        let mut head = committer.head();
        for _ in 0..10 {
            let sequence = head.advance(record.len(), None).sequence;
            head.staged.push(Staged {
                record: record.clone(),
                sequence,
                state: None,
                sync: Sync::None,
                changes: None,
                on_durable: None,
                completion: Arc::default(),
                after_commit: Vec::new(),
            });
        }
        for count in groups {
            let last = head.staged.get(..count).and_then(|group| group.last());
            let last = last.map_or(head.state.sequence, |staged| staged.sequence);
            let (group, state) = head.next_group();
            assert_eq!((group.len(), state.sequence), (count, last), "{length}");
        }
    }
}

#[test]
fn rejects_commits_beyond_the_queue() {
    let Fixture { store, .. } = flaky_store(1, 0, None);
    let committer = Arc::clone(&store.commit(store.begin()).unwrap().committer);
    let journal = committer.journal();
    let append = || store.append(b"a", Sync::None, |_| ());
    let pending: Vec<Pending> = (0..MAX_STAGED).map(|_| append().unwrap()).collect();
    assert_eq!(append().map(drop), Err(Error::Busy));
    assert_eq!(store.activity().waiting, MAX_STAGED);
    drop(journal);
    for pending in pending {
        pending.wait().unwrap();
    }
    append().unwrap().wait().unwrap();
}

struct Unpark(thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn completes_dropped_commits_and_wakes_futures() {
    let Fixture { store, .. } = flaky_store(1, 0, None);
    let (sender, receiver) = std::sync::mpsc::channel();
    store.observe(move |changes| sender.send(changes.sequence).unwrap());
    let insert = || {
        let mut change = store.begin();
        change.insert(Counter { id: Id::unassigned(), half: 1, number: 2 }).unwrap();
        store.commit(change).unwrap()
    };
    drop(insert());
    assert_eq!(receiver.recv(), Ok(2));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut pending = std::pin::pin!(insert());
    let outcome = loop {
        match pending.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => break outcome,
            Poll::Pending => thread::park(),
        }
    };
    assert_eq!(outcome, Ok(3));
    store.close();
    assert_eq!(
        store.change(|change| change.remove(Id::<Counter>::unassigned())).wait(),
        Err(Error::Closed)
    );
}

/// A journal whose compaction reports its begin and waits for a signal.
struct SlowCompaction {
    inner: MemoryJournal,
    begun: mpsc::Sender<()>,
    may_finish: Option<mpsc::Receiver<()>>,
}

impl Journal for SlowCompaction {
    fn append(&mut self, record: &[u8]) -> Result<Sequence, journal::Error> {
        self.inner.append(record)
    }

    fn write(&mut self, durably: bool) -> Result<Sequence, journal::Error> {
        self.inner.write(durably)
    }

    fn sync(&mut self) -> Result<Sequence, journal::Error> {
        self.inner.sync()
    }

    fn durable(&self) -> Sequence {
        self.inner.durable()
    }

    fn snapshot(&mut self, sequence: Sequence) -> Result<Box<dyn SnapshotWriter>, journal::Error> {
        self.inner.snapshot(sequence)
    }

    fn compaction(&mut self, snapshot: Sequence) -> Result<Compaction, journal::Error> {
        let Some(may_finish) = self.may_finish.take() else {
            return self.inner.compaction(snapshot);
        };
        let begun = self.begun.clone();
        Ok(Box::new(move || {
            begun.send(()).unwrap();
            may_finish.recv().map_err(|error| journal::Error::Refused(error.to_string()))
        }))
    }

    fn close(&mut self) -> Result<(), journal::Error> {
        self.inner.close()
    }
}

#[test]
fn activity_counts_commits_that_wait_for_the_journal() {
    let store = Store::in_memory(Options::new().table::<Blob>()).unwrap();
    assert_eq!(store.activity(), Activity::default());
    let insert = || {
        let mut change = store.begin();
        change.insert(Blob { id: Id::unassigned(), bytes: vec![1] }).unwrap();
        store.commit(change).unwrap()
    };
    let pending = [insert(), insert()];
    let committer = Arc::clone(&pending[0].committer);
    let journal = committer.journal();
    assert_eq!(store.activity(), Activity { waiting: 2, is_writing: true, ..Activity::default() });
    drop(journal);
    for pending in pending {
        pending.wait().unwrap();
    }
    assert_eq!(store.activity(), Activity::default());
}

/// Symptom: commits waited up to 80 ms after each checkpoint. Cause: the obsolete files were
/// removed while the journal was locked. Fix: under the lock the files are only listed.
#[test]
fn commits_continue_while_obsolete_files_are_removed() {
    let (begun, has_begun) = mpsc::channel();
    let (end, may_finish) = mpsc::channel();
    let journal =
        SlowCompaction { inner: MemoryJournal::new(), begun, may_finish: Some(may_finish) };
    let store = Store::with_journal(Options::new().table::<Blob>(), Box::new(journal)).unwrap();
    let shared = store.clone();
    let (inserted, insertions) = mpsc::channel();
    // Ends when the receiver is dropped.
    thread::spawn(move || {
        let blob = || Blob { id: Id::unassigned(), bytes: vec![1; 1 << 20] };
        while inserted.send(store.insert(blob()).wait().map(drop)).is_ok() {}
    });
    let patience = Duration::from_secs(20);
    has_begun.recv_timeout(patience).expect("a snapshot is written");
    assert!(shared.activity().is_checkpointing);
    while insertions.try_recv().is_ok() {}
    // The first result may have been sent earlier.
    for _ in 0..2 {
        let outcome = insertions.recv_timeout(patience);
        assert_eq!(outcome, Ok(Ok(())), "a commit waits for files to be removed");
    }
    end.send(()).unwrap();
}

/// An extension that discards its records reports them, as no row shows that they are obsolete.
#[test]
fn obsolete_records_of_an_extension_lead_to_a_checkpoint() {
    let (begun, has_begun) = mpsc::channel();
    let (end, may_finish) = mpsc::channel();
    let journal =
        SlowCompaction { inner: MemoryJournal::new(), begun, may_finish: Some(may_finish) };
    let store = Store::with_journal(Options::new().table::<Blob>(), Box::new(journal)).unwrap();
    store.count_obsolete(1 << 30);
    has_begun.recv_timeout(Duration::from_secs(20)).expect("a snapshot is written");
    end.send(()).unwrap();
}
