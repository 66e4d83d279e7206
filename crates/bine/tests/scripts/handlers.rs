//! Handlers in pages: their modules, captured values, and mistakes.

use bine::test::{Reply, Site};

use crate::folder::Folder;

const PAGE: &str = r#"import { page, service, table, text } from "bine";
import { archive } from "./archive.ts";
import { problem } from "./checks.browser.ts";
export { archive };
const tasks = table("tasks", { title: text(), secret: text().private().default("s") });
export const add = service((ctx, { title }: { title: string }) => tasks.insert({ title }));
export const remove = service((ctx, { id }: { id: string }) => { tasks.remove(id); });
export default page((ctx, { q }) => (
  <main>
    <p>{problem("")}</p>
    <ul>{tasks.all().map((task) => (
      <li id={task.id}>
        <button type="button" onclick={async () => { await remove({ id: task.id }); }}>{task.title}</button>
        <button type="button" onclick={() => archive({ id: task.id, why: q })}>Archive</button>
      </li>
    ))}</ul>
  </main>
));
"#;
const ARCHIVE: &str = r#"import { service } from "bine";
export const archive = service((ctx, { id, why }: { id: string; why?: string }) => id + (why ?? ""));
export const helper = (a: number) => a;
"#;
const CHECKS: &str = "import { LIMIT } from \"./limits.browser.ts\";\nexport const problem = (title: string): string => title.length > LIMIT ? \"too long\" : \"fine\";\n";
const LIMITS: &str = "export const LIMIT: number = 20;\n";

fn folder() -> Folder {
    Folder::with(&[
        ("tasks/index.tsx", PAGE),
        ("tasks/archive.ts", ARCHIVE),
        ("tasks/checks.browser.ts", CHECKS),
        ("tasks/limits.browser.ts", LIMITS),
    ])
}

/// The URL of the module in the first handler of a page for clicks.
fn module_url(page: &str) -> String {
    module_url_of(page, "click")
}

fn module_url_of(page: &str, event: &str) -> String {
    let (_, rest) = page.split_once(&format!("data-on=\"{event}: run ")).expect("a handler");
    rest.split_once(' ').expect("its number").0.to_owned()
}

/// The page of an error as text.
fn error_of(site: &Site, path: &str) -> String {
    let reply: Reply =
        site.request(bine::test::Method::Get, path).header("Accept", "text/html").send();
    assert_eq!(reply.status(), 500, "{}", reply.text());
    let text = reply.text();
    text.replace("&#39;", "'").replace("&quot;", "\"").replace("&gt;", ">")
}

#[test]
fn handlers_become_a_module_of_the_browser() {
    let folder = folder();
    let site = folder.site();
    site.post_json("/tasks/add", &serde_json::json!({ "title": "a'b" }));
    let page = site.get("/tasks/?q=%3C%22").text().to_owned();
    assert!(page.contains("<p>fine</p>"), "{page}");
    let url = module_url(&page);
    assert!(url.starts_with("/tasks/_js/"), "{url}");
    let id = page.split_once("<li id=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    let handlers =
        format!("<button type=\"button\" data-on=\"click: run {url} 0\" data-with='[\"{id}\"]'>");
    assert!(page.contains(&handlers), "{page}");
    let captured = format!("data-with='[\"{id}\",\"&lt;\\\"\"]'");
    assert!(page.contains(&captured), "{page}");
    let module = site.get(&url);
    assert_eq!(module.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert!(module.header("cache-control").unwrap().ends_with("immutable"));
    let code = module.text();
    assert!(
        code.contains("const remove=(values)=>$captured_call(\"/tasks/remove\",values);"),
        "{code}"
    );
    assert!(
        code.contains("const archive=(values)=>$captured_call(\"/tasks/archive\",values);"),
        "{code}"
    );
    assert!(code.contains("archive({ id: $captured[0], why: $captured[1] })"), "{code}");
    assert!(code.contains("from\"/_bine/live-"), "{code}");
    assert!(!code.contains("tasks.insert") && !code.contains("problem"), "{code}");
    let script = code.split_once("from\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    assert_eq!(site.get(&script).status(), 200);
    assert!(page.contains(&format!("src=\"{script}\"")), "{page}");
    let tag = module.header("etag").unwrap().to_owned();
    let again = site.request(bine::test::Method::Get, &url).header("If-None-Match", &*tag).send();
    assert_eq!(again.status(), 304);
    assert_eq!(site.get("/tasks/_js/AAAAAAAAAAA.js").status(), 404);
    // An undefined value has no place in JSON.
    let page = site.get("/tasks/").text().to_owned();
    assert!(page.contains(&format!("data-with='{{\"0\":\"{id}\"}}'")), "{page}");
}

#[test]
fn modules_of_an_earlier_version_stay() {
    let folder = folder();
    let site = folder.site();
    site.post_json("/tasks/add", &serde_json::json!({ "title": "a" }));
    let first = module_url(site.get("/tasks/").text());
    // Development notices a changed file soon.
    let changed = |last: &str| loop {
        let url = module_url(site.get("/tasks/").text());
        if url != last {
            return url;
        }
    };
    folder.write("tasks/index.tsx", &PAGE.replace("await remove", "alert(1); await remove"));
    let second = changed(&first);
    assert!(!site.get(&first).text().contains("alert(1)"));
    assert!(site.get(&second).text().contains("alert(1)"));
    // A module that only an import has changed has another address too.
    folder.write("tasks/index.tsx", &PAGE.replace("await remove", "problem(\"\"); await remove"));
    let third = changed(&second);
    folder.write("tasks/limits.browser.ts", "export const LIMIT = 21;\n");
    let fourth = changed(&third);
    let import = |url: &str| {
        let code = site.get(url).text().to_owned();
        let name = code.split_once("\"./").expect("an import").1;
        format!("/tasks/_js/{}", name.split_once('"').unwrap().0)
    };
    let checks = site.get(&import(&fourth)).text().to_owned();
    assert!(checks.contains("(title        )         => title.length > LIMIT"), "{checks}");
    assert!(site.get(&import(&import(&fourth))).text().contains("const LIMIT = 21"));
}

#[test]
fn serves_a_module_before_its_page_was_requested() {
    let folder = folder();
    let url = {
        let site = folder.site();
        site.post_json("/tasks/add", &serde_json::json!({ "title": "a" }));
        module_url(site.get("/tasks/").text())
    };
    assert_eq!(folder.site().get(&url).status(), 200);
}

#[test]
fn modules_follow_the_rule_of_their_application() {
    let folder = folder();
    let site = folder.site();
    site.post_json("/tasks/add", &serde_json::json!({ "title": "a" }));
    let url = module_url(site.get("/tasks/").text());
    folder.write("tasks/app.toml", "access = \"users\"\n");
    let site = folder.site();
    assert_eq!(site.get(&url).status(), 401);
}

#[test]
fn reports_captured_values_that_cannot_travel() {
    let render = |value: &str, path: &str| {
        let page = format!(
            "import {{ page, table, text }} from \"bine\";\nconst rows = table(\"rows\", {{ word: text().private() }});\nexport default page(() => {{\n  const row = {value};\n  return <button type=\"button\" onclick={{() => {{ alert(row{path}); }}}}>a</button>;\n}});\n"
        );
        Folder::with(&[("index.tsx", &page)])
    };
    for (value, expected) in [
        ("() => 1", "is a function of the server"),
        ("new Date(0)", "is a Date: pass getTime() or toISOString()"),
        ("new Map()", "is no plain data"),
        ("Promise.resolve(1)", "is a promise: await it first"),
        ("10n", "is a bigint: pass String() of it"),
        ("0 / 0", "is no finite number"),
        (
            "{ a: [{ b: () => 1 }] }",
            "has a property `a` that has an element that has a property `b` that is a function",
        ),
        ("{ get a() { return 1; } }", "has the getter `a`"),
        ("{ word: \"a\" }", "has the private column `word`"),
        ("\"a\".repeat(70000)", "longer than 65536 bytes"),
        ("<b>a</b>", "is no plain data"),
    ] {
        let folder = render(value, "");
        let page = error_of(&folder.site(), "/");
        assert!(page.contains("the handler at 5:55 uses `row`, which "), "{page}");
        assert!(page.contains(expected), "{value}: {page}");
        assert!(page.contains("index.tsx:5:"), "{page}");
    }
    let mut nested = "1".to_owned();
    for _ in 0..40 {
        nested = format!("[{nested}]");
    }
    let folder = render(&nested, "");
    assert!(error_of(&folder.site(), "/").contains("is nested too deeply"));
    // A cycle is nested without an end.
    let folder = render("(() => { const a: any = {}; a.a = a; return a; })()", "");
    assert!(error_of(&folder.site(), "/").contains("is nested too deeply"));
    // The column alone was chosen by the author.
    let folder = render("{ word: \"a\" }", ".word");
    let page = folder.site().get("/").text().to_owned();
    assert!(page.contains("data-with='[\"a\"]'"), "{page}");
}

const WORDS: &str = r#"import { browser, channel, event, navigate, page } from "bine";
import { news } from "./news.ts";
const bell = event("bell");
const rooms = channel("rooms/{room}", { follow: "anyone" });
const Item = ({ onpick }: { onpick?: ((event: MouseEvent) => unknown) | null }) => <button type="button" onclick={onpick}>a</button>;
export default page((ctx, { of = "none", room = "a'\"b" }) => (
  <main onappear={() => {
    const stops = [bell.on(console.log), news.follow(console.log), rooms.at(room).follow(console.log)];
    return () => stops.forEach((stop) => stop());
  }}>
    <Item onpick={of === "none" ? null : of === "server" ? (() => () => 1)() : of === "data" ? (["/a.js", 0, 0, []] as never) : browser(() => navigate(`/rooms/${room}`))} />
  </main>
));
"#;

#[test]
fn handlers_have_the_events_and_channels_of_the_application() {
    let news = "import { channel } from \"bine\";\nexport const news = channel(\"news\", { follow: \"anyone\" });\n";
    let folder = Folder::with(&[("shop/index.tsx", WORDS), ("shop/news.ts", news)]);
    let site = folder.site();
    let page = site.get("/shop/").text().to_owned();
    let code = site.get(&module_url_of(&page, "appear")).text().to_owned();
    assert!(code.starts_with("import{call as") || code.starts_with("import{follow as"), "{code}");
    for stub in [
        "const bell={on:(f)=>$captured_on(\"shop/bell\",f)};",
        "const news={follow:(f,o)=>$captured_follow(\"shop/news\",f,o)};",
        "const rooms={at:(...v)=>({follow:(f,o)=>$captured_follow(\"shop/rooms/{room}\",f,o,v)})};",
        "const navigate=$captured_navigate;",
    ] {
        assert!(code.contains(stub), "{stub}\n{code}");
    }
}

#[test]
fn components_get_handlers_for_their_elements() {
    let news = "import { channel } from \"bine\";\nexport const news = channel(\"news\", { follow: \"anyone\" });\n";
    let folder = Folder::with(&[("index.tsx", WORDS), ("news.ts", news)]);
    let site = folder.site();
    let page = site.get("/").text().to_owned();
    assert!(page.contains("<button type=\"button\" data-on=\"click: run\">a</button>"), "{page}");
    let page = site.get("/?of=browser").text().to_owned();
    let (_, json) = page.split_once("data-on-click=\"").expect("a handler");
    let json = json.split_once("\" data-on=").expect("its end").0;
    let json = json.replace("&quot;", "\"").replace("&#39;", "'");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let url = module_url_of(&page, "appear");
    assert_eq!(json, serde_json::json!([url, 1, 0, ["a'\"b"]]));
    for of in ["server", "data"] {
        let shown = error_of(&site, &format!("/?of={of}"));
        assert!(shown.contains("is no handler: write the function at the element"), "{shown}");
    }
}

#[test]
fn reports_values_that_cannot_travel_in_a_call_of_browser() {
    let page = "import { browser, page, table, text } from \"bine\";\nconst rows = table(\"rows\", { word: text().private() });\nconst Item = ({ onpick }: { onpick: () => unknown }) => <b onclick={onpick}>a</b>;\nexport default page((ctx, { of }) => {\n  const row = of ? new Map() : { word: \"a\" };\n  return <Item onpick={browser(() => alert(row))} />;\n});\n";
    let folder = Folder::with(&[("index.tsx", page)]);
    let site = folder.site();
    let shown = error_of(&site, "/");
    let expected = "the handler at 6:44 uses `row`, which has the private column `word`";
    assert!(shown.contains(expected), "{shown}");
    let shown = error_of(&site, "/?of=map");
    assert!(shown.contains("the handler at 6:44 uses `row`, which is no plain data"), "{shown}");
}

const SEALED: &str = r#"import { page, sealed, service, type Sealed } from "bine";
export const remove = service((ctx, { id, to }: { id: Sealed<string>; to?: Sealed<string> }) => `${id} ${to}`);
export const keep = service((ctx, { id }: { id: Sealed<string> }) => id);
export default page((ctx, { of = "secret" }) => {
  const ticket = sealed(remove, { id: of, to: "other" });
  return <p onclick={() => remove(ticket)}>a</p>;
});
"#;

#[test]
fn sealed_arguments_are_for_one_visitor_and_service() {
    let folder = Folder::with(&[("board/index.tsx", SEALED)]);
    let site = folder.site();
    let (ann, ben) = (site.client(), site.client());
    let ticket = |page: &str| -> serde_json::Value {
        let json = page.split_once("data-with='").unwrap().1.split_once('\'').unwrap().0;
        serde_json::from_str::<Vec<serde_json::Value>>(json).unwrap().remove(0)
    };
    let page = ann.get("/board/").text().to_owned();
    assert!(!page.contains("secret"), "{page}");
    let own = ticket(&page);
    // A patch of an unchanged page is empty.
    assert_eq!(ticket(ann.get("/board/").text()), own);
    let answer: String = ann.post_json("/board/remove", &own).json();
    assert_eq!(answer, "secret other");
    let id = |value: &serde_json::Value| serde_json::json!({ "id": value });
    let answer: String = ann.post_json("/board/remove", &id(&own["id"])).json();
    assert_eq!(answer, "secret undefined");
    // Another visitor, service and argument.
    ben.get("/board/");
    for refused in [
        ben.post_json("/board/remove", &own),
        site.post_json("/board/remove", &own),
        ann.post_json("/board/keep", &id(&own["id"])),
        ann.post_json("/board/remove", &id(&own["to"])),
        ann.post_json("/board/remove", &id(&"secret".into())),
        ann.post_json("/board/remove", &serde_json::json!({})),
    ] {
        assert_eq!(refused.status(), 400, "{}", refused.text());
    }
    let refused = ben.post_json("/board/remove", &own);
    assert!(refused.text().contains("sealed for you: load the page again"), "{}", refused.text());
    let long = format!("/board/?of={}", "x".repeat(4200));
    let shown = error_of(&site, &long);
    assert!(
        shown.contains("a sealed value has at most 4096 bytes as JSON, and `id` has 4202"),
        "{shown}"
    );
}

#[test]
fn words_of_handlers_fail_on_the_server() {
    for (code, expected) in [
        ("navigate(\"/\")", "navigate(..) works in handlers"),
        ("bell.on(() => 1)", "`on` of an event works in handlers"),
        ("news.follow(() => 1)", "`follow` of a channel works in handlers"),
    ] {
        let page = format!(
            "import {{ channel, event, navigate, page }} from \"bine\";\nconst bell = event(\"bell\"), news = channel(\"news\");\nexport default page(() => <p>{{`${{{code}}}`}}</p>);\n"
        );
        let folder = Folder::with(&[("index.tsx", &page)]);
        let shown = error_of(&folder.site(), "/");
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn plain_data_travels_as_it_is() {
    let source = "import { page } from \"bine\";\nexport default page(() => {\n  const values = { text: \"<&\\\"'\\u0000\\u2028\", list: [1, -2.5, null, true], none: undefined, inner: { a: {} } };\n  return <button type=\"button\" onclick={() => { alert(values); }}>a</button>;\n});\n";
    let folder = Folder::with(&[("index.tsx", source)]);
    let page = folder.site().get("/").text().to_owned();
    let json = page.split_once("data-with='").unwrap().1.split_once('\'').unwrap().0;
    let json = json.replace("&#39;", "'").replace("&lt;", "<");
    let json: serde_json::Value = serde_json::from_str(&json.replace("&amp;", "&")).unwrap();
    let expected = serde_json::json!([{
        "text": "<&\"'\u{0}\u{2028}", "list": [1, -2.5, null, true], "inner": { "a": {} },
    }]);
    assert_eq!(json, expected);
}

#[test]
fn reports_names_that_the_browser_cannot_have() {
    let page = "import { page } from \"bine\";\nimport { helper } from \"./archive.ts\";\nexport default page(() => <button type=\"button\" onclick={() => helper(1)}>a</button>);\n";
    let folder = Folder::with(&[("index.tsx", page), ("archive.ts", ARCHIVE)]);
    let shown = error_of(&folder.site(), "/");
    assert!(
        shown.contains("index.tsx:3:64: `helper` of \"./archive.ts\" is no service"),
        "{shown}"
    );
    let files = [
        (
            "index.tsx",
            "import { page } from \"bine\";\nimport { a } from \"./a.browser.ts\";\nexport default page(() => <button type=\"button\" onclick={() => a}>a</button>);\n",
        ),
        ("a.browser.ts", "import { b } from \"./b.browser.ts\";\nexport const a = () => b;\n"),
        (
            "b.browser.ts",
            "import { a } from \"./a.browser.ts\";\nimport { page } from \"bine\";\nexport const b = () => a;\n",
        ),
    ];
    let folder = Folder::with(&files);
    let shown = error_of(&folder.site(), "/");
    assert!(
        shown.contains("b.browser.ts:1:19: files `.browser.ts` import each other in a circle"),
        "{shown}"
    );
    assert!(
        shown.contains("b.browser.ts:2:22: a file of the browser imports only others"),
        "{shown}"
    );
    let files = [(
        "index.tsx",
        "import { page } from \"bine\";\nimport { a } from \"./a.browser.ts\";\nexport default page(() => <button type=\"button\" onclick={() => a}>a</button>);\n",
    )];
    let folder = Folder::with(&files);
    let shown = error_of(&folder.site(), "/");
    assert!(shown.contains("a.browser.ts: there is no such file"), "{shown}");
}

#[test]
fn the_server_does_not_run_a_file_that_only_handlers_use() {
    let files = [
        (
            "index.tsx",
            "import { page } from \"bine\";\nimport { title } from \"./title.browser.ts\";\nexport default page(() => <button type=\"button\" onclick={() => title()}>a</button>);\n",
        ),
        ("title.browser.ts", "const start = document.title;\nexport const title = () => start;\n"),
    ];
    let folder = Folder::with(&files);
    assert_eq!(folder.site().get("/").status(), 200);
}

#[test]
fn runs_the_examples_of_the_chapter() {
    let (folder, _) = Folder::of_chapter("scripts-browser.md");
    let site = folder.site();
    let long = "x".repeat(61);
    for (title, problem) in [(" ", "Write a title."), (&*long, "1 too many.")] {
        let refused = site.post_json("/add", &serde_json::json!({ "title": title }));
        assert_eq!(refused.status(), 422);
        assert!(refused.text().contains(problem), "{}", refused.text());
    }
    let id: String = site.post_json("/add", &serde_json::json!({ "title": "Water" })).json();
    let remove = || site.post_json("/remove", &serde_json::json!({ "id": id })).status();
    assert_eq!(remove(), 409);
    let done = serde_json::json!({ "id": id, "done": true });
    assert!(site.post_json("/complete", &done).status() < 300);
    let page = site.get("/").text().to_owned();
    let code = site.get(&module_url_of(&page, "input")).text().to_owned();
    assert!(code.contains("problem(event.currentTarget.value)"), "{code}");
    assert_eq!(remove(), 204);
    // The other programs.
    for path in ["/notes", "/invitations", "/radio", "/doors"] {
        let page = site.get(path);
        assert_eq!(page.status(), 200, "{}", page.text());
    }
    assert_eq!(site.post_json("/erase", &serde_json::json!({ "id": id })).status(), 403);
    let guess = serde_json::json!({ "id": "1", "answer": "yes" });
    assert_eq!(site.post_json("/reply", &guess).status(), 400);
    let told = serde_json::json!({ "room": "hall", "body": "Rain." });
    assert!(site.post_json("/tell", &told).status() < 300);
    let messages = site.get("/channels?c=site/rooms/hall&after=earliest&wait=0");
    assert!(messages.text().contains("Rain."), "{}", messages.text());
}
