//! Tests of the files that a repair and a compaction leave.

use std::sync::Arc;

use bine_store::disk::{Fault, Folder, SimulatedFolder};
use bine_store::journal::{Error, FileJournal, Journal, Options, Repair, check, repair};

/// A segment has room for three groups of one record of 100 bytes.
const SEGMENT: u64 = 32 + 3 * GROUP;
const GROUP: u64 = 40 + 16 + 104;

#[test]
fn repaired_segments_have_groups_of_a_megabyte() {
    let folder = SimulatedFolder::new(1, 1 << 26);
    let mut journal = open(&folder, 8 << 20);
    for _ in 0..60 {
        journal.append(&vec![b'r'; 64 << 10]).unwrap();
        journal.write(true).unwrap();
    }
    journal.close().unwrap();
    drop(journal);
    let name = segment_name(1);
    let mut damaged = folder.content(&name).unwrap();
    let group = 40 + 16 + (64 << 10) + 8;
    damaged[32 + 29 * group + 100] ^= 1;
    folder.put(&name, &damaged);
    let repaired = repair(&shared(&folder)).unwrap();
    assert_eq!(repaired.lost, [30..=30]);
    // The copy has all pieces of the damaged file.
    assert_eq!(repaired.aside, [format!("damaged-{name}")]);
    assert_eq!(folder.content(&repaired.aside[0]), Some(damaged));
    // Fifteen records fit into a megabyte. An empty group names the record after the lost one.
    assert_eq!(groups(&folder, 1), [(1, 15), (16, 14), (31, 0), (31, 15), (46, 15)]);
    assert!(check(&shared(&folder)).unwrap().is_intact());
}

#[test]
fn repair_fills_a_group_to_its_last_byte() {
    let folder = SimulatedFolder::new(1, 1 << 26);
    // Two of these and the header are a megabyte.
    let length = ((1 << 20) - 40 - 24) / 2;
    let mut journal = open(&folder, 8 << 20);
    for _ in 0..5 {
        journal.append(&vec![b'r'; length]).unwrap();
        journal.write(false).unwrap();
    }
    journal.close().unwrap();
    drop(journal);
    let mut damaged = folder.content(&segment_name(1)).unwrap();
    damaged[32 + 4 * (40 + 24 + length) + 100] ^= 1;
    folder.put(&segment_name(1), &damaged);
    assert_eq!(repair(&shared(&folder)).unwrap().lost, [5..=5]);
    assert_eq!(groups(&folder, 1), [(1, 15), (3, 15), (6, 0)]);
}

/// The first record of each group, and the length of its records in units of 64 KiB.
fn groups(folder: &SimulatedFolder, first: u64) -> Vec<(u64, usize)> {
    let bytes = folder.content(&segment_name(first)).unwrap();
    let (mut at, mut groups) = (32, Vec::new());
    while at < bytes.len() {
        let first = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap());
        let length = u32::from_le_bytes(bytes[at + 24..at + 28].try_into().unwrap()) as usize;
        groups.push((first, length / (64 << 10)));
        at += 40 + length;
    }
    groups
}

#[test]
fn keeps_the_begin_of_a_snapshot_that_ends_early() {
    let (folder, name) = with_needed_snapshot();
    let whole = folder.content(&name).unwrap();
    // Three blocks of 108 bytes each after the head; the third one is cut.
    folder.put(&name, &whole[..32 + 3 * 108 - 1]);
    let repaired = repair(&shared(&folder)).unwrap();
    assert_eq!((repaired.blocks, repaired.lost.len()), (1, 0));
    assert_eq!(folder.content(&name).unwrap().len(), 32 + 2 * 108 + 24);
    assert_eq!(folder.content(&repaired.aside[0]).unwrap().len(), 32 + 3 * 108 - 1);
    let text = "lost: 1 blocks of the snapshot, or more\nkept as it was: damaged-";
    assert!(repaired.to_string().contains(text), "{repaired}");
    // Two damaged blocks.
    let (folder, name) = with_needed_snapshot();
    let mut bytes = whole;
    (bytes[50], bytes[50 + 108]) = (1, 1);
    folder.put(&name, &bytes);
    assert_eq!(repair(&shared(&folder)).unwrap().blocks, 2);
    assert_eq!(folder.content(&name).unwrap().len(), 32 + 2 * 108 + 24);
}

/// A journal that begins after a snapshot of four blocks, and the name of the snapshot.
fn with_needed_snapshot() -> (SimulatedFolder, String) {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, SEGMENT);
    write(&mut journal, 7);
    let mut writer = journal.snapshot(3).unwrap();
    (0..4).for_each(|_| writer.block(&[7; 100]).unwrap());
    writer.finish().unwrap();
    journal.close().unwrap();
    drop(journal);
    folder.remove(&segment_name(1)).unwrap();
    (folder, "snapshot-0000000000000003.bin".to_owned())
}

#[test]
fn sets_snapshots_aside_that_are_not_needed() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, SEGMENT);
    write(&mut journal, 7);
    snapshot(&mut journal, 3);
    snapshot(&mut journal, 5);
    journal.close().unwrap();
    drop(journal);
    let name = "snapshot-0000000000000005.bin";
    for (damaged, lost) in [(&["snapshot-0000000000000003.bin", name][..], 0), (&[name], 0)] {
        let folder = copy(&folder);
        for name in damaged {
            let mut bytes = folder.content(name).unwrap();
            bytes[41] ^= 1;
            folder.put(name, &bytes);
        }
        let repaired = repair(&shared(&folder)).unwrap();
        let aside: Vec<_> = damaged.iter().map(|name| format!("damaged-{name}")).collect();
        assert_eq!((repaired.aside, repaired.damages.len()), (aside, damaged.len()));
        assert_eq!((repaired.blocks, repaired.lost.len()), (lost, 0));
        assert!(damaged.iter().all(|name| folder.content(name).is_none()));
        assert_eq!(open_last(&folder), 7);
    }
}

#[test]
fn leaves_damage_before_the_oldest_snapshot_alone() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, SEGMENT);
    write(&mut journal, 7);
    snapshot(&mut journal, 3);
    journal.close().unwrap();
    drop(journal);
    let mut damaged = folder.content(&segment_name(1)).unwrap();
    damaged[100] ^= 1;
    folder.put(&segment_name(1), &damaged);
    assert!(check(&shared(&folder)).unwrap().is_intact());
    assert_eq!(repair(&shared(&folder)).unwrap(), Repair::default());
    assert_eq!(folder.content(&segment_name(1)), Some(damaged));
    assert_eq!(open_last(&folder), 7);
}

#[test]
fn removes_unfinished_files() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, SEGMENT);
    write(&mut journal, 1);
    journal.close().unwrap();
    drop(journal);
    let before = folder.list().unwrap();
    for name in ["journal-0000000000000002.log.new", "snapshot-0000000000000001.bin.new"] {
        folder.put(name, b"begin");
    }
    assert!(repair(&shared(&folder)).unwrap().damages.is_empty());
    assert_eq!(folder.list().unwrap(), before);
    folder.put("journal-0000000000000002.log.new", b"begin");
    assert_eq!(open_last(&folder), 1);
    assert_eq!(folder.list().unwrap(), before);
}

#[test]
fn compaction_keeps_everything_after_the_previous_snapshot() {
    for (previous, first) in [(2, 1), (3, 4), (4, 4), (5, 4), (6, 7), (7, 7)] {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let mut journal = open(&folder, SEGMENT);
        write(&mut journal, 8);
        for number in [1, previous, 8] {
            snapshot(&mut journal, number);
        }
        let before = folder.operations();
        let compaction = journal.compaction(8).unwrap();
        assert_eq!(folder.operations() - before, 1, "the files are only listed");
        compaction().unwrap();
        let names = folder.list().unwrap();
        let of = |kind: &str| {
            let digits = names.iter().filter_map(|name| name.strip_prefix(kind)?.get(..16));
            digits.map(|digits| u64::from_str_radix(digits, 16).unwrap()).collect::<Vec<_>>()
        };
        let kept: Vec<u64> = [1, 4, 7].into_iter().filter(|number| *number >= first).collect();
        assert_eq!(of("journal-"), kept, "{previous}");
        assert_eq!(of("times-"), kept, "{previous}");
        assert_eq!(of("snapshot-"), [previous, 8]);
    }
}

#[test]
fn compaction_reports_what_it_cannot_remove() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, SEGMENT);
    write(&mut journal, 8);
    snapshot(&mut journal, 4);
    snapshot(&mut journal, 8);
    let compaction = journal.compaction(8).unwrap();
    folder.fail(0, Fault::Broken);
    let error = compaction().unwrap_err();
    let Error::Disk { file, action, .. } = error else { panic!("{error}") };
    assert_eq!((file, action), (segment_name(1), "remove"));
    // The next one removes the rest.
    let compaction = journal.compaction(8).unwrap();
    folder.fail(2, Fault::Broken);
    let error = compaction().unwrap_err().to_string();
    assert!(error.starts_with("cannot sync a simulated folder: "), "{error}");
    assert!(folder.content(&segment_name(1)).is_none());
    write(&mut journal, 1);
}

fn open(folder: &SimulatedFolder, segment: u64) -> FileJournal {
    FileJournal::open(shared(folder), Options { segment }, &mut |_| Ok(())).unwrap().journal
}

/// The last record that a start finds.
fn open_last(folder: &SimulatedFolder) -> u64 {
    let options = Options { segment: SEGMENT };
    FileJournal::open(shared(folder), options, &mut |_| Ok(())).unwrap().last
}

/// A folder with the same files.
fn copy(folder: &SimulatedFolder) -> SimulatedFolder {
    let copy = SimulatedFolder::new(1, 1 << 20);
    for name in folder.list().unwrap() {
        copy.put(&name, &folder.content(&name).unwrap());
    }
    copy
}

/// Writes groups of one record of 100 bytes.
fn write(journal: &mut FileJournal, count: u64) {
    for _ in 0..count {
        journal.append(&[7; 100]).unwrap();
        journal.write(true).unwrap();
    }
}

fn snapshot(journal: &mut FileJournal, number: u64) {
    let mut writer = journal.snapshot(number).unwrap();
    writer.block(b"state").unwrap();
    writer.finish().unwrap();
}

fn segment_name(first: u64) -> String {
    format!("journal-{first:016x}.log")
}

fn shared(folder: &SimulatedFolder) -> Arc<dyn Folder> {
    Arc::new(folder.clone())
}
