//! Tests the recovery of channels from the journal.

use bine_push::{
    ChannelName, Content, Cursor, Draft, GapPolicy, Publish, Settings, Start, Subscription, Until,
};
use bine_store::disk::SimulatedFolder;
use bine_store::{Archive, Options};

use super::super::ClientLimits;
use super::*;

pub(super) fn open(disk: &SimulatedFolder, boot: u8) -> (Arc<Engine>, Store) {
    let engine = Arc::new(Engine::new());
    let guest = Arc::clone(&engine) as Arc<dyn Extension>;
    let options = Options::new().extension(guest).segment(1 << 16);
    let store = Store::in_folder(Arc::new(disk.process()), options, &mut |_, _| {}).unwrap();
    engine.begin_during(&store, Some([boot; 16])).unwrap();
    (engine, store)
}

pub(super) fn create(engine: &Arc<Engine>, name: &str, durability: Durability) {
    let settings = Settings { durability, ..Settings::default() };
    let (name, first) = (ChannelName::Given(name.into()), Vec::new());
    engine
        .execute(Command::Create { name, settings, first, is_closed: false, fork: None })
        .wait()
        .unwrap();
}

pub(super) fn publish(engine: &Arc<Engine>, name: &str, body: &str) -> Result<Applied, Error> {
    let content = Content { body: body.as_bytes().into(), ..Content::default() };
    let messages = vec![Draft { channels: vec![name.into()], content }];
    engine.execute(Command::Publish(Publish { messages, ..Publish::default() })).wait()
}

/// Reads the bodies after a position, and the position after them.
pub(super) fn read(
    engine: &Engine,
    name: &str,
    start: Start,
) -> Result<(Vec<String>, Cursor), Refused> {
    let subscription = Subscription {
        channels: &[name],
        start,
        end: Until::Open,
        gaps: GapPolicy::Reject,
        limit: 1000,
        bytes: 1 << 20,
    };
    let batch = engine.hub(|hub| hub.read(&subscription, now())).unwrap()?;
    let body =
        |message: &Arc<bine_push::Message>| String::from_utf8(message.body.to_vec()).unwrap();
    Ok((batch.messages.iter().map(body).collect(), batch.next))
}

#[test]
fn cursors_survive_an_orderly_end_and_a_crash_of_the_program() {
    for ends in [true, false] {
        let disk = SimulatedFolder::new(1, 1 << 30);
        let (engine, store) = open(&disk, 1);
        create(&engine, "a", Durability::Interval);
        publish(&engine, "a", "one").unwrap();
        let (_, cursor) = read(&engine, "a", Start::Earliest).unwrap();
        publish(&engine, "a", "two").unwrap();
        if ends {
            engine.end();
        }
        store.close();
        disk.revive();
        // After an orderly end, the system may restart too.
        let (engine, _store) = open(&disk, if ends { 2 } else { 1 });
        let (bodies, _) = read(&engine, "a", Start::After(cursor)).unwrap();
        assert_eq!(bodies, ["two"], "{ends}");
    }
}

#[test]
fn rejects_cursors_after_the_system_crashed() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, store) = open(&disk, 1);
    create(&engine, "a", Durability::Memory);
    create(&engine, "b", Durability::Commit);
    publish(&engine, "b", "kept").unwrap();
    publish(&engine, "a", "lost").unwrap();
    let (_, cursor) = read(&engine, "a", Start::Earliest).unwrap();
    disk.lose_power();
    drop(store);
    disk.revive();
    let (engine, _store) = open(&disk, 2);
    assert_eq!(read(&engine, "b", Start::Earliest).unwrap().0, ["kept"]);
    publish(&engine, "a", "other").unwrap();
    let refused = read(&engine, "a", Start::After(cursor)).unwrap_err();
    assert!(matches!(refused, Refused::ForeignEpoch { .. }), "{refused}");
    assert!(read(&engine, "a", Start::Earliest).unwrap().0.contains(&"other".to_owned()));
}

#[test]
fn restores_channels_epoch_and_revocations_from_a_snapshot() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, store) = open(&disk, 1);
    create(&engine, "a", Durability::Interval);
    engine.parties.configure(ClientLimits::default(), Duration::from_hours(1));
    engine.revoke("ann").wait().unwrap();
    let revoked = engine.parties.revoked(now());
    let body = "x".repeat(10_000);
    let has_image = || {
        let names = bine_store::disk::Folder::list(&disk).unwrap();
        names.iter().any(|name| name.starts_with("snapshot-") && !name.contains("new"))
    };
    let mut count = 0;
    while !has_image() {
        publish(&engine, "a", &body).unwrap();
        count += 1;
        assert!(count < 10_000, "there is no image");
    }
    publish(&engine, "a", "last").unwrap();
    let (_, cursor) = read(&engine, "a", Start::Earliest).unwrap();
    store.close();
    disk.revive();
    let (engine, _store) = open(&disk, 1);
    assert_eq!(read(&engine, "a", Start::Earliest).unwrap().1, cursor);
    let described = engine.hub(|hub| hub.describe("a", now())).unwrap().unwrap();
    assert_eq!(described.messages, count + 1);
    assert_eq!((engine.parties.revoked(now()), revoked.len()), (revoked.clone(), 1));
}

#[test]
fn compaction_keeps_messages_and_cursors() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, store) = open(&disk, 1);
    create(&engine, "a", Durability::Interval);
    for number in 0..2000 {
        publish(&engine, "a", &number.to_string()).unwrap();
    }
    // Half of the journal becomes obsolete.
    create(&engine, "b", Durability::Interval);
    for _ in 0..2000 {
        publish(&engine, "b", "nobody reads this").unwrap();
    }
    engine.execute(Command::Remove("b".into())).wait().unwrap();
    let before = read(&engine, "a", Start::Earliest).unwrap();
    engine.end();
    store.close();

    let folder = Arc::new(disk.process());
    let archive =
        Archive::open(folder, Some(crate::channels::Channels::extension()), &mut |_, _| {})
            .unwrap();
    let compacted = archive.compact().unwrap();
    assert!(compacted.after < compacted.before * 3 / 4, "{compacted:?}");
    // After an orderly end, cursors stay valid across a reboot of the system.
    let (engine, store) = open(&disk, 2);
    assert_eq!(read(&engine, "a", Start::Earliest).unwrap(), before);
    assert_eq!(read(&engine, "b", Start::Earliest).unwrap_err(), Refused::NotFound("b".into()));
    engine.end();
    store.close();
}

/// Symptom: after an orderly end, the next start rejected its cursors. Cause: a record followed the
/// record of the end.
#[test]
fn rejects_commands_after_the_end() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, store) = open(&disk, 1);
    create(&engine, "a", Durability::Interval);
    publish(&engine, "a", "one").unwrap();
    let (_, cursor) = read(&engine, "a", Start::Earliest).unwrap();
    engine.end();
    assert_eq!(publish(&engine, "a", "late"), Err(Error::Storage(bine_store::Error::Closed)));
    store.close();
    disk.revive();
    let (engine, _store) = open(&disk, 2);
    let (bodies, _) = read(&engine, "a", Start::After(cursor)).unwrap();
    assert!(bodies.is_empty(), "{bodies:?}");
}

/// Reads the channels of a folder as a move does, and writes them into a new folder.
#[cfg(feature = "cluster")]
fn moved(disk: &SimulatedFolder, boot: u8) -> (SimulatedFolder, bool) {
    let engine = Arc::new(Engine::new());
    engine.lift_memory_quotas();
    let extension = Arc::clone(&engine) as Arc<dyn Extension>;
    let read = bine_store::StoreContents::read(&disk.process(), Some(extension), &mut |_, _| {});
    let contents = read.unwrap();
    let has_new_epoch = engine.settle_previous_run(Some([boot; 16]));
    engine.end_previous_run();
    let copy = SimulatedFolder::new(1, 1 << 30);
    let options = bine_store::journal::Options { segment: 1 << 16 };
    contents.write(Arc::new(copy.clone()), options, &mut |_| {}).unwrap();
    (copy, has_new_epoch)
}

#[cfg(feature = "cluster")]
#[test]
fn move_keeps_cursors_unless_the_system_had_crashed() {
    for (ends, boot, is_kept) in [(true, 2, true), (false, 1, true), (false, 2, false)] {
        let disk = SimulatedFolder::new(1, 1 << 30);
        let (engine, store) = open(&disk, 1);
        create(&engine, "a", Durability::Commit);
        publish(&engine, "a", "one").unwrap();
        let (_, cursor) = read(&engine, "a", Start::Earliest).unwrap();
        publish(&engine, "a", "two").unwrap();
        assert_eq!(engine.size(), (1, 2));
        if ends {
            engine.end();
        }
        store.close();
        let (copy, has_new_epoch) = moved(&disk, boot);
        assert_eq!(has_new_epoch, !is_kept, "{ends} {boot}");
        // The copy begins on another machine.
        let (engine, _store) = open(&copy, 7);
        let rest = read(&engine, "a", Start::After(cursor)).map(|(bodies, _)| bodies);
        match rest {
            Ok(bodies) if is_kept => assert_eq!(bodies, ["two"]),
            Err(Refused::ForeignEpoch { .. }) if !is_kept => {}
            rest => panic!("{ends} {boot}: {rest:?}"),
        }
        assert_eq!(read(&engine, "a", Start::Earliest).unwrap().0, ["one", "two"]);
    }
}
