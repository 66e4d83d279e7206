//! Trees of scripts, through the whole server: in pages, as HTML and XHTML, with nodes, and hostile.

use bine::test::{Method, Reply, Site};
use roxmltree::{Document, ParsingOptions};

use crate::folder::Folder;

const HTML: &str = "text/html; charset=utf-8";
const XHTML: &str = "application/xhtml+xml; charset=utf-8";

fn accepting(site: &Site, path: &str, accept: &str) -> Reply {
    site.request(Method::Get, path).header("Accept", accept).send()
}

/// The page as a client gets it that prefers XHTML.
fn as_xml(site: &Site, path: &str) -> Reply {
    let reply = accepting(site, path, "application/xhtml+xml, text/html;q=0.9");
    assert_eq!(reply.status(), 200, "{}", reply.text());
    assert_eq!(reply.header("Content-Type"), Some(XHTML), "{}", reply.text());
    reply
}

/// Parses a page as XML.
fn parsed(reply: &Reply) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(reply.text(), options);
    document.unwrap_or_else(|error| panic!("{error}: {}", reply.text()))
}

/// The content of `<body>`.
fn body(page: &str) -> &str {
    let (_, rest) = page.split_once("<body>").unwrap_or_else(|| panic!("{page}"));
    rest.split_once("</body>").unwrap().0
}

#[test]
fn shows_a_tree_that_was_built_once_and_changed_clones_of_it() {
    let folder = Folder::with(&[(
        "index.tsx",
        r#"import { page, tree } from "bine";
const menu = tree(<nav><a href="/" class="home">Home</a><a href="/b">B</a></nav>);
export default page((ctx, { at = "/" }) => {
  const own = menu.clone();
  own.change(`a[href='${at}']`, (link) => { link.setAttribute("aria-current", "page"); });
  own.insert("nav", "last", tree(<b>{at}</b>));
  return <main>{menu}{own}{menu.find(".home")}</main>;
});
"#,
    )]);
    let site = folder.site();
    for at in ["/", "/b", "/<"] {
        let current = |path: &str| if path == at { " aria-current=\"page\"" } else { "" };
        let expected = format!(
            "<main><nav><a href=\"/\" class=\"home\">Home</a><a href=\"/b\">B</a></nav>\
             <nav><a href=\"/\" class=\"home\"{}>Home</a><a href=\"/b\"{}>B</a><b>{}</b></nav>\
             <a href=\"/\" class=\"home\">Home</a></main>",
            current("/"),
            current("/b"),
            at.replace('<', "&lt;"),
        );
        let page = site.get(&format!("/?at={}", at.replace('<', "%3C")));
        assert_eq!(body(page.text()), expected);
    }
}

#[test]
fn serves_a_tree_as_html_or_xhtml_by_request() {
    let folder = Folder::with(&[
        ("app.toml", "title = \"Trees & <more>\""),
        (
            "index.tsx",
            r#"import { page, tree } from "bine";
export default page((ctx, { q = "" }) => tree(<main title={q}>{q}<br /><img src="/a" alt="" hidden /></main>));
"#,
        ),
        (
            "whole.tsx",
            r#"import { page, tree } from "bine";
export default page(() => tree(
  <html lang="en"><head><title>Whole</title><script>{"if (1 < 2) a();"}</script></head><body><p>a &amp; b</p></body></html>
));
"#,
        ),
        (
            "raw.tsx",
            r#"import { page, raw, tree } from "bine";
export default page(() => tree(<p>{raw("<b>not <i>XML</b>")}</p>));
"#,
        ),
        (
            "markup.tsx",
            r#"import { page, tree } from "bine";
export default page(() => <main>{tree(<p>a</p>)}</main>);
"#,
        ),
    ]);
    let site = folder.site();
    let target = "/?q=%3Cb%3E%0D%0A%00%26%22";
    let xml = as_xml(&site, target);
    assert_eq!(xml.header("Vary"), Some("Accept"));
    let document = parsed(&xml);
    let root = document.root_element();
    assert!(root.has_tag_name(("http://www.w3.org/1999/xhtml", "html")), "{}", xml.text());
    let find = |name| document.descendants().find(|node| node.has_tag_name(name)).unwrap();
    assert_eq!(find("main").attribute("title"), Some("<b>\r\n\u{fffd}&\""));
    assert_eq!(find("main").text(), Some("<b>\r\n\u{fffd}&\""));
    assert_eq!(find("title").text(), Some("Trees & <more>"));

    let html = accepting(&site, target, "text/html,application/xhtml+xml;q=0.9");
    assert_eq!((html.header("Content-Type"), html.header("Vary")), (Some(HTML), Some("Accept")));
    let text = html.text();
    assert!(
        text.starts_with("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\" />"),
        "{text}"
    );
    assert!(text.contains("<title>Trees &amp; &lt;more&gt;</title>"), "{text}");
    let expected = "<br /><img src=\"/a\" alt=\"\" hidden=\"\" /></main>";
    assert!(body(text).ends_with(expected), "{text}");

    let whole = as_xml(&site, "/whole");
    let whole = parsed(&whole);
    let script = whole.descendants().find(|node| node.has_tag_name("script")).unwrap();
    assert_eq!(script.text(), Some("if (1 < 2) a();"));
    let whole = site.get("/whole");
    assert!(
        whole.text().starts_with("<!DOCTYPE html><html lang=\"en\"><head><title>Whole"),
        "{}",
        whole.text()
    );
    assert!(whole.text().contains("if (1 < 2) a();"), "{}", whole.text());

    for path in ["/raw", "/markup"] {
        let reply = accepting(&site, path, "application/xhtml+xml");
        assert_eq!(reply.header("Content-Type"), Some(HTML), "{path}: {}", reply.text());
    }
}

#[test]
fn layouts_of_trees_and_of_markup_take_pages_that_are_trees() {
    let folder = Folder::with(&[
        (
            "_layout.tsx",
            r#"import { tree } from "bine";
export default ({ children, title }: any) => tree(
  <html lang="en"><head><title>{title}</title></head><body class="a">{children}</body></html>
);
"#,
        ),
        (
            "index.tsx",
            r#"import { page, tree } from "bine";
export const title = "A tree";
export default page((ctx, { kind }) =>
  kind === "whole" ? tree(<html lang="de"><head><title>own</title></head><body></body></html>)
  : kind === "markup" ? <p>b</p> : tree(<p>b</p>));
"#,
        ),
        (
            "plain/_layout.tsx",
            r#"export default ({ children, title }: any) =>
  <html lang="en"><head><title>{title}</title></head><body class="b">{children}</body></html>;
"#,
        ),
        (
            "plain/index.tsx",
            r#"import { page, tree } from "bine";
export default page(() => tree(<p>c</p>));
"#,
        ),
    ]);
    let site = folder.site();
    let xml = as_xml(&site, "/");
    assert!(xml.text().contains("<title>A tree</title>"), "{}", xml.text());
    assert!(xml.text().contains("<body class=\"a\"><p>b</p></body>"), "{}", xml.text());
    let own = as_xml(&site, "/?kind=whole");
    assert!(
        own.text().contains("lang=\"de\"") && !own.text().contains("class=\"a\""),
        "{}",
        own.text()
    );
    let markup = accepting(&site, "/?kind=markup", "application/xhtml+xml");
    assert_eq!(markup.header("Content-Type"), Some(HTML));
    assert!(markup.text().contains("<body class=\"a\"><p>b</p></body>"), "{}", markup.text());
    let plain = accepting(&site, "/plain/", "application/xhtml+xml");
    assert_eq!(plain.header("Content-Type"), Some(HTML));
    assert!(plain.text().contains("<body class=\"b\"><p>c</p></body>"), "{}", plain.text());
}

#[test]
fn nodes_of_a_tree_of_the_module_are_written_for_each_request() {
    let folder = Folder::with(&[
        (
            "index.tsx",
            r#"import { node, page, tree } from "bine";
const Greeting = node(({ word }: { word: string }, { ctx, format }) =>
  tree(<b title={format}>{word} {ctx.path}</b>));
const menu = tree(<nav><Greeting word="Hello" /></nav>);
export default page((ctx, { as }) => (as === "tree" ? menu : <main>{menu}{menu.plainText()}</main>));
"#,
        ),
        (
            "writer.tsx",
            r#"import { node, page, tree } from "bine";
const Stars = node(({ count }: { count: number }) => <b>{"*".repeat(count)}</b>);
const text = tree(<article><h2 id="one">One</h2><p>See <a href="/a?b&amp;c">there</a>: <Stars count={3} /></p></article>);
export default page(() => (
  <main>
    <nav>{text.tableOfContents()}</nav>
    {text.write({
      elements: { "a[href]": (link, content) => <>{content} ({link.attribute("href")})</> },
      node: (kind, data) => (kind === Stars ? `${data.count} of 5` : undefined),
    })}
  </main>
));
"#,
        ),
    ]);
    let site = folder.site();
    for path in ["/?a=1", "/?a=2"] {
        let expected =
            format!("<main><nav><b title=\"html\">Hello {path}</b></nav>Hello {path}\n</main>");
        assert_eq!(body(site.get(path).text()), expected);
    }
    let tree = as_xml(&site, "/?as=tree");
    assert!(
        tree.text().contains("<nav><b title=\"html\">Hello /?as=tree</b></nav>"),
        "{}",
        tree.text()
    );
    assert_eq!(
        body(site.get("/writer").text()),
        "<main><nav><ol><li><a href=\"#one\">One</a></li></ol></nav><article><h2 id=\"one\">One</h2>\
         <p>See there (/a?b&amp;c): 3 of 5</p></article></main>"
    );
}

#[test]
fn shows_the_place_of_an_exception_in_a_node() {
    let folder = Folder::with(&[(
        "board/index.tsx",
        "import { node, page, tree } from \"bine\";\nconst Bad = node(() => {\n  throw new Error(\"no stars\");\n});\n\
         const shown = tree(<p>a <Bad /></p>);\nexport default page((ctx, { as }) => as ? shown : <main>{shown}</main>);\n",
    )]);
    let site = folder.site();
    for path in ["/board/", "/board/?as=tree"] {
        let reply = accepting(&site, path, "text/html");
        assert_eq!(reply.status(), 500);
        let place = "board/index.tsx:3:13: Error: no stars";
        assert!(reply.text().contains(place), "{}", reply.text());
    }
}

#[test]
fn requests_cannot_change_a_tree_of_the_module() {
    let folder = Folder::with(&[(
        "index.tsx",
        r#"import { page, tree } from "bine";
const menu = tree(<nav><a href="/">Home</a></nav>);
export default page((ctx, { change }) => {
  if (change) menu.remove("a");
  return <main>{menu}</main>;
});
"#,
    )]);
    let site = folder.site();
    let changed = accepting(&site, "/?change=1", "text/html");
    assert_eq!(changed.status(), 500);
    let reason = "index.tsx:4:";
    assert!(changed.text().contains(reason), "{}", changed.text());
    assert!(changed.text().contains("all requests share it"), "{}", changed.text());
    assert_eq!(body(site.get("/").text()), "<main><nav><a href=\"/\">Home</a></nav></main>");
}

#[test]
fn trees_cannot_pass_as_json_or_into_tables() {
    let folder = Folder::with(&[(
        "index.tsx",
        r#"import { page, service, table, text, tree } from "bine";
const notes = table("notes", { body: text() });
export const get = service(() => ({ part: tree(<p>a</p>) as any }));
export const put = service(() => notes.insert({ body: tree(<p>a</p>) as any }));
export default page(() => <p>a</p>);
"#,
    )]);
    let site = folder.site();
    let reply = site.post_json("/get", &serde_json::json!({}));
    assert_eq!(reply.status(), 500, "{}", reply.text());
    let reply = site.post_json("/put", &serde_json::json!({}));
    assert!(reply.status() >= 400, "{}", reply.text());
}

#[test]
fn an_error_page_may_be_a_tree() {
    let folder = Folder::with(&[
        ("index.tsx", "import { page } from \"bine\";\nexport default page(() => <p>a</p>);\n"),
        (
            "_error.tsx",
            r#"import { node, tree } from "bine";
const Status = node(({ status }: { status: number }) => `${status}`);
export default async ({ status }: any) => tree(<p class="lost"><Status status={status} /></p>);
"#,
        ),
    ]);
    let site = folder.site();
    let request = site.request(bine::test::Method::Get, "/nothing");
    let reply = request.header("Accept", "text/html").send();
    assert_eq!(reply.status(), 404);
    assert_eq!(body(reply.text()), "<p class=\"lost\">404</p>");
}

#[test]
fn hostile_trees_harm_no_other_application() {
    let folder = Folder::with(&[
        (
            "bad/index.tsx",
            r#"import { element, node, page, tree } from "bine";
const Again = node(() => tree(<p><Again /></p>));
const cases: Record<string, () => any> = {
  fine: () => tree(<p>fine</p>),
  million: () => tree(<ul>{Array.from({ length: 1_000_000 }, (_, n) => <li>{n}</li>)}</ul>),
  doubled: () => { let t: any = tree(<p>a</p>); for (;;) t = tree(<>{t}{t}</>); },
  itself: () => { const t = tree(<ul><li>a</li></ul>); for (;;) t.insert("li", "last", t); },
  clones: () => { const all = []; for (;;) { const t = tree(<p>{"a".repeat(1e4)}</p>); t.append?.("b"); all.push(t); } },
  deep: () => { let t: any = tree(<i />); for (;;) t = element("i", {}, t); },
  recursion: () => tree(<p><Again /></p>),
  loop: () => tree(<p>a</p>).change("p", () => { for (;;); }),
  pollution: () => {
    (Object.prototype as any).elements = { p: () => { throw new Error("polluted"); } };
    (Object.prototype as any).lang = "polluted";
    try {
      return tree(<p>fine</p>).clone().write({});
    } finally {
      delete (Object.prototype as any).elements;
      delete (Object.prototype as any).lang;
    }
  },
};
export default page((ctx, { what }) => cases[what]());
"#,
        ),
        ("bad/app.toml", "memory_mb = 8\ntimeout_ms = 500\n"),
        (
            "good/index.tsx",
            "import { page } from \"bine\";\nexport default page(() => <p>good</p>);\n",
        ),
    ]);
    let site = folder.site();
    for name in ["million", "doubled", "itself", "clones", "deep", "recursion", "loop"] {
        let reply = site.get(&format!("/bad/?what={name}"));
        assert!([500, 503].contains(&reply.status()), "{name}: {}", reply.text());
        assert!(site.get("/good/").text().contains("<p>good</p>"), "{name}");
        for what in ["fine", "pollution"] {
            let fine = site.get(&format!("/bad/?what={what}"));
            assert!(fine.text().contains("<p>fine</p>"), "{name}: {}", fine.text());
        }
    }
}
