//! Tests of what a start passes on, how it reports its progress, and what it says about files that it
//! cannot use.

use std::sync::Arc;

use bine_store::disk::{Fault, Folder, SimulatedFolder};
use bine_store::journal::{Error, FileJournal, Journal, Opened, Options, RecoveryEvent, repair};

/// A segment has room for three groups of one record of 100 bytes.
const SEGMENT: u64 = 32 + 3 * (40 + 16 + 104);

#[test]
fn reports_the_bytes_of_each_block_and_segment_as_progress() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder);
    write(&mut journal, 7);
    snapshot(&mut journal, 2, &[b"one", b"three"]);
    drop(journal);
    let size = |name: &str| folder.content(name).unwrap().len() as u64;
    let image = size("snapshot-0000000000000002.bin");
    let (_, progress) = load(&folder, SEGMENT);
    let all = image + 3 * SEGMENT;
    let segment = |number: u64| 8 + number * SEGMENT;
    assert_eq!(progress, [3, 8, segment(1), segment(2), segment(3), all].map(|done| (done, all)));
    // The segments before a snapshot are not read.
    let mut journal = open(&folder);
    snapshot(&mut journal, 3, &[b"one", b"three"]);
    drop(journal);
    // The start before has cut the last one after its only group.
    let end = segment(1) + 32 + 160;
    let all = image + SEGMENT + 32 + 160;
    let expected = [3, 8, segment(1), end, all].map(|done| (done, all));
    assert_eq!(load(&folder, SEGMENT).1, expected);
    // Without a snapshot, and with one of all records.
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder);
    write(&mut journal, 6);
    drop(journal);
    let all = 2 * SEGMENT;
    assert_eq!(load(&folder, SEGMENT).1, [SEGMENT, all, all].map(|done| (done, all)));
    let mut journal = open(&folder);
    snapshot(&mut journal, 6, &[b"state"]);
    drop(journal);
    // The last segment may have records after it.
    let all = size_of(&folder, "snapshot-0000000000000006.bin") + SEGMENT;
    assert_eq!(load(&folder, SEGMENT).1, [5, 5 + SEGMENT, all].map(|done| (done, all)));
    // A folder without a journal.
    assert_eq!(load(&SimulatedFolder::new(1, 1 << 20), SEGMENT).1, [(0, 0)]);
}

#[test]
fn reports_progress_within_a_long_segment() {
    const MEGABYTE: u64 = 1 << 20;
    let folder = SimulatedFolder::new(1, 1 << 24);
    let segment = 8 * MEGABYTE;
    let mut journal = open_with(&folder, segment);
    for _ in 0..60 {
        journal.append(&vec![b'r'; 64 << 10]).unwrap();
        journal.write(true).unwrap();
    }
    drop(journal);
    let (_, progress) = load(&folder, segment);
    let done: Vec<u64> = progress.iter().map(|(done, _)| *done).collect();
    assert!(progress.iter().all(|(_, all)| *all == segment));
    let group = 40 + 16 + (64 << 10) + 8;
    // After each 16 groups, which have more than a megabyte together.
    let expected = [1, 2, 3].map(|part| 32 + part * 16 * group);
    assert_eq!(done, [&expected[..], &[segment, segment]].concat());
}

#[test]
fn passes_on_only_the_records_after_the_snapshot() {
    for number in 1..=7 {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let mut journal = open(&folder);
        write(&mut journal, 7);
        snapshot(&mut journal, number, &[b"state"]);
        drop(journal);
        let (opened, events) = events(&folder).unwrap();
        let expected: Vec<_> = (number + 1..=7).map(|record| format!("record {record}")).collect();
        assert_eq!((opened.snapshot, opened.last), (number, 7));
        assert_eq!(events, [&["block state".to_owned()][..], &expected].concat());
    }
}

#[test]
fn names_the_lost_records_after_the_snapshot() {
    // Records 3 and 4 are lost: the first segment is damaged within the third one, and the second
    // segment in its first.
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder);
    write(&mut journal, 7);
    drop(journal);
    for (first, offset) in [(1, 32 + 2 * 160 + 60), (4, 32 + 60)] {
        let name = segment_name(first);
        let mut bytes = folder.content(&name).unwrap();
        bytes[offset] ^= 1;
        folder.put(&name, &bytes);
    }
    let repaired = repair(&shared(&folder)).unwrap();
    assert_eq!(repaired.lost, [3..=3, 4..=4]);
    let text = |events: &[String]| events.join(", ");
    let (_, found) = events(&folder).unwrap();
    let end = "record 5, record 6, record 7";
    assert_eq!(text(&found), format!("record 1, record 2, lost 3 to 3, lost 4 to 4, {end}"));
    // A snapshot has the records up to its own, lost or not.
    for (number, expected) in [
        (2, format!("block state, lost 3 to 3, lost 4 to 4, {end}")),
        (3, format!("block state, lost 4 to 4, {end}")),
        (4, format!("block state, {end}")),
    ] {
        let mut journal = open(&folder);
        snapshot(&mut journal, number, &[b"state"]);
        drop(journal);
        assert_eq!(text(&events(&folder).unwrap().1), expected, "{number}");
    }
    // The snapshot is within a longer gap.
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder);
    write(&mut journal, 7);
    drop(journal);
    folder.remove(&segment_name(1)).unwrap();
    assert_eq!(repair(&shared(&folder)).unwrap().lost, [1..=3]);
    for (number, expected) in
        [(1, "block state, lost 2 to 3"), (2, "block state, lost 3 to 3"), (3, "block state")]
    {
        let mut journal = open(&folder);
        snapshot(&mut journal, number, &[b"state"]);
        drop(journal);
        let found = text(&events(&folder).unwrap().1);
        assert_eq!(found, format!("{expected}, record 4, {end}"), "{number}");
    }
}

#[test]
fn names_the_records_that_no_file_has() {
    let written = || {
        let folder = SimulatedFolder::new(1, 1 << 20);
        let mut journal = open(&folder);
        write(&mut journal, 10);
        drop(journal);
        folder
    };
    let missing = "no file holds records that were acknowledged";
    let folder = written();
    folder.remove(&segment_name(1)).unwrap();
    assert_eq!(damage(&folder), format!("a simulated folder, 0: {missing} (records 1 to 3)"));
    let folder = written();
    let early = "512: records that were synced to the disk are missing from its end";
    folder.remove(&segment_name(10)).unwrap();
    assert_eq!(damage(&folder), format!("journal-0000000000000007.log, {early} (record 10)"));
    folder.remove(&segment_name(7)).unwrap();
    assert_eq!(damage(&folder), format!("journal-0000000000000004.log, {early} (records 7 to 10)"));
    folder.remove(&segment_name(4)).unwrap();
    folder.remove(&segment_name(1)).unwrap();
    assert_eq!(damage(&folder), format!("a simulated folder, 0: {missing} (records 1 to 10)"));
    let folder = written();
    folder.remove(&segment_name(4)).unwrap();
    let here = "journal-0000000000000001.log, 512: records are missing here";
    assert_eq!(damage(&folder), format!("{here} (records 4 to 6)"));
    // The last group of the first segment is in the second one too.
    let folder = written();
    let mut bytes = folder.content(&segment_name(4)).unwrap();
    folder.put(&segment_name(3), &bytes);
    let error = damage(&folder);
    assert!(error.starts_with("journal-0000000000000003.log, 0: its head belongs"), "{error}");
    // A file of another store.
    let folder = written();
    let other = SimulatedFolder::new(2, 1 << 20);
    let mut journal = open(&other);
    write(&mut journal, 10);
    drop(journal);
    bytes = other.content(&segment_name(4)).unwrap();
    folder.put(&segment_name(4), &bytes);
    let foreign = "it belongs to another store";
    assert_eq!(damage(&folder), format!("journal-0000000000000004.log, 8: {foreign}"));
}

#[test]
fn rejects_a_segment_with_records_of_the_next_one() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder);
    for _ in 0..3 {
        journal.append(&[7; 100]).unwrap();
    }
    journal.write(true).unwrap();
    write(&mut journal, 1);
    drop(journal);
    // The next segment claims to begin within the group of three records.
    let other = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&other);
    write(&mut journal, 2);
    journal.find_room(SEGMENT).unwrap();
    drop(journal);
    let names = other.list().unwrap();
    let next = names.iter().filter(|name| name.starts_with("journal-")).max().unwrap();
    assert_eq!(*next, segment_name(3));
    folder.put(next, &other.content(next).unwrap());
    let holds = "it holds records that the next segment begins with";
    assert_eq!(damage(&folder), format!("journal-0000000000000001.log, 432: {holds} (record 3)"));
}

/// A start on a full disk cannot write the end of the last segment again, so the journal does this
/// before its first group.
#[test]
fn makes_the_end_durable_before_the_next_record_if_the_disk_was_full() {
    let mut opened = 0;
    for (ahead, seed) in (0..20).flat_map(|ahead| (0..4).map(move |seed| (ahead, seed))) {
        let folder = SimulatedFolder::new(seed, 1 << 20);
        let mut journal = open(&folder);
        write(&mut journal, 1);
        journal.append(&[7; 100]).unwrap();
        journal.write(false).unwrap();
        drop(journal);
        folder.fail(ahead, Fault::Full);
        let found =
            FileJournal::open(shared(&folder), Options { segment: SEGMENT }, &mut |_| Ok(()));
        folder.heal();
        let Ok(mut found) = found else { continue };
        opened += 1;
        write(&mut found.journal, 1);
        drop(found);
        folder.lose_power();
        let records = ["record 1", "record 2", "record 3"];
        assert_eq!(events(&folder).unwrap().1, records, "{ahead}, seed {seed}");
    }
    assert!(opened > 20, "{opened}");
}

#[test]
fn gives_each_damaged_snapshot_a_name_of_its_own() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder);
    write(&mut journal, 2);
    drop(journal);
    let name = "snapshot-0000000000000002.bin";
    let aside = ["", ".2", ".3"].map(|end| format!("damaged-{name}{end}"));
    for expected in &aside {
        let mut journal = open(&folder);
        snapshot(&mut journal, 2, &[b"state"]);
        drop(journal);
        let mut bytes = folder.content(name).unwrap();
        bytes[40] ^= 1;
        folder.put(name, &bytes);
        let (opened, _) = load(&folder, SEGMENT);
        let [warning] = &opened.warnings[..] else { panic!("{:?}", opened.warnings) };
        assert_eq!(
            warning.to_string(),
            format!(
                "{name} is damaged at byte 32: a block does not match its checksum; the previous \
                 snapshot and the journal were used, and the file is now {expected}"
            )
        );
        assert_eq!(folder.content(expected), Some(bytes));
        assert_eq!(folder.content(name), None);
    }
}

#[test]
fn warns_of_a_mark_that_cannot_be_used() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder);
    write(&mut journal, 2);
    drop(journal);
    let mut bytes = folder.content("synced").unwrap();
    bytes[16] ^= 1;
    folder.put("synced", &bytes);
    let (opened, _) = load(&folder, SEGMENT);
    let texts: Vec<_> = opened.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["the file `synced` cannot be used (it does not match its checksum): this start cannot \
          detect a loss at the end of the journal. The next commit writes the file again"]
    );
}

#[test]
fn names_the_process_that_holds_the_lock() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let held = open(&folder);
    let error = events(&folder).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "another server (process 1) uses a simulated folder; stop it, or give this one its own \
         folder"
    );
    drop(held);
    assert!(events(&folder).is_ok());
    // A disk that fails is no other server.
    folder.fail(0, Fault::Broken);
    let error = events(&folder).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("cannot lock lock: "), "{error}");
}

fn open(folder: &SimulatedFolder) -> FileJournal {
    open_with(folder, SEGMENT)
}

fn open_with(folder: &SimulatedFolder, segment: u64) -> FileJournal {
    load(folder, segment).0.journal
}

/// Opens a folder, and returns the reports of progress.
fn load(folder: &SimulatedFolder, segment: u64) -> (Opened, Vec<(u64, u64)>) {
    let mut progress = Vec::new();
    let opened = FileJournal::open(shared(folder), Options { segment }, &mut |event| {
        if let RecoveryEvent::Progress { done, all } = event {
            progress.push((done, all));
        }
        Ok(())
    });
    (opened.unwrap(), progress)
}

/// Opens a folder, and returns the other events.
fn events(folder: &SimulatedFolder) -> Result<(Opened, Vec<String>), Error> {
    let mut events = Vec::new();
    let opened = FileJournal::open(shared(folder), Options { segment: SEGMENT }, &mut |event| {
        match event {
            RecoveryEvent::Block(block) => {
                events.push(format!("block {}", String::from_utf8_lossy(block)));
            }
            RecoveryEvent::Record(number, _) => events.push(format!("record {number}")),
            RecoveryEvent::Lost(records) => {
                events.push(format!("lost {} to {}", records.start(), records.end()));
            }
            RecoveryEvent::Progress { .. } => {}
        }
        Ok(())
    })?;
    Ok((opened, events))
}

/// The damage for which a start fails.
fn damage(folder: &SimulatedFolder) -> String {
    match events(folder).map(drop).unwrap_err() {
        Error::Damaged(damage) => {
            let text = damage.to_string();
            let what = text.split_once(": ").unwrap().1;
            format!("{}, {}: {what}", damage.file, damage.offset)
        }
        error => panic!("{error}"),
    }
}

/// Writes groups of one record of 100 bytes.
fn write(journal: &mut FileJournal, count: u64) {
    for _ in 0..count {
        journal.append(&[7; 100]).unwrap();
        journal.write(true).unwrap();
    }
}

fn snapshot(journal: &mut FileJournal, number: u64, blocks: &[&[u8]]) {
    let mut writer = journal.snapshot(number).unwrap();
    for block in blocks {
        writer.block(block).unwrap();
    }
    writer.finish().unwrap();
}

fn size_of(folder: &SimulatedFolder, name: &str) -> u64 {
    folder.content(name).unwrap().len() as u64
}

fn segment_name(first: u64) -> String {
    format!("journal-{first:016x}.log")
}

fn shared(folder: &SimulatedFolder) -> Arc<dyn Folder> {
    Arc::new(folder.clone())
}
