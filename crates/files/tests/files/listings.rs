//! Tests of directory listings.

use std::sync::Arc;

use bine_files::{Files, Root, Rules};
use bine_server::Clock;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::client::{Client, NOW};
use crate::site::TestSite;

fn client(site: &TestSite, rules: Rules) -> Client {
    let root = Root::open(&site.root()).expect("the site has a root");
    Client { files: Files::new(Arc::new(root), Arc::new(rules)), clock: Clock::told(NOW) }
}

fn listing() -> Rules {
    Rules { listing: true, ..Rules::default() }
}

/// Returns the links of a page, in order.
fn links(client: &mut Client, path: &str) -> Vec<String> {
    let response = client.send(&format!("GET {path}")).expect("it is listed");
    assert!(response.head.starts_with("HTTP/1.1 200 "), "{}", response.head);
    assert_eq!(response.field("Content-Type"), Some("text/html; charset=utf-8"));
    let page = String::from_utf8(response.content).expect("a page is UTF-8");
    let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    links.map(str::to_owned).collect()
}

#[test]
fn lists_directories_before_files() {
    let site =
        TestSite::with(&[("b.txt", "b"), ("A.txt", "a"), ("z/1", "1"), ("c d/\u{e4}&", "e")]);
    let mut client = client(&site, listing());
    assert_eq!(links(&mut client, "/"), ["./c%20d/", "./z/", "./A.txt", "./b.txt"]);
    assert_eq!(links(&mut client, "/c%20d/"), ["../", "./%C3%A4&amp;"]);
    assert!(client.ask("GET /z").starts_with("301 Moved Permanently; Location: /z/"));
}

#[test]
fn lists_only_when_enabled_and_without_index() {
    let site = TestSite::with(&[("a/1", "1"), ("b/index.html", "b")]);
    let mut default_client = client(&site, Rules::default());
    assert_eq!(
        (default_client.ask("GET /a/"), default_client.ask("GET /a")),
        ("none".into(), "none".into())
    );
    let mut open = client(&site, listing());
    assert!(open.ask("GET /b/").ends_with("| b"));
    assert_eq!(open.ask("GET /c/"), "none");
    assert_eq!(open.ask("GET /a/1/"), "none", "a file is no folder");
}

#[test]
fn lists_only_served_files() {
    let site = TestSite::with(&[("a", "a"), (".secret", "s"), ("../outside/o", "o")]);
    site.link("../outside", "way-out");
    site.link("../outside/o", "file-out");
    site.link("a", "link");
    site.link("nowhere", "broken");
    assert_eq!(links(&mut client(&site, listing()), "/"), ["./a", "./link"]);
    let hidden = Rules { hidden: true, ..listing() };
    assert_eq!(links(&mut client(&site, hidden), "/"), ["./.secret", "./a", "./link"]);
    assert_eq!(client(&site, listing()).ask("GET /way-out/"), "none");
}

#[test]
fn neither_lists_nor_redirects_fifo() {
    let site = TestSite::with(&[("a", "a")]);
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, site.at("fifo"), FileType::Fifo, mode, 0).expect("the site is writable");
    site.link("fifo", "link");
    let mut client = client(&site, listing());
    assert_eq!(links(&mut client, "/"), ["./a"]);
    for target in ["/fifo", "/fifo/", "/link"] {
        assert_eq!(client.ask(&format!("GET {target}")), "none", "{target}");
    }
}

#[test]
fn lists_empty_directory() {
    let site = TestSite::new();
    let response = client(&site, listing()).send("GET /").expect("it is listed");
    assert!(String::from_utf8_lossy(&response.content).contains("There is nothing here."));
    let response = client(&site, listing()).send("HEAD /").expect("it is listed");
    assert!(response.content.is_empty() && response.length() > Some(500));
}
