//! Decides what a folder without an index shows, and to whom.

use std::sync::Arc;

use bine_files::{Files, Root, Rules};
use bine_pipeline::Clock;

use crate::asking::{Asker, NOW};
use crate::place::Place;

fn asker(place: &Place, rules: Rules) -> Asker {
    let root = Root::open(&place.site()).expect("the place has a root");
    Asker { files: Files::new(Arc::new(root), Arc::new(rules)), clock: Clock::told(NOW) }
}

fn listing() -> Rules {
    Rules { listing: true, ..Rules::default() }
}

/// The addresses on a page, in their order.
fn links(asker: &mut Asker, path: &str) -> Vec<String> {
    let told = asker.hear(&format!("GET {path}")).expect("it is listed");
    assert!(told.head.starts_with("HTTP/1.1 200 "), "{}", told.head);
    assert_eq!(told.field("Content-Type"), Some("text/html; charset=utf-8"));
    let page = String::from_utf8(told.content).expect("a page is UTF-8");
    let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    links.map(str::to_owned).collect()
}

#[test]
fn a_folder_shows_its_folders_and_then_its_files() {
    let place = Place::with(&[("b.txt", "b"), ("A.txt", "a"), ("z/1", "1"), ("c d/\u{e4}&", "e")]);
    let mut asker = asker(&place, listing());
    assert_eq!(links(&mut asker, "/"), ["./c%20d/", "./z/", "./A.txt", "./b.txt"]);
    assert_eq!(links(&mut asker, "/c%20d/"), ["../", "./%C3%A4&amp;"]);
    assert!(asker.ask("GET /z").starts_with("301 Moved Permanently; Location: /z/"));
}

#[test]
fn where_nobody_wished_it_and_where_an_index_is_nothing_is_listed() {
    let place = Place::with(&[("a/1", "1"), ("b/index.html", "b")]);
    let mut shy = asker(&place, Rules::default());
    assert_eq!((shy.ask("GET /a/"), shy.ask("GET /a")), ("none".into(), "none".into()));
    let mut open = asker(&place, listing());
    assert!(open.ask("GET /b/").ends_with("| b"));
    assert_eq!(open.ask("GET /c/"), "none");
    assert_eq!(open.ask("GET /a/1/"), "none", "a file is no folder");
}

#[test]
fn what_is_not_served_is_not_shown() {
    let place = Place::with(&[("a", "a"), (".secret", "s"), ("../outside/o", "o")]);
    place.link("../outside", "way-out");
    place.link("../outside/o", "file-out");
    place.link("a", "link");
    place.link("nowhere", "broken");
    assert_eq!(links(&mut asker(&place, listing()), "/"), ["./a", "./link"]);
    let hidden = Rules { hidden: true, ..listing() };
    assert_eq!(links(&mut asker(&place, hidden), "/"), ["./.secret", "./a", "./link"]);
    assert_eq!(asker(&place, listing()).ask("GET /way-out/"), "none");
}

#[test]
fn a_folder_with_nothing_in_it_says_so() {
    let place = Place::new();
    let told = asker(&place, listing()).hear("GET /").expect("it is listed");
    assert!(String::from_utf8_lossy(&told.content).contains("There is nothing here."));
    let told = asker(&place, listing()).hear("HEAD /").expect("it is listed");
    assert!(told.content.is_empty() && told.length() > Some(500));
}
