//! Live regions of TSX pages.

use serde_json::json;

use crate::folder::Folder;

const BOARD: &str = r#"import { Live, now, page, service, table, text } from "bine";
const messages = table("messages", { forum: text().index(), body: text().max(500), at: now() });

export const post = service((ctx, { forum, body }: { forum: string; body: string }) =>
  messages.insert({ forum, body }));

export default page((ctx, { forum = "Hops" }) => (
  <main>
    <h1>{forum}</h1>
    <Live>
      <ul>{messages.by("forum", forum).newest(50).map((m) => <li id={m.id}>{m.body}</li>)}</ul>
    </Live>
    <p>{messages.by("forum", forum).count()}</p>
    <form action={post}>
      <input type="hidden" name="forum" value={forum} />
      <input name="body" required maxlength="500" /> <button>Post</button>
    </form>
  </main>
));
"#;

#[test]
fn shows_a_posted_message_in_other_tabs() {
    let folder = Folder::with(&[("board/index.tsx", BOARD)]);
    let site = folder.site();
    let mut one = site.visit("/board/");
    let mut other = site.client().visit("/board/");
    let mut elsewhere = site.client().visit("/board/?forum=Malt");
    one.expect("h1", "Hops");
    one.expect_none("li", "hello");
    one.submit("form", [("body", "hello & <goodbye>")]);
    other.expect("li", "hello & <goodbye>");
    elsewhere.expect_none("li", "hello");
    let reply = site.post_json("/board/post", &json!({ "forum": "Malt", "body": "barley" }));
    assert!(reply.status() / 100 == 2, "{}", reply.text());
    elsewhere.expect("li", "barley");
    other.expect_none("li", "barley");
}

#[test]
fn keeps_regions_of_async_pages_and_of_components_live() {
    let folder = Folder::with(&[(
        "index.tsx",
        r#"import { Live, page, service, table, text } from "bine";
const words = table("words", { word: text() });
export const say = service((ctx, { word }: { word: string }) => { words.insert({ word }); });
const List = ({ title }: { title: string }) =>
  <section><Live><b>{title}</b>{words.all().map((one) => <i>{one.word}</i>)}</Live></section>;
export default page(async () => {
  await null;
  return <main><List title="first" /><Live>{(await Promise.resolve(words.all())).map((one) => <u>{one.word}</u>)}</Live></main>;
});
"#,
    )]);
    let site = folder.site();
    let mut tab = site.visit("/");
    tab.expect("b", "first");
    assert!(site.post_json("/say", &json!({ "word": "hop" })).status() / 100 == 2);
    tab.expect("i", "hop");
    tab.expect("u", "hop");
}

#[test]
fn shows_a_changed_file_in_open_tabs() {
    let folder = Folder::with(&[("board/index.tsx", BOARD)]);
    let site = folder.site();
    let mut tab = site.visit("/board/");
    assert!(
        site.post_json("/board/post", &json!({ "forum": "Hops", "body": "one" })).status() / 100
            == 2
    );
    tab.expect("li", "one");
    folder.write(
        "board/index.tsx",
        &BOARD.replace("<li id={m.id}>{m.body}</li>", "<li id={m.id}>new {m.body}</li>"),
    );
    tab.expect("li", "new one");
    // A mistake shows in the page, and the next version repairs it.
    folder.write("board/index.tsx", "export default <buton>;");
    folder.write("board/index.tsx", &BOARD.replace("{m.body}</li>", "{m.body}, again</li>"));
    tab.expect("li", "one, again");
}

/// An editor may empty a file before it writes the new text. The watcher then found an application
/// without pages, and the open page became a 404, which no later version replaced.
#[test]
fn shows_the_next_version_after_an_emptied_file() {
    let folder = Folder::with(&[("board/index.tsx", BOARD)]);
    let site = folder.site();
    let mut tab = site.visit("/board/");
    let message = json!({ "forum": "Hops", "body": "one" });
    assert!(site.post_json("/board/post", &message).status() / 100 == 2);
    tab.expect("li", "one");
    folder.write("board/index.tsx", "");
    // The open page stays as it is; a new one shows the mistake.
    while site.get("/board/").status() == 200 {}
    folder.write("board/index.tsx", &BOARD.replace("{m.body}</li>", "{m.body}, again</li>"));
    tab.expect("li", "one, again");
}

#[test]
fn refreshes_what_is_around_the_regions_of_open_tabs() {
    let folder = Folder::with(&[("board/index.tsx", BOARD)]);
    let site = folder.site();
    let mut tab = site.visit("/board/");
    folder.write("board/index.tsx", &BOARD.replace("<h1>", "<h1>New "));
    tab.expect("h1", "New ");
    let message = json!({ "forum": "Hops", "body": "one" });
    assert!(site.post_json("/board/post", &message).status() / 100 == 2);
    tab.expect("li", "one");
    folder.write("board/index.tsx", &BOARD.replace("<h1>", "<h1>Newer "));
    tab.expect("h1", "Newer ");
}
