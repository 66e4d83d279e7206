//! Decides what a plain file is answered with, method by method.

use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

use crate::asking::{Asker, check};
use crate::place::Place;

#[test]
fn a_file_is_handed_out_with_its_type_and_length() {
    let place = Place::with(&[("a.css", "b{}"), ("c/d.html", "<p>")]);
    check(
        &place,
        "GET /a.css",
        "200 OK; Content-Type: text/css; charset=utf-8; Content-Length: 3 | b{}",
    );
    check(
        &place,
        "GET /c/d.html",
        "200 OK; Content-Type: text/html; charset=utf-8; Content-Length: 3 | <p>",
    );
}

#[test]
fn the_second_answer_is_the_first_one_again() {
    let place = Place::with(&[("a.txt", "abc")]);
    let mut asker = Asker::of(&place);
    let first = asker.ask("GET /a.txt");
    assert_eq!(asker.ask("GET /a.txt"), first);
    assert_eq!(first, "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 3 | abc");
}

#[test]
fn a_query_does_not_matter_to_a_file() {
    let place = Place::with(&[("a.txt", "abc")]);
    let expected = "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 3 | abc";
    check(&place, "GET /a.txt?v=/../2", expected);
}

#[test]
fn head_gets_the_head_of_get() {
    let place = Place::with(&[("a.txt", "abc")]);
    place.write("long.bin", vec![7; 100_000]);
    let mut asker = Asker::of(&place);
    for name in ["a.txt", "long.bin"] {
        // Asked first, and asked of the cache.
        for _ in 0..2 {
            let head = asker.hear(&format!("HEAD /{name}")).expect("the file is there");
            let get = asker.hear(&format!("GET /{name}")).expect("the file is there");
            assert_eq!(head.head, get.head);
            assert!(head.content.is_empty() && !head.as_file);
            assert_eq!(get.length(), Some(get.content.len()));
        }
    }
}

#[test]
fn an_empty_file_is_a_file() {
    let place = Place::with(&[("empty.txt", "")]);
    let expected = "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 0";
    check(&place, "GET /empty.txt", expected);
}

#[test]
fn names_are_utf_8_and_may_have_spaces() {
    let place = Place::with(&[("a b.txt", "1"), ("\u{e4}/\u{1f41d}.txt", "2"), ("50%+c.txt", "3")]);
    for (target, content) in
        [("/a%20b.txt", "1"), ("/%C3%A4/%F0%9F%90%9D.txt", "2"), ("/50%25+c.txt", "3")]
    {
        let told = Asker::of(&place).hear(&format!("GET {target}")).expect("the file is there");
        assert_eq!(told.content, content.as_bytes(), "{target}");
    }
}

#[test]
fn a_file_beyond_the_limit_follows_its_head() {
    let place = Place::new();
    place.write("small.bin", vec![1; 32 * 1024]);
    place.write("large.bin", vec![2; 32 * 1024 + 1]);
    let mut asker = Asker::of(&place);
    for _ in 0..2 {
        let small = asker.hear("GET /small.bin").expect("the file is there");
        assert!(!small.as_file);
        assert_eq!(small.content, vec![1; 32 * 1024]);
        let large = asker.hear("GET /large.bin").expect("the file is there");
        assert!(large.as_file);
        assert_eq!(large.length(), Some(32 * 1024 + 1));
        assert_eq!(large.content, vec![2; 32 * 1024 + 1]);
    }
}

#[test]
fn what_is_not_there_has_no_answer() {
    let place = Place::with(&[("a.txt", "abc"), ("b/c", "")]);
    for target in ["/b.txt", "/a.txt/", "/a.txt/x", "/b/", "/b/d", "/b", "/", "/A.TXT"] {
        check(&place, &format!("GET {target}"), "none");
        check(&place, &format!("POST {target}"), "none");
    }
}

#[test]
fn a_name_longer_than_the_system_takes_is_not_there() {
    let place = Place::new();
    check(&place, &format!("GET /{}", "a".repeat(300)), "none");
    check(&place, &format!("GET {}", "/a".repeat(3000)), "none");
}

#[test]
fn hidden_names_are_not_there_but_for_well_known() {
    let place = Place::with(&[
        (".env", "secret"),
        (".git/config", "secret"),
        ("a/.htpasswd", "secret"),
        (".well-known/security.txt", "mail us"),
        (".well-known/.secret", "secret"),
    ]);
    for target in ["/.env", "/.git/config", "/a/.htpasswd", "/.well-known/.secret", "/%2eenv"] {
        check(&place, &format!("GET {target}"), "none");
    }
    check(
        &place,
        "GET /.well-known/security.txt",
        "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 7 | mail us",
    );
}

#[test]
fn a_path_that_no_request_carries_is_not_there() {
    let place = Place::with(&[("a/b.txt", "abc"), ("../outside/secret.txt", "secret")]);
    let mut asker = Asker::of(&place);
    assert!(asker.hear_path("/a/b.txt").is_some());
    let paths = [
        "/../outside/secret.txt",
        "/a/../../outside/secret.txt",
        "/a/./b.txt",
        "/a/../a/b.txt",
        "/a/b.txt\0",
        "a/b.txt",
        "",
        "*",
        "//a/b.txt",
        "/a//b.txt",
    ];
    for path in paths {
        assert!(asker.hear_path(path).is_none(), "{path:?}");
    }
    let absolute = place.at("a/b.txt");
    assert!(asker.hear_path(&format!("/{}", absolute.display())).is_none());
}

#[test]
fn other_methods_are_told_what_is_allowed() {
    let place = Place::with(&[("a.txt", "abc"), ("b/index.html", "")]);
    let refused = "405 Method Not Allowed; Allow: GET, HEAD, OPTIONS; Content-Length: 0";
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "QUERY"] {
        for target in ["/a.txt", "/b", "/b/"] {
            check(&place, &format!("{method} {target}"), refused);
        }
    }
    check(&place, "OPTIONS /a.txt", "204 No Content; Allow: GET, HEAD, OPTIONS");
    check(&place, "OPTIONS /none.txt", "none");
    check(&place, "OPTIONS *", "none");
}

#[test]
fn the_time_of_the_last_write_is_told() {
    let place = Place::with(&[("a.txt", "abc")]);
    let told = |time: SystemTime| {
        let file = File::options().write(true).open(place.at("a.txt")).expect("it was written");
        file.set_times(FileTimes::new().set_modified(time)).expect("it is ours");
        let told = Asker::of(&place).hear("GET /a.txt").expect("the file is there");
        told.field("Last-Modified").map(str::to_owned)
    };
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    assert_eq!(told(at(784_111_777)).as_deref(), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    // Before 1970 there is nothing to tell.
    let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    assert_eq!(told(before).as_deref(), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
}

#[test]
fn the_last_write_is_never_later_than_the_date() {
    let place = Place::with(&[("a.txt", "abc")]);
    let mut asker = Asker::of(&place);
    asker.clock = bine_pipeline::Clock::told(1_000);
    let told = asker.hear("GET /a.txt").expect("the file is there");
    assert_eq!(told.field("Last-Modified"), told.field("Date"));
    assert_eq!(told.field("Date"), Some("Thu, 01 Jan 1970 00:16:40 GMT"));
}
