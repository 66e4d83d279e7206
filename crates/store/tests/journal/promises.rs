//! Tests of the contract of the journal, one sentence each.

use std::sync::Arc;

use bine_store::disk::{Fault, Folder, SimulatedFolder};
use bine_store::journal::{Error, FileJournal, Journal, Opened, Options, RecoveryEvent, Warning};

#[test]
fn rejects_groups_on_a_full_disk_and_resumes() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).journal;
    assert_eq!(write(&mut journal, &[b'a'; 3000]).ok(), Some(1));
    folder.set_room(100);
    for _ in 0..3 {
        // The group does not fit after the first one, and a new segment has no room.
        let error = write(&mut journal, &[b'b'; 3000]).expect_err("there is no room");
        assert!(matches!(error, Error::Full { .. }), "{error}");
    }
    folder.set_room(1 << 20);
    assert_eq!(write(&mut journal, &[b'c'; 3000]).ok(), Some(2), "numbers are given back");
    folder.revive();
    assert_eq!(found(&folder), [vec![b'a'; 3000], vec![b'c'; 3000]]);
}

#[test]
fn discards_a_group_that_was_cut_short() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).journal;
    write(&mut journal, b"a").expect("there is room");
    folder.fail(0, Fault::Short);
    folder.set_room(0);
    let error = write(&mut journal, &[b'b'; 1000]).expect_err("there is no room");
    assert!(matches!(error, Error::Full { .. }), "{error}");
    folder.lose_power();
    assert_eq!(found(&folder), [b"a"]);
}

#[test]
fn never_retries_after_a_failed_sync() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).journal;
    write(&mut journal, b"a").expect("nothing fails");
    folder.fail(1, Fault::Broken);
    let error = write(&mut journal, b"b").expect_err("its sync fails");
    assert!(matches!(error, Error::Broken { .. }), "{error}");
    let asked = folder.operations();
    let refused = [
        journal.append(b"c").is_err(),
        journal.write(true).is_err(),
        journal.sync().is_err(),
        journal.snapshot(1).is_err(),
        journal.close().is_err(),
    ];
    assert_eq!((refused, folder.operations()), ([true; 5], asked));
    folder.revive();
    assert_eq!(found(&folder)[0], b"a");
}

#[test]
fn keeps_two_snapshots_and_all_records_after_the_older() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).journal;
    for round in 1..=5 {
        for _ in 0..4 {
            write(&mut journal, &[round; 1500]).expect("there is room");
        }
        snapshot(&mut journal, u64::from(round) * 4);
    }
    let mut names = folder.list().expect("nothing fails");
    names.sort();
    let snapshots: Vec<_> = names.iter().filter(|name| name.starts_with("snapshot")).collect();
    assert_eq!(snapshots, ["snapshot-0000000000000010.bin", "snapshot-0000000000000014.bin"]);
    let first = names.iter().find(|name| name.starts_with("journal"));
    assert_eq!(first.map(String::as_str), Some("journal-0000000000000011.log"));
}

#[test]
fn sets_a_damaged_snapshot_aside_and_uses_the_previous() {
    let folder = with_two_snapshots();
    spoil(&folder, "snapshot-0000000000000002.bin");
    let mut blocks = Vec::new();
    let mut records = Vec::new();
    let opened = load(&folder, &mut |loaded| match loaded {
        RecoveryEvent::Block(block) => blocks.push(block.to_vec()),
        RecoveryEvent::Record(sequence, _) => records.push(sequence),
        _ => {}
    });
    let opened = opened.expect("there is another way");
    assert_eq!((blocks, records), (vec![vec![1]], vec![2, 3]));
    let [warning] = &opened.warnings[..] else { panic!("{:?}", opened.warnings) };
    let Warning::Snapshot { aside, .. } = warning else { panic!("{warning}") };
    assert_eq!(aside, "damaged-snapshot-0000000000000002.bin");
    assert!(folder.content(aside).is_some());
    drop(opened);
    assert!(open(&folder).warnings.is_empty(), "the warning appears once");
}

#[test]
fn reports_missing_records_without_a_snapshot() {
    let folder = with_two_snapshots();
    for name in ["snapshot-0000000000000001.bin", "snapshot-0000000000000002.bin"] {
        spoil(&folder, name);
    }
    let error = load(&folder, &mut |_| {}).map(|_| ()).expect_err("record 1 is nowhere");
    let message = error.to_string();
    assert!(
        message.contains("no file holds records that were acknowledged (record 1)"),
        "{message}"
    );
}

#[test]
fn writes_a_snapshot_while_the_journal_continues() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).journal;
    write(&mut journal, b"a").expect("there is room");
    let mut writer = journal.snapshot(1).expect("there is room");
    let writing = std::thread::spawn(move || {
        for block in 0..100 {
            writer.block(&[block; 100])?;
        }
        writer.finish()
    });
    for _ in 0..100 {
        write(&mut journal, b"b").expect("there is room");
    }
    writing.join().expect("nothing panics").expect("there is room");
    journal.compact(1).expect("it is finished");
    folder.revive();
    let opened = open(&folder);
    assert_eq!((opened.snapshot, opened.last), (1, 101));
}

#[test]
fn reports_progress_up_to_the_total() {
    let folder = with_two_snapshots();
    let mut message = Vec::new();
    let opened = load(&folder, &mut |loaded| {
        if let RecoveryEvent::Progress { done, all } = loaded {
            message.push((done, all));
        }
    });
    opened.expect("nothing is damaged");
    assert!(
        message.is_sorted() && message.last().is_some_and(|(done, all)| done == all),
        "{message:?}"
    );
}

#[test]
fn receiver_error_fails_the_start_without_changes() {
    let folder = with_two_snapshots();
    let shared = Arc::new(folder.clone());
    let refused = FileJournal::open(shared, SMALL, &mut |_| Err("no such table".to_owned()));
    let error = refused.map(|_| ()).expect_err("it was refused");
    assert_eq!(error.to_string(), "no such table");
    assert_eq!(open(&folder).last, 3);
}

#[test]
fn refuses_a_second_server() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let first = open(&folder);
    let error = load(&folder, &mut |_| {}).map(|_| ()).expect_err("the first has it");
    assert!(error.to_string().starts_with("another server"), "{error}");
    drop(first);
    open(&folder);
}

#[test]
fn closed_journal_rejects_records_and_marks_its_end() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).journal;
    write(&mut journal, b"a").expect("there is room");
    journal.close().expect("nothing fails");
    assert!(journal.append(b"b").is_err());
    drop(journal);
    // With the record of a clean shutdown, even a group that looks torn is known to have been
    // durable.
    let name = "journal-0000000000000001.log";
    let mut bytes = folder.content(name).expect("it was written");
    bytes[72..96].fill(0);
    folder.put(name, &bytes);
    let error = load(&folder, &mut |_| {}).map(|_| ()).expect_err("it was acknowledged");
    assert!(error.to_string().contains("(record 1)"), "{error}");
}

/// A segment has room for one large group.
const SMALL: Options = Options { segment: 4096 };

/// Three records, each in its own segment, and snapshots of the first two.
fn with_two_snapshots() -> SimulatedFolder {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).journal;
    for sequence in 1..=3 {
        write(&mut journal, &[b'r'; 3000]).expect("there is room");
        if sequence < 3 {
            snapshot(&mut journal, sequence);
        }
    }
    drop(journal);
    folder
}

fn snapshot(journal: &mut FileJournal, sequence: u64) {
    let mut writer = journal.snapshot(sequence).expect("there is room");
    writer.block(&[sequence as u8]).expect("there is room");
    writer.finish().expect("there is room");
    journal.compact(sequence).expect("it is finished");
}

/// Flips a bit of the last byte but one.
fn spoil(folder: &SimulatedFolder, name: &str) {
    let mut bytes = folder.content(name).expect("it was written");
    let position = bytes.len() - 2;
    bytes[position] ^= 1;
    folder.put(name, &bytes);
}

fn write(journal: &mut FileJournal, record: &[u8]) -> Result<u64, Error> {
    journal.append(record)?;
    journal.write(true)
}

fn found(folder: &SimulatedFolder) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let opened = load(folder, &mut |loaded| {
        if let RecoveryEvent::Record(_, record) = loaded {
            found.push(record.to_vec());
        }
    });
    opened.expect("nothing is damaged");
    found
}

fn open(folder: &SimulatedFolder) -> Opened {
    load(folder, &mut |_| {}).expect("nothing is damaged")
}

fn load(
    folder: &SimulatedFolder,
    receive: &mut dyn FnMut(RecoveryEvent<'_>),
) -> Result<Opened, Error> {
    let shared = Arc::new(folder.clone());
    FileJournal::open(shared, SMALL, &mut |loaded| {
        receive(loaded);
        Ok(())
    })
}
