//! The life of a channel over HTTP: creation with or without a name, renewal, closing, expiry, and
//! retention of messages.

use std::time::Instant;

use crate::channels::start;
use crate::durable::{ask, check};
use crate::harness::{Folder, PATIENCE, Peer, Reply, member};

const TEXT: &str = "Content-Type: text/plain\r\n";

/// Repeats the request until the reply meets the condition, which time alone brings about.
#[track_caller]
fn await_reply(peer: &mut Peer, target: &str, is_due: impl Fn(&Reply) -> bool) -> Reply {
    let begin = Instant::now();
    loop {
        let reply = ask(peer, "GET", target, "", "");
        if is_due(&reply) {
            return reply;
        }
        assert!(begin.elapsed() < PATIENCE, "{reply:?}");
    }
}

#[test]
fn creates_renews_and_closes_channel_without_name() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let fields = format!("{TEXT}Stream-TTL: 60\r\n");
    let made = check(&mut peer, ("POST", "", &fields, "first"), 201);
    let (name, end) = (member(made.text(), "channel"), member(made.text(), "expires"));
    assert_eq!(made.header("Location"), Some(&*format!("http://a/channels/{name}")));
    assert_eq!(made.header("Stream-TTL-Of"), Some("publishers"));
    let other = check(&mut peer, ("POST", "", &fields, ""), 201);
    assert!(name.len() >= 20 && member(other.text(), "channel") != name);
    assert_eq!(check(&mut peer, ("GET", &name, "", ""), 200).text(), "first");
    // A renewal never shortens the life; a new TTL or expiry date replaces the old one.
    let renewed = check(&mut peer, ("PATCH", &name, "", ""), 200);
    assert!(member(renewed.text(), "expires") >= end);
    let renewed = check(&mut peer, ("PATCH", &name, "Stream-TTL: 3600\r\n", ""), 200);
    assert!(member(renewed.text(), "expires") > end);
    assert_eq!(renewed.header("Stream-TTL"), Some("3600"));
    assert_eq!(renewed.header("Stream-TTL-Of"), Some("publishers"));
    let at = "2100-01-01T00:00:00.000Z";
    let moment = format!("Stream-Expires-At: {at}\r\n");
    let renewed = check(&mut peer, ("PATCH", &name, &moment, ""), 200);
    assert_eq!(
        (&*member(renewed.text(), "expires"), &*member(renewed.text(), "channel")),
        (at, &*name)
    );
    check(&mut peer, ("POST", &name, "Stream-Closed: true\r\n", ""), 204);
    check(&mut peer, ("POST", &name, TEXT, "late"), 409);
    check(&mut peer, ("DELETE", &name, "", ""), 204);
    check(&mut peer, ("PATCH", &name, "", ""), 404);
    // The default TTL is one day.
    let made = check(&mut peer, ("POST", "", "", ""), 201);
    assert_eq!(made.header("Stream-TTL"), Some("86400"));
    // A channel created without a lifetime never expires.
    check(&mut peer, ("PUT", "stays", TEXT, ""), 201);
    let renewed = check(&mut peer, ("PATCH", "stays", "", ""), 200);
    assert_eq!(renewed.text(), "{\"channel\":\"stays\",\"expires\":null}\n");
}

#[test]
fn rejects_invalid_lifetime_and_lists_valid_ones() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    check(&mut peer, ("PUT", "a", TEXT, ""), 201);
    for (fields, told) in [
        ("Stream-TTL: soon\r\n", "a number of seconds"),
        ("Stream-TTL: 1\r\nStream-Expires-At: 2100-01-01T00:00:00Z\r\n", "not both"),
        ("Stream-TTL-Of: publishers\r\n", "goes with Stream-TTL"),
        ("Stream-TTL: 1\r\nStream-TTL-Of: nobody\r\n", "publishers or everybody"),
    ] {
        for (method, target) in [("PUT", "b"), ("POST", ""), ("PATCH", "a")] {
            let reply = check(&mut peer, (method, target, fields, ""), 400);
            assert!(reply.text().contains(told), "{method} {fields}: {}", reply.text());
        }
    }
    for (fields, told) in [
        ("Stream-Retention: forever\r\n", "messages=1000"),
        ("Stream-Retention: messages=0\r\n", "messages=1000"),
        ("Stream-Retention: age=1h\r\n", "messages=1000"),
        ("Stream-Retention: count=1\r\n", "messages=1000"),
        ("Stream-Durability: strong\r\n", "memory, interval or commit"),
    ] {
        for (method, target) in [("PUT", "b"), ("POST", "")] {
            let reply = check(&mut peer, (method, target, fields, ""), 400);
            assert!(reply.text().contains(told), "{method} {fields}: {}", reply.text());
        }
    }
    check(&mut peer, ("POST", "", "Stream-Forked-From: /channels/a\r\n", ""), 400);
    check(&mut peer, ("HEAD", "", "", ""), 404);
}

#[test]
fn readers_do_not_extend_ttl_of_publishers() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let fields = format!("{TEXT}Stream-TTL: 1\r\nStream-TTL-Of: publishers\r\n");
    // On a busy machine the channel may expire before the renewal.
    let renewed = (0..20).any(|_| {
        check(&mut peer, ("PUT", "moved", &fields, "one"), 201);
        let renewed = ask(&mut peer, "PATCH", "moved", "Stream-TTL: 60\r\n", "");
        assert!(matches!(renewed.status(), 200 | 404), "{renewed:?}");
        renewed.status() == 200
    });
    assert!(renewed, "no renewal arrived within a second");
    check(&mut peer, ("PUT", "brief", &fields, "one"), 201);
    check(&mut peer, ("PUT", "long", &format!("{TEXT}Stream-TTL: 60\r\n"), "one"), 201);
    // `brief` was created after `moved`: without the renewal, `moved` would have expired before it.
    await_reply(&mut peer, "brief", |reply| reply.status() == 404);
    assert_eq!(check(&mut peer, ("GET", "long", "", ""), 200).text(), "one");
    assert_eq!(check(&mut peer, ("GET", "moved", "", ""), 200).text(), "one");
}

#[test]
fn retains_messages_by_age_number_and_size() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let retained = |limits: &str| format!("{TEXT}Stream-Retention: {limits}\r\n");
    for (name, limits) in
        [("brief", "age=1"), ("few", "messages=2, age=3600"), ("small", "bytes=200")]
    {
        check(&mut peer, ("PUT", name, &retained(limits), ""), 201);
        let told = check(&mut peer, ("HEAD", name, "", ""), 200);
        assert_eq!(told.header("Stream-Retention"), Some(limits));
        check(&mut peer, ("PUT", name, &retained(limits), ""), 200);
        check(&mut peer, ("PUT", name, &retained("messages=7"), ""), 409);
    }
    check(&mut peer, ("PUT", "all", TEXT, ""), 201);
    let (word, beginning) = ("word ".repeat(10), ask(&mut peer, "HEAD", "few", "", ""));
    for _ in 0..5 {
        for name in ["brief", "few", "small", "all"] {
            check(&mut peer, ("POST", name, TEXT, &word), 204);
        }
    }
    let words = |reply: &Reply| reply.text().matches("word").count() / 10;
    await_reply(&mut peer, "brief", |reply| reply.text().is_empty());
    assert_eq!(words(&ask(&mut peer, "GET", "few", "", "")), 2);
    let small = words(&ask(&mut peer, "GET", "small", "", ""));
    assert!((1..5).contains(&small), "{small}");
    assert_eq!(words(&ask(&mut peer, "GET", "all", "", "")), 5);
    // A request for messages that were removed is an error.
    let offset = beginning.header("Stream-Next-Offset").unwrap();
    check(&mut peer, ("GET", &format!("few?offset={offset}"), "", ""), 410);
}

#[test]
fn expiry_and_retention_survive_a_kill() {
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let program = start(&options);
    let mut peer = program.connect();
    let fields = format!("{TEXT}Stream-Retention: messages=2\r\nStream-Durability: interval\r\n");
    let made = check(&mut peer, ("POST", "", &fields, "one"), 201);
    let name = member(made.text(), "channel");
    let renewed = check(
        &mut peer,
        ("PATCH", &name, "Stream-TTL: 7200\r\nStream-TTL-Of: everybody\r\n", ""),
        200,
    );
    // After this commit everything before it is on the disk.
    check(&mut peer, ("PUT", "whole", TEXT, ""), 201);
    program.kill();
    let program = start(&options);
    let mut peer = program.connect();
    let told = check(&mut peer, ("HEAD", &name, "", ""), 200);
    for (field, value) in [
        ("Stream-TTL", Some("7200")),
        ("Stream-TTL-Of", None),
        ("Stream-Retention", Some("messages=2")),
        ("Stream-Durability", Some("interval")),
    ] {
        assert_eq!(told.header(field), value, "{field}");
    }
    let again = check(&mut peer, ("PATCH", &name, "", ""), 200);
    assert!(member(again.text(), "expires") >= member(renewed.text(), "expires"));
}
