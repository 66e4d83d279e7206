//! Decides when a change on the disk is seen: never within a second of the last look, always after it.

use std::fs::{File, FileTimes};
use std::time::Duration;

use bine_pipeline::Clock;

use crate::asking::Asker;
use crate::place::Place;

const SECOND: Duration = Duration::from_secs(1);

#[track_caller]
fn content(asker: &mut Asker, expected: Option<&str>) {
    let told = asker.hear("GET /a.txt").map(|told| {
        assert_eq!(told.length(), Some(told.content.len()));
        String::from_utf8(told.content).expect("the test wrote text")
    });
    assert_eq!(told.as_deref(), expected);
}

#[test]
fn a_change_is_seen_after_a_second_and_not_before() {
    let place = Place::with(&[("a.txt", "old")]);
    let mut asker = Asker::of(&place);
    content(&mut asker, Some("old"));
    place.write("a.txt", "newer");
    content(&mut asker, Some("old"));
    asker.clock.advance(Duration::from_millis(999));
    content(&mut asker, Some("old"));
    asker.clock.advance(Duration::from_millis(1));
    content(&mut asker, Some("newer"));
}

#[test]
fn what_did_not_change_stays_for_another_second() {
    let place = Place::with(&[("a.txt", "old")]);
    let mut asker = Asker::of(&place);
    content(&mut asker, Some("old"));
    asker.clock.advance(SECOND);
    content(&mut asker, Some("old"));
    place.write("a.txt", "newer");
    content(&mut asker, Some("old"));
    asker.clock.advance(SECOND);
    content(&mut asker, Some("newer"));
}

#[test]
fn a_clock_set_back_makes_nothing_fresh() {
    let place = Place::with(&[("a.txt", "old")]);
    let mut asker = Asker::of(&place);
    content(&mut asker, Some("old"));
    place.write("a.txt", "newer");
    asker.clock = Clock::told(asker.clock.unix() - 3600);
    content(&mut asker, Some("newer"));
}

#[test]
fn a_file_replaced_by_another_is_noticed() {
    let place = Place::with(&[("a.txt", "old")]);
    let mut asker = Asker::of(&place);
    content(&mut asker, Some("old"));
    // As long as the old one, with its time.
    let time = place.at("a.txt").metadata().and_then(|old| old.modified()).expect("it is there");
    place.replace("a.txt", "new");
    let file = File::options().write(true).open(place.at("a.txt")).expect("it is there");
    file.set_times(FileTimes::new().set_modified(time)).expect("it is ours");
    asker.clock.advance(SECOND);
    content(&mut asker, Some("new"));
}

/// Two writes within one tick of the kernel can leave the same times. So what was read right after
/// a write is read again, whatever its times say.
#[test]
fn a_second_write_in_the_same_moment_is_noticed() {
    let place = Place::with(&[("a.txt", "one")]);
    let mut asker = Asker::of(&place);
    // Before the write, so that to this clock it has not settled.
    asker.clock = Clock::told(1_000_000_000);
    for written in ["two", "new", "six", "ten"] {
        place.write("a.txt", written);
        content(&mut asker, Some(written));
        asker.clock.advance(SECOND);
    }
}

#[test]
fn a_removed_file_is_gone_after_a_second() {
    let place = Place::with(&[("a.txt", "old")]);
    let mut asker = Asker::of(&place);
    content(&mut asker, Some("old"));
    place.remove("a.txt");
    content(&mut asker, Some("old"));
    asker.clock.advance(SECOND);
    content(&mut asker, None);
    place.write("a.txt", "again");
    content(&mut asker, Some("again"));
}

#[test]
fn a_file_may_grow_large_and_small_again() {
    let place = Place::with(&[("a.txt", "small")]);
    let mut asker = Asker::of(&place);
    let large = "large ".repeat(10_000);
    for written in ["small", &large, "small", &large, ""] {
        place.write("a.txt", written);
        content(&mut asker, Some(written));
        content(&mut asker, Some(written));
        asker.clock.advance(SECOND);
    }
}

#[test]
fn a_large_file_is_opened_anew_after_a_second() {
    let place = Place::new();
    let (old, new) = ("o".repeat(40_000), "n".repeat(40_000));
    place.write("a.txt", &old);
    let mut asker = Asker::of(&place);
    content(&mut asker, Some(&old));
    place.replace("a.txt", &new);
    content(&mut asker, Some(&old));
    asker.clock.advance(SECOND);
    content(&mut asker, Some(&new));
    place.remove("a.txt");
    content(&mut asker, Some(&new));
    asker.clock.advance(SECOND);
    content(&mut asker, None);
}

#[test]
fn a_file_may_become_a_directory() {
    let place = Place::with(&[("a.txt", "old")]);
    let mut asker = Asker::of(&place);
    content(&mut asker, Some("old"));
    place.remove("a.txt");
    place.write("a.txt/index.html", "index");
    asker.clock.advance(SECOND);
    let told = asker.hear("GET /a.txt").expect("the directory is there");
    assert_eq!(told.field("Location"), Some("/a.txt/"));
}

#[test]
fn a_link_that_leads_elsewhere_is_followed_there() {
    let place = Place::with(&[("one.txt", "one"), ("two.txt", "two")]);
    place.link("one.txt", "a.txt");
    let mut asker = Asker::of(&place);
    content(&mut asker, Some("one"));
    place.remove("a.txt");
    place.link("two.txt", "a.txt");
    asker.clock.advance(SECOND);
    content(&mut asker, Some("two"));
}
