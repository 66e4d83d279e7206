//! Tests long commands, whose records are written in parts.

use bine_push::{Command, Content, Draft, Preparation, Publish, Publisher, Start};
use bine_store::disk::SimulatedFolder;
use bine_store::{Extension as _, Store};

use super::super::tests::{create, open, publish, read};
use super::super::{ChangedChannels, Durability, now};
use super::*;

/// Bytes of each message of a long command.
const BODY: usize = 700_000;
const MESSAGES: usize = 3;
/// Parts of its record; the last one is shorter.
const PARTS: usize = BODY * MESSAGES / PART_BYTES + 1;

/// A command with messages that begin with this letter, too long for one record.
fn order(first: char) -> Command {
    let body: String = std::iter::once(first).chain(std::iter::repeat('x')).take(BODY).collect();
    let content = Content { body: body.as_bytes().into(), ..Content::default() };
    let messages = vec![Draft { channels: vec!["a".into()], content }; MESSAGES];
    Command::Publish(Publish { messages, ..Publish::default() })
}

fn publisher() -> Publisher {
    Publisher { name: "address/192.0.2.1".into(), bytes: 1 << 30 }
}

/// The first letters of all executed commands in order. Asserts that each command is complete.
fn orders(engine: &Engine) -> String {
    let (mut orders, mut left) = (String::new(), String::new());
    let mut start = Start::Earliest;
    loop {
        let (bodies, next) = read(engine, "a", start).unwrap();
        if bodies.is_empty() {
            break;
        }
        for body in bodies {
            assert!(body == "short" || body.len() == BODY, "{} bytes", body.len());
            left.extend(body.chars().next());
        }
        start = Start::After(next);
    }
    while let Some(first) = left.chars().next() {
        let all = first.to_string().repeat(if first == 's' { 1 } else { MESSAGES });
        left = left.strip_prefix(&all).expect("an order is there wholly").to_owned();
        orders.push(first);
    }
    orders
}

/// A server, and a long command whose parts the test writes one by one.
fn begin(disk: &SimulatedFolder) -> (Arc<Engine>, Store, LongRecord) {
    let (engine, store) = open(disk, 1);
    create(&engine, "a", Durability::Commit);
    let prepared = engine.hub(|hub| hub.prepare_by(order('l'), Some(&publisher()), now())).unwrap();
    let Ok(Preparation::Record(prepared)) = prepared else { panic!("{prepared:?}") };
    let promise = Arc::default();
    let checked = Some(CheckedCommand { prepared, changed: ChangedChannels::Unwatched });
    (engine, store, LongRecord { number: 0, checked, record: None, written: 0, promise })
}

#[test]
fn restores_long_commands_after_a_restart() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, store) = open(&disk, 1);
    create(&engine, "a", Durability::Commit);
    let ordered: Vec<_> =
        ('a'..='f').map(|first| engine.execute_for(order(first), Some(&publisher()))).collect();
    for ordered in ordered {
        assert!(matches!(ordered.wait(), Ok(Applied::Published(_))));
    }
    let before = orders(&engine);
    assert_eq!(before.len(), 6);
    assert!(engine.long_records.journaled().is_empty());
    disk.lose_power();
    drop((engine, store));
    disk.revive();
    let (engine, _store) = open(&disk, 2);
    assert_eq!(orders(&engine), before);
}

#[test]
fn commits_other_records_between_two_parts() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, store, mut long) = begin(&disk);
    assert_eq!(engine.write_part(&mut long), Ok(true));
    publish(&engine, "a", "short").unwrap();
    let mut parts = 1;
    while engine.write_part(&mut long).unwrap() {
        parts += 1;
    }
    assert_eq!(parts, PARTS);
    assert_eq!(orders(&engine), "sl");
    disk.lose_power();
    drop((engine, store));
    disk.revive();
    let (engine, _store) = open(&disk, 1);
    assert_eq!(orders(&engine), "sl");
}

#[test]
fn long_commands_are_atomic_across_power_failures() {
    for written in 0..=PARTS + 1 {
        let disk = SimulatedFolder::new(1, 1 << 30);
        let (engine, store, mut long) = begin(&disk);
        for _ in 0..written {
            engine.write_part(&mut long).unwrap();
        }
        disk.lose_power();
        drop((engine, store));
        disk.revive();
        let (engine, store) = open(&disk, 1);
        let expected = if written > PARTS { "l" } else { "" };
        assert_eq!(orders(&engine), expected, "{written} of {PARTS} parts");
        // Record numbers start again; parts of the previous run are not mixed with new ones.
        assert!(engine.long_records.journaled().is_empty());
        engine.execute_for(order('n'), Some(&publisher())).wait().unwrap();
        drop((engine, store));
        disk.revive();
        let (engine, _store) = open(&disk, 1);
        assert_eq!(orders(&engine), expected.to_owned() + "n");
    }
}

#[test]
fn snapshot_between_two_parts_contains_earlier_parts() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, _store, mut long) = begin(&disk);
    for _ in 0..3 {
        engine.write_part(&mut long).unwrap();
    }
    let image: Vec<_> = engine.snapshot().collect();
    // A start reads the snapshot and then the records after it.
    let again = Engine::new();
    for block in &image {
        again.load_block(block).unwrap();
    }
    let record = Arc::clone(long.record.as_ref().unwrap());
    let mut sequence = 10;
    for at in (long.written..record.len()).step_by(PART_BYTES) {
        sequence += 1;
        let end = record.len().min(at + PART_BYTES);
        again.replay(sequence, &part(0, &record[at..end])).unwrap();
    }
    let whole = [&[COMPLETE], &[0; 8][..], &(record.len() as u64).to_be_bytes()].concat();
    again.replay(sequence + 1, &whole).unwrap();
    again.finish_load().unwrap();
    assert_eq!(orders(&again), "l");
    // A record with a missing part is rejected.
    let again = Engine::new();
    for block in &image {
        again.load_block(block).unwrap();
    }
    assert!(again.replay(11, &whole).unwrap_err().contains("parts of a record are missing"));
}

#[test]
fn cancels_a_long_command_when_its_client_disconnects() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, _store, long) = begin(&disk);
    let used = engine.hub(|hub| hub.bytes()).unwrap();
    // The client disconnects before its turn.
    engine.long_records.waiting().orders.push_back(long);
    engine.execute_for(order('n'), Some(&publisher())).wait().unwrap();
    assert_eq!(orders(&engine), "n");
    assert!(engine.long_records.journaled().is_empty());
    assert!(engine.hub(|hub| hub.bytes()).unwrap() > used);
}

#[test]
fn reports_a_full_disk_to_the_publisher_of_a_long_command() {
    let disk = SimulatedFolder::new(1, 2 << 20);
    let (engine, _store) = open(&disk, 1);
    create(&engine, "a", Durability::Commit);
    let refused = engine.execute_for(order('l'), Some(&publisher())).wait();
    assert_eq!(refused, Err(Error::Storage(bine_store::Error::Full)));
    assert!(engine.long_records.journaled().is_empty());
    engine.end();
    let refused = engine.execute_for(order('l'), Some(&publisher())).wait();
    assert_eq!(refused, Err(Error::Storage(bine_store::Error::Closed)));
}
