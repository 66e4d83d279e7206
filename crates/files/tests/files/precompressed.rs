//! Tests of precompressed files.

use std::fs::{File, FileTimes};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bine_files::{Files, Root, Rules};
use bine_server::Clock;

use crate::client::{Client, NOW, Response};
use crate::site::TestSite;

fn send(client: &mut Client, path: &str, fields: &[(&str, &str)]) -> Response {
    client.send_with(&format!("GET {path}"), fields).expect("it is there")
}

/// Returns the response's encoding, whether it varies by Accept-Encoding, and its content.
fn response(client: &mut Client, path: &str, accepted: &str) -> (Option<String>, bool, String) {
    let response = send(client, path, &[("Accept-Encoding", accepted)]);
    let varies = response.field("Vary") == Some("Accept-Encoding");
    let coding = response.field("Content-Encoding").map(str::to_owned);
    assert_eq!(response.field("Content-Type"), Some("text/css; charset=utf-8"), "{accepted}");
    (coding, varies, String::from_utf8_lossy(&response.content).into_owned())
}

fn expected(coding: &str, content: &str) -> (Option<String>, bool, String) {
    let coding = (!coding.is_empty()).then(|| coding.to_owned());
    (coding, true, content.to_owned())
}

#[test]
fn sends_accepted_encoding() {
    let site = TestSite::with(&[
        ("a.css", "plain"),
        ("a.css.br", "b"),
        ("a.css.gz", "gz"),
        ("a.css.zst", "zs"),
    ]);
    let mut client = Client::of(&site);
    for (accepted, coding, content) in [
        ("gzip, br, zstd", "br", "b"),
        ("gzip, zstd", "zstd", "zs"),
        ("gzip", "gzip", "gz"),
        ("gzip, br;q=0.5", "gzip", "gz"),
        ("deflate", "", "plain"),
        ("identity;q=1, gzip;q=0.5", "", "plain"),
    ] {
        // The second response is from memory.
        for _ in 0..2 {
            assert_eq!(
                response(&mut client, "/a.css", accepted),
                expected(coding, content),
                "{accepted}"
            );
        }
    }
    let plain = send(&mut client, "/a.css", &[]);
    assert_eq!((plain.field("Vary"), &*plain.content), (Some("Accept-Encoding"), &b"plain"[..]));
}

#[test]
fn omits_vary_without_precompressed_files() {
    let site = TestSite::with(&[("a.css", "plain")]);
    let response = send(&mut Client::of(&site), "/a.css", &[("Accept-Encoding", "gzip")]);
    assert_eq!((response.field("Vary"), response.field("Content-Encoding")), (None, None));
}

#[test]
fn gives_each_encoding_its_own_etag() {
    let site = TestSite::with(&[("a.css", "plain"), ("a.css.gz", "gz")]);
    let mut client = Client::of(&site);
    let gzip = [("Accept-Encoding", "gzip")];
    let plain = send(&mut client, "/a.css", &[]).field("ETag").expect("a tag").to_owned();
    let packed = send(&mut client, "/a.css", &gzip).field("ETag").expect("a tag").to_owned();
    assert_ne!(plain, packed);
    let again = send(&mut client, "/a.css", &[gzip[0], ("If-None-Match", &packed)]);
    assert!(again.head.starts_with("HTTP/1.1 304 "), "{}", again.head);
    assert_eq!(
        (again.field("Vary"), again.field("ETag")),
        (Some("Accept-Encoding"), Some(&*packed))
    );
    let other = send(&mut client, "/a.css", &[gzip[0], ("If-None-Match", &plain)]);
    assert!(other.head.starts_with("HTTP/1.1 200 "), "{}", other.head);
}

#[test]
fn applies_range_to_encoded_content() {
    let site = TestSite::with(&[("a.css", "plain"), ("a.css.gz", "0123456")]);
    let fields = [("Accept-Encoding", "gzip"), ("Range", "bytes=1-3")];
    let response = send(&mut Client::of(&site), "/a.css", &fields);
    assert_eq!(
        (response.field("Content-Range"), &*response.content),
        (Some("bytes 1-3/7"), &b"123"[..])
    );
    assert_eq!(response.field("Content-Encoding"), Some("gzip"));
}

#[test]
fn names_encoding_of_several_ranges() {
    let site = TestSite::with(&[("a.css", "plain"), ("a.css.gz", "0123456789")]);
    let fields = [("Accept-Encoding", "gzip"), ("Range", "bytes=0-1, -2")];
    let mut client = Client::of(&site);
    let encoded = send(&mut client, "/a.css", &fields);
    assert!(encoded.head.starts_with("HTTP/1.1 206 "), "{}", encoded.head);
    assert_eq!(encoded.field("Content-Encoding"), Some("gzip"));
    let plain = send(&mut client, "/a.css", &fields[1..]);
    assert_eq!(plain.field("Content-Encoding"), None);
}

#[test]
fn serves_precompressed_index_and_direct_requests_for_it() {
    let site = TestSite::with(&[("d/index.html", "plain"), ("d/index.html.gz", "gz")]);
    let mut client = Client::of(&site);
    let response = send(&mut client, "/d/", &[("Accept-Encoding", "gzip")]);
    assert_eq!(
        (response.field("Content-Encoding"), &*response.content),
        (Some("gzip"), &b"gz"[..])
    );
    let own = send(&mut client, "/d/index.html.gz", &[("Accept-Encoding", "gzip")]);
    assert_eq!(
        (own.field("Content-Encoding"), own.field("Content-Type")),
        (None, Some("application/gzip"))
    );
}

#[test]
fn ignores_precompressed_file_older_than_original() {
    let site = TestSite::with(&[("a.css", "plain"), ("a.css.gz", "old")]);
    let long_ago = SystemTime::now() - Duration::from_hours(1);
    let old = File::options().write(true).open(site.at("a.css.gz")).expect("it was written");
    old.set_times(FileTimes::new().set_modified(long_ago)).expect("it is ours");
    let response = send(&mut Client::of(&site), "/a.css", &[("Accept-Encoding", "gzip")]);
    assert_eq!((response.field("Content-Encoding"), response.field("Vary")), (None, None));
}

/// The program `brotli` copies the time of the original, but not the fraction of its second.
#[test]
fn serves_precompressed_file_with_the_second_of_the_original() {
    let site = TestSite::with(&[("a.css", "plain"), ("a.css.br", "br")]);
    let second = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for (name, time) in [("a.css", second + Duration::from_millis(400)), ("a.css.br", second)] {
        let file = File::options().write(true).open(site.at(name)).expect("it was written");
        file.set_times(FileTimes::new().set_modified(time)).expect("it is ours");
    }
    assert_eq!(response(&mut Client::of(&site), "/a.css", "br"), expected("br", "br"));
}

#[test]
fn notices_added_and_removed_precompressed_files() {
    let site = TestSite::with(&[("a.css", "plain")]);
    let mut client = Client::of(&site);
    assert_eq!(response(&mut client, "/a.css", "gzip"), (None, false, "plain".into()));
    site.write("a.css.gz", "gz");
    client.clock = Clock::told(NOW + 1);
    assert_eq!(response(&mut client, "/a.css", "gzip"), expected("gzip", "gz"));
    std::fs::remove_file(site.at("a.css.gz")).expect("it was written");
    client.clock = Clock::told(NOW + 2);
    assert_eq!(response(&mut client, "/a.css", "gzip"), (None, false, "plain".into()));
}

#[test]
fn sends_large_precompressed_file_from_disk() {
    let long = "x".repeat(100_000);
    let site = TestSite::with(&[("a.css", "plain"), ("a.css.gz", &long)]);
    let mut client = Client::of(&site);
    let packed = send(&mut client, "/a.css", &[("Accept-Encoding", "gzip")]);
    assert!(packed.is_streamed && packed.content.len() == 100_000);
    assert_eq!(response(&mut client, "/a.css", ""), expected("", "plain"));
}

#[test]
fn ignores_precompressed_files_when_disabled() {
    let site = TestSite::with(&[("a.css", "plain"), ("a.css.gz", "gz")]);
    let rules = Rules { precompressed: false, ..Rules::default() };
    let root = Root::open(&site.root()).expect("the site has a root");
    let files = Files::new(Arc::new(root), Arc::new(rules));
    let mut client = Client { files, clock: Clock::told(NOW) };
    assert_eq!(response(&mut client, "/a.css", "gzip"), (None, false, "plain".into()));
}
