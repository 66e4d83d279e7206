//! Tests of the files that a backup copies, links and removes, byte by byte.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use bine_store::Time;
use bine_store::disk::{Folder, SimulatedFolder};
use bine_store::journal::{
    BackupOptions, BackupSummary, Error, FileJournal, Journal, Link, Options, RestoreSummary,
    Until, backup, check_backup, restore,
};

/// A segment has room for three groups of one record of 100 bytes.
const SEGMENT: u64 = 32 + 3 * GROUP;
const GROUP: u64 = 40 + 16 + 104;
/// The bytes of a snapshot of one block of five bytes.
const SNAPSHOT: u64 = 32 + 8 + 5 + 24;

#[test]
fn copies_and_restores_files_of_many_pieces() {
    let disk = folder();
    let target = folder();
    let mut journal = open(&disk, 1 << 21);
    let record: Vec<u8> = (0..150_000_u32).map(|at| (at % 251) as u8).collect();
    let group = 40 + 16 + 150_000 + 8;
    let mut written = 0;
    for (records, round) in [(1, 1), (3, 2), (2, 3)] {
        for _ in 0..records {
            journal.append(&record).unwrap();
            journal.write(true).unwrap();
        }
        let summary = back_up(&disk, &target, None).unwrap();
        let header = if round == 1 { 32 } else { 0 };
        assert_eq!(summary.copied, header + records * group);
        assert_eq!((summary.before, summary.last), (written, written + records));
        written += records;
    }
    let mut snapshot = journal.snapshot(5).unwrap();
    (0..4).for_each(|_| snapshot.block(&record).unwrap());
    snapshot.finish().unwrap();
    let image = 32 + 4 * (8 + 150_000) + 24;
    assert_eq!(back_up(&disk, &target, None).unwrap().copied, image);
    assert!(check_backup(&target).unwrap().report.is_intact());
    for (until, last, bytes) in [
        (Until::End, 6, image + 32 + 6 * group),
        // Before the snapshot.
        (Until::Change(4), 4, 32 + 4 * group),
    ] {
        let (summary, restored) = restored(&target, until);
        assert_eq!((summary.last, summary.bytes), (last, bytes));
        let name = segment_name(1);
        let length = (32 + last * group) as usize;
        assert_eq!(restored.content(&name).unwrap(), disk.content(&name).unwrap()[..length]);
    }
}

#[test]
fn restores_a_part_of_a_group() {
    let (disk, target) = (folder(), folder());
    let mut journal = open(&disk, SEGMENT);
    write(&mut journal, 1);
    for _ in 0..3 {
        journal.append(&[7; 20]).unwrap();
    }
    journal.write(true).unwrap();
    back_up(&disk, &target, None).unwrap();
    let whole = 32 + GROUP;
    for (last, bytes) in [(1, whole), (2, whole + 40 + 40), (3, whole + 40 + 80), (4, whole + 160)]
    {
        let (summary, restored) = restored(&target, Until::Change(last));
        assert_eq!((summary.last, summary.bytes), (last, bytes));
        assert_eq!(restored.content(&segment_name(1)).unwrap().len() as u64, bytes);
        assert_eq!(summary.dropped, (last < 4).then_some(last + 1..=4));
        assert_eq!(summary.moment.map(|moment| moment.last), Some(4));
    }
}

#[test]
fn links_files_that_do_not_change_again() {
    let (disk, target) = (folder(), folder());
    let mut journal = open(&disk, SEGMENT);
    write(&mut journal, 7);
    snapshot(&mut journal, 5);
    let calls = RefCell::new(Vec::new());
    let link = |from: &str, to: &str| {
        calls.borrow_mut().push(format!("{from} to {to}"));
        target.put(to, &disk.content(from).unwrap());
        Ok(())
    };
    let summary = back_up(&disk, &target, Some(&link)).unwrap();
    let expected = ["snapshot-0000000000000005.bin".to_owned(), segment_name(1), segment_name(4)]
        .map(|name| format!("{name} to {name}.new"));
    assert_eq!(calls.take(), expected);
    // The last segment is copied, as it may change.
    assert_eq!((summary.linked, summary.copied), (3, 32 + GROUP));
    assert_eq!(restored(&target, Until::End).0.last, 7);
    assert!(target.list().unwrap().iter().all(|name| !name.contains(".new")));
    let summary = back_up(&disk, &target, Some(&link)).unwrap();
    assert_eq!((summary.linked, summary.copied, calls.take()), (0, 0, vec![]));
    // A segment that the backup has in part.
    write(&mut journal, 3);
    let summary = back_up(&disk, &target, Some(&link)).unwrap();
    assert_eq!((summary.linked, summary.copied), (1, 32 + GROUP));
    assert_eq!(restored(&target, Until::End).0.last, 10);
}

#[test]
fn copies_files_that_cannot_be_linked() {
    let (disk, target) = (folder(), folder());
    let mut journal = open(&disk, SEGMENT);
    write(&mut journal, 4);
    snapshot(&mut journal, 4);
    let link = |_: &str, _: &str| Err(io::Error::from(ErrorKind::CrossesDevices));
    let summary = back_up(&disk, &target, Some(&link)).unwrap();
    let bytes = SNAPSHOT + SEGMENT + 32 + GROUP;
    assert_eq!((summary.linked, summary.copied), (0, bytes));
    assert_eq!(restored(&target, Until::End).0.last, 4);
}

#[test]
fn tries_again_a_limited_number_of_times() {
    let (disk, target) = (folder(), folder());
    let mut journal = open(&disk, SEGMENT);
    write(&mut journal, 4);
    // A server that removes a file each time before it is linked.
    let calls = RefCell::new(0);
    let link = |_: &str, _: &str| {
        *calls.borrow_mut() += 1;
        Err(io::Error::from(ErrorKind::NotFound))
    };
    let error = back_up(&disk, &target, Some(&link)).unwrap_err().to_string();
    assert!(error.starts_with("cannot link journal-0000000000000001.log: "), "{error}");
    assert_eq!(calls.take(), 100);
    // It appears again before the last attempt.
    let link = |from: &str, to: &str| {
        *calls.borrow_mut() += 1;
        if *calls.borrow() < 100 {
            return Err(io::Error::from(ErrorKind::NotFound));
        }
        target.put(to, &disk.content(from).unwrap());
        Ok(())
    };
    assert_eq!(back_up(&disk, &target, Some(&link)).unwrap().linked, 1);
    // An error of another kind ends the first attempt.
    let other = SimulatedFolder::new(2, 1 << 24);
    write(&mut open(&other, SEGMENT), 4);
    let error = back_up(&other, &target, None).unwrap_err().to_string();
    assert!(error.contains("is a backup of another store"), "{error}");
}

#[test]
fn removes_only_files_of_journals_that_the_manifest_does_not_list() {
    let (disk, target) = (folder(), folder());
    write(&mut open(&disk, SEGMENT), 4);
    back_up(&disk, &target, None).unwrap();
    let before = target.list().unwrap();
    let useless = [
        "journal-0000000000000009.log",
        "snapshot-0000000000000003.bin",
        "times-0000000000000009.bin",
        "journal-0000000000000001.log.new",
        "snapshot-0000000000000003.bin.new",
    ];
    for name in useless.into_iter().chain(["notes.new", "notes", "journal-1.log"]) {
        target.put(name, b"leftover");
    }
    let summary = back_up(&disk, &target, None).unwrap();
    assert_eq!(summary.removed, useless.len() as u64);
    let mut expected =
        [&before[..], &["notes.new", "notes", "journal-1.log"].map(str::to_owned)].concat();
    expected.sort();
    let mut found = target.list().unwrap();
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn names_the_change_after_which_histories_differ() {
    let (disk, target) = (folder(), folder());
    let mut journal = open(&disk, SEGMENT);
    write(&mut journal, 8);
    back_up(&disk, &target, None).unwrap();
    let differs = |restored: &SimulatedFolder| {
        let error = back_up(restored, &target, None).unwrap_err().to_string();
        let text = error.strip_prefix("a simulated folder has changes after change ");
        text.unwrap_or_else(|| panic!("{error}")).split_once(' ').unwrap().0.parse::<u64>().unwrap()
    };
    // The third segment begins with record 7.
    let copy = restored(&target, Until::Change(7)).1;
    assert_eq!(differs(&copy), 6);
    let copy = restored(&target, Until::Change(6)).1;
    assert_eq!(differs(&copy), 6);
    // A different record 6, in its own segment.
    let copy = restored(&target, Until::Change(5)).1;
    write(&mut open(&copy, SEGMENT), 1);
    assert_eq!(differs(&copy), 3);
    // A segment that begins with the same record, and files that the backup does not have.
    for (until, expected) in [(3, 3), (4, 4)] {
        let copy = restored(&target, Until::Change(until)).1;
        let mut journal = open(&copy, SEGMENT);
        write(&mut journal, 2);
        for number in [until + 1, until + 2] {
            snapshot(&mut journal, number);
            journal.compact(number).unwrap();
        }
        assert!(copy.content(&segment_name(1)).is_none());
        assert_eq!(differs(&copy), expected);
    }
    // Only a snapshot of the last record.
    let other = folder();
    let mut journal = open(&other, SEGMENT);
    write(&mut journal, 8);
    snapshot(&mut journal, 8);
    drop(journal);
    for first in [1, 4, 7] {
        other.remove(&segment_name(first)).unwrap();
    }
    assert_eq!(differs(&other), 7);
}

/// Two histories of one store, as a disk has them that returns older contents.
#[test]
fn rejects_a_group_of_the_same_length_with_other_records() {
    let written = |last: &[u8]| {
        let disk = folder();
        let mut journal = open(&disk, SEGMENT);
        write(&mut journal, 1);
        journal.append(last).unwrap();
        journal.write(true).unwrap();
        disk
    };
    let (one, other) = (written(&[7; 100]), written(&[8; 100]));
    let target = folder();
    back_up(&one, &target, None).unwrap();
    let error = back_up(&other, &target, None).unwrap_err().to_string();
    assert!(error.contains("has changes after change 0 that"), "{error}");
    assert_eq!(back_up(&one, &target, None).unwrap().copied, 0);
}

#[test]
fn reports_the_records_that_the_journal_lacks() {
    let written = || {
        let disk = folder();
        let mut journal = open(&disk, SEGMENT);
        write(&mut journal, 8);
        disk
    };
    let reported = |disk: &SimulatedFolder| match back_up(disk, &folder(), None).unwrap_err() {
        Error::Damaged(damage) => damage.to_string(),
        error => panic!("{error}"),
    };
    let missing =
        "a simulated folder is damaged at byte 0: no file holds records that were acknowledged";
    let disk = written();
    disk.remove(&segment_name(7)).unwrap();
    assert_eq!(reported(&disk), format!("{missing} (records 7 to 8)"));
    let disk = written();
    disk.remove(&segment_name(1)).unwrap();
    assert_eq!(reported(&disk), format!("{missing} (records 1 to 3)"));
    // A snapshot of all of them replaces the first segment, but not one that is damaged.
    let disk = written();
    snapshot(&mut open(&disk, SEGMENT), 4);
    disk.remove(&segment_name(1)).unwrap();
    let target = folder();
    assert_eq!(back_up(&disk, &target, None).unwrap().copied, SNAPSHOT + SEGMENT + 32 + 2 * GROUP);
    assert_eq!(restored(&target, Until::End).0.snapshot, 4);
    let name = "snapshot-0000000000000004.bin";
    let mut bytes = disk.content(name).unwrap();
    bytes[41] ^= 1;
    disk.put(name, &bytes);
    assert_eq!(reported(&disk), format!("{missing} (records 1 to 3)"));
    // The mark of another store is ignored.
    let disk = written();
    disk.remove(&segment_name(7)).unwrap();
    let other = SimulatedFolder::new(2, 1 << 24);
    write(&mut open(&other, SEGMENT), 8);
    disk.put("synced", &other.content("synced").unwrap());
    assert_eq!(back_up(&disk, &folder(), None).unwrap().last, 6);
    // Nor does one that cannot be read.
    disk.put("synced", b"synced");
    assert_eq!(back_up(&disk, &folder(), None).unwrap().last, 6);
}

#[test]
fn omits_the_snapshot_of_an_empty_journal() {
    let (disk, target) = (folder(), folder());
    let mut journal = open(&disk, SEGMENT);
    snapshot(&mut journal, 0);
    write(&mut journal, 1);
    let summary = back_up(&disk, &target, None).unwrap();
    assert_eq!((summary.last, summary.copied), (1, 32 + GROUP));
    assert!(target.list().unwrap().iter().all(|name| !name.starts_with("snapshot-")));
}

#[test]
fn copies_the_times_that_are_new() {
    let (disk, target) = (folder(), folder());
    let mut journal = open(&disk, SEGMENT);
    let name = "times-0000000000000001.bin";
    for second in 1..=3 {
        disk.set_time(Time(second * 1_000_000));
        write(&mut journal, 1);
        let summary = back_up(&disk, &target, None).unwrap();
        // The summary counts the bytes of records.
        assert_eq!(summary.copied, GROUP + if second == 1 { 32 } else { 0 });
        assert_eq!(target.content(name), disk.content(name), "{second}");
    }
    // A power failure took the last entries.
    disk.put(name, &disk.content(name).unwrap()[..32 + 24]);
    back_up(&disk, &target, None).unwrap();
    assert_eq!(target.content(name), disk.content(name));
    // The journal could not write the file.
    disk.remove(name).unwrap();
    back_up(&disk, &target, None).unwrap();
    assert_eq!(target.content(name), None);
}

fn folder() -> SimulatedFolder {
    SimulatedFolder::new(1, 1 << 24)
}

fn open(folder: &SimulatedFolder, segment: u64) -> FileJournal {
    let folder: Arc<dyn Folder> = Arc::new(folder.clone());
    FileJournal::open(folder, Options { segment }, &mut |_| Ok(())).unwrap().journal
}

fn back_up(
    source: &SimulatedFolder,
    target: &SimulatedFolder,
    link: Option<&Link<'_>>,
) -> Result<BackupSummary, Error> {
    let options = BackupOptions { clock: &|| Time(99_000_000), files: &[], link, keep: None };
    backup(source, target, &options)
}

/// Restores into a new folder.
fn restored(backup: &SimulatedFolder, until: Until) -> (RestoreSummary, SimulatedFolder) {
    let target = folder();
    (restore(backup, &target, until).unwrap(), target)
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
