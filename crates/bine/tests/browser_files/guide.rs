//! The program of the chapter "In the browser".

use std::fs;
use std::path::Path;

use bine::test::Site;

mod shelf;

const FILES: [(&str, &str); 2] = [
    ("```rust,ignore", include_str!("guide/shelf.rs")),
    ("```ts shelf.browser.ts", include_str!("guide/shelf.browser.ts")),
];

#[test]
fn chapter_shows_the_files_of_this_test() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/browser.md");
    let chapter = fs::read_to_string(path).unwrap();
    for (opening, text) in FILES {
        assert!(chapter.contains(&format!("\n{opening}\n{text}```\n")), "{opening}\n{text}");
    }
}

#[test]
fn program_of_the_chapter_works() {
    let site = Site::new(shelf::app());
    let page = site.get("/shelf").text().to_owned();
    let (_, handler) = page.split_once("data-on=\"click: run ").expect("a handler");
    let (url, rest) = handler.split_once(" 0\" ").expect("the first function");
    assert!(
        rest.starts_with("data-with=\"[{&quot;id&quot;:1,&quot;name&quot;:&quot;Twine&quot;}]\">"),
        "{rest}"
    );
    assert!(site.get(url).text().contains("await price({ item: item.id })"));
    let services = site.get("/_bine/services.js").text().to_owned();
    assert!(services.contains("call(\"/browser_files/price\",values)"), "{services}");
    let answer = site.post_json("/browser_files/price", &serde_json::json!({ "item": 1 }));
    assert_eq!(answer.text(), "250");
}
