//! Tests of a full disk: a store opens and serves reads, rejects only changes, and accepts changes
//! again as soon as the disk has room.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bine_store::disk::SimulatedFolder;
use bine_store::{Error, Extension, Options, Store, Sync};

use crate::model::Model;
use crate::random::Random;
use crate::tables::{self, User};

/// More than these tests write.
const PLENTY: u64 = 1 << 24;
const SEGMENT: u64 = 64 << 10;

#[test]
fn keeps_acknowledged_changes_on_a_full_disk() {
    let (mut deferred, mut full_at_start) = (0, 0);
    for seed in 0..80 {
        let mut random = Random(seed);
        // On some disks even the table definitions do not fit.
        let room = if random.below(4) == 0 { 0 } else { 1_000 + random.below(60_000) };
        let disk = SimulatedFolder::new(seed, room);
        let mut names = Vec::new();
        let store = open(&disk);
        deferred += u64::from(store.stats().is_full);
        fill(&store, &mut random, &mut names);
        assert!(store.stats().is_full && !store.stats().is_read_only, "seed {seed}");
        check(&store, &names);
        for _ in 0..=random.below(3) {
            end(&disk, &mut random);
            // Simulates a program that uses the freed space.
            if random.below(2) == 0 {
                disk.set_room(0);
            }
            let store = open(&disk);
            // A file system allocates at least one block.
            assert!(!store.stats().is_full || disk.room() < 4096, "seed {seed}: there is room");
            check(&store, &names);
            fill(&store, &mut random, &mut names);
            check(&store, &names);
            full_at_start += 1;
        }
        end(&disk, &mut random);
        let store = open(&disk);
        disk.set_room(PLENTY);
        if random.below(2) == 0 {
            store.probe_disk_space();
            assert!(!store.stats().is_full, "seed {seed}: there is room");
        }
        insert(&store, &mut names).expect("there is room");
        assert!(!store.stats().is_full, "seed {seed}: it was written");
        check(&store, &names);
        drop(store);
        disk.lose_power();
        let store = open(&disk);
        check(&store, &names);
        assert!(store.warnings().is_empty(), "seed {seed}: {:?}", store.warnings());
    }
    assert!(deferred > 5 && full_at_start > 50, "{deferred} {full_at_start}");
}

/// Without a check at the start, a full disk would be noticed by the first change only.
#[test]
fn knows_at_the_start_whether_the_disk_is_full() {
    let disk = SimulatedFolder::new(1, PLENTY);
    let mut names = Vec::new();
    insert(&open(&disk), &mut names).expect("there is room");
    for (room, is_full) in [(0, true), (1000, true), (4096, false), (PLENTY, false)] {
        disk.revive();
        disk.set_room(room);
        assert_eq!(open(&disk).stats().is_full, is_full, "{room}");
    }
}

#[test]
fn uses_the_last_blocks_of_a_disk_with_smaller_segments() {
    let disk = SimulatedFolder::new(1, 3 * SEGMENT + 40_000);
    let mut names = Vec::new();
    let store = open(&disk);
    fill(&store, &mut Random(1), &mut names);
    assert!(disk.room() < 4096 + 512, "{} bytes are left", disk.room());
    assert!(!names.is_empty());
}

#[test]
fn notifies_observers_once_per_change_of_disk_space() {
    let disk = SimulatedFolder::new(1, 10_000);
    let store = open(&disk);
    let calls = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let own = Arc::clone(&calls);
    store.observe_disk_space(move |is_full| {
        own[usize::from(is_full)].fetch_add(1, Ordering::Relaxed);
    });
    let count = || [0, 1].map(|position: usize| calls[position].load(Ordering::Relaxed));
    let mut names = Vec::new();
    fill(&store, &mut Random(1), &mut names);
    assert_eq!(insert(&store, &mut names), Err(Error::Full));
    store.probe_disk_space();
    assert_eq!(count(), [0, 1]);
    disk.set_room(PLENTY);
    store.probe_disk_space();
    store.probe_disk_space();
    insert(&store, &mut names).expect("there is room");
    assert_eq!(count(), [1, 1]);
}

#[test]
fn writes_deferred_records_first_and_once() {
    let disk = SimulatedFolder::new(1, 0);
    let recorded = Arc::new(RecordedExtension::default());
    let open = |disk: &SimulatedFolder| {
        let options = options().extension(Arc::clone(&recorded) as Arc<dyn Extension>);
        Store::in_folder(Arc::new(disk.process()), options, &mut |_, _| {}).expect("it can be read")
    };
    let store = open(&disk);
    let kept = store.append(b"a", Sync::Commit, drop).and_then(bine_store::Pending::wait);
    assert_eq!(kept, Err(Error::Full));
    for record in [b"a", b"b"] {
        let own = Arc::clone(&recorded);
        let then = move |sequence| own.0.lock().unwrap().push((sequence, record.to_vec()));
        store.append_deferred(record, then).expect("it is open");
    }
    // Record 1 holds the table definitions.
    let expected = vec![(2, b"a".to_vec()), (3, b"b".to_vec())];
    assert_eq!(std::mem::take(&mut *recorded.0.lock().unwrap()), expected);
    assert_eq!(insert(&store, &mut Vec::new()), Err(Error::Full));
    disk.set_room(PLENTY);
    let mut names = Vec::new();
    insert(&store, &mut names).expect("there is room");
    assert_eq!(store.read().sequence(), 4);
    drop(store);
    disk.lose_power();
    let store = open(&disk);
    check(&store, &names);
    assert_eq!(*recorded.0.lock().unwrap(), expected);
    assert_eq!(store.read().sequence(), 4);
}

/// Adds users until the disk is full.
fn fill(store: &Store, random: &mut Random, names: &mut Vec<String>) {
    loop {
        let length = if random.below(10) == 0 { random.below(3_000) } else { random.below(100) };
        let name = format!("{} {}", names.len(), "x".repeat(length as usize));
        match store.insert(User::new(&name, None)).wait() {
            Ok(_) => names.push(name),
            Err(error) => {
                assert_eq!(error, Error::Full);
                // A shorter name may still fit.
                if length < 10 {
                    return;
                }
            }
        }
    }
}

fn insert(store: &Store, names: &mut Vec<String>) -> Result<(), Error> {
    let name = names.len().to_string();
    store.insert(User::new(&name, None)).wait()?;
    names.push(name);
    Ok(())
}

#[track_caller]
fn check(store: &Store, names: &[String]) {
    let mut found: Vec<String> =
        Model::of(&store.read()).users.into_values().map(|user| user.name).collect();
    let mut expected = names.to_vec();
    found.sort();
    expected.sort();
    assert_eq!(found.len(), expected.len());
    assert!(found == expected);
}

/// Ends the process, sometimes with a power failure. Acknowledged data survives both.
fn end(disk: &SimulatedFolder, random: &mut Random) {
    if random.below(2) == 0 {
        disk.lose_power();
    } else {
        disk.revive();
    }
}

fn open(disk: &SimulatedFolder) -> Store {
    Store::in_folder(Arc::new(disk.process()), options(), &mut |_, _| {}).expect("it can be read")
}

fn options() -> Options {
    tables::options().segment(SEGMENT)
}

/// An extension that collects its records.
#[derive(Default)]
struct RecordedExtension(std::sync::Mutex<Vec<(u64, Vec<u8>)>>);

impl Extension for RecordedExtension {
    fn load_block(&self, _block: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        self.0.lock().unwrap().push((sequence, record.to_vec()));
        Ok(())
    }

    fn finish_load(&self) -> Result<(), String> {
        Ok(())
    }

    fn snapshot(&self) -> bine_store::SnapshotBlocks {
        Box::new(std::iter::empty())
    }
}
