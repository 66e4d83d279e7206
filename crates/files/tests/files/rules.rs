//! Tests of a site's rules.

use std::sync::Arc;

use bine_files::{FieldRule, Files, Root, Rules};
use bine_server::Clock;

use crate::client::{Client, NOW};
use crate::site::TestSite;

fn client(site: &TestSite, rules: Rules) -> Client {
    let root = Root::open(&site.root()).expect("the site has a root");
    Client { files: Files::new(Arc::new(root), Arc::new(rules)), clock: Clock::told(NOW) }
}

#[test]
fn serves_first_existing_index() {
    let site =
        TestSite::with(&[("a/main.txt", "main"), ("a/index.html", "index"), ("b/index.html", "b")]);
    let index = ["main.txt", "index.html"].map(String::from).to_vec();
    let mut client = client(&site, Rules { index, ..Rules::default() });
    let text = "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 4 | main";
    assert_eq!(client.ask("GET /a/"), text);
    assert!(client.ask("GET /b/").ends_with("text/html; charset=utf-8; Content-Length: 1 | b"));
    assert!(client.ask("GET /a").starts_with("301 "));
    assert_eq!(client.ask("GET /"), "none");
}

#[test]
fn serves_hidden_files_when_enabled() {
    let site = TestSite::with(&[(".hidden", "x"), (".git/config", "y")]);
    let mut default_client = client(&site, Rules::default());
    let mut open = client(&site, Rules { hidden: true, ..Rules::default() });
    for (path, content) in [("/.hidden", "x"), ("/.git/config", "y")] {
        assert_eq!(default_client.ask(&format!("GET {path}")), "none");
        assert!(open.ask(&format!("GET {path}")).ends_with(&format!("| {content}")), "{path}");
    }
}

#[test]
fn adds_fields_to_every_response_of_matching_files() {
    let site = TestSite::with(&[("a.css", "css"), ("b.txt", "txt")]);
    let rule = FieldRule::new("*.css", "Cache-Control", "max-age=60").expect("a rule");
    let mut client = client(&site, Rules { fields: vec![rule], ..Rules::default() });
    for fields in [&[][..], &[("Range", "bytes=0-0")], &[("If-None-Match", "*")]] {
        let response = client.send_with("GET /a.css", fields).expect("it is there");
        assert_eq!(response.field("Cache-Control"), Some("max-age=60"), "{}", response.head);
        let response = client.send_with("GET /b.txt", fields).expect("it is there");
        assert_eq!(response.field("Cache-Control"), None);
    }
}
