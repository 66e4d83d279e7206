//! Broken and hostile scripts: the server and the other applications are unharmed.

use serde_json::json;

use crate::folder::Folder;

/// An application with this page, and one that must keep working.
fn beside(page: &str) -> (Folder, bine::test::Site) {
    let folder = Folder::with(&[
        ("bad/index.tsx", page),
        ("bad/app.toml", "memory_mb = 4\ntimeout_ms = 50\nawait_ms = 100\n"),
        (
            "good/index.tsx",
            "import { page } from \"bine\";\nexport default page(() => <p>good</p>);\n",
        ),
    ]);
    let site = folder.site();
    (folder, site)
}

/// The status of the page with `?what=NAME` for each name, twice: an application that has ended
/// starts again.
fn check(script: &str, names: &[&str]) {
    let (_folder, site) = beside(script);
    for name in names {
        for _ in 0..2 {
            let reply = site.get(&format!("/bad/?what={name}"));
            assert_eq!(reply.status(), 503, "{name}: {}", reply.text());
            assert!(site.get("/good/").text().contains("<p>good</p>"), "{name}");
            let fine = site.get("/bad/?what=fine");
            assert!(fine.text().contains("<p>fine</p>"), "{name}: {}", fine.text());
        }
    }
}

#[test]
fn ends_scripts_that_exceed_their_limits() {
    check(
        r#"import { page } from "bine";
const cases: Record<string, () => unknown> = {
  fine: () => <p>fine</p>,
  loop: () => { for (;;); },
  recursion: () => { const f = (n: number): number => f(n + 1) + 1; return f(0); },
  text: () => "x".repeat(2 ** 29),
  list: () => { const list: unknown[] = []; for (;;) list.push(new Array(1000).fill(list)); },
};
export default page((ctx, { what }) => cases[what]());
"#,
        &["loop", "recursion", "text", "list"],
    );
}

#[test]
fn ends_waits_that_take_too_long() {
    check(
        r#"import { page } from "bine";
export default page(async (ctx, { what }) => {
  if (what !== "fine") await new Promise(() => {});
  return <p>fine</p>;
});
"#,
        &["never"],
    );
}

#[test]
fn keeps_objects_of_the_language_apart_from_requests() {
    let (_folder, site) = beside(
        r#"import { page, service } from "bine";
export const take = service((ctx, { inner }: { inner: { a: string } }) =>
  ({ a: inner.a, own: Object.keys(inner), clean: ({} as any).polluted === undefined }));
export default page((ctx, values) => <p>{String(Object.getPrototypeOf(values) === Object.prototype)}{values.polluted}</p>);
"#,
    );
    let page = site.get("/bad/?__proto__=x&constructor=y&polluted=z").text().to_owned();
    assert!(page.contains("<p>truez</p>"), "{page}");
    assert!(site.get("/bad/").text().contains("<p>true</p>"));
    let refused = site
        .request(bine::test::Method::Post, "/bad/take")
        .header("Content-Type", "application/json")
        .body(r#"{"inner":{"a":"1","__proto__":{"polluted":true}}}"#)
        .send();
    assert_eq!(refused.status(), 400, "{}", refused.text());
    let taken = site.post_json("/bad/take", &json!({ "inner": { "a": "1" } }));
    let expected = json!({ "a": "1", "own": ["a"], "clean": true });
    assert_eq!(taken.json::<serde_json::Value>(), expected);
}

#[test]
fn survives_exceptions_in_every_hook() {
    let (_folder, site) = beside(
        r#"import { page, service } from "bine";
const trap = { get a(): string { throw new Error("getter"); }, toJSON() { throw new Error("json"); } };
const cases: Record<string, () => unknown> = {
  fine: () => <p>fine</p>,
  getter: () => <p {...trap}>x</p>,
  text: () => <p>{trap as any}</p>,
  longText: () => { let text = "x"; for (;;) text += text; },
  nothing: () => undefined,
  thrownNull: () => { throw null; },
  thrownSymbol: () => { throw Symbol("s"); },
  proxy: () => { throw new Proxy({}, { get() { throw new Error("proxy"); } }); },
};
export const bad = service((ctx, { what }: { what: string }) => cases[what]());
export default page((ctx, { what }) => cases[what]());
"#,
    );
    for name in
        ["getter", "text", "longText", "nothing", "thrownNull", "thrownSymbol", "proxy", "unknown"]
    {
        let reply = site.get(&format!("/bad/?what={name}"));
        assert_eq!(reply.status(), 500, "{name}: {}", reply.text());
        let called = site.post_json("/bad/bad", &json!({ "what": name }));
        let expected = if name == "nothing" { 204 } else { 500 };
        assert_eq!(called.status(), expected, "{name}: {}", called.text());
        assert!(site.get("/bad/?what=fine").text().contains("<p>fine</p>"), "{name}");
    }
}
