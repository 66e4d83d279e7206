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

/// The mark that tells an open page the version of its application.
fn version_mark(page: &str) -> &str {
    let start = page.find("<!--/live 998 ").unwrap_or_else(|| panic!("{page}"));
    page[start..].split_once("-->").unwrap().0
}

#[test]
fn marks_the_version_in_the_page_of_a_service_too() {
    let source = r#"import { Live, page, service } from "bine";
const Words = ({ at }: { at: string }) => <main><h1>{at}</h1><Live><p>words</p></Live></main>;
export const again = service((ctx, { at }: { at: string }) => <Words at={at} />);
export default page(() => <Words at="page" />);
"#;
    let folder = Folder::with(&[("index.tsx", source)]);
    let site = folder.site();
    let pages = || {
        let posted = site.post_json("/again", &json!({ "at": "service" })).text().to_owned();
        assert!(posted.contains("<h1>service</h1>"), "{posted}");
        (site.get("/").text().to_owned(), posted)
    };
    let (page, of_service) = pages();
    assert_eq!(version_mark(&page), version_mark(&of_service));
    folder.write("index.tsx", &source.replace("words</p>", "new words</p>"));
    let (new_page, new_of_service) = loop {
        let (page, of_service) = pages();
        if page.contains("new words") && of_service.contains("new words") {
            break (page, of_service);
        }
        std::thread::yield_now();
    };
    assert_eq!(version_mark(&new_page), version_mark(&new_of_service));
    assert_ne!(version_mark(&page), version_mark(&new_page));
}
