//! Tests of when a hub has to check a channel again, of epochs, and of reading its ring.

use bine_push::{
    ChannelName, Command, Cursor, Expiry, GapPolicy, Limits, Refused, Retention, Settings,
    SnapshotReader, Start,
};

use crate::hub::{draft, fork, messages, reply, server};

#[test]
fn schedules_no_check_of_channel_without_age_and_expiry() {
    let mut server = server(Limits::default());
    let settings = Settings { retention: Retention::UNLIMITED, ..Settings::default() };
    server.create("a", settings).unwrap();
    server.publish(messages(vec![draft(&["a"], "1")])).unwrap();
    assert_eq!(server.hub.next_due(), None);
}

#[test]
fn never_expires_removed_channel_that_forks_reserve() {
    let mut server = server(Limits::default());
    let settings = Settings { expiry: Expiry::AfterPublish(100), ..Settings::default() };
    server.create("a", settings).unwrap();
    fork(&mut server, None, 0).unwrap();
    server.submit(Command::Remove("a".into())).unwrap();
    server.now += 1000;
    let mut restoring = SnapshotReader::new(Limits::default());
    for chunk in server.hub.snapshot() {
        restoring.receive(&chunk).unwrap();
    }
    for hub in [&mut restoring.finish().unwrap(), &mut server.hub] {
        assert_eq!(hub.next_due(), None);
        assert!(hub.expire(server.now, 10).is_none());
        // A new channel cannot replace it as it replaces an expired one.
        let name = ChannelName::Given("a".into());
        let (settings, first) = (Settings::default(), Vec::new());
        let create = Command::Create { name, settings, fork: None, first, is_closed: false };
        assert!(matches!(hub.prepare(create, server.now), Err(Refused::Conflict(_))));
    }
}

/// Each node of a cluster wrote a record for the same channel.
#[test]
fn leaves_expired_channel_to_other_hubs_for_a_while() {
    let mut server = server(Limits::default());
    let settings = Settings { expiry: Expiry::AfterPublish(100), ..Settings::default() };
    server.create("a", settings).unwrap();
    let due = server.now + 100;
    let hub = &mut server.hub;
    assert!(hub.expire_after(due, 50, 10).is_none());
    assert_eq!((hub.len(), hub.next_due()), (1, Some(due + 50)));
    // It counts as expired already.
    assert!(hub.touch("a", due).is_err());
    assert!(hub.expire_after(due + 49, 50, 10).is_none());
    let record = hub.expire_after(due + 50, 50, 10).unwrap();
    hub.apply(record, 1000).unwrap();
    assert_eq!((hub.len(), hub.next_due()), (0, None));
}

#[test]
fn checks_a_renewed_channel_again_at_its_new_time() {
    let mut server = server(Limits::default());
    let settings = Settings { expiry: Expiry::AfterPublish(100), ..Settings::default() };
    server.create("a", settings).unwrap();
    let due = server.now + 100;
    // Renewed just before it was due, by a record that arrives after the check.
    assert!(server.hub.expire_after(due, 1000, 10).is_none());
    server.now = due - 1;
    server.submit(Command::Renew("a".into())).unwrap();
    assert!(server.hub.expire_after(due + 98, 1000, 10).is_none());
    assert!(server.hub.touch("a", due + 98).is_ok());
    assert!(server.hub.expire_after(due + 1099, 1000, 10).is_some());
}

#[test]
fn rejects_cursors_of_previous_epoch() {
    let mut server = server(Limits::default());
    server.create("a", Settings::default()).unwrap();
    server.publish(messages(vec![draft(&["a"], "1")])).unwrap();
    let before = server.hub.watermark();
    server.hub.begin_epoch(before.epoch + 1);
    let after = server.hub.watermark();
    assert_eq!(after, Cursor { epoch: before.epoch + 1, ..before });
    let refused = server.read(&["a"], Start::After(before), GapPolicy::Allow);
    assert!(reply(refused).starts_with("this cursor is of another server's data"));
    assert!(server.read(&["a"], Start::After(after), GapPolicy::Reject).is_ok());
}

/// An event loop reads into the buffer that it already has.
#[test]
fn appends_events_and_returns_position_after_them() {
    let mut server = server(Limits::default());
    server.create("a", Settings::default()).unwrap();
    for _ in 0..5 {
        server.publish(messages(vec![draft(&["a"], "1")])).unwrap();
    }
    let (ring, mut events) = (server.hub.ring(), Vec::new());
    let begin = ring.position() - 5;
    assert_eq!(ring.read(begin, 2, &mut events), Ok(begin + 2));
    assert_eq!(ring.read(begin + 2, 2, &mut events), Ok(begin + 4));
    assert_eq!(ring.read(begin + 4, 2, &mut events), Ok(begin + 5));
    assert_eq!(events.len(), 5);
}
