//! The examples of the guide about channels, sessions and events, through the whole server.

use bine::test::Site;
use serde_json::{Value, json};

use crate::folder::Folder;

const GUIDE: &str = include_str!("../../../../docs/guide/scripts-channels.md");

/// A site for each example that is a whole module.
fn examples() -> Vec<(Folder, Site)> {
    let examples = GUIDE.split("```tsx\n").skip(1);
    let examples = examples.filter_map(|rest| rest.split_once("```"));
    let site = |(example, _): (&str, &str)| {
        let folder = Folder::with(&[("index.tsx", example)]);
        let site = folder.site();
        (folder, site)
    };
    examples.map(site).collect()
}

#[test]
fn runs_the_examples_of_the_chapter() {
    let examples = examples();
    let [(_, rooms), (_, prices), (_, sessions), (_, tabs), (_, events)] = &examples[..] else {
        panic!("{}", examples.len())
    };

    let said = rooms.post_json("/say", &json!({ "room": "hall", "body": "hello" }));
    assert_eq!(said.status(), 204, "{}", said.text());
    rooms.visit("/?room=hall").expect("li", "hello");
    assert_eq!(rooms.post_json("/say", &json!({ "room": "a/b", "body": "x" })).status(), 422);
    let written = rooms.post_json("/write", &json!({ "user": "ann", "body": "hello" }));
    assert_eq!(written.status(), 204, "{}", written.text());

    let set = || prices.post_json("/set", &json!({ "item": "hops", "price": 3 })).json::<Value>();
    assert_eq!((set(), set()), (json!(false), json!(true)));

    let client = sessions.client();
    assert_eq!(client.post_json("/choose", &json!({ "theme": "dark" })).status(), 204);
    let mut tab = client.visit("/");
    tab.expect("p", "Nobody: dark");
    let enter = |key: &str| client.post_json("/enter", &json!({ "user": "ann", "key": key }));
    assert_eq!(enter("malt").status(), 403);
    assert_eq!(enter("hops").status(), 204);
    client.visit("/").expect("p", "ann: dark");

    let mut tab = tabs.visit("/");
    tab.expect("h1", "hops");
    tab.click("button");
    tab.expect("h1", "malt");

    let mut tab = events.visit("/");
    tab.listen("site/bell");
    tab.expect("p", "1 hear the bell. Here:");
    assert_eq!(events.post_json("/ring", &json!({})).status(), 204);
    assert_eq!(tab.expect_event("site/bell"), json!({ "at": "the door" }));
}
