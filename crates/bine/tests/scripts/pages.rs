//! Pages: their routes, parameters, layouts and files.

use bine::test::Method;

use crate::folder::Folder;

const HELLO: &str = r#"import { page } from "bine";
export default page((ctx, { name = "world" }) => <h1>Hello {name}</h1>);
"#;

#[test]
fn renders_a_page_in_a_document() {
    let folder = Folder::with(&[("index.tsx", HELLO), ("app.toml", "title = \"Hops & <malt>\"")]);
    let site = folder.site();
    let reply = site.get("/");
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
    let page = reply.text();
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\"><head>"), "{page}");
    assert!(page.contains("<title>Hops &amp; &lt;malt&gt;</title>"), "{page}");
    assert!(page.ends_with("<body><h1>Hello world</h1></body></html>"), "{page}");
}

#[test]
fn passes_parameters_of_path_and_query() {
    let folder = Folder::with(&[
        ("shop/index.tsx", HELLO),
        (
            "shop/[kind]/[id].tsx",
            r#"import { page } from "bine";
export default page((ctx, { kind, id, q, q2 }) => <p>{kind}/{id}/{q}/{q2 === undefined}</p>);
"#,
        ),
        (
            "shop/files/[...path].tsx",
            r#"import { page } from "bine";
export default page((ctx, { path }) => <p>{path}</p>);
"#,
        ),
    ]);
    let site = folder.site();
    let text = |path: &str| {
        let text = site.get(path).text().to_owned();
        text.split_once("<body>").unwrap().1.trim_end_matches("</body></html>").to_owned()
    };
    assert_eq!(text("/shop/?name=A%26B"), "<h1>Hello A&amp;B</h1>");
    assert_eq!(text("/shop/malt/7?q=a+b&id=other&q=second"), "<p>malt/7/a b/</p>");
    assert_eq!(text("/shop/files/a/b.txt"), "<p>a/b.txt</p>");
    let reply = site.get("/shop");
    let moved = (reply.status(), reply.header("location"));
    assert_eq!(moved, (308, Some("/shop/")));
}

#[test]
fn escapes_values_by_their_place() {
    let folder = Folder::with(&[(
        "index.tsx",
        r#"import { page, raw } from "bine";
export default page((ctx, { q = "" }) => <p title={q}>{q}<a href={q}>x</a>{raw("<i>ok</i>")}</p>);
"#,
    )]);
    let reply = folder.site().get("/?q=javascript:%22%3Cscript%3E");
    let page = reply.text();
    let expected = "<p title=\"javascript:&quot;&lt;script&gt;\">javascript:&quot;&lt;script&gt;\
                    <a href=\"about:invalid#refused\">x</a><i>ok</i></p>";
    assert!(page.contains(expected), "{page}");
}

#[test]
fn puts_pages_into_the_nearest_layout() {
    let folder = Folder::with(&[
        (
            "_layout.tsx",
            r#"export default ({ children, title, path }) =>
  <html lang="en"><head><title>{title}</title></head><body class="outer">{path}{children}</body></html>;
"#,
        ),
        ("index.tsx", HELLO),
        (
            "deep/page.tsx",
            r#"import { page } from "bine";
export const title = "Deep";
export default page(() => <p>deep</p>);
"#,
        ),
        (
            "deep/_layout.tsx",
            r#"export default ({ children, title }) =>
  <html lang="en"><head><title>{title}</title></head><body class="inner">{children}</body></html>;
"#,
        ),
    ]);
    let site = folder.site();
    let outer = site.get("/?name=a").text().to_owned();
    assert!(outer.starts_with("<!DOCTYPE html><html lang=\"en\"><head><title></title>"), "{outer}");
    assert!(
        outer.contains("<body class=\"outer\">/?name=a<h1>Hello a</h1></body></html>"),
        "{outer}"
    );
    let inner = site.get("/deep/page").text().to_owned();
    assert!(inner.contains("<title>Deep</title>"), "{inner}");
    assert!(inner.contains("<body class=\"inner\"><p>deep</p></body>"), "{inner}");
}

#[test]
fn serves_public_files_and_nothing_else_of_the_folder() {
    let folder = Folder::with(&[
        ("board/index.tsx", HELLO),
        ("board/secret.txt", "secret"),
        ("board/app.toml", "title = \"secret\""),
        ("board/_parts.tsx", "export const a = 1;"),
        ("board/public/style.css", "p { color: red }"),
        ("board/public/deep/a.txt", "a"),
    ]);
    let site = folder.site();
    let style = site.get("/board/style.css");
    assert_eq!((style.status(), style.text()), (200, "p { color: red }"));
    assert_eq!(site.get("/board/deep/a.txt").text(), "a");
    for path in [
        "/board/index.tsx",
        "/board/secret.txt",
        "/board/app.toml",
        "/board/_parts.tsx",
        "/board/public/style.css",
        "/board/nothing",
    ] {
        assert_eq!(site.get(path).status(), 404, "{path}");
    }
}

#[test]
fn answers_health_checks_beside_an_application_at_the_root() {
    let folder = Folder::with(&[("index.tsx", HELLO)]);
    let site = folder.site();
    assert_eq!(site.get("/health").text(), "alive\n");
    assert_eq!(site.get("/nothing").status(), 404);
    let own = Folder::with(&[("index.tsx", HELLO), ("health.tsx", HELLO)]);
    assert!(own.site().get("/health").text().contains("Hello world"));
}

#[test]
fn answers_redirects_and_errors() {
    let folder = Folder::with(&[
        (
            "index.tsx",
            r#"import { page, redirect, notFound, error } from "bine";
const answers = {
  returned: () => redirect("/other?a=1"),
  thrown: () => { throw redirect("/thrown"); },
  missing: () => notFound(),
  gone: () => error(410, "Sold out"),
  teapot: () => { throw error(418, "I am a <teapot>"); },
};
export default page((ctx, { what }) => answers[what]());
"#,
        ),
        (
            "later.tsx",
            r#"import { page, redirect } from "bine";
export default page(async (ctx, { how }) => {
  await null;
  if (how === "thrown") throw redirect("/later");
  return how === "page" ? <p>later</p> : redirect("/now");
});
"#,
        ),
    ]);
    let site = folder.site();
    let location = |path: &str| {
        let reply = site.get(path);
        (reply.status(), reply.header("location").map(str::to_owned))
    };
    let to = |path: &str| (303, Some(path.to_owned()));
    assert_eq!(location("/?what=returned"), to("/other?a=1"));
    assert_eq!(location("/?what=thrown"), to("/thrown"));
    assert_eq!(location("/?what=missing"), (404, None));
    assert_eq!(location("/?what=gone"), (410, None));
    assert_eq!(location("/later?how=thrown"), to("/later"));
    assert_eq!(location("/later"), to("/now"));
    assert!(site.get("/later?how=page").text().contains("<p>later</p>"));
    let teapot = site.get("/?what=teapot");
    assert_eq!(teapot.status(), 418);
    assert!(teapot.text().contains("I am a <teapot>"), "{}", teapot.text());
}

#[test]
fn answers_only_get_at_pages() {
    let folder = Folder::with(&[("index.tsx", HELLO), ("about.tsx", HELLO)]);
    let site = folder.site();
    assert_eq!(site.request(Method::Head, "/about").send().status(), 200);
    let put = site.request(Method::Put, "/about").send();
    assert_eq!(put.status(), 405);
    assert_eq!(site.request(Method::Post, "/").send().status(), 405);
}

#[test]
fn imports_modules_of_the_application() {
    let folder = Folder::with(&[
        (
            "index.tsx",
            r#"import { page } from "bine";
import { Card } from "./_parts/card.tsx";
import { total } from "./math.ts";
export default page(() => <main><Card title="a">{total([1, 2, 3])}</Card></main>);
"#,
        ),
        (
            "_parts/card.tsx",
            r#"import { total } from "../math.ts";
export const Card = ({ title, children }: { title: string; children?: unknown }) =>
  <section><h2>{title}{total([])}</h2>{children}</section>;
"#,
        ),
        (
            "math.ts",
            "export const total = (all: number[]): number => all.reduce((a, b) => a + b, 0);\n",
        ),
    ]);
    let page = folder.site().get("/").text().to_owned();
    assert!(page.contains("<main><section><h2>a0</h2>6</section></main>"), "{page}");
}

#[test]
fn keeps_applications_apart() {
    let folder = Folder::with(&[
        ("a/index.tsx", &HELLO.replace("Hello", "A")),
        ("b/index.tsx", "export default 1 +;"),
        ("plain.txt", "a file"),
    ]);
    let site = folder.site();
    assert!(site.get("/a/").text().contains("<h1>A world</h1>"));
    assert_eq!(site.get("/b/").status(), 500);
    assert!(site.get("/a/").text().contains("<h1>A world</h1>"));
}

#[test]
fn rejects_a_site_whose_pages_conflict() {
    let folder = Folder::with(&[("index.tsx", HELLO), ("[a].tsx", HELLO), ("[b].tsx", HELLO)]);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| folder.site()));
    let reason = failed.err().unwrap();
    let reason = reason.downcast_ref::<String>().unwrap();
    assert!(reason.contains("[a].tsx and [b].tsx would answer the same paths"), "{reason}");
}

#[test]
fn loads_an_application_at_its_first_request() {
    let folder = Folder::with(&[("index.tsx", "this is no program")]);
    let site = folder.site();
    // The server has started with a file that cannot be loaded, and reads it only now.
    folder.write("index.tsx", HELLO);
    assert!(site.get("/").text().contains("<h1>Hello world</h1>"));
}

#[test]
fn reads_the_tables_of_one_moment_in_a_page() {
    let folder = Folder::with(&[(
        "index.tsx",
        r#"import { page, service, table, text } from "bine";
const notes = table("notes", { body: text() });
export const write = service((ctx, { body }: { body: string }) => { notes.insert({ body }); });
export default page(async (ctx, { url }) => {
  const before = notes.count();
  if (url !== undefined) {
    await fetch(url, { method: "POST", body: JSON.stringify({ body: "other" }), headers: { "Content-Type": "application/json" } });
  }
  return <p>{before},{notes.count()}</p>;
});
"#,
    )]);
    let site = folder.site();
    let url = format!("http://{}/write", site.address());
    let page = site.get(&format!("/?url={url}")).text().to_owned();
    assert!(page.contains("<p>0,0</p>"), "{page}");
    assert!(site.get("/").text().contains("<p>1,1</p>"));
}

#[test]
fn runs_timers_that_a_page_leaves_behind() {
    let folder = Folder::with(&[(
        "index.tsx",
        r#"import { page } from "bine";
export default page(() => { setTimeout(() => {}, 0); return <p>set</p>; });
"#,
    )]);
    let site = folder.site();
    // More than an instance may have at one time.
    for _ in 0..3000 {
        assert_eq!(site.get("/").status(), 200);
    }
}

#[test]
fn tells_pages_and_layouts_the_path_of_the_application() {
    let folder = Folder::with(&[
        (
            "shop/_layout.tsx",
            "export default ({ children, base }) => <html lang=\"en\"><head><title>{base}</title></head><body>{children}</body></html>;\n",
        ),
        (
            "shop/index.tsx",
            "import { page } from \"bine\";\nexport default page((ctx) => <a href={`${ctx.base}/cart`}>Cart</a>);\n",
        ),
        ("shop/_error.tsx", "export default ({ status, base }) => <p>{status}{base}</p>;\n"),
    ]);
    let site = folder.site();
    let page = site.get("/shop/").text().to_owned();
    assert!(page.contains("<title>/shop</title>"), "{page}");
    assert!(page.contains("<a href=\"/shop/cart\">"), "{page}");
    let request = site.request(Method::Get, "/shop/nothing").header("Accept", "text/html");
    let reply = request.send();
    assert!(reply.text().contains("<p>404/shop</p>"), "{}", reply.text());
}

#[test]
fn shows_the_title_that_a_page_sets() {
    let layout = "export default ({ title, children }) => <html lang=\"en\"><head><title>{title}</title></head><body>{children}</body></html>;\n";
    let page = "import { page, service } from \"bine\";\n\
                export const title = \"usual\";\n\
                export const wrong = service((ctx) => { ctx.title = \"x\"; });\n\
                export default page(async (ctx, { own }) => {\n\
                if (own) { await null; ctx.title = own; }\n\
                return <p>{ctx.title}</p>; });\n";
    let folder = Folder::with(&[
        ("plain/index.tsx", page),
        ("laid/index.tsx", page),
        ("laid/_layout.tsx", layout),
    ]);
    let site = folder.site();
    for app in ["plain", "laid"] {
        let usual = site.get(&format!("/{app}/")).text().to_owned();
        assert!(usual.contains("<title>usual</title>"), "{usual}");
        let own = site.get(&format!("/{app}/?own=%3Cown%3E")).text().to_owned();
        assert!(own.contains("<title>&lt;own&gt;</title>"), "{own}");
        assert!(own.contains("<p>&lt;own&gt;</p>"), "{own}");
        let again = site.get(&format!("/{app}/")).text().to_owned();
        assert!(again.contains("<title>usual</title>"), "{again}");
        let wrong = site.post_json(&format!("/{app}/wrong"), &serde_json::json!({}));
        assert_eq!(wrong.status(), 500);
        assert!(wrong.text().contains("a service has no title"), "{}", wrong.text());
    }
}

/// Text that `raw` marks as trusted may be that of others, so it must define no handlers. Handlers in
/// it were written as they are: the escape of `data-on` existed in the model of the compiler only.
#[test]
fn disables_handlers_in_trusted_markup() {
    let folder = Folder::with(&[(
        "index.tsx",
        r#"import { page, raw, tree } from "bine";
const text = (on: string) => `<b ${on}="click: call /pay">b</b>`;
const code = "a(' data-on ');";
const Box = ({ children }: any) => <i>{children}</i>;
export default page((ctx, { as, on = "data-on" }) => {
  const trusted = raw(text(on));
  if (as === "page") return trusted;
  if (as === "text") return <p>{String(<i>{trusted}</i>)}</p>;
  if (as === "again") return <p>{raw(String(<i>{trusted}</i>))}</p>;
  if (as === "split") return <p>{raw("<b data-")}{raw("on='click: call /pay'>b</b>")}</p>;
  if (as === "tree") return tree(<p>{trusted}</p>);
  if (as === "code") return <div><script>{raw(code)}</script><p style={raw("--a: ' data-on '")} /></div>;
  if (as === "code in a tree") return tree(<div><script>{raw(code)}</script></div>);
  if (as === "source") return <p data-on="click: toggle #a">{trusted}</p>;
  return <p><Box>{[trusted]}</Box></p>;
});
"#,
    )]);
    let site = folder.site();
    let disabled = "<b data&#45;on=\"click: call /pay\">b</b>";
    for (query, expected) in [
        ("", &*format!("<p><i>{disabled}</i></p>")),
        ("as=page", disabled),
        ("as=page&on=Data-ON", "<b Data&#45;ON=\"click: call /pay\">b</b>"),
        ("as=page&on=data-once", "<b data-once=\"click: call /pay\">b</b>"),
        ("as=text", "&lt;b data&amp;#45;on=&quot;click"),
        ("as=again", &*format!("<p><i>{disabled}</i></p>")),
        ("as=split", "<b data&#45;on='click: call /pay'>"),
        ("as=tree", &*format!("<p>{disabled}</p>")),
        ("as=code", "<script>a(' data-on ');</script><p style=\"--a: &#39; data-on &#39;\">"),
        ("as=code+in+a+tree", "<script>a(' data-on ');</script>"),
        ("as=source", &*format!("<p data-on=\"click: toggle #a\">{disabled}</p>")),
    ] {
        let text = site.get(&format!("/?{query}")).text().to_owned();
        assert!(text.contains(expected), "{query}: {text}");
    }
}
