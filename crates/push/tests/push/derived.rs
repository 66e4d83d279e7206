//! Publications that follow from other records, and the channels of a record.

use bine_push::{Applied, ChannelName, Command, Limits, Preparation, Settings};

use crate::hub::{Server, draft, messages, server};

/// Two replicas with the channels `a` and `b`.
fn replicas() -> [Server; 2] {
    let create = |_| {
        let mut server = server(Limits::default());
        for name in ["a", "b"] {
            server.create(name, Settings::default()).unwrap();
        }
        server
    };
    [1, 2].map(create)
}

#[test]
fn replicas_derive_the_same_messages_from_a_record() {
    let mut replicas = replicas();
    let publish = messages(vec![draft(&["a"], "1"), draft(&["missing"], "2"), draft(&["b"], "3")]);
    for Server { hub, .. } in &mut replicas {
        let applied = hub.derive(publish.clone(), 2000, 9).unwrap();
        let Applied::Published(published) = applied else { panic!("{applied:?}") };
        assert_eq!(published.messages.len(), 2);
        assert!(hub.derive(publish.clone(), 2000, 9).is_err(), "the number is used");
        let nowhere = messages(vec![draft(&["missing"], "2")]);
        assert!(hub.derive(nowhere, 2000, 10).is_err());
        assert!(hub.derive(publish.clone(), 2001, 10).is_ok());
    }
    let [one, other] = &replicas;
    let blocks = |server: &Server| server.hub.snapshot().collect::<Vec<_>>();
    assert_eq!(blocks(one), blocks(other));
}

#[test]
fn names_the_channels_of_a_record() {
    let [Server { mut hub, now, .. }, _] = replicas();
    let name = ChannelName::Given("c".into());
    let (settings, fork, first) = (Settings::default(), None, Vec::new());
    let create = Command::Create { name, settings, fork, first, is_closed: false };
    let publish = Command::Publish(messages(vec![draft(&["a"], "1"), draft(&["b"], "2")]));
    for (command, expected) in [
        (create, &["c"][..]),
        (publish, &["a", "b"]),
        (Command::Renew("b".into()), &["b"]),
        (Command::Remove("a".into()), &["a"]),
    ] {
        let Ok(Preparation::Record(prepared)) = hub.prepare(command, now) else {
            panic!("the command is valid");
        };
        let mut record = Vec::new();
        prepared.write(&mut record);
        let names: Vec<String> = hub.changed_by(&record).iter().map(ToString::to_string).collect();
        assert_eq!(names, expected);
    }
    assert!(hub.changed_by(b"no record").is_empty());
}
