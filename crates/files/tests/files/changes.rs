//! Tests that a change on disk becomes visible after one second and never before.

use std::fs::{File, FileTimes};
use std::time::Duration;

use bine_server::Clock;

use crate::client::Client;
use crate::site::TestSite;

const SECOND: Duration = Duration::from_secs(1);

#[track_caller]
fn content(client: &mut Client, expected: Option<&str>) {
    let response = client.send("GET /a.txt").map(|response| {
        assert_eq!(response.length(), Some(response.content.len()));
        String::from_utf8(response.content).expect("the test wrote text")
    });
    assert_eq!(response.as_deref(), expected);
}

#[test]
fn notices_change_after_exactly_one_second() {
    let site = TestSite::with(&[("a.txt", "old")]);
    let mut client = Client::of(&site);
    content(&mut client, Some("old"));
    site.write("a.txt", "newer");
    content(&mut client, Some("old"));
    client.clock.advance(Duration::from_millis(999));
    content(&mut client, Some("old"));
    client.clock.advance(Duration::from_millis(1));
    content(&mut client, Some("newer"));
}

#[test]
fn keeps_unchanged_file_for_another_second() {
    let site = TestSite::with(&[("a.txt", "old")]);
    let mut client = Client::of(&site);
    content(&mut client, Some("old"));
    client.clock.advance(SECOND);
    content(&mut client, Some("old"));
    site.write("a.txt", "newer");
    content(&mut client, Some("old"));
    client.clock.advance(SECOND);
    content(&mut client, Some("newer"));
}

#[test]
fn rechecks_file_when_clock_is_set_back() {
    let site = TestSite::with(&[("a.txt", "old")]);
    let mut client = Client::of(&site);
    content(&mut client, Some("old"));
    site.write("a.txt", "newer");
    client.clock = Clock::told(client.clock.unix() - 3600);
    content(&mut client, Some("newer"));
}

#[test]
fn notices_replaced_file() {
    let site = TestSite::with(&[("a.txt", "old")]);
    let mut client = Client::of(&site);
    content(&mut client, Some("old"));
    // The same length and the same modification time as the old file.
    let time = site.at("a.txt").metadata().and_then(|old| old.modified()).expect("it is there");
    site.replace("a.txt", "new");
    let file = File::options().write(true).open(site.at("a.txt")).expect("it is there");
    file.set_times(FileTimes::new().set_modified(time)).expect("it is ours");
    client.clock.advance(SECOND);
    content(&mut client, Some("new"));
}

/// Two writes within one tick of the kernel can have the same times, so a file that was read right
/// after a write is read again regardless of its times.
#[test]
fn notices_second_write_within_one_tick() {
    let site = TestSite::with(&[("a.txt", "one")]);
    let mut client = Client::of(&site);
    // An earlier time, at which the file has not settled.
    client.clock = Clock::told(1_000_000_000);
    for written in ["two", "new", "six", "ten"] {
        site.write("a.txt", written);
        content(&mut client, Some(written));
        client.clock.advance(SECOND);
    }
}

#[test]
fn notices_removed_file_after_a_second() {
    let site = TestSite::with(&[("a.txt", "old")]);
    let mut client = Client::of(&site);
    content(&mut client, Some("old"));
    site.remove("a.txt");
    content(&mut client, Some("old"));
    client.clock.advance(SECOND);
    content(&mut client, None);
    site.write("a.txt", "again");
    content(&mut client, Some("again"));
}

#[test]
fn serves_file_that_grows_and_shrinks() {
    let site = TestSite::with(&[("a.txt", "small")]);
    let mut client = Client::of(&site);
    let large = "large ".repeat(10_000);
    for written in ["small", &large, "small", &large, ""] {
        site.write("a.txt", written);
        content(&mut client, Some(written));
        content(&mut client, Some(written));
        client.clock.advance(SECOND);
    }
}

#[test]
fn reopens_large_file_after_a_second() {
    let site = TestSite::new();
    let (old, new) = ("o".repeat(40_000), "n".repeat(40_000));
    site.write("a.txt", &old);
    let mut client = Client::of(&site);
    content(&mut client, Some(&old));
    site.replace("a.txt", &new);
    content(&mut client, Some(&old));
    client.clock.advance(SECOND);
    content(&mut client, Some(&new));
    site.remove("a.txt");
    content(&mut client, Some(&new));
    client.clock.advance(SECOND);
    content(&mut client, None);
}

#[test]
fn notices_file_replaced_by_directory() {
    let site = TestSite::with(&[("a.txt", "old")]);
    let mut client = Client::of(&site);
    content(&mut client, Some("old"));
    site.remove("a.txt");
    site.write("a.txt/index.html", "index");
    client.clock.advance(SECOND);
    let response = client.send("GET /a.txt").expect("the directory is there");
    assert_eq!(response.field("Location"), Some("/a.txt/"));
}

#[test]
fn notices_retargeted_link() {
    let site = TestSite::with(&[("one.txt", "one"), ("two.txt", "two")]);
    site.link("one.txt", "a.txt");
    let mut client = Client::of(&site);
    content(&mut client, Some("one"));
    site.remove("a.txt");
    site.link("two.txt", "a.txt");
    client.clock.advance(SECOND);
    content(&mut client, Some("two"));
}
