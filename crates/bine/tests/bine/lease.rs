//! Claims about the life of a channel over HTTP: it is made with or without a name, renewed, closed, and goes by itself;
//! its messages stay as long as was said.

use std::time::Instant;

use crate::channels::start;
use crate::durable::{ask, check};
use crate::harness::{Folder, PATIENCE, Peer, Reply};

const TEXT: &str = "Content-Type: text/plain\r\n";

/// The value of a text of that name in JSON.
#[track_caller]
fn member(reply: &Reply, name: &str) -> String {
    let found = reply.text().split_once(&format!("\"{name}\":\""));
    let (_, behind) = found.unwrap_or_else(|| panic!("no {name} in {reply:?}"));
    behind.split_once('"').unwrap().0.to_owned()
}

/// Asks until the answer is as it should be, which it will be by time alone.
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
fn a_channel_without_a_name_gets_one_and_is_renewed_and_closed_by_it() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let fields = format!("{TEXT}Stream-TTL: 60\r\n");
    let made = check(&mut peer, ("POST", "", &fields, "first"), 201);
    let (name, end) = (member(&made, "channel"), member(&made, "expires"));
    assert_eq!(made.field("Location"), Some(&*format!("http://a/channels/{name}")));
    assert_eq!(made.field("Stream-TTL-Of"), Some("publishers"));
    let other = check(&mut peer, ("POST", "", &fields, ""), 201);
    assert!(name.len() >= 20 && member(&other, "channel") != name);
    assert_eq!(check(&mut peer, ("GET", &name, "", ""), 200).text(), "first");
    // Renewed, it goes no sooner; with another time, at that; with a moment, then.
    let renewed = check(&mut peer, ("PATCH", &name, "", ""), 200);
    assert!(member(&renewed, "expires") >= end);
    let renewed = check(&mut peer, ("PATCH", &name, "Stream-TTL: 3600\r\n", ""), 200);
    assert!(member(&renewed, "expires") > end);
    assert_eq!(renewed.field("Stream-TTL"), Some("3600"));
    assert_eq!(renewed.field("Stream-TTL-Of"), Some("publishers"));
    let at = "2100-01-01T00:00:00.000Z";
    let moment = format!("Stream-Expires-At: {at}\r\n");
    let renewed = check(&mut peer, ("PATCH", &name, &moment, ""), 200);
    assert_eq!((&*member(&renewed, "expires"), &*member(&renewed, "channel")), (at, &*name));
    check(&mut peer, ("POST", &name, "Stream-Closed: true\r\n", ""), 204);
    check(&mut peer, ("POST", &name, TEXT, "late"), 409);
    check(&mut peer, ("DELETE", &name, "", ""), 204);
    check(&mut peer, ("PATCH", &name, "", ""), 404);
    // Nothing said is a day.
    let made = check(&mut peer, ("POST", "", "", ""), 201);
    assert_eq!(made.field("Stream-TTL"), Some("86400"));
    // What was made to stay has no end.
    check(&mut peer, ("PUT", "stays", TEXT, ""), 201);
    let renewed = check(&mut peer, ("PATCH", "stays", "", ""), 200);
    assert_eq!(renewed.text(), "{\"channel\":\"stays\",\"expires\":null}\n");
}

#[test]
fn what_a_life_cannot_be_is_refused_with_what_it_can() {
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
fn readers_do_not_keep_a_channel_whose_time_is_its_publishers() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let fields = format!("{TEXT}Stream-TTL: 1\r\nStream-TTL-Of: publishers\r\n");
    // One that a busy machine renews too late has gone.
    let renewed = (0..20).any(|_| {
        check(&mut peer, ("PUT", "moved", &fields, "one"), 201);
        let renewed = ask(&mut peer, "PATCH", "moved", "Stream-TTL: 60\r\n", "");
        assert!(matches!(renewed.status(), 200 | 404), "{renewed:?}");
        renewed.status() == 200
    });
    assert!(renewed, "none is renewed within its second");
    check(&mut peer, ("PUT", "brief", &fields, "one"), 201);
    check(&mut peer, ("PUT", "long", &format!("{TEXT}Stream-TTL: 60\r\n"), "one"), 201);
    // It was made behind the one that is renewed: when it has gone, that one had, but for this.
    await_reply(&mut peer, "brief", |reply| reply.status() == 404);
    assert_eq!(check(&mut peer, ("GET", "long", "", ""), 200).text(), "one");
    assert_eq!(check(&mut peer, ("GET", "moved", "", ""), 200).text(), "one");
}

#[test]
fn messages_stay_for_the_time_and_in_the_number_that_were_set() {
    let program = start(&["--data", "memory"]);
    let mut peer = program.connect();
    let retained = |limits: &str| format!("{TEXT}Stream-Retention: {limits}\r\n");
    for (name, limits) in
        [("brief", "age=1"), ("few", "messages=2, age=3600"), ("small", "bytes=200")]
    {
        check(&mut peer, ("PUT", name, &retained(limits), ""), 201);
        let told = check(&mut peer, ("HEAD", name, "", ""), 200);
        assert_eq!(told.field("Stream-Retention"), Some(limits));
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
    // What is gone is not passed over in silence.
    let offset = beginning.field("Stream-Next-Offset").unwrap();
    check(&mut peer, ("GET", &format!("few?offset={offset}"), "", ""), 410);
}

#[test]
fn a_kill_forgets_neither_a_new_end_nor_what_stays() {
    let folder = Folder::new();
    let data = folder.join("data");
    let options = ["--data", data.to_str().unwrap()];
    let program = start(&options);
    let mut peer = program.connect();
    let fields = format!("{TEXT}Stream-Retention: messages=2\r\nStream-Durability: interval\r\n");
    let made = check(&mut peer, ("POST", "", &fields, "one"), 201);
    let name = member(&made, "channel");
    let renewed = check(
        &mut peer,
        ("PATCH", &name, "Stream-TTL: 7200\r\nStream-TTL-Of: everybody\r\n", ""),
        200,
    );
    // Behind it everything is on the disk.
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
        assert_eq!(told.field(field), value, "{field}");
    }
    let again = check(&mut peer, ("PATCH", &name, "", ""), 200);
    assert!(member(&again, "expires") >= member(&renewed, "expires"));
}
