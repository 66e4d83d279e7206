//! Tests of responses to each method.

use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

use crate::client::{Client, check};
use crate::site::TestSite;

#[test]
fn sends_media_type_and_length() {
    let site = TestSite::with(&[("a.css", "b{}"), ("c/d.html", "<p>")]);
    check(
        &site,
        "GET /a.css",
        "200 OK; Content-Type: text/css; charset=utf-8; Content-Length: 3 | b{}",
    );
    check(
        &site,
        "GET /c/d.html",
        "200 OK; Content-Type: text/html; charset=utf-8; Content-Length: 3 | <p>",
    );
}

#[test]
fn repeats_response_from_cache() {
    let site = TestSite::with(&[("a.txt", "abc")]);
    let mut client = Client::of(&site);
    let first = client.ask("GET /a.txt");
    assert_eq!(client.ask("GET /a.txt"), first);
    assert_eq!(first, "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 3 | abc");
}

#[test]
fn ignores_query() {
    let site = TestSite::with(&[("a.txt", "abc")]);
    let expected = "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 3 | abc";
    check(&site, "GET /a.txt?v=/../2", expected);
}

#[test]
fn sends_same_head_for_head_and_get() {
    let site = TestSite::with(&[("a.txt", "abc")]);
    site.write("long.bin", vec![7; 100_000]);
    let mut client = Client::of(&site);
    for name in ["a.txt", "long.bin"] {
        // The first response is from disk, the second from the cache.
        for _ in 0..2 {
            let head = client.send(&format!("HEAD /{name}")).expect("the file is there");
            let get = client.send(&format!("GET /{name}")).expect("the file is there");
            assert_eq!(head.head, get.head);
            assert!(head.content.is_empty() && !head.is_streamed);
            assert_eq!(get.length(), Some(get.content.len()));
        }
    }
}

#[test]
fn serves_empty_file() {
    let site = TestSite::with(&[("empty.txt", "")]);
    let expected = "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 0";
    check(&site, "GET /empty.txt", expected);
}

#[test]
fn serves_utf_8_names_with_spaces() {
    let site =
        TestSite::with(&[("a b.txt", "1"), ("\u{e4}/\u{1f41d}.txt", "2"), ("50%+c.txt", "3")]);
    for (target, content) in
        [("/a%20b.txt", "1"), ("/%C3%A4/%F0%9F%90%9D.txt", "2"), ("/50%25+c.txt", "3")]
    {
        let response = Client::of(&site).send(&format!("GET {target}")).expect("the file is there");
        assert_eq!(response.content, content.as_bytes(), "{target}");
    }
}

#[test]
fn sends_large_file_after_its_head() {
    let site = TestSite::new();
    site.write("small.bin", vec![1; 32 * 1024]);
    site.write("large.bin", vec![2; 32 * 1024 + 1]);
    let mut client = Client::of(&site);
    for _ in 0..2 {
        let small = client.send("GET /small.bin").expect("the file is there");
        assert!(!small.is_streamed);
        assert_eq!(small.content, vec![1; 32 * 1024]);
        let large = client.send("GET /large.bin").expect("the file is there");
        assert!(large.is_streamed);
        assert_eq!(large.length(), Some(32 * 1024 + 1));
        assert_eq!(large.content, vec![2; 32 * 1024 + 1]);
    }
}

#[test]
fn does_not_answer_for_missing_files() {
    let site = TestSite::with(&[("a.txt", "abc"), ("b/c", "")]);
    for target in ["/b.txt", "/a.txt/", "/a.txt/x", "/b/", "/b/d", "/b", "/", "/A.TXT"] {
        check(&site, &format!("GET {target}"), "none");
        check(&site, &format!("POST {target}"), "none");
    }
}

#[test]
fn does_not_find_names_over_system_limit() {
    let site = TestSite::new();
    check(&site, &format!("GET /{}", "a".repeat(300)), "none");
    check(&site, &format!("GET {}", "/a".repeat(3000)), "none");
}

#[test]
fn hides_dot_files_except_well_known() {
    let site = TestSite::with(&[
        (".env", "secret"),
        (".git/config", "secret"),
        ("a/.htpasswd", "secret"),
        (".well-known/security.txt", "mail us"),
        (".well-known/.secret", "secret"),
    ]);
    for target in ["/.env", "/.git/config", "/a/.htpasswd", "/.well-known/.secret", "/%2eenv"] {
        check(&site, &format!("GET {target}"), "none");
    }
    check(
        &site,
        "GET /.well-known/security.txt",
        "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 7 | mail us",
    );
}

#[test]
fn does_not_find_paths_that_no_request_contains() {
    let site = TestSite::with(&[("a/b.txt", "abc"), ("../outside/secret.txt", "secret")]);
    let mut client = Client::of(&site);
    assert!(client.send_path("/a/b.txt").is_some());
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
        assert!(client.send_path(path).is_none(), "{path:?}");
    }
    let absolute = site.at("a/b.txt");
    assert!(client.send_path(&format!("/{}", absolute.display())).is_none());
}

#[test]
fn lists_allowed_methods() {
    let site = TestSite::with(&[("a.txt", "abc"), ("b/index.html", "")]);
    let refused = "405 Method Not Allowed; Allow: GET, HEAD, OPTIONS; Content-Length: 0";
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "QUERY"] {
        for target in ["/a.txt", "/b", "/b/"] {
            check(&site, &format!("{method} {target}"), refused);
        }
    }
    check(&site, "OPTIONS /a.txt", "204 No Content; Allow: GET, HEAD, OPTIONS");
    check(&site, "OPTIONS /none.txt", "none");
    check(&site, "OPTIONS *", "none");
}

#[test]
fn sends_last_modified() {
    let site = TestSite::with(&[("a.txt", "abc")]);
    let response = |time: SystemTime| {
        let file = File::options().write(true).open(site.at("a.txt")).expect("it was written");
        file.set_times(FileTimes::new().set_modified(time)).expect("it is ours");
        let response = Client::of(&site).send("GET /a.txt").expect("the file is there");
        response.field("Last-Modified").map(str::to_owned)
    };
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    assert_eq!(response(at(784_111_777)).as_deref(), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    // Times before 1970 are reported as 1970.
    let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    assert_eq!(response(before).as_deref(), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
}

#[test]
fn limits_last_modified_to_date() {
    let site = TestSite::with(&[("a.txt", "abc")]);
    let mut client = Client::of(&site);
    client.clock = bine_server::Clock::told(1_000);
    let response = client.send("GET /a.txt").expect("the file is there");
    assert_eq!(response.field("Last-Modified"), response.field("Date"));
    assert_eq!(response.field("Date"), Some("Thu, 01 Jan 1970 00:16:40 GMT"));
}
