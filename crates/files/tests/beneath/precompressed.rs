//! Decides who gets the packed form of a file that lies beside it.

use std::fs::{File, FileTimes};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bine_files::{Files, Root, Rules};
use bine_pipeline::Clock;

use crate::asking::{Asker, NOW, Told};
use crate::place::Place;

fn hear(asker: &mut Asker, path: &str, fields: &[(&str, &str)]) -> Told {
    asker.hear_with(&format!("GET {path}"), fields).expect("it is there")
}

/// What encoding an answer has, whether it says that there are others, and its content.
fn told(asker: &mut Asker, path: &str, accepted: &str) -> (Option<String>, bool, String) {
    let told = hear(asker, path, &[("Accept-Encoding", accepted)]);
    let varies = told.field("Vary") == Some("Accept-Encoding");
    let coding = told.field("Content-Encoding").map(str::to_owned);
    assert_eq!(told.field("Content-Type"), Some("text/css; charset=utf-8"), "{accepted}");
    (coding, varies, String::from_utf8_lossy(&told.content).into_owned())
}

fn expected(coding: &str, content: &str) -> (Option<String>, bool, String) {
    let coding = (!coding.is_empty()).then(|| coding.to_owned());
    (coding, true, content.to_owned())
}

#[test]
fn a_peer_gets_the_form_it_takes() {
    let place = Place::with(&[
        ("a.css", "plain"),
        ("a.css.br", "b"),
        ("a.css.gz", "gz"),
        ("a.css.zst", "zs"),
    ]);
    let mut asker = Asker::of(&place);
    for (accepted, coding, content) in [
        ("gzip, br, zstd", "br", "b"),
        ("gzip, zstd", "zstd", "zs"),
        ("gzip", "gzip", "gz"),
        ("gzip, br;q=0.5", "gzip", "gz"),
        ("deflate", "", "plain"),
        ("identity;q=1, gzip;q=0.5", "", "plain"),
    ] {
        // The second time from memory.
        for _ in 0..2 {
            assert_eq!(
                told(&mut asker, "/a.css", accepted),
                expected(coding, content),
                "{accepted}"
            );
        }
    }
    let plain = hear(&mut asker, "/a.css", &[]);
    assert_eq!((plain.field("Vary"), &*plain.content), (Some("Accept-Encoding"), &b"plain"[..]));
}

#[test]
fn a_file_without_other_forms_says_nothing_of_any() {
    let place = Place::with(&[("a.css", "plain")]);
    let told = hear(&mut Asker::of(&place), "/a.css", &[("Accept-Encoding", "gzip")]);
    assert_eq!((told.field("Vary"), told.field("Content-Encoding")), (None, None));
}

#[test]
fn each_form_has_its_own_tag_and_is_confirmed_by_it() {
    let place = Place::with(&[("a.css", "plain"), ("a.css.gz", "gz")]);
    let mut asker = Asker::of(&place);
    let gzip = [("Accept-Encoding", "gzip")];
    let plain = hear(&mut asker, "/a.css", &[]).field("ETag").expect("a tag").to_owned();
    let packed = hear(&mut asker, "/a.css", &gzip).field("ETag").expect("a tag").to_owned();
    assert_ne!(plain, packed);
    let again = hear(&mut asker, "/a.css", &[gzip[0], ("If-None-Match", &packed)]);
    assert!(again.head.starts_with("HTTP/1.1 304 "), "{}", again.head);
    assert_eq!(
        (again.field("Vary"), again.field("ETag")),
        (Some("Accept-Encoding"), Some(&*packed))
    );
    let other = hear(&mut asker, "/a.css", &[gzip[0], ("If-None-Match", &plain)]);
    assert!(other.head.starts_with("HTTP/1.1 200 "), "{}", other.head);
}

#[test]
fn a_range_is_one_of_the_form_that_is_sent() {
    let place = Place::with(&[("a.css", "plain"), ("a.css.gz", "0123456")]);
    let fields = [("Accept-Encoding", "gzip"), ("Range", "bytes=1-3")];
    let told = hear(&mut Asker::of(&place), "/a.css", &fields);
    assert_eq!((told.field("Content-Range"), &*told.content), (Some("bytes 1-3/7"), &b"123"[..]));
    assert_eq!(told.field("Content-Encoding"), Some("gzip"));
}

#[test]
fn an_index_has_its_forms_too_and_a_form_by_its_own_name_is_a_file() {
    let place = Place::with(&[("d/index.html", "plain"), ("d/index.html.gz", "gz")]);
    let mut asker = Asker::of(&place);
    let told = hear(&mut asker, "/d/", &[("Accept-Encoding", "gzip")]);
    assert_eq!((told.field("Content-Encoding"), &*told.content), (Some("gzip"), &b"gz"[..]));
    let own = hear(&mut asker, "/d/index.html.gz", &[("Accept-Encoding", "gzip")]);
    assert_eq!(
        (own.field("Content-Encoding"), own.field("Content-Type")),
        (None, Some("application/gzip"))
    );
}

#[test]
fn a_form_older_than_its_file_is_a_form_of_another() {
    let place = Place::with(&[("a.css", "plain"), ("a.css.gz", "old")]);
    let long_ago = SystemTime::now() - Duration::from_hours(1);
    let old = File::options().write(true).open(place.at("a.css.gz")).expect("it was written");
    old.set_times(FileTimes::new().set_modified(long_ago)).expect("it is ours");
    let told = hear(&mut Asker::of(&place), "/a.css", &[("Accept-Encoding", "gzip")]);
    assert_eq!((told.field("Content-Encoding"), told.field("Vary")), (None, None));
}

#[test]
fn forms_that_come_and_go_are_seen_within_a_second() {
    let place = Place::with(&[("a.css", "plain")]);
    let mut asker = Asker::of(&place);
    assert_eq!(told(&mut asker, "/a.css", "gzip"), (None, false, "plain".into()));
    place.write("a.css.gz", "gz");
    asker.clock = Clock::told(NOW + 1);
    assert_eq!(told(&mut asker, "/a.css", "gzip"), expected("gzip", "gz"));
    std::fs::remove_file(place.at("a.css.gz")).expect("it was written");
    asker.clock = Clock::told(NOW + 2);
    assert_eq!(told(&mut asker, "/a.css", "gzip"), (None, false, "plain".into()));
}

#[test]
fn a_long_form_is_sent_from_the_disk() {
    let long = "x".repeat(100_000);
    let place = Place::with(&[("a.css", "plain"), ("a.css.gz", &long)]);
    let mut asker = Asker::of(&place);
    let packed = hear(&mut asker, "/a.css", &[("Accept-Encoding", "gzip")]);
    assert!(packed.as_file && packed.content.len() == 100_000);
    assert_eq!(told(&mut asker, "/a.css", ""), expected("", "plain"));
}

#[test]
fn where_that_is_not_wanted_every_file_stands_for_itself() {
    let place = Place::with(&[("a.css", "plain"), ("a.css.gz", "gz")]);
    let rules = Rules { precompressed: false, ..Rules::default() };
    let root = Root::open(&place.site()).expect("the place has a root");
    let files = Files::new(Arc::new(root), Arc::new(rules));
    let mut asker = Asker { files, clock: Clock::told(NOW) };
    assert_eq!(told(&mut asker, "/a.css", "gzip"), (None, false, "plain".into()));
}
