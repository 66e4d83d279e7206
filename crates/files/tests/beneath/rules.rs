//! Decides that what a site says of its files holds.

use std::sync::Arc;

use bine_files::{FieldRule, Files, Root, Rules};
use bine_pipeline::Clock;

use crate::asking::{Asker, NOW};
use crate::place::Place;

fn asker(place: &Place, rules: Rules) -> Asker {
    let root = Root::open(&place.site()).expect("the place has a root");
    Asker { files: Files::new(Arc::new(root), Arc::new(rules)), clock: Clock::told(NOW) }
}

#[test]
fn the_first_index_that_is_there_stands_for_its_folder() {
    let place =
        Place::with(&[("a/main.txt", "main"), ("a/index.html", "index"), ("b/index.html", "b")]);
    let index = ["main.txt", "index.html"].map(String::from).to_vec();
    let mut asker = asker(&place, Rules { index, ..Rules::default() });
    let text = "200 OK; Content-Type: text/plain; charset=utf-8; Content-Length: 4 | main";
    assert_eq!(asker.ask("GET /a/"), text);
    assert!(asker.ask("GET /b/").ends_with("text/html; charset=utf-8; Content-Length: 1 | b"));
    assert!(asker.ask("GET /a").starts_with("301 "));
    assert_eq!(asker.ask("GET /"), "none");
}

#[test]
fn hidden_files_are_served_where_that_is_wanted() {
    let place = Place::with(&[(".hidden", "x"), (".git/config", "y")]);
    let mut shy = asker(&place, Rules::default());
    let mut open = asker(&place, Rules { hidden: true, ..Rules::default() });
    for (path, content) in [("/.hidden", "x"), ("/.git/config", "y")] {
        assert_eq!(shy.ask(&format!("GET {path}")), "none");
        assert!(open.ask(&format!("GET {path}")).ends_with(&format!("| {content}")), "{path}");
    }
}

#[test]
fn fields_are_added_by_pattern_to_every_answer_with_the_file() {
    let place = Place::with(&[("a.css", "css"), ("b.txt", "txt")]);
    let rule = FieldRule::new("*.css", "Cache-Control", "max-age=60").expect("a rule");
    let mut asker = asker(&place, Rules { fields: vec![rule], ..Rules::default() });
    for fields in [&[][..], &[("Range", "bytes=0-0")], &[("If-None-Match", "*")]] {
        let told = asker.hear_with("GET /a.css", fields).expect("it is there");
        assert_eq!(told.field("Cache-Control"), Some("max-age=60"), "{}", told.head);
        let told = asker.hear_with("GET /b.txt", fields).expect("it is there");
        assert_eq!(told.field("Cache-Control"), None);
    }
}
