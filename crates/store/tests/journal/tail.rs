//! Tests that the loss of the journal's end is detected: acknowledged records that a disk zeroes or
//! cuts off are never dropped silently.

use std::sync::Arc;

use bine_store::disk::{Folder, SimulatedFolder};
use bine_store::journal::{
    Error, FileJournal, Journal, Opened, Options, RecoveryEvent, Warning, check, repair,
};

use crate::random::Random;
use crate::trials::trials;

const SEGMENT: Options = Options { segment: 16 << 10 };
const FIRST_SEGMENT: &str = "journal-0000000000000001.log";
const MARK: &str = "synced";

/// How the end of the last segment is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Zeroed,
    Truncated,
}

#[test]
fn refuses_a_journal_that_lost_synced_records() {
    let mut refused = 0;
    let mut opened_short = 0;
    let mut nothing_lost = 0;
    for seed in 0..trials(600) {
        let mut random = Random(seed);
        let folder = SimulatedFolder::new(seed, 1 << 20);
        let written = write_groups(&folder, &mut random);
        // After a kill the mark is exact, after a power failure as old as its last sync.
        let known = match random.below(2) {
            0 => {
                folder.revive();
                written.acknowledged
            }
            _ => {
                folder.lose_power();
                written.mark_synced
            }
        };
        let last = last_segment(&folder);
        let size = folder.content(&last).expect("it was listed").len() as u64;
        let (at, loss) =
            (32 + random.below(size), [Loss::Zeroed, Loss::Truncated][random.below(2) as usize]);
        match loss {
            Loss::Zeroed => folder.zero_tail(&last, at),
            Loss::Truncated => folder.truncate_tail(&last, at),
        }
        let what = format!("seed {seed}, {loss:?} from byte {at} of {last}");
        match open(&folder) {
            Ok((opened, records)) => {
                assert!(opened.last >= known, "{what}: {} of {known} are there", opened.last);
                assert!(
                    records
                        .iter()
                        .enumerate()
                        .all(|(index, record)| *record == content(index as u64 + 1))
                );
                if opened.last < written.acknowledged {
                    opened_short += 1;
                } else {
                    nothing_lost += 1;
                }
            }
            Err(Error::Damaged(damage)) => {
                refused += 1;
                assert_eq!(damage.file, last, "{what}");
                let message = Error::Damaged(damage).to_string();
                assert!(message.contains("`bine data repair`"), "{what}: {message}");
                let before = folder.content(&last);
                let report = check(&shared(&folder)).expect("the disk can be read");
                assert!(!report.is_intact(), "{what}: {report}");
                let repaired = repair(&shared(&folder)).expect("the disk can be written");
                assert!(repaired.aside.iter().any(|name| folder.content(name) == before), "{what}");
                let lost: Vec<u64> = repaired.lost.iter().cloned().flatten().collect();
                let is_needed = lost.first().is_some_and(|first| *first <= written.acknowledged);
                // A power failure does not shorten a preallocated file, so a truncated one is not a
                // torn write.
                assert!(is_needed || matches!(loss, Loss::Truncated), "{what}: {lost:?}");
                let (mut opened, records) = open(&folder).expect("it is repaired");
                assert!(records.len() as u64 + lost.len() as u64 >= known, "{what}");
                // The sequence of an acknowledged record is not reused.
                let next = opened.journal.append(b"next").expect("there is room");
                assert!(next > known, "{what}: {next}");
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }
    let all = [refused, opened_short, nothing_lost];
    assert!(trials(600) < 600 || all.iter().all(|count| *count > 10), "{all:?}");
}

/// An earlier process may have written records without a sync, or with one that failed. A start
/// that has read them must make them durable, since it acknowledges what follows them.
#[test]
fn makes_the_records_that_it_has_read_durable() {
    let mut unsynced = 0;
    for seed in 0..trials(60) {
        let mut random = Random(seed);
        let folder = SimulatedFolder::new(seed, 1 << 24);
        let mut journal = open(&folder).expect("nothing fails").0.journal;
        let mut next = 1;
        for group in 0..=random.below(5) {
            for _ in 0..=random.below(4) {
                assert_eq!(journal.append(&content(next)).ok(), Some(next));
                next += 1;
            }
            journal.write(group == 0).expect("nothing fails");
        }
        if seed % 10 == 0 {
            // A group of more than one piece.
            assert_eq!(journal.append(&vec![7; 3 << 20]).ok(), Some(next));
            next += 1;
            journal.write(false).expect("nothing fails");
        }
        let read = next - 1;
        unsynced += u64::from(journal.durable() < read);
        folder.revive();
        drop(journal);
        let (opened, records) = open(&folder).expect("a kill loses nothing");
        assert_eq!((opened.last, records.len() as u64), (read, read), "seed {seed}");
        folder.lose_power();
        drop(opened);
        let (opened, records) = open(&folder).expect("all was durable");
        assert_eq!((opened.last, records.len() as u64), (read, read), "seed {seed}");
        assert!(opened.warnings.is_empty(), "seed {seed}: {:?}", opened.warnings);
    }
    assert!(trials(60) < 60 || unsynced > 30, "{unsynced}");
}

#[test]
fn refuses_a_closed_journal_without_its_tail() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).expect("nothing fails").0.journal;
    for number in 1..=50 {
        journal.append(&content(number)).expect("there is room");
        journal.write(true).expect("nothing fails");
    }
    journal.close().expect("nothing fails");
    folder.lose_power();
    // Exactly between two groups: the header and record 1 remain.
    let group = 40 + 16 + (content(1).len() as u64 / 8 + 1) * 8;
    folder.zero_tail(FIRST_SEGMENT, 32 + group);
    let error = open(&folder).map(|_| ()).expect_err("49 acknowledged records are gone");
    let message = error.to_string();
    let expected = format!(
        "{FIRST_SEGMENT} is damaged at byte {}: records that were synced to the disk are missing from its end (records 2 to 50)",
        32 + group
    );
    assert!(message.starts_with(&expected), "{message}");
}

/// Zeros where a group begins end a journal, but not if records follow them, however many reads the
/// zeros take.
#[test]
fn refuses_zeros_before_later_records() {
    let folder = SimulatedFolder::new(3, 1 << 24);
    let options = Options { segment: 2 << 20 };
    let opened = FileJournal::open(shared(&folder), options, &mut |_| Ok(()));
    let mut journal = opened.expect("nothing fails").journal;
    for _ in 0..12 {
        journal.append(&vec![1; 100_000]).expect("there is room");
        journal.write(true).expect("nothing fails");
    }
    folder.revive();
    drop(journal);
    folder.remove(MARK).expect("it exists");
    let mut bytes = folder.content(FIRST_SEGMENT).expect("it exists");
    bytes[32..700_000].fill(0);
    folder.put(FIRST_SEGMENT, &bytes);
    let error = open(&folder).map(drop).expect_err("records are lost");
    assert!(matches!(error, Error::Damaged(_)), "{error}");
}

#[test]
fn refuses_a_missing_last_segment() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).expect("nothing fails").0.journal;
    journal.append(&content(1)).expect("there is room");
    journal.write(true).expect("nothing fails");
    drop(journal);
    folder.remove(FIRST_SEGMENT).expect("it was written");
    let error = open(&folder).map(|_| ()).expect_err("an acknowledged record is gone");
    assert!(error.to_string().contains("(record 1)"), "{error}");
    let repaired = repair(&shared(&folder)).expect("the disk can be written");
    assert_eq!(repaired.lost, [1..=1]);
    assert_eq!(open(&folder).expect("it is repaired").0.last, 1);
}

#[test]
fn warns_about_what_a_torn_end_may_have_lost() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).expect("nothing fails").0.journal;
    for number in 1..=3 {
        journal.append(&content(number)).expect("there is room");
        // The third write was not acknowledged as durable.
        journal.write(number < 3).expect("nothing fails");
    }
    drop(journal);
    let whole = folder.content(FIRST_SEGMENT).expect("it was written");
    let used = whole.iter().rposition(|byte| *byte != 0).expect("it was written") as u64;
    folder.zero_tail(FIRST_SEGMENT, used - 4);
    let torn = |folder: &SimulatedFolder| {
        let warnings = open(folder).expect("a torn end is no damage").0.warnings;
        let [Warning::Torn(torn)] = &warnings[..] else { panic!("{warnings:?}") };
        torn.clone()
    };
    let with_mark = torn(&folder);
    assert_eq!((with_mark.last, with_mark.synced, with_mark.groups), (2, 2, 0));
    let message = with_mark.to_string();
    assert!(!message.contains("nothing in it was acknowledged"), "{message}");
    for part in [
        "is cut off at byte",
        "after record 2",
        "Records up to 2 are known to have been synced and are there",
        "bytes of acknowledged records after record 2 are lost",
        "restore a backup",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// A journal of an earlier version has no mark: the end of its last segment is unproven, as the
/// warning explains.
#[test]
fn opens_a_journal_without_a_mark_and_warns() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).expect("nothing fails").0.journal;
    journal.append(&content(1)).expect("there is room");
    journal.write(true).expect("nothing fails");
    drop(journal);
    folder.remove(MARK).expect("it was written");
    let whole = folder.content(FIRST_SEGMENT).expect("it was written");
    let used = whole.iter().rposition(|byte| *byte != 0).expect("it was written") as u64;
    folder.zero_tail(FIRST_SEGMENT, used - 4);
    let (mut opened, records) = open(&folder).expect("it may be torn");
    assert!(records.is_empty());
    let message = opened.warnings[0].to_string();
    assert!(message.contains("No file says which records were synced"), "{message}");
    // The first commit creates the mark again.
    opened.journal.append(&content(1)).expect("there is room");
    opened.journal.write(true).expect("nothing fails");
    drop(opened);
    folder.truncate_tail(FIRST_SEGMENT, 40);
    let error = open(&folder).map(|_| ()).expect_err("it was acknowledged");
    assert!(error.to_string().contains("is damaged at byte 32"), "{error}");
}

#[test]
fn warns_about_an_unusable_mark_and_opens() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).expect("nothing fails").0.journal;
    journal.append(&content(1)).expect("there is room");
    journal.write(true).expect("nothing fails");
    drop(journal);
    folder.put(MARK, b"not a mark");
    let report = check(&shared(&folder)).expect("the disk can be read");
    assert!(
        report.is_intact() && report.to_string().contains("`synced` cannot be used"),
        "{report}"
    );
    let (opened, records) = open(&folder).expect("the records are there");
    assert_eq!(records.len(), 1);
    assert!(matches!(opened.warnings[..], [Warning::Mark { .. }]), "{:?}", opened.warnings);
}

/// The acknowledgments of [`write_groups`].
struct Written {
    /// The last record acknowledged as durable.
    acknowledged: u64,
    /// The last record that the synced mark proved when it was last synced.
    mark_synced: u64,
}

/// Writes groups into several segments, most of them durably, and syncs the mark now and then.
fn write_groups(folder: &SimulatedFolder, random: &mut Random) -> Written {
    let mut journal = open(folder).expect("nothing fails").0.journal;
    let (mut mark_synced, mut next) = (0, 1);
    for _ in 0..=random.below(60) {
        for _ in 0..=random.below(6) {
            assert_eq!(journal.append(&content(next)).ok(), Some(next));
            next += 1;
        }
        journal.write(random.below(5) > 0).expect("nothing fails");
        if random.below(8) == 0
            && let Some(mark) = journal.unsynced_mark()
        {
            mark_synced = journal.durable();
            mark.sync_data().expect("nothing fails");
        }
    }
    Written { acknowledged: journal.durable(), mark_synced }
}

/// A snapshot is written in pieces of a megabyte.
#[test]
fn reads_back_a_snapshot_of_several_pieces() {
    let folder = SimulatedFolder::new(4, 1 << 24);
    let mut journal = open(&folder).expect("nothing fails").0.journal;
    assert_eq!(journal.append(b"one").ok(), Some(1));
    journal.write(true).expect("nothing fails");
    let block = |number: u8| vec![number; 700_000 + usize::from(number)];
    let mut snapshot = journal.snapshot(1).expect("nothing fails");
    for number in 1..=5 {
        snapshot.block(&block(number)).expect("there is room");
    }
    snapshot.finish().expect("there is room");
    journal.close().expect("nothing fails");
    drop(journal);
    folder.lose_power();
    let mut blocks = 0;
    let opened = FileJournal::open(shared(&folder), SEGMENT, &mut |loaded| {
        if let RecoveryEvent::Block(bytes) = loaded {
            blocks += 1;
            assert!(bytes == block(blocks), "block {blocks}");
        }
        Ok(())
    });
    assert_eq!((opened.expect("it is intact").snapshot, blocks), (1, 5));
}

fn content(number: u64) -> Vec<u8> {
    let mut record = number.to_le_bytes().to_vec();
    record.resize(8 + (number * 37 % 300) as usize, number as u8 | 1);
    record
}

fn last_segment(folder: &SimulatedFolder) -> String {
    let names = folder.list().expect("nothing fails").into_iter();
    names.filter(|name| name.starts_with("journal-")).max().expect("there is one")
}

fn open(folder: &SimulatedFolder) -> Result<(Opened, Vec<Vec<u8>>), Error> {
    let mut records = Vec::new();
    let opened = FileJournal::open(shared(folder), SEGMENT, &mut |loaded| {
        if let RecoveryEvent::Record(_, record) = loaded {
            records.push(record.to_vec());
        }
        Ok(())
    })?;
    Ok((opened, records))
}

fn shared(folder: &SimulatedFolder) -> Arc<dyn Folder> {
    Arc::new(folder.clone())
}
