//! Decides where a directory is found, and that no redirect leads to another host.

use crate::asking::{Asker, check};
use crate::place::Place;

#[test]
fn a_directory_is_its_index() {
    let place = Place::with(&[("index.html", "top"), ("a/index.html", "below")]);
    let head = "200 OK; Content-Type: text/html; charset=utf-8; Content-Length:";
    check(&place, "GET /", &format!("{head} 3 | top"));
    check(&place, "GET /a/", &format!("{head} 5 | below"));
    check(&place, "GET /a/?b", &format!("{head} 5 | below"));
}

#[test]
fn a_directory_without_its_slash_is_redirected() {
    let place = Place::with(&[("a/b/index.html", ""), ("\u{e4} c/index.html", "")]);
    let moved =
        |location: &str| format!("301 Moved Permanently; Location: {location}; Content-Length: 0");
    check(&place, "GET /a/b", &moved("/a/b/"));
    check(&place, "HEAD /a/b", &moved("/a/b/"));
    check(&place, "GET /a/b?c=%20d&e", &moved("/a/b/?c=%20d&e"));
    check(&place, "GET /a/b?", &moved("/a/b/?"));
    check(&place, "GET /%C3%A4%20c", &moved("/%C3%A4%20c/"));
    check(&place, "GET /x/../a/./b", &moved("/a/b/"));
}

#[test]
fn a_directory_without_an_index_is_not_there() {
    let place = Place::with(&[("a/b.txt", ""), ("c/index.html/index.html", "")]);
    for target in ["/a", "/a/", "/", "/c", "/c/"] {
        check(&place, &format!("GET {target}"), "none");
    }
}

/// `//host` is a reference to another host (RFC 3986 section 4.2), and browsers read `/\host` as the same.
#[test]
fn no_redirect_leads_to_another_host() {
    let place = Place::with(&[("evil.example/index.html", ""), ("\\evil.example/index.html", "")]);
    let targets = [
        "//evil.example",
        "//evil.example/",
        "///evil.example",
        "//evil.example/..",
        "//evil.example/x/..",
        "/x/..//evil.example",
    ];
    for target in targets {
        check(&place, &format!("GET {target}"), "none");
    }
    let mut asker = Asker::of(&place);
    for (path, location) in
        [("/evil.example", "/evil.example/"), ("/\\evil.example", "/%5Cevil.example/")]
    {
        let told = asker.hear_path(path).expect("the directory is there");
        assert_eq!(told.field("Location"), Some(location));
    }
}
