//! Tests that corrupt acknowledged data is detected, reported and repaired.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bine_store::disk::{Fault, Folder, SimulatedFolder};
use bine_store::journal::{
    Error, FileJournal, Journal, Opened, Options, RecoveryEvent, Repair, check, repair,
};

use crate::random::Random;
use crate::trials::trials;

/// The number of records that [`store`] writes.
const ALL: u64 = 120;

#[test]
fn detects_and_repairs_flipped_bits() {
    let mut survived = 0;
    let mut refused = 0;
    let mut partly = 0;
    for seed in 0..trials(600) {
        let mut random = Random(seed);
        let folder = store(seed % 2 == 0);
        let files = files(&folder);
        let file = &files[random.below(files.len() as u64) as usize];
        let mut bytes = folder.content(file).expect("it was listed");
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let position = random.below(used as u64) as usize;
        bytes[position] ^= 1 << random.below(8);
        folder.put(file, &bytes);
        match spoiled(&folder, file, position) {
            None => survived += 1,
            Some(lost) => {
                refused += 1;
                partly += u64::from(lost > 0);
                assert!(lost < 40, "{lost} are lost by one bit of {file}, byte {position}");
            }
        }
    }
    let has_each_kind = survived > 40 && refused > 200 && partly > 80;
    assert!(trials(600) < 600 || has_each_kind, "{survived} {refused} {partly}");
}

#[test]
fn detects_and_repairs_lost_sectors() {
    for seed in 0..trials(300) {
        let mut random = Random(seed);
        // Closed, so that the end of the journal is covered too.
        let folder = store(true);
        let files = files(&folder);
        let file = &files[random.below(files.len() as u64) as usize];
        let mut bytes = folder.content(file).expect("it was listed");
        let sector = random.below((bytes.len() as u64).div_ceil(512)) as usize * 512;
        let end = bytes.len().min(sector + 512);
        if bytes[sector..end].iter().all(|byte| *byte == 0) {
            continue;
        }
        bytes[sector..end].fill(0);
        folder.put(file, &bytes);
        spoiled(&folder, file, sector);
    }
}

#[test]
fn detects_and_repairs_missing_and_truncated_files() {
    let folder = store(true);
    let files = files(&folder);
    for file in &files {
        let folder = store(true);
        folder.remove(file).expect("it was listed");
        spoiled(&folder, file, 0);
        let folder = store(true);
        let bytes = folder.content(file).expect("it was listed");
        folder.put(file, &bytes[..bytes.len() / 2 - 3]);
        spoiled(&folder, file, bytes.len() / 2 - 3);
    }
}

#[test]
fn reuses_no_sequence_after_total_damage() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let file = "journal-0000000000000001.log";
    let noise: Vec<u8> = (0..4096_u32).map(|at| (at * 31 % 251) as u8 | 1).collect();
    folder.put(file, &noise);
    let error = open(&folder).map(|_| ()).expect_err("it is noise");
    assert!(error.to_string().contains("its head does not match"), "{error}");
    let repaired = repair(&shared(&folder)).expect("the disk is well");
    assert_eq!(repaired.lost, [1..=4096 / 24]);
    assert_eq!(folder.content(&repaired.aside[0]), Some(noise));
    let (mut opened, found) = open(&folder).expect("it is repaired");
    assert_eq!(found.lost, repaired.lost);
    assert_eq!(opened.journal.append(b"a").ok(), Some(1 + 4096 / 24));
}

#[test]
fn repair_keeps_intact_blocks_of_damaged_snapshots() {
    let folder = store(true);
    let newest = "snapshot-0000000000000050.bin";
    for name in ["snapshot-0000000000000028.bin", newest] {
        let mut bytes = folder.content(name).expect("it was written");
        // A byte of the third of nine blocks.
        bytes[32 + 2 * 108 + 50] ^= 1;
        folder.put(name, &bytes);
    }
    let error = open(&folder).map(|_| ()).expect_err("the journal begins later");
    assert!(error.to_string().contains("no file holds records"), "{error}");
    let repaired = repair(&shared(&folder)).expect("the disk is well");
    assert_eq!((repaired.blocks, repaired.lost.len(), repaired.aside.len()), (1, 0, 2));
    let (opened, found) = open(&folder).expect("it is repaired");
    assert_eq!((opened.snapshot, found.records.len()), (80, 40));
    assert_eq!(folder.content(newest).map(|bytes| bytes.len()), Some(32 + 8 * 108 + 24));
}

/// Guards the check of the trailer's totals: each block names its index, so a lost block is
/// detected by the next one, except for the last block.
#[test]
fn refuses_a_snapshot_without_its_last_block() {
    let folder = store(true);
    for name in ["snapshot-0000000000000028.bin", "snapshot-0000000000000050.bin"] {
        let mut bytes = folder.content(name).expect("it was written");
        // The last of nine blocks, before an intact trailer.
        bytes.drain(32 + 8 * 108..32 + 9 * 108);
        folder.put(name, &bytes);
    }
    let error = open(&folder).map(|_| ()).expect_err("a block is missing");
    let report = check(&shared(&folder)).expect("the disk can be read");
    assert!(!report.is_intact(), "{report}");
    let message = format!("{error}; {report}");
    assert!(message.contains("its end does not match what is before it"), "{message}");
}

#[test]
fn interrupted_repair_hides_no_damage() {
    let damaged = || {
        let folder = store(true);
        let [.., last, _, newest, _] = &files(&folder)[..] else { panic!("there are files") };
        for (name, position) in [(last, 200), (newest, 200)] {
            let mut bytes = folder.content(name).expect("it was listed");
            bytes[position] ^= 1;
            folder.put(name, &bytes);
        }
        folder
    };
    let whole = repair(&shared(&damaged())).expect("nothing fails").lost;
    assert!(!whole.is_empty());
    for after in 0.. {
        let folder = damaged();
        folder.fail(after, Fault::Death);
        let outcome = repair(&shared(&folder));
        folder.lose_power();
        let missing = |found: &Found| {
            let here = |n: &u64| found.records.iter().any(|(sequence, _)| sequence == n);
            (found.snapshot + 1..=ALL).filter(|n| !here(n)).collect::<Vec<_>>()
        };
        let message = |found: &Found| found.lost.iter().cloned().flatten().collect::<Vec<_>>();
        match open(&folder) {
            Ok((_, found)) => assert_eq!(message(&found), missing(&found), "after {after}"),
            Err(Error::Damaged(_)) => {
                repair(&shared(&folder)).expect("nothing fails any more");
                let (_, found) = open(&folder).expect("it is repaired");
                assert_eq!(message(&found), missing(&found), "after {after}");
            }
            Err(error) => panic!("after {after}: {error}"),
        }
        if outcome.is_ok() {
            assert!(after > 20, "{after}");
            break;
        }
    }
}

#[test]
fn rejects_files_of_another_store() {
    let (folder, other) = (store(true), store_of(99, true));
    let files = files(&folder);
    for file in &files {
        let folder = store(true);
        let foreign = other.content(file).expect("both stores are written alike");
        folder.put(file, &foreign);
        let refused = open(&folder).map(|_| ()).map_err(|error| error.to_string());
        // A snapshot that is not needed is not read.
        let message = refused
            .err()
            .unwrap_or_else(|| check(&shared(&folder)).expect("nothing fails").to_string());
        assert!(message.contains("belongs to another store"), "{message}");
    }
    let last = files.iter().rfind(|file| *file != "synced").expect("there are files");
    folder.put(last, &other.content(last).expect("both stores are written alike"));
    assert!(!check(&shared(&folder)).expect("nothing fails").is_intact());
    repair(&shared(&folder)).expect("nothing fails");
    let (_, found) = open(&folder).expect("it is repaired");
    assert!(!found.records.is_empty() || found.snapshot > 0);
}

/// A disk that acknowledges a group and later returns the sectors' older contents.
#[test]
fn refuses_a_group_of_another_history() {
    let file = "journal-0000000000000001.log";
    let written = |second: u8| {
        let folder = SimulatedFolder::new(5, 1 << 20);
        let mut journal = open(&folder).expect("nothing fails").0.journal;
        for (number, letter) in [(1_u64, b'a'), (2, second), (3, b'c')] {
            let mut record = number.to_le_bytes().to_vec();
            record.resize(100, letter);
            journal.append(&record).expect("there is room");
            journal.write(true).expect("nothing fails");
        }
        drop(journal);
        (folder.content(file).expect("it was written"), folder)
    };
    let ((mut bytes, folder), (others, _)) = (written(b'b'), written(b'x'));
    let third = bytes.iter().position(|byte| *byte == b'c').expect("it was written");
    // The group's header, the record's header, and the record's number precede it.
    let third = third - 40 - 16 - 8;
    bytes[third..].copy_from_slice(&others[third..]);
    folder.put(file, &bytes);
    let error = open(&folder).map(|_| ()).expect_err("it is of another history");
    assert!(error.to_string().contains("does not follow the one before it"), "{error}");
}

#[test]
fn cuts_a_torn_end_and_warns() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let (opened, _) = open(&folder).expect("nothing fails");
    let mut journal = opened.journal;
    for (number, letter) in [(1_u64, b'a'), (2, b'b')] {
        let mut record = number.to_le_bytes().to_vec();
        record.resize(700, letter);
        journal.append(&record).expect("there is room");
        // The second write was not acknowledged as durable.
        journal.write(number == 1).expect("nothing fails");
    }
    drop(journal);
    let file = "journal-0000000000000001.log";
    let whole = folder.content(file).expect("it was written");
    let second = whole.iter().position(|byte| *byte == b'b').expect("it was written");
    // As if only the first bytes of the second group had been written.
    let mut bytes = whole.clone();
    bytes[second + 300..].fill(0);
    folder.put(file, &bytes);
    let report = check(&shared(&folder)).expect("nothing fails");
    assert!(report.is_intact(), "{report}");
    assert!(report.to_string().contains("is cut off at byte"), "{report}");
    let (opened, found) = open(&folder).expect("a torn end is no damage");
    assert_eq!((found.records.len(), opened.warnings.len()), (1, 1));
    drop(opened);
    // A single flipped bit is not a torn write.
    let mut bytes = whole;
    bytes[second] ^= 1;
    folder.put(file, &bytes);
    let error = open(&folder).map(|_| ()).expect_err("it is damaged");
    assert!(error.to_string().contains("bine data repair"), "{error}");
}

/// Opens a folder with damage at this place, or checks and repairs it first. Returns the number of
/// lost records; `None` if it opens with all records.
fn spoiled(folder: &SimulatedFolder, file: &str, position: usize) -> Option<u64> {
    let before = folder.content(file);
    let what = format!("{file}, byte {position}");
    match open(folder) {
        Ok((_, found)) => {
            assert!(found.is_all(ALL), "{what}: {found:?}");
            return None;
        }
        Err(Error::Damaged(damage)) => {
            assert!(damage.file == file || before.is_none(), "{what}: {damage}");
        }
        Err(error) => panic!("{what}: {error}"),
    }
    assert!(folder.content(file) == before, "{what}: a refused start has changed it");
    let report = check(&shared(folder)).expect("the disk can be read");
    assert!(!report.is_intact(), "{what}: {report}");
    let repaired = repair(&shared(folder)).expect("the disk can be written");
    assert!(!repaired.damages.is_empty(), "{what}");
    if let Some(before) = before {
        let kept = repaired.aside.iter().any(|name| folder.content(name).as_ref() == Some(&before));
        assert!(kept, "{what}: {repaired}");
    }
    let (opened, found) = open(folder).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(opened.warnings.is_empty(), "{what}");
    drop(opened);
    let lost: Vec<_> = repaired.lost.iter().cloned().flatten().filter(|n| *n <= ALL).collect();
    let here: Vec<_> = found.records.iter().map(|(sequence, _)| *sequence).collect();
    for sequence in found.snapshot + 1..=ALL {
        assert!(here.contains(&sequence) != lost.contains(&sequence), "{what}: {sequence}");
    }
    let message = found.lost.iter().cloned().flatten().filter(|n| *n <= ALL);
    assert!(message.eq(lost.iter().copied().filter(|n| *n > found.snapshot)), "{what}: {found:?}");
    let report = check(&shared(folder)).expect("the disk can be read");
    assert!(report.is_intact(), "{what}: {report}");
    assert_eq!(repair(&shared(folder)).ok(), Some(Repair::default()), "{what}");
    Some(lost.len() as u64)
}

/// The data that a start has loaded.
#[derive(Debug, Default)]
struct Found {
    snapshot: u64,
    records: Vec<(u64, Vec<u8>)>,
    lost: Vec<RangeInclusive<u64>>,
}

impl Found {
    fn is_all(&self, last: u64) -> bool {
        let numbers = self.records.iter().map(|(sequence, _)| *sequence);
        self.lost.is_empty() && numbers.eq(self.snapshot + 1..=last)
    }
}

fn open(folder: &SimulatedFolder) -> Result<(Opened, Found), Error> {
    let mut found = Found::default();
    let mut blocks = 0;
    let opened = FileJournal::open(shared(folder), Options { segment: 4096 }, &mut |loaded| {
        match loaded {
            RecoveryEvent::Block(_) => blocks += 1,
            RecoveryEvent::Record(sequence, record) => {
                assert_eq!(record[..8], sequence.to_le_bytes());
                found.records.push((sequence, record.to_vec()));
            }
            RecoveryEvent::Lost(records) => found.lost.push(records),
            RecoveryEvent::Progress { .. } => {}
        }
        Ok(())
    })?;
    assert_eq!(blocks > 0, opened.snapshot > 0);
    found.snapshot = opened.snapshot;
    Ok((opened, found))
}

fn shared(folder: &SimulatedFolder) -> Arc<dyn Folder> {
    Arc::new(folder.clone())
}

fn store(is_closed: bool) -> SimulatedFolder {
    store_of(5, is_closed)
}

/// A store of several segments, two snapshots, and later records.
fn store_of(seed: u64, is_closed: bool) -> SimulatedFolder {
    let folder = SimulatedFolder::new(seed, 1 << 20);
    let (opened, _) = open(&folder).expect("nothing fails");
    let mut journal = opened.journal;
    for sequence in 1..=ALL {
        let mut record = sequence.to_le_bytes().to_vec();
        record.resize(40 + sequence as usize % 300, b'r');
        assert_eq!(journal.append(&record).ok(), Some(sequence));
        if sequence % 5 == 0 {
            assert_eq!(journal.write(true).ok(), Some(sequence));
        }
        if sequence == 40 || sequence == 80 {
            let mut writer = journal.snapshot(sequence).expect("nothing fails");
            for _ in 0..9 {
                writer.block(&[7; 100]).expect("nothing fails");
            }
            writer.finish().expect("nothing fails");
            journal.compact(sequence).expect("it was finished");
        }
    }
    if is_closed {
        journal.close().expect("nothing fails");
    }
    drop(journal);
    folder
}

fn files(folder: &SimulatedFolder) -> Vec<String> {
    let mut files = folder.list().expect("nothing fails");
    // A start does not need the times of records.
    files.retain(|name| name != "lock" && !name.starts_with("times-"));
    files.sort();
    files
}
