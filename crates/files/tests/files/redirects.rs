//! Tests of directory indexes and redirects.

use crate::client::{Client, check};
use crate::site::TestSite;

#[test]
fn serves_index_of_directory() {
    let site = TestSite::with(&[("index.html", "top"), ("a/index.html", "below")]);
    let head = "200 OK; Content-Type: text/html; charset=utf-8; Content-Length:";
    check(&site, "GET /", &format!("{head} 3 | top"));
    check(&site, "GET /a/", &format!("{head} 5 | below"));
    check(&site, "GET /a/?b", &format!("{head} 5 | below"));
}

#[test]
fn redirects_directory_without_trailing_slash() {
    let site = TestSite::with(&[("a/b/index.html", ""), ("\u{e4} c/index.html", "")]);
    let moved =
        |location: &str| format!("301 Moved Permanently; Location: {location}; Content-Length: 0");
    check(&site, "GET /a/b", &moved("/a/b/"));
    check(&site, "HEAD /a/b", &moved("/a/b/"));
    check(&site, "GET /a/b?c=%20d&e", &moved("/a/b/?c=%20d&e"));
    check(&site, "GET /a/b?", &moved("/a/b/?"));
    check(&site, "GET /%C3%A4%20c", &moved("/%C3%A4%20c/"));
    check(&site, "GET /x/../a/./b", &moved("/a/b/"));
}

#[test]
fn does_not_find_directory_without_index() {
    let site = TestSite::with(&[("a/b.txt", ""), ("c/index.html/index.html", "")]);
    for target in ["/a", "/a/", "/", "/c", "/c/"] {
        check(&site, &format!("GET {target}"), "none");
    }
}

/// `//host` is a reference to another host (RFC 3986 section 4.2), and browsers read `/\host` as
/// the same.
#[test]
fn never_redirects_to_another_host() {
    let site =
        TestSite::with(&[("evil.example/index.html", ""), ("\\evil.example/index.html", "")]);
    let targets = [
        "//evil.example",
        "//evil.example/",
        "///evil.example",
        "//evil.example/..",
        "//evil.example/x/..",
        "/x/..//evil.example",
    ];
    for target in targets {
        check(&site, &format!("GET {target}"), "none");
    }
    let mut client = Client::of(&site);
    for (path, location) in
        [("/evil.example", "/evil.example/"), ("/\\evil.example", "/%5Cevil.example/")]
    {
        let response = client.send_path(path).expect("the directory is there");
        assert_eq!(response.field("Location"), Some(location));
    }
}
