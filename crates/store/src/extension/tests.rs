//! Tests of extensions: records of other data in the same journal.

use std::iter;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::disk::{Fault, SimulatedFolder};
use crate::{Column, Error, Field, Id, Options, RowId, Schema, Store, Sync, Table, Value};

/// An extension that stores words in order.
#[derive(Default)]
struct WordLog(Mutex<Vec<(u64, String)>>);

impl WordLog {
    fn lines(&self) -> MutexGuard<'_, Vec<(u64, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, sequence: u64, bytes: &[u8]) -> Result<(), String> {
        let word = std::str::from_utf8(bytes).map_err(|_| "no word")?;
        let mut lines = self.lines();
        assert!(lines.last().is_none_or(|(last, _)| *last < sequence), "{word} comes too late");
        lines.push((sequence, word.to_owned()));
        Ok(())
    }
}

impl Extension for WordLog {
    fn load_block(&self, block: &[u8]) -> Result<(), String> {
        let (sequence, word) = block.split_first_chunk().ok_or("too short")?;
        self.note(u64::from_be_bytes(*sequence), word)
    }

    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        self.note(sequence, record)
    }

    fn finish_load(&self) -> Result<(), String> {
        Ok(())
    }

    fn snapshot(&self) -> SnapshotBlocks {
        let lines = self.lines().clone();
        let block = |(sequence, word): (u64, String)| {
            [&sequence.to_be_bytes()[..], word.as_bytes()].concat()
        };
        Box::new(lines.into_iter().map(block))
    }
}

#[derive(Clone)]
struct Number {
    id: Id<Number>,
    number: u64,
}

impl Table for Number {
    const NAME: &'static str = "number";

    fn schema() -> Schema {
        Schema { columns: vec![Column::new("number", u64::kind())], ..Schema::new("number") }
    }

    fn id(&self) -> RowId {
        self.id.row()
    }

    fn set_id(&mut self, id: RowId) {
        self.id = Id::of(id);
    }

    fn values<'r>(&'r self, to: &mut Vec<Value<'r>>) {
        to.push(self.number.value());
    }

    fn from_values(id: RowId, values: &[Value<'_>]) -> Option<Self> {
        Some(Self { id: Id::of(id), number: Field::from_value(*values.first()?)? })
    }
}

fn open(disk: &SimulatedFolder, log: &Arc<WordLog>) -> Result<Store, String> {
    let extension = Arc::clone(log) as Arc<dyn Extension>;
    let options = Options::new().table::<Number>().extension(extension).segment(1 << 20);
    Store::in_folder(Arc::new(disk.clone()), options, &mut |_, _| {})
}

fn keep(store: &Store, log: &Arc<WordLog>, word: &str, sync: Sync) -> Result<u64, Error> {
    let (own, bytes) = (Arc::clone(log), word.as_bytes().to_vec());
    let then = move |sequence| own.note(sequence, &bytes).unwrap();
    store.append(word.as_bytes(), sync, then)?.wait()
}

const INTERVAL: Sync = Sync::Interval(Duration::from_millis(1));

#[test]
fn restores_extension_records_in_commit_order() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let log = Arc::new(WordLog::default());
    let store = open(&disk, &log).unwrap();
    let number = |number| store.insert(Number { id: Id::unassigned(), number }).wait().unwrap();
    number(1);
    let one = keep(&store, &log, "one", INTERVAL).unwrap();
    number(2);
    let two = keep(&store, &log, "two", Sync::None).unwrap();
    let three = keep(&store, &log, "three", Sync::Commit).unwrap();
    assert_eq!((two - one, three - two), (2, 1));
    disk.lose_power();
    drop(store);
    disk.revive();
    let again = Arc::new(WordLog::default());
    let store = open(&disk, &again).unwrap();
    assert_eq!(*again.lines(), *log.lines());
    assert_eq!(store.read().count::<Number>(), 2);
    assert_eq!(keep(&store, &again, "four", Sync::Commit), Ok(three + 1));
}

#[test]
fn concurrent_extension_records_call_back_in_order() {
    let log = Arc::new(WordLog::default());
    let store = open(&SimulatedFolder::new(1, 1 << 30), &log).unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let (store, log) = (&store, &log);
            scope.spawn(move || {
                for count in 0..50 {
                    let sync = [Sync::Commit, INTERVAL, Sync::None][count % 3];
                    keep(store, log, &format!("{thread}-{count}"), sync).unwrap();
                    store.insert(Number { id: Id::unassigned(), number: 0 }).wait().unwrap();
                }
            });
        }
    });
    // Each line has checked that it follows the previous one.
    assert_eq!(log.lines().len(), 200);
}

#[test]
fn syncs_within_the_interval() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let log = Arc::new(WordLog::default());
    let store = open(&disk, &log).unwrap();
    keep(&store, &log, "one", INTERVAL).unwrap();
    let began = Instant::now();
    while store.needs_sync() {
        assert!(began.elapsed() < Duration::from_secs(20), "it is never made durable");
        thread::yield_now();
    }
    disk.lose_power();
    drop(store);
    disk.revive();
    let again = Arc::new(WordLog::default());
    open(&disk, &again).unwrap();
    assert_eq!(again.lines().len(), 1);
}

#[test]
fn calls_back_only_for_durable_records() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let log = Arc::new(WordLog::default());
    let store = open(&disk, &log).unwrap();
    keep(&store, &log, "one", Sync::Commit).unwrap();
    disk.set_room(0);
    let mut word = String::from("x");
    // The preallocated segment still has some room.
    while keep(&store, &log, &word, Sync::Commit) != Err(Error::Full) {
        word = word.repeat(8);
    }
    let count_before = log.lines().len();
    disk.set_room(1 << 30);
    keep(&store, &log, "last", Sync::Commit).unwrap();
    assert_eq!(log.lines().len(), count_before + 1);
    disk.fail(0, Fault::Broken);
    assert!(matches!(keep(&store, &log, "never", Sync::Commit), Err(Error::Broken(_))));
    assert_eq!(log.lines().len(), count_before + 1);
}

#[test]
fn snapshot_replaces_extension_records() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let log = Arc::new(WordLog::default());
    let store = open(&disk, &log).unwrap();
    let long = "long ".repeat(10_000);
    // Enough records for a checkpoint that removes the first segment.
    for _ in 0..140 {
        keep(&store, &log, &long, Sync::None).unwrap();
    }
    let has_snapshot = || {
        let names = crate::disk::Folder::list(&disk).unwrap();
        names.iter().any(|name| name.starts_with("snapshot-") && !name.contains("new"))
    };
    let began = Instant::now();
    while !has_snapshot() {
        assert_eq!(store.checkpoint_failure(), None);
        assert!(began.elapsed() < Duration::from_mins(1), "there is no snapshot");
        thread::yield_now();
    }
    keep(&store, &log, "behind", Sync::Commit).unwrap();
    store.close();
    drop(store);
    let again = Arc::new(WordLog::default());
    open(&disk, &again).unwrap();
    assert!(*again.lines() == *log.lines(), "{} lines", again.lines().len());
}

/// Panics at its first snapshot, and in the iterator of the second.
#[derive(Default)]
struct PanickingExtension(WordLog, AtomicU32);

impl Extension for PanickingExtension {
    fn load_block(&self, block: &[u8]) -> Result<(), String> {
        self.0.load_block(block)
    }

    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        self.0.replay(sequence, record)
    }

    fn finish_load(&self) -> Result<(), String> {
        Ok(())
    }

    fn snapshot(&self) -> SnapshotBlocks {
        match self.1.fetch_add(1, Ordering::Relaxed) {
            0 => panic!("a fault of the extension"),
            1 => Box::new(iter::from_fn(|| -> Option<Vec<u8>> { panic!("another one") })),
            _ => self.0.snapshot(),
        }
    }
}

/// Symptom: after the first panic the store's thread had ended, and threads that waited for the
/// journal hung; after the second no checkpoint ran any more.
#[test]
fn panicking_extension_stops_neither_writes_nor_checkpoints() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let extension = Arc::new(PanickingExtension::default());
    let options =
        Options::new().extension(Arc::clone(&extension) as Arc<dyn Extension>).segment(1 << 16);
    let store = Store::in_folder(Arc::new(disk.clone()), options, &mut |_, _| {}).unwrap();
    let long = [b'x'; 10_000];
    let has_snapshot = || {
        let names = crate::disk::Folder::list(&disk).unwrap();
        names.iter().any(|name| name.starts_with("snapshot-") && !name.contains("new"))
    };
    let mut count = 0;
    while !has_snapshot() {
        store.append(&long, Sync::None, drop).unwrap().wait().unwrap();
        count += 1;
        assert!(count < 10_000, "there is no snapshot");
    }
    assert!(extension.1.load(Ordering::Relaxed) >= 3);
    // Wait for the callback only.
    let (sender, receiver) = std::sync::mpsc::channel();
    drop(store.append(b"last", Sync::Commit, move |_| sender.send(()).unwrap()).unwrap());
    assert_eq!(receiver.recv_timeout(Duration::from_mins(1)), Ok(()));
}

#[test]
fn refuses_to_open_records_of_an_unknown_extension() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let log = Arc::new(WordLog::default());
    let store = open(&disk, &log).unwrap();
    keep(&store, &log, "one", Sync::Commit).unwrap();
    drop(store);
    let folder = Arc::new(disk.clone());
    let refused = Store::in_folder(folder, Options::new().table::<Number>(), &mut |_, _| {});
    let refused = refused.unwrap_err();
    assert!(refused.contains("the folder has data of an extension"), "{refused}");
    open(&disk, &Arc::new(WordLog::default())).unwrap();
}

/// An extension with the words that begin with `#`, beside a [`WordLog`].
#[derive(Default)]
struct TagLog(Mutex<Vec<String>>);

impl TagLog {
    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Extension for TagLog {
    fn owns(&self, first: u8) -> bool {
        first == b'#'
    }

    fn load_block(&self, block: &[u8]) -> Result<(), String> {
        self.replay(0, block)
    }

    fn replay(&self, _sequence: u64, record: &[u8]) -> Result<(), String> {
        self.lines().push(String::from_utf8(record.to_vec()).map_err(|_| "no tag")?);
        Ok(())
    }

    fn finish_load(&self) -> Result<(), String> {
        Ok(())
    }

    fn snapshot(&self) -> SnapshotBlocks {
        Box::new(self.lines().clone().into_iter().map(String::into_bytes))
    }
}

#[test]
fn extensions_with_different_first_bytes_share_a_journal() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let open = || {
        let (tags, words) = (Arc::new(TagLog::default()), Arc::new(WordLog::default()));
        let options = Options::new().extension(Arc::<TagLog>::clone(&tags));
        let options = options.extension(Arc::<WordLog>::clone(&words));
        let store = Store::in_folder(Arc::new(disk.clone()), options, &mut |_, _| {}).unwrap();
        (store, tags, words)
    };
    let (store, tags, words) = open();
    let long = "long ".repeat(10_000);
    for word in ["#one", "two", "#three", &long].into_iter().chain(iter::repeat_n(&*long, 140)) {
        let (tags, words, bytes) =
            (Arc::clone(&tags), Arc::clone(&words), word.as_bytes().to_vec());
        let then = move |sequence| {
            let kept = if bytes.starts_with(b"#") {
                tags.replay(sequence, &bytes)
            } else {
                words.note(sequence, &bytes)
            };
            kept.unwrap();
        };
        store.append(word.as_bytes(), Sync::None, then).unwrap().wait().unwrap();
    }
    store.close();
    drop(store);
    for _ in 0..2 {
        let (store, tags, words) = open();
        assert_eq!(*tags.lines(), ["#one", "#three"]);
        let words = words.lines().clone();
        assert_eq!((words.len(), &*words[0].1), (142, "two"));
        // The second start loads a snapshot.
        assert_eq!(store.checkpoint_failure(), None);
        store.close();
    }
}
