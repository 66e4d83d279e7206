//! Tests that docs/formats/channels.md documents the bytes that are written, and that no input
//! causes a panic.

use std::sync::Arc;

use bine_push::{
    BodyFormat, ChannelName, Command, Content, Corrupt, Cursor, Draft, Durability, Expiry, Fork,
    GapPolicy, Hub, Limits, Preparation, Prepared, Producer, Publish, Publisher, Retention,
    Sequence, Settings, SnapshotReader, Start, Subscription, Until, is_channel_record,
};
use proptest::prelude::*;

const DOCUMENT: &str = include_str!("../../../../docs/formats/channels.md");

/// Returns the examples of the document as bytes.
fn examples() -> Vec<Vec<u8>> {
    let blocks = DOCUMENT.split("```text\n").skip(1);
    let digits = blocks.map(|block| block.split("```").next().unwrap());
    digits
        .map(|digits| {
            let bytes = digits.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap());
            bytes.collect()
        })
        .collect()
}

fn prepare(hub: &mut Hub, command: Command, now: u64) -> (Prepared, Vec<u8>) {
    let Ok(Preparation::Record(prepared)) = hub.prepare(command, now) else { panic!("refused") };
    let mut bytes = Vec::new();
    prepared.write(&mut bytes);
    (prepared, bytes)
}

fn hub() -> Hub {
    Hub::new(7, Limits::default())
}

/// Creates a hub after every kind of change, and returns it with its records.
fn full() -> (Hub, Vec<Vec<u8>>) {
    let mut hub = hub();
    let mut records = Vec::new();
    let mut submit = |command: Command, now: u64| {
        let (prepared, bytes) = prepare(&mut hub, command, now);
        records.push(bytes);
        hub.apply(prepared, records.len() as u64).unwrap();
    };
    let content = Content {
        content_type: Some("text/plain".into()),
        event: Some("e".into()),
        id: Some("i".into()),
        headers: Box::from([("h".into(), "v".into())]),
        body: Arc::from(&b"hello"[..]),
    };
    let draft = |channels: &[&str]| Draft {
        channels: channels.iter().map(|name| Arc::from(*name)).collect(),
        content: content.clone(),
    };
    let retention = Retention { messages: 2, bytes: 0, age: 0 };
    let settings =
        Settings { retention, expiry: Expiry::AfterPublish(5000), ..Settings::default() };
    for name in ["a", "b", "c"] {
        let (name, first) = (ChannelName::Given(name.into()), vec![draft(&[])]);
        submit(
            Command::Create {
                name,
                settings: settings.clone(),
                fork: None,
                first,
                is_closed: false,
            },
            1000,
        );
    }
    let producer = Some(Producer { id: "p".into(), epoch: 1, sequence: 0 });
    for place in 0..3 {
        let mut draft = draft(&["a", "b"]);
        draft.content.id = Some(place.to_string().into());
        let messages = vec![draft];
        submit(Command::Publish(Publish { messages, ..Publish::default() }), 1001);
    }
    let (messages, mark) = (vec![draft(&["b"])], Some("m".into()));
    let publish = Publish { messages, close: vec!["b".into()], producer, mark };
    submit(Command::Publish(publish), 1002);
    submit(Command::Renew("a".into()), 1003);
    submit(Command::SetExpiry { channel: "a".into(), expiry: Expiry::AfterActivity(6000) }, 1003);
    let (name, first) = (ChannelName::Given("d".into()), Vec::new());
    let tail = Cursor { epoch: 7, sequence: Sequence::from_number(4 << 10) };
    let fork = Some(Fork { channel: "a".into(), until: Some(tail), bytes: 2 });
    submit(Command::Create { name, settings, fork, first, is_closed: false }, 1003);
    submit(Command::Remove("c".into()), 1004);
    (hub, records)
}

fn restored(chunks: &[Vec<u8>]) -> Result<Hub, Corrupt> {
    let mut restoring = SnapshotReader::new(Limits::default());
    for chunk in chunks {
        restoring.receive(chunk)?;
    }
    restoring.finish()
}

fn chunks(hub: &Hub) -> Vec<Vec<u8>> {
    hub.snapshot().collect()
}

/// A fuzz target found it: the snapshot had a message twice, and could not be read.
#[test]
fn damaged_create_record_puts_a_message_into_its_channel_once() {
    // Records, each after its length in two bytes.
    let mut rest = &include_bytes!("../../../../fuzz/seeds/channel_record/doubled-channel")[..];
    let mut hub = Hub::new(1, Limits::default());
    let mut number = 0;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        number += 1;
        let _ = hub.replay(&behind[..length], number);
        rest = &behind[length..];
    }
    let written: Vec<Vec<u8>> = hub.snapshot().collect();
    let mut reader = SnapshotReader::new(Limits::default());
    for chunk in &written {
        reader.receive(chunk).unwrap();
    }
    assert_eq!(reader.finish().unwrap().snapshot().collect::<Vec<_>>(), written);
}

#[test]
fn writes_bytes_as_documented() {
    let mut hub = hub();
    let retention = Retention { messages: 3, ..Retention::UNLIMITED };
    let expiry = Expiry::AfterPublish(3_600_000);
    let settings = Settings { retention, expiry, ..Settings::default() };
    let (name, first) = (ChannelName::Given("a".into()), Vec::new());
    let create = Command::Create { name, settings, fork: None, first, is_closed: false };
    let (prepared, created) = prepare(&mut hub, create, 1000);
    hub.apply(prepared, 1).unwrap();
    let content = Content {
        content_type: Some("text/plain".into()),
        id: Some("i".into()),
        body: Arc::from(&b"hello"[..]),
        ..Content::default()
    };
    let publish = Publish {
        messages: vec![Draft { channels: vec!["a".into()], content }],
        producer: Some(Producer { id: "p".into(), epoch: 0, sequence: 0 }),
        ..Publish::default()
    };
    let (prepared, published) = prepare(&mut hub, Command::Publish(publish), 1001);
    hub.apply(prepared, 2).unwrap();
    assert_eq!(examples(), [created, published]);

    let mut replayed = self::hub();
    for (number, record) in (1..).zip(examples()) {
        replayed.replay(&record, number).unwrap();
    }
    assert_eq!(chunks(&replayed), chunks(&hub));
}

#[test]
fn restores_hub_from_snapshot_and_journal() {
    let (hub, records) = full();
    let written = chunks(&hub);
    assert_eq!(chunks(&restored(&written).unwrap()), written);
    let mut replayed = self::hub();
    for (number, record) in (1..).zip(&records) {
        replayed.replay(record, number).unwrap();
    }
    assert_eq!(chunks(&replayed), written);
}

#[test]
fn rejects_truncated_or_extended_record() {
    let (_, records) = full();
    for (at, record) in records.iter().enumerate() {
        for length in 0..record.len() {
            assert_eq!(hub().replay(&record[..length], 1), Err(Corrupt), "{at} {length}");
        }
        assert_eq!(hub().replay(&[record, &[0][..]].concat(), 1), Err(Corrupt), "{at}");
    }
}

#[test]
fn rejects_missing_extra_or_reordered_chunks() {
    let (hub, _) = full();
    let written = chunks(&hub);
    assert_eq!(written.len(), 3);
    for without in 0..written.len() {
        let mut some = written.clone();
        some.remove(without);
        assert!(restored(&some).is_err(), "without {without}");
        let mut more = written.clone();
        more.push(written[without].clone());
        assert!(restored(&more).is_err(), "twice {without}");
    }
    for (one, other) in [(0, 1), (1, 2), (0, 2)] {
        let mut turned = written.clone();
        turned.swap(one, other);
        assert!(restored(&turned).is_err(), "{one} and {other}");
    }
}

/// Symptom: the snapshot was accepted, and the memory of the channel's messages was never released.
/// Found by a fuzz target.
#[test]
fn rejects_snapshot_whose_removed_channel_has_messages_or_no_fork() {
    let content = Content { body: Arc::from(&b"hello"[..]), ..Content::default() };
    for first in [vec![], vec![Draft { channels: vec![], content: content.clone() }]] {
        let mut hub = hub();
        let settings = Settings { retention: Retention::UNLIMITED, ..Settings::default() };
        let name = ChannelName::Given("a".into());
        let command = Command::Create { name, settings, fork: None, first, is_closed: false };
        let (prepared, _) = prepare(&mut hub, command, 1000);
        hub.apply(prepared, 1).unwrap();
        let mut written = chunks(&hub);
        assert!(restored(&written).is_ok());
        // The offset after the number, the name, the settings and whether the channel is closed.
        let gone = &mut written.last_mut().unwrap()[12];
        assert_eq!(std::mem::replace(gone, 1), 0);
        assert!(restored(&written).is_err());
    }
}

#[test]
fn rejects_record_number_that_does_not_increase() {
    let (_, records) = full();
    let mut hub = hub();
    hub.replay(&records[0], 5).unwrap();
    assert_eq!(hub.replay(&records[1], 5), Err(Corrupt));
    assert_eq!(hub.replay(&records[1], u64::MAX), Err(Corrupt));
    assert_eq!(hub.replay(&records[1], 6), Ok(()));
}

proptest! {
    #[test]
    fn does_not_panic_on_any_record(
        kind in 15_u8..25,
        bytes in prop::collection::vec(prop_oneof![4 => 0_u8..4, 1 => any::<u8>()], 0..60),
        index in 0_usize..10,
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let (mut hub, records) = full();
        let _ = hub.replay(&[&[kind], &bytes[..]].concat(), 100);
        let mut spoiled = records[index].clone();
        spoiled[at.index(records[index].len())] = byte;
        let _ = hub.replay(&spoiled, 101);
        // Any state that results can be written and read.
        let written = chunks(&hub);
        prop_assert_eq!(chunks(&restored(&written).unwrap()), written);
    }

    #[test]
    fn does_not_panic_on_any_chunk(
        index in 0_usize..3,
        at in any::<prop::sample::Index>(),
        byte: u8,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut chunks = chunks(&full().0);
        let length = chunks[index].len();
        chunks[index][at.index(length)] = byte;
        let _ = restored(&chunks);
        chunks[index].truncate(cut.index(length));
        let _ = restored(&chunks);
    }
}

/// Version 1 of a snapshot has no publishers; everything else is equal.
#[test]
fn reads_version_1_snapshot_without_publishers() {
    let mut hub = hub();
    let content = Content { body: Arc::from(&b"hello"[..]), ..Content::default() };
    let first = vec![Draft { channels: vec![], content }];
    let (name, settings) = (ChannelName::Given("a".into()), Settings::default());
    let create = Command::Create { name, settings, fork: None, first, is_closed: false };
    let (prepared, _) = prepare(&mut hub, create, 1000);
    hub.apply(prepared, 1).unwrap();
    let written = chunks(&hub);
    let mut old = written.clone();
    assert_eq!(old[0][1], 2, "the version is the first number of the head");
    old[0][1] = 1;
    for chunk in &mut old[1..] {
        assert_eq!(chunk.pop(), Some(0), "nobody's");
    }
    assert_eq!(chunks(&restored(&old).unwrap()), written);
}

#[test]
fn reserves_documented_first_bytes_for_channels() {
    let bytes: Vec<u8> = (0..=u8::MAX).filter(|first| is_channel_record(*first)).collect();
    assert_eq!(bytes, (16..=23).collect::<Vec<u8>>());
    let (_, records) = full();
    assert!(records.iter().all(|record| is_channel_record(record[0])));
}

/// Only new channels and messages count against a publisher, so only their records name one.
#[test]
fn replays_each_command_of_a_publisher() {
    let ann = Publisher { name: "ann".into(), bytes: 1 << 20 };
    let (mut prepared, mut replayed) = (hub(), hub());
    let mut record = 0;
    let mut submit = |command: Command| {
        let Ok(Preparation::Record(ready)) = prepared.prepare_by(command, Some(&ann), 1000) else {
            panic!("refused")
        };
        let mut bytes = Vec::new();
        ready.write(&mut bytes);
        record += 1;
        prepared.apply(ready, record).unwrap();
        assert_eq!(replayed.replay(&bytes, record), Ok(()), "record {record}: {bytes:x?}");
        assert_eq!(chunks(&replayed), chunks(&prepared));
        assert_eq!(replayed.publisher_bytes("ann"), prepared.publisher_bytes("ann"));
    };
    let (name, first) = (ChannelName::Given("a".into()), Vec::new());
    let settings = Settings { expiry: Expiry::AfterPublish(5000), ..Settings::default() };
    submit(Command::Create { name, settings, fork: None, first, is_closed: false });
    let messages = vec![Draft { channels: vec!["a".into()], content: Content::default() }];
    submit(Command::Publish(Publish { messages, ..Publish::default() }));
    submit(Command::Renew("a".into()));
    submit(Command::SetExpiry { channel: "a".into(), expiry: Expiry::Never });
    submit(Command::Remove("a".into()));
}

#[test]
fn restores_each_durability_and_body_format() {
    for durability in [Durability::Memory, Durability::Interval, Durability::Commit] {
        for (content_type, format) in [
            ("image/png", BodyFormat::Binary),
            ("text/plain", BodyFormat::Text),
            ("application/json", BodyFormat::Json),
        ] {
            let (mut hub, mut replayed) = (hub(), hub());
            let content_type = Some(Arc::from(content_type));
            let content = Content { body: b"[1]"[..].into(), ..Content::default() };
            let first = vec![Draft { channels: vec![], content }];
            let settings = Settings { content_type, durability, ..Settings::default() };
            let name = ChannelName::Given("a".into());
            let command = Command::Create { name, settings, fork: None, first, is_closed: false };
            let (prepared, record) = prepare(&mut hub, command, 1000);
            hub.apply(prepared, 1).unwrap();
            replayed.replay(&record, 1).unwrap();
            for hub in [&replayed, &restored(&chunks(&hub)).unwrap()] {
                assert_eq!(hub.describe("a", 1000).unwrap().settings.durability, durability);
                let subscription = Subscription {
                    channels: &["a"],
                    start: Start::Earliest,
                    end: Until::Open,
                    gaps: GapPolicy::Reject,
                    limit: 1,
                    bytes: usize::MAX,
                };
                let messages = hub.read(&subscription, 1000).unwrap().messages;
                assert_eq!(messages[0].format, format);
            }
        }
    }
}

#[test]
fn reports_bytes_of_all_bodies_of_a_record() {
    let mut hub = hub();
    let draft = |channels: &[&str], length: usize| Draft {
        channels: channels.iter().map(|name| Arc::from(*name)).collect(),
        content: Content { body: vec![b'x'; length].into(), ..Content::default() },
    };
    let (name, first) = (ChannelName::Given("a".into()), vec![draft(&[], 300), draft(&[], 40)]);
    let settings = Settings::default();
    let create = Command::Create { name, settings, fork: None, first, is_closed: false };
    let (created, bytes) = prepare(&mut hub, create, 1000);
    assert_eq!(created.body_bytes(), 340);
    assert!((340..400).contains(&bytes.len()), "{} bytes of a record", bytes.len());
    hub.apply(created, 1).unwrap();
    let messages = vec![draft(&["a"], 5), draft(&["a"], 70)];
    let publish = Command::Publish(Publish { messages, ..Publish::default() });
    assert_eq!(prepare(&mut hub, publish, 1000).0.body_bytes(), 75);
    assert_eq!(prepare(&mut hub, Command::Renew("a".into()), 1000).0.body_bytes(), 0);
}
