//! Claims about channels that come back from the journal.

use bine_push::{
    ChannelName, Content, Cursor, Draft, GapPolicy, Publish, Settings, Start, Subscription, Until,
};
use bine_store::disk::SimulatedFolder;
use bine_store::{Archive, Options};

use super::super::Caps;
use super::*;

pub(super) fn open(disk: &SimulatedFolder, boot: u8) -> (Arc<Engine>, Store) {
    let engine = Arc::new(Engine::new());
    let guest = Arc::clone(&engine) as Arc<dyn Extension>;
    let options = Options::new().extension(guest).segment(1 << 16);
    let store = Store::in_folder(Arc::new(disk.process()), options, &mut |_, _| {}).unwrap();
    engine.begin_in(&store, Some([boot; 16])).unwrap();
    (engine, store)
}

pub(super) fn create(engine: &Arc<Engine>, name: &str, durability: Durability) {
    let settings = Settings { durability, ..Settings::default() };
    let (name, first) = (ChannelName::Given(name.into()), Vec::new());
    engine
        .order(Command::Create { name, settings, first, is_closed: false, fork: None })
        .wait()
        .unwrap();
}

pub(super) fn publish(engine: &Arc<Engine>, name: &str, body: &str) -> Result<Applied, Error> {
    let content = Content { body: body.as_bytes().into(), ..Content::default() };
    let messages = vec![Draft { channels: vec![name.into()], content }];
    engine.order(Command::Publish(Publish { messages, ..Publish::default() })).wait()
}

/// The bodies behind a place, and where they end.
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
    let page = engine.hub(|hub| hub.read(&subscription, now())).unwrap()?;
    let body =
        |message: &Arc<bine_push::Message>| String::from_utf8(message.body.to_vec()).unwrap();
    Ok((page.messages.iter().map(body).collect(), page.next))
}

#[test]
fn a_cursor_goes_on_after_an_end_in_order_and_after_one_of_the_program_alone() {
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
        // After an order the system may have gone down too.
        let (engine, _store) = open(&disk, if ends { 2 } else { 1 });
        let (bodies, _) = read(&engine, "a", Start::After(cursor)).unwrap();
        assert_eq!(bodies, ["two"], "{ends}");
    }
}

#[test]
fn after_the_system_went_down_no_cursor_stands_for_another_message() {
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
fn channels_come_back_from_an_image_with_their_epoch_and_with_what_was_revoked() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, store) = open(&disk, 1);
    create(&engine, "a", Durability::Interval);
    engine.parties.settle(Caps::default(), Duration::from_hours(1));
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
fn a_folder_that_was_compacted_has_all_messages_and_their_cursors() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, store) = open(&disk, 1);
    create(&engine, "a", Durability::Interval);
    for number in 0..2000 {
        publish(&engine, "a", &number.to_string()).unwrap();
    }
    // Half of what was said in the journal is of no use any more.
    create(&engine, "b", Durability::Interval);
    for _ in 0..2000 {
        publish(&engine, "b", "nobody reads this").unwrap();
    }
    engine.order(Command::Remove("b".into())).wait().unwrap();
    let before = read(&engine, "a", Start::Earliest).unwrap();
    engine.end();
    store.close();

    let folder = Arc::new(disk.process());
    let archive =
        Archive::open(folder, Some(crate::channels::Channels::keeper()), &mut |_, _| {}).unwrap();
    let compacted = archive.compact().unwrap();
    assert!(compacted.after < compacted.before * 3 / 4, "{compacted:?}");
    // It had ended in order, so another run of the system goes on with its cursors.
    let (engine, store) = open(&disk, 2);
    assert_eq!(read(&engine, "a", Start::Earliest).unwrap(), before);
    assert_eq!(read(&engine, "b", Start::Earliest).unwrap_err(), Refused::NotFound("b".into()));
    engine.end();
    store.close();
}

/// A run that had ended in order was taken for one that was cut, and its cursors were foreign to the next.
#[test]
fn behind_the_end_nothing_more_is_taken() {
    let disk = SimulatedFolder::new(1, 1 << 30);
    let (engine, store) = open(&disk, 1);
    create(&engine, "a", Durability::Interval);
    publish(&engine, "a", "one").unwrap();
    let (_, cursor) = read(&engine, "a", Start::Earliest).unwrap();
    engine.end();
    assert_eq!(publish(&engine, "a", "late"), Err(Error::NotKept(bine_store::Error::Closed)));
    store.close();
    disk.revive();
    let (engine, _store) = open(&disk, 2);
    let (bodies, _) = read(&engine, "a", Start::After(cursor)).unwrap();
    assert!(bodies.is_empty(), "{bodies:?}");
}
