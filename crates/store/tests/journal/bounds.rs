//! Tests of the sizes of groups, segments and blocks, and of what each call makes durable.

use std::sync::Arc;

use bine_store::disk::{Fault, Folder, SimulatedFolder};
use bine_store::journal::{
    Error, FileJournal, Journal, MAX_BLOCK_LENGTH, Options, RecoveryEvent, check, repair,
};

const HEADER: u64 = 32;
/// The length of a group with one record of 100 bytes.
const GROUP: u64 = 40 + 16 + 104;

#[test]
fn fills_a_segment_to_its_last_byte() {
    for (spare, segments) in [(0, vec![1, 4]), (1, vec![1, 4]), (GROUP - 1, vec![1, 4])] {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let mut journal = open(&folder, HEADER + 3 * GROUP + spare);
        for _ in 0..5 {
            write(&mut journal, true);
        }
        assert_eq!(firsts(&folder), segments, "{spare} bytes to spare");
    }
}

#[test]
fn creates_a_larger_segment_for_a_group_that_fits_no_other() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, 1000);
    assert_eq!(journal.append(&[7; 5000]).ok(), Some(1));
    journal.write(true).unwrap();
    write(&mut journal, true);
    assert_eq!(firsts(&folder), [1, 2]);
    let length = |first| folder.content(&name(first)).unwrap().len() as u64;
    assert_eq!((length(1), length(2)), (HEADER + 40 + 16 + 5008, 1000));
    journal.close().unwrap();
    // A closed journal reserves no space.
    assert!(length(2) < 1000, "{}", length(2));
}

#[test]
fn reserves_room_for_a_later_group() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, HEADER + 3 * GROUP);
    // A group of three records has one header.
    let three = GROUP + 2 * 120;
    journal.find_room(three).unwrap();
    folder.set_room(0);
    for _ in 0..3 {
        journal.append(&[7; 100]).unwrap();
    }
    assert_eq!(journal.write(true).ok(), Some(3));
    // 80 bytes remain in the segment, and no room remains for another one.
    journal.find_room(80).unwrap();
    assert!(matches!(journal.find_room(81), Err(Error::Full { .. })));
    folder.set_room(1 << 20);
    journal.find_room(81).unwrap();
    assert_eq!(firsts(&folder), [1, 4]);
    // No group needs more than one segment for this.
    let before = folder.room();
    journal.find_room(1 << 40).unwrap();
    assert_eq!((firsts(&folder), folder.room()), (vec![1, 4], before));
}

#[test]
fn uses_a_small_segment_on_a_nearly_full_disk() {
    // The size is divided by four until it fits, and is a whole block at least.
    for (room, length) in [(1 << 20, 1 << 16), (1 << 15, 1 << 14), (5000, 4096)] {
        let folder = SimulatedFolder::new(1, room);
        let mut journal = open(&folder, 1 << 16);
        write(&mut journal, true);
        assert_eq!(folder.content(&name(1)).unwrap().len(), length, "{room} bytes are free");
    }
    let folder = SimulatedFolder::new(1, 4000);
    let mut journal = open(&folder, 1 << 16);
    journal.append(&[7; 100]).unwrap();
    assert!(matches!(journal.write(true), Err(Error::Full { .. })));
    let left = folder.list().unwrap();
    assert!(left.iter().all(|name| !name.starts_with("journal")), "{left:?}");
}

#[test]
fn reports_exactly_the_synced_records_as_durable() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, HEADER + 2 * GROUP);
    assert!(!journal.is_instant());
    assert!(journal.unsynced_mark().is_none(), "nothing is durable");
    assert_eq!((write(&mut journal, false), journal.durable()), (1, 0));
    assert!(journal.unsynced_mark().is_none());
    assert_eq!((journal.sync().ok(), journal.durable()), (Some(1), 1));
    assert!(journal.unsynced_mark().is_some() && journal.unsynced_mark().is_none());
    // Without new records, neither call writes or syncs.
    let operations = folder.operations();
    assert_eq!((journal.sync().ok(), journal.write(true).ok()), (Some(1), Some(1)));
    assert_eq!(folder.operations(), operations);
    assert_eq!((write(&mut journal, false), journal.durable()), (2, 1));
    // A new segment makes the previous one durable.
    assert_eq!((write(&mut journal, false), journal.durable()), (3, 2));
    let snapshot = journal.snapshot(2).unwrap();
    assert_eq!(journal.durable(), 2, "the snapshot needs no later record");
    drop(snapshot);
    let snapshot = journal.snapshot(3).unwrap();
    assert_eq!(journal.durable(), 3);
    drop(snapshot);
    assert_eq!(write(&mut journal, false), 4);
    journal.close().unwrap();
    drop(journal);
    folder.lose_power();
    assert_eq!(records(&folder), [1, 2, 3, 4], "a clean shutdown is durable");
}

#[test]
fn rejects_every_call_after_close() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, 4096);
    write(&mut journal, true);
    journal.close().unwrap();
    let outcomes = [
        journal.append(b"a").map(drop),
        journal.write(true).map(drop),
        journal.sync().map(drop),
        journal.find_room(1),
        journal.snapshot(1).map(drop),
        journal.close(),
    ];
    for outcome in outcomes {
        assert_eq!(outcome.unwrap_err().to_string(), "the journal is closed");
    }
    // The folder is free for the next process.
    assert_eq!(write(&mut open(&folder, 4096), true), 2);
}

#[test]
fn discards_records_that_no_write_has_followed() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, 4096);
    assert_eq!(write(&mut journal, true), 1);
    assert_eq!(journal.append(b"never written").ok(), Some(2));
    journal.close().unwrap();
    drop(journal);
    assert_eq!(records(&folder), [1]);
}

#[test]
fn retries_an_interrupted_write() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, 4096);
    assert_eq!(write(&mut journal, true), 1);
    for _ in 0..20 {
        // The write is short or interrupted. After a short one, a new segment has the group.
        folder.fail(0, Fault::Short);
        write(&mut journal, true);
    }
    drop(journal);
    folder.lose_power();
    assert_eq!(records(&folder), (1..=21).collect::<Vec<_>>());
    let segments = firsts(&folder);
    assert!(segments.len() > 1 && segments.len() < 21, "{segments:?}");
}

#[test]
fn rejects_empty_and_too_long_blocks_of_a_snapshot() {
    let folder = SimulatedFolder::new(1, 1 << 26);
    let mut journal = open(&folder, 4096);
    write(&mut journal, true);
    let mut writer = journal.snapshot(1).unwrap();
    writer.block(&vec![7; MAX_BLOCK_LENGTH]).unwrap();
    writer.block(&[7]).unwrap();
    writer.finish().unwrap();
    for length in [0, MAX_BLOCK_LENGTH + 1] {
        let mut writer = journal.snapshot(1).unwrap();
        let error = writer.block(&vec![7; length]).unwrap_err();
        let Error::TooLong { length: found, room } = error else { panic!("{error}") };
        assert_eq!((found, room), (length, MAX_BLOCK_LENGTH));
    }
    drop(journal);
    let mut blocks = Vec::new();
    let opened = FileJournal::open(shared(&folder), Options { segment: 4096 }, &mut |event| {
        if let RecoveryEvent::Block(block) = event {
            blocks.push(block.len());
        }
        Ok(())
    });
    assert_eq!(opened.unwrap().snapshot, 1);
    assert_eq!(blocks, [MAX_BLOCK_LENGTH, 1]);
}

#[test]
fn dropped_snapshot_leaves_no_file() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, 4096);
    write(&mut journal, true);
    let before = folder.list().unwrap();
    let mut writer = journal.snapshot(1).unwrap();
    writer.block(b"state").unwrap();
    assert_eq!(folder.list().unwrap().len(), before.len() + 1);
    drop(writer);
    assert_eq!(folder.list().unwrap(), before);
    let mut writer = journal.snapshot(1).unwrap();
    writer.block(b"state").unwrap();
    writer.finish().unwrap();
    assert!(folder.content("snapshot-0000000000000001.bin").is_some());
}

#[test]
fn rejects_snapshots_and_compactions_of_records_that_do_not_exist() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, HEADER + GROUP);
    for _ in 0..3 {
        write(&mut journal, true);
    }
    assert_eq!(journal.snapshot(4).map(drop).unwrap_err().to_string(), "there is no record 4 yet");
    assert_eq!(journal.compact(2).unwrap_err().to_string(), "there is no snapshot of record 2");
    snapshot(&mut journal, 3);
    journal.compact(3).unwrap();
    assert_eq!(firsts(&folder), [1, 2, 3], "the second way to the state is the whole journal");
}

#[test]
fn lists_each_file_with_its_records() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, HEADER + 2 * GROUP);
    for _ in 0..5 {
        write(&mut journal, true);
    }
    snapshot(&mut journal, 2);
    drop(journal);
    let report = check(&shared(&folder)).unwrap();
    assert!(report.is_intact());
    let bytes = HEADER + 2 * GROUP;
    assert_eq!(
        report.to_string(),
        format!(
            "snapshot-0000000000000002.bin: 69 bytes, 1 read, records 1 to 2\n\
             journal-0000000000000003.log: {bytes} bytes, 2 read, records 3 to 4\n\
             journal-0000000000000005.log: {bytes} bytes, 1 read, records 5 to 5\n\
             all is well\n"
        )
    );
    // A record of the last segment, which the mark knows to be durable.
    let mut content = folder.content(&name(5)).unwrap();
    content[100] ^= 1;
    folder.put(&name(5), &content);
    let report = check(&shared(&folder)).unwrap();
    assert!(!report.is_intact());
    let damage = "journal-0000000000000005.log is damaged at byte 32: a group's records do not match their checksum (records from 5)\n";
    let text = report.to_string();
    assert!(text.contains("journal-0000000000000005.log: 352 bytes, 0 read\n"), "{text}");
    assert!(text.contains(damage) && text.ends_with("damaged\n"), "{text}");
}

#[test]
fn check_names_the_place_at_which_a_snapshot_ends() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, 4096);
    write(&mut journal, true);
    snapshot(&mut journal, 1);
    drop(journal);
    let name = "snapshot-0000000000000001.bin";
    let whole = folder.content(name).unwrap();
    // A block of five bytes, and the trailer of 24 bytes.
    let [begin, end] = ["it ends where a block should begin", "its end is not where it says"];
    let long = "a block is longer than what is left";
    for (length, offset, what) in [
        (32, 32, begin),
        (39, 32, begin),
        (40, 32, long),
        (44, 32, long),
        (45, 45, begin),
        (52, 45, begin),
        (53, 45, end),
        (68, 45, end),
        (70, 45, end),
    ] {
        let mut bytes = whole.clone();
        bytes.resize(length, 0);
        folder.put(name, &bytes);
        let text = check(&shared(&folder)).unwrap().to_string();
        let expected = format!("{name} is damaged at byte {offset}: {what}\n");
        assert!(text.contains(&expected), "{length}: {text}");
        assert!(text.starts_with(&format!("{name}: {length} bytes, 0 read\n")), "{text}");
    }
    for (offset, what) in [
        (40, "32: a block does not match its checksum"),
        (50, "45: its end does not match what is before it"),
        (53, "45: its end does not match what is before it"),
        (61, "45: its end does not match what is before it"),
    ] {
        let mut bytes = whole.clone();
        bytes[offset] ^= 1;
        folder.put(name, &bytes);
        let text = check(&shared(&folder)).unwrap().to_string();
        assert!(text.contains(&format!("{name} is damaged at byte {what}\n")), "{offset}: {text}");
    }
}

#[test]
fn check_lists_no_records_for_the_snapshot_of_an_empty_journal() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    snapshot(&mut open(&folder, 4096), 0);
    let text = check(&shared(&folder)).unwrap().to_string();
    assert_eq!(text, "snapshot-0000000000000000.bin: 69 bytes, 1 read\nall is well\n");
}

#[test]
fn check_names_the_missing_records() {
    let written = || {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let mut journal = open(&folder, HEADER + 3 * GROUP);
        for _ in 0..7 {
            write(&mut journal, true);
        }
        assert_eq!(firsts(&folder), [1, 4, 7]);
        folder
    };
    let findings = |folder: &SimulatedFolder| {
        let text = check(&shared(folder)).unwrap().to_string();
        text.lines().filter(|line| line.contains(" is damaged ")).collect::<Vec<_>>().join("\n")
    };
    let folder = written();
    folder.zero_tail(&name(1), HEADER + GROUP);
    assert_eq!(
        findings(&folder),
        "journal-0000000000000001.log is damaged at byte 192: records are missing here \
         (records 2 to 3)"
    );
    let folder = written();
    let missing = "a simulated folder is damaged at byte 0: no file holds records that were \
                   acknowledged (records 1 to";
    folder.remove(&name(1)).unwrap();
    assert_eq!(findings(&folder), format!("{missing} 3)"));
    folder.remove(&name(4)).unwrap();
    folder.remove(&name(7)).unwrap();
    assert_eq!(findings(&folder), format!("{missing} 7)"));
}

/// Without an intact header and without a mark, only the groups name the store.
#[test]
fn repair_finds_the_number_of_the_store_in_the_first_group() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder, 4096);
    for _ in 0..3 {
        write(&mut journal, true);
    }
    drop(journal);
    folder.remove("synced").unwrap();
    let mut content = folder.content(&name(1)).unwrap();
    content[10] ^= 1;
    folder.put(&name(1), &content);
    let repaired = repair(&shared(&folder)).unwrap();
    assert_eq!((repaired.damages.len(), repaired.lost), (1, vec![]));
    assert_eq!(records(&folder), [1, 2, 3]);
}

/// Writes a group with one record of 100 bytes, and returns its number.
fn write(journal: &mut FileJournal, durably: bool) -> u64 {
    let number = journal.append(&[7; 100]).unwrap();
    assert_eq!(journal.write(durably).ok(), Some(number));
    number
}

fn snapshot(journal: &mut FileJournal, sequence: u64) {
    let mut writer = journal.snapshot(sequence).unwrap();
    writer.block(b"state").unwrap();
    writer.finish().unwrap();
}

fn open(folder: &SimulatedFolder, segment: u64) -> FileJournal {
    let opened = FileJournal::open(shared(folder), Options { segment }, &mut |_| Ok(()));
    opened.unwrap().journal
}

/// The numbers of the records that a start finds.
fn records(folder: &SimulatedFolder) -> Vec<u64> {
    let mut records = Vec::new();
    let opened = FileJournal::open(shared(folder), Options { segment: 4096 }, &mut |event| {
        if let RecoveryEvent::Record(sequence, record) = event {
            assert_eq!(record, [7; 100]);
            records.push(sequence);
        }
        Ok(())
    });
    assert_eq!(opened.unwrap().last, records.len() as u64);
    records
}

/// The first records of all segments.
fn firsts(folder: &SimulatedFolder) -> Vec<u64> {
    let names = folder.list().unwrap();
    let digits =
        names.iter().filter_map(|name| name.strip_prefix("journal-")?.strip_suffix(".log"));
    digits.map(|digits| u64::from_str_radix(digits, 16).unwrap()).collect()
}

fn name(first: u64) -> String {
    format!("journal-{first:016x}.log")
}

fn shared(folder: &SimulatedFolder) -> Arc<dyn Folder> {
    Arc::new(folder.clone())
}
