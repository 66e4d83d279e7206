//! The start script of a site: rules, groups, filters, its errors and its changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use bine::prelude::*;
use bine::test::{Method, Site};

use crate::folder::Folder;

/// More than any change takes.
const PATIENCE: Duration = Duration::from_mins(1);

const PAGE: &str = "import { page } from \"bine\";\nexport default page((ctx, { name = \"page\" }) => <p>{name}</p>);\n";

#[page(POST "/enter/{user}")]
async fn enter(session: Session, user: Path<Text>) -> Result<Response, Error> {
    session.log_in(user).await?;
    Ok(Response::text("in"))
}

/// A folder with this start script and these files.
fn folder(script: &str, files: &[(&str, &str)]) -> Folder {
    let folder = Folder::with(files);
    folder.write("start.ts", script);
    folder
}

/// The message of a start that must fail.
fn failure(folder: &Folder) -> String {
    let failed = catch_unwind(AssertUnwindSafe(|| folder.site()));
    let reason = failed.expect_err("the site must not start");
    reason.downcast_ref::<String>().expect("a panic has a message").clone()
}

/// Requests a path until the text of the reply is right.
#[track_caller]
fn until(site: &Site, path: &str, is_right: impl Fn(&str) -> bool) {
    let began = Instant::now();
    loop {
        let text = shown(site, path);
        if is_right(&text) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{path}: {text}");
    }
}

/// The text that a browser gets, where the page of an error shows its cause.
fn shown(site: &Site, path: &str) -> String {
    let reply = site.request(Method::Get, path).header("Accept", "text/html").send();
    let text = reply.text();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'")
}

#[test]
fn checks_the_rules_of_the_start_script_before_an_application_is_loaded() {
    let folder = folder(
        r#"import { group, rule } from "bine:start";
rule("/admin/*", "read", "group:staff", "ben");
rule("/admin/plans/*", "write", "administrators");
group("staff", "ann", "eva");
"#,
        &[
            ("admin/index.tsx", PAGE),
            ("admin/plans/index.tsx", "this cannot be compiled"),
            ("admin/plans/app.toml", ""),
            ("open/index.tsx", PAGE),
        ],
    );
    let site = Site::new(folder.app().page(enter));
    assert_eq!(site.get("/open/").status(), 200);
    assert_eq!(site.get("/admin/").status(), 401);
    assert_eq!(site.get("//admin//").status(), 401);
    // An application that were loaded would fail.
    assert_eq!(site.get("/admin/plans/").status(), 401);
    for (user, expected) in [("ann", 200), ("eva", 200), ("ben", 200), ("joe", 403)] {
        let client = site.client();
        client.request(Method::Post, &format!("/enter/{user}")).send();
        assert_eq!(client.get("/admin/").status(), expected, "{user}");
        assert_eq!(client.get("/admin/plans/").status(), 403, "{user}");
    }
}

// Long because it is one table of wrong scripts.
#[test]
fn stops_the_start_with_the_place_of_an_error() {
    for (script, place, reason) in [
        ("const a = ;", "start.ts:1:11", ""),
        ("import { page } from \"bine\";", "start.ts:1:22", "import the words of \"bine:start\""),
        (
            "import { rule } from \"bine:start\";\n\nrule(\"/a*b\", \"read\", \"ann\");",
            "start.ts:3:",
            "`*` is the whole last segment",
        ),
        (
            "import { rule } from \"bine:start\";\nrule(\"/a\", \"raed\", \"ann\");",
            "start.ts:2:",
            "a path has read and write",
        ),
        (
            "import { rule } from \"bine:start\";\nrule(\"/a\", \"read\");",
            "start.ts:2:",
            "names nobody",
        ),
        (
            "import { group } from \"bine:start\";\ngroup(\"users\", \"ann\");",
            "start.ts:2:",
            "everyone who has logged in",
        ),
        ("\nthrow new Error(\"no luck\");", "start.ts:2:", "Error: no luck"),
        ("for (;;);", "start.ts: ", "limit of run time: look for a loop without an end"),
        (
            "import { scheduler } from \"bine:start\";\nscheduler(() => { for (;;); });",
            "start.ts:2:",
            "limit of run time",
        ),
        (
            "const f = (n: number): number => f(n + 1) + 1;\nf(0);",
            "start.ts:1:39: ",
            "Maximum call stack size exceeded",
        ),
        ("await new Promise(() => {});", "start.ts", "must not use `await`"),
        ("fetch(\"/\");", "start.ts:1:", "has no `fetch`"),
        (
            "import { filter } from \"bine:start\";\nfilter(async () => {});",
            "start.ts:2:",
            "must not be async",
        ),
        (
            "import { filter } from \"bine:start\";\nfilter(() => {}, { paths: [\"shop\"] });",
            "start.ts:2:",
            "begins with /",
        ),
        (
            "import { filter } from \"bine:start\";\nfilter(() => {}, { path: \"/\" } as any);",
            "start.ts:2:",
            "has no option `path`: it has paths",
        ),
        (
            "import { scheduler } from \"bine:start\";\nscheduler(() => ({}) as any);",
            "start.ts",
            "a scheduler has `next`, `admit` or both",
        ),
        (
            "import { scheduler } from \"bine:start\";\nscheduler(() => { throw new Error(\"no policy\"); });",
            "start.ts:2:",
            "no policy",
        ),
        (
            "import { scheduler } from \"bine:start\";\nscheduler(() => ({ next: () => null }), { places: 0 });",
            "start.ts:2:",
            "a number from 1 to 1024",
        ),
        (
            "import { withHeaders } from \"bine:start\";\nwithHeaders({ \"Content-Length\": \"1\" });",
            "start.ts:2:",
            "the server sets Content-Length itself",
        ),
        ("import \"./none.ts\";", "start.ts:1:8: none.ts", "no such file"),
        (
            "let count = 0;\nexport const more = () => count++;",
            "start.ts:1:5",
            "each event loop of the server has variables of its own",
        ),
    ] {
        let message = failure(&folder(script, &[]));
        assert!(message.contains(place), "{script}: {message}");
        assert!(message.contains(reason), "{script}: {message}");
    }
    // With an excerpt of the source.
    let message = failure(&folder(
        "import { rule } from \"bine:start\";\nrule(\"/a\", \"raed\", \"b\");",
        &[],
    ));
    assert!(message.contains("\n  2 | rule(\"/a\", \"raed\", \"b\");\n"), "{message}");
}

#[test]
fn rejects_an_application_that_imports_the_words_of_the_start_script() {
    let folder = Folder::with(&[(
        "index.tsx",
        "import { rule } from \"bine:start\";\nrule(\"/\", \"read\", \"users\");\n",
    )]);
    let site = folder.site();
    assert_eq!(site.get("/").status(), 500);
    let text = shown(&site, "/");
    assert!(text.contains("index.tsx:1:22: only start.ts, in the folder of the site"), "{text}");
}

#[test]
fn never_serves_the_modules_of_the_start_script() {
    let folder = folder(
        "import { paths } from \"./lib/paths.ts\";\nimport { filter, respond } from \"bine:start\";\nfilter(() => respond(\"lib\"), { paths });\n",
        &[
            ("lib/paths.ts", "export const paths = [\"/lib\"];\n"),
            ("lib/other.ts", "export {};\n"),
            ("index.html", "files"),
        ],
    );
    let site = Site::new(folder.app().files(folder.path()));
    assert_eq!(site.get("/").text(), "files");
    assert_eq!(site.get("/lib").text(), "lib");
    for path in
        ["/start.ts", "//start.ts", "/./start.ts", "/%73tart.ts", "/lib/paths.ts", "/lib//paths.ts"]
    {
        assert_eq!(site.get(path).status(), 404, "{path}");
    }
    assert_eq!(site.get("/lib/other.ts").text(), "export {};\n");
}

const FILTERS: &str = r#"import { error, filter, redirect, respond, rewrite, withHeaders } from "bine:start";

filter((request) => {
  switch (request.path) {
    case "/old": return redirect("/shop/?name=new");
    case "/moved": return redirect("/shop/", 308);
    case "/short": return rewrite("/shop/?name=short", { headers: { "X-Rewritten": "yes" } });
    case "/closed": return error(403, "Closed <today>.");
    case "/thrown": throw error(410, "Gone.");
    case "/data": return respond('{"a":1}', { type: "application/json", status: 201, headers: { "X-Own": "1" } });
    case "/about": return respond([
      request.method, request.path, request.query, request.header("x-a"), request.header("x-b"),
      request.user?.name ?? "nobody", request.address, request.host?.startsWith("127.0.0.1"),
    ].join(" "));
  }
});
filter(() => withHeaders({ "X-Frame-Options": "DENY", "X-First": "1" }), { paths: ["/shop/*", "/data"] });
filter((request) => withHeaders({ "X-Second": request.path, "Cache-Control": "no-store" }), { paths: ["/shop/{name}", "/file.txt"] });
"#;

#[test]
fn filters_answer_rewrite_and_set_fields() {
    let folder = folder(
        FILTERS,
        &[("shop/index.tsx", PAGE), ("shop/[name].tsx", PAGE), ("file.txt", "file")],
    );
    let site = Site::new(folder.app().files(folder.path()).page(enter));
    let told = |path: &str| {
        let reply = site.get(path);
        let location = reply.header("location").map(str::to_owned);
        (reply.status(), location)
    };
    assert_eq!(told("/old"), (303, Some("/shop/?name=new".to_owned())));
    assert_eq!(told("/moved"), (308, Some("/shop/".to_owned())));
    assert_eq!(told("/thrown"), (410, None));
    let closed = site.get("/closed");
    assert_eq!(closed.status(), 403);
    assert!(closed.text().contains("Closed <today>."), "{}", closed.text());
    let short = site.get("/short");
    assert!(short.text().contains("<p>short</p>"), "{}", short.text());
    assert_eq!(short.header("x-rewritten"), Some("yes"));
    let data = site.get("/data");
    assert_eq!((data.status(), data.text()), (201, "{\"a\":1}"));
    assert_eq!(data.header("content-type"), Some("application/json"));
    assert_eq!(data.header("x-own"), Some("1"));
    let fields = |path: &str| {
        let reply = site.get(path);
        assert_eq!(reply.status(), 200, "{path}");
        ["x-first", "x-second", "cache-control"]
            .map(|name| reply.header(name).unwrap_or("-").to_owned())
    };
    assert_eq!(fields("/shop/hat"), ["1", "/shop/hat", "no-store"]);
    assert_eq!(fields("/file.txt"), ["-", "/file.txt", "no-store"]);
    let page = site.get("/shop/");
    let frame: Vec<_> =
        page.headers().filter(|(name, _)| name.eq_ignore_ascii_case("x-frame-options")).collect();
    assert_eq!(frame.len(), 1, "{frame:?}");
    assert_eq!(frame[0].1, "DENY");
    assert_eq!(page.header("x-second"), None);
}

#[test]
fn filters_read_the_request_and_its_user() {
    let folder = folder(FILTERS, &[("shop/index.tsx", PAGE)]);
    let site = Site::new(folder.app().page(enter));
    let client = site.client();
    let about = |client: &bine::test::Client| {
        client.request(Method::Put, "/about?q=1&r").header("X-A", "one").send().text().to_owned()
    };
    assert_eq!(about(&client), "PUT /about q=1&r one  nobody 127.0.0.1 true");
    client.request(Method::Post, "/enter/ann").send();
    assert_eq!(about(&client), "PUT /about q=1&r one  ann 127.0.0.1 true");
}

const HOSTILE: &str = r#"import { filter, respond, withHeaders } from "bine:start";

const cases: Record<string, () => unknown> = {
  throws: () => { throw new Error("broken filter"); },
  thrownNull: () => { throw null; },
  thrownSymbol: () => { throw Symbol("s"); },
  proxy: () => { throw new Proxy({}, { get() { throw new Error("proxy"); } }); },
  wrong: () => 7,
  promise: () => Promise.resolve(),
  field: () => withHeaders({ "X-A": "a\r\nX-B: b" }),
  name: () => withHeaders({ "X A": "a" }),
  loop: () => { for (;;); },
  recursion: () => { const f = (n: number): number => f(n + 1) + 1; return f(0); },
  memory: () => { const list: unknown[] = []; for (;;) list.push(new Array(1000).fill(list)); },
  text: () => "x".repeat(2 ** 29),
};
for (const [name, run] of Object.entries(cases)) filter(run as any, { paths: [`/${name}`] });
filter(() => respond("fine"), { paths: ["/fine"] });
"#;

#[test]
fn failing_filters_harm_no_other_request() {
    let folder = folder(HOSTILE, &[("app/index.tsx", PAGE)]);
    let site = folder.site();
    for (name, expected) in [
        ("throws", 500),
        ("thrownNull", 500),
        ("thrownSymbol", 500),
        ("proxy", 500),
        ("wrong", 500),
        ("promise", 500),
        ("field", 500),
        ("name", 500),
        ("loop", 503),
        ("recursion", 503),
        ("memory", 503),
        ("text", 503),
    ] {
        for _ in 0..2 {
            let reply = site.get(&format!("/{name}"));
            assert_eq!(reply.status(), expected, "{name}: {}", reply.text());
            assert_eq!(site.get("/fine").text(), "fine", "{name}");
            assert_eq!(site.get("/app/").status(), 200, "{name}");
        }
    }
    let text = shown(&site, "/throws");
    assert!(text.contains("start.ts:4:"), "{text}");
    assert!(text.contains("broken filter"), "{text}");
}

#[test]
fn does_not_run_a_filter_that_exceeds_its_limit_repeatedly() {
    let folder = folder(HOSTILE, &[]);
    let site = folder.site();
    until(&site, "/loop", |text| text.contains("is not run for some seconds"));
    assert_eq!(site.get("/loop").status(), 503);
    assert_eq!(site.get("/fine").text(), "fine");
    assert_eq!(site.get("/throws").status(), 500);
}

#[test]
fn uses_a_changed_script_and_keeps_the_old_one_if_the_new_one_is_wrong() {
    let script = |path: &str, text: &str| {
        format!(
            "import {{ filter, respond, rule }} from \"bine:start\";\nrule(\"/{path}/*\", \"read\", \"ann\");\nfilter(() => respond(\"{text}\"), {{ paths: [\"/text\"] }});\n"
        )
    };
    let folder =
        folder(&script("one", "first"), &[("one/index.tsx", PAGE), ("two/index.tsx", PAGE)]);
    let site = folder.site();
    assert_eq!(site.get("/text").text(), "first");
    assert_eq!([site.get("/one/").status(), site.get("/two/").status()], [401, 200]);
    folder.write("start.ts", &script("two", "second version"));
    until(&site, "/text", |text| text == "second version");
    assert_eq!([site.get("/one/").status(), site.get("/two/").status()], [200, 401]);
    for wrong in [
        "for (;;);",
        "this is no script",
        "import { rule } from \"bine:start\";\nrule(\"/a*b\", \"read\", \"ann\");\n",
    ] {
        folder.write("start.ts", wrong);
        // The next right version is used only after the wrong one was looked at, or not at all.
        assert_eq!(site.get("/text").text(), "second version");
        assert_eq!([site.get("/one/").status(), site.get("/two/").status()], [200, 401]);
    }
    folder.write("start.ts", &script("one", "third"));
    until(&site, "/text", |text| text == "third");
    assert_eq!([site.get("/one/").status(), site.get("/two/").status()], [401, 200]);
}

#[test]
fn a_server_without_rules_rejects_a_version_with_rules() {
    let script = |rule: &str, text: &str| {
        format!(
            "import {{ filter, respond, rule }} from \"bine:start\";\n{rule}\nfilter(() => respond(\"{text}\"));\n"
        )
    };
    let folder = folder(&script("", "one"), &[]);
    let site = folder.site();
    assert_eq!(site.get("/").text(), "one");
    folder.write("start.ts", &script("rule(\"/*\", \"read\", \"users\");", "two"));
    assert_eq!(site.get("/").text(), "one");
    folder.write("start.ts", &script("", "three"));
    until(&site, "/", |text| text == "three");
}

/// Each thread runs the script, and the server compared paths with the filters of the first run: a
/// filter of another place was called, or none, which was a panic.
#[test]
fn rejects_filters_that_differ_between_runs() {
    let folder = Folder::with(&[(
        "start.ts",
        "import { filter } from \"bine:start\";\n\
         for (let at = 0; at < 64; at++)\n  \
         if (Math.random() < 0.5) filter(() => undefined, { paths: [`/f${at}`] });\n",
    )]);
    let site = folder.site();
    let statuses: Vec<u16> = (0..64).map(|at| site.get(&format!("/f{at}")).status()).collect();
    assert!(statuses.iter().all(|status| [404, 503].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&503), "{statuses:?}");
}
