//! Hostile and broken scripts on a server in production: each costs its own request only. Another
//! application, the same application and the data of other visitors are unharmed, and the log has the
//! reason.

use crate::bine;
use crate::harness::{Folder, Peer, Program, Reply};

/// The limits of the hostile application.
const LIMITS: &str = "memory_mb = 4\ntimeout_ms = 100\nawait_ms = 200\n";

/// An application with its own notes.
const GOOD: &str = r#"import { page, service, table, text } from "bine";
const notes = table("notes", { body: text().max(40) });
export const write = service((ctx, { body }: { body: string }) => notes.insert({ body }));
export default page(() => <p>{notes.map((note) => note.body).join(" ")}{({} as any).polluted}</p>);
"#;

/// The same, with what is hostile: its page does `attack` at `?what=attack`, and its service `attempt`
/// does it, too.
fn hostile(attack: &str) -> String {
    format!(
        r#"import {{ Live, change, error, page, raw, redirect, service, table, text }} from "bine";
const notes = table("notes", {{ body: text().max(40) }});
export const write = service((ctx, {{ body }}: {{ body: string }}) => notes.insert({{ body }}));
const attack = {attack};
export const attempt = service((ctx, {{ what }}: {{ what: string }}) => attack(ctx, what));
export const attemptLater = service(async (ctx, {{ what }}: {{ what: string }}) => await attack(ctx, what));
export default page((ctx, {{ what }}) => what === undefined
  ? <p>{{notes.map((note) => note.body).join(" ")}}{{({{}} as any).polluted}}</p>
  : attack(ctx, what));
"#
    )
}

/// A server with both applications, each with a note of a visitor.
struct Site {
    program: Program,
    _folder: Folder,
}

impl Site {
    fn with(hostile_page: &str, more: &[(&str, &str)]) -> Self {
        let folder = Folder::new();
        folder.write("site/good/index.tsx", GOOD.as_bytes());
        folder.write("site/bad/index.tsx", hostile_page.as_bytes());
        folder.write("site/bad/app.toml", LIMITS.as_bytes());
        for (file, content) in more {
            folder.write(&format!("site/{file}"), content.as_bytes());
        }
        let site = folder.join("site");
        // One event loop, so that each request meets the instance of the previous one.
        let program = Program::start(
            bine(&["serve", site.to_str().unwrap(), "--listen", "127.0.0.1:0"]).args([
                "--development",
                "off",
                "--loops",
                "1",
            ]),
        );
        Self { program, _folder: folder }
    }

    fn post(&self, path: &str, json: &str) -> Reply {
        self.program.connect().request("POST", path, "Content-Type: application/json\r\n", json)
    }

    /// Stores a note in each application.
    fn write(&self) {
        for app in ["good", "bad"] {
            let body = format!(r#"{{"body":"of {app}"}}"#);
            assert_eq!(self.post(&format!("/{app}/write"), &body).status(), 200);
        }
    }

    /// Asserts that both applications answer, with the data that they had.
    #[track_caller]
    fn expect_unharmed(&self) {
        for app in ["good", "bad"] {
            let reply = self.program.connect().get(&format!("/{app}/"));
            assert_eq!(reply.status(), 200, "{app}: {}", reply.text());
            assert!(reply.text().contains(&format!("<p>of {app}</p>")), "{}", reply.text());
        }
    }

    /// Ends the server, and returns its log.
    fn log(self) -> String {
        let ended = self.program.stop();
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        ended.errors
    }
}

/// Runs an attack as a page, as a service and as an `async` service, twice each, and asserts the status
/// of the answers, the unharmed data, and the reason in the log.
#[track_caller]
fn check(attack: &str, status: u16, reason: &str) {
    let site = Site::with(&hostile(attack), &[]);
    site.write();
    for _ in 0..2 {
        let page = site.program.connect().get("/bad/?what=attack");
        assert_eq!(page.status(), status, "as a page: {}", page.text());
        site.expect_unharmed();
        for service in ["attempt", "attemptLater"] {
            let reply = site.post(&format!("/bad/{service}"), r#"{"what":"attack"}"#);
            assert_eq!(reply.status(), status, "{service}: {}", reply.text());
            // The author's mistake appears in the log only.
            assert!(!reply.text().contains("index.tsx"), "{}", reply.text());
            site.expect_unharmed();
        }
    }
    let log = site.log();
    assert!(log.contains(reason), "no {reason:?} in the log: {log}");
    // The engine knows the place of an `Error`, but not of another value.
    let has_place = log.contains("bad/index.tsx:") || log.contains("uncaught: ");
    assert!(has_place || status == 503, "no place in the log: {log}");
}

#[test]
fn ends_an_endless_loop() {
    check("() => { for (;;); }", 503, "bad has exceeded its limit of run time");
}

#[test]
fn ends_an_endless_loop_of_promises() {
    check("async () => { for (;;) await null; }", 503, "bad has exceeded its limit of run time");
}

#[test]
fn ends_an_endless_recursion() {
    check(
        "() => { const f = (n: number): number => f(n + 1) + 1; return f(0); }",
        503,
        "bad has exceeded its limit of stack",
    );
}

#[test]
fn rejects_a_string_of_four_gigabytes() {
    check("() => \"x\".repeat(2 ** 32)", 500, "RangeError");
}

#[test]
fn ends_a_string_that_grows_to_four_gigabytes() {
    check(
        "() => { let text = \"x\"; for (let n = 0; n < 32; n++) { text += text; text.charCodeAt(0); } return text; }",
        503,
        "bad has exceeded its limit of memory",
    );
}

#[test]
fn ends_a_promise_that_never_settles() {
    let attack = "async () => { await new Promise(() => {}); }";
    let site = Site::with(&hostile(attack), &[]);
    site.write();
    for _ in 0..2 {
        assert_eq!(site.program.connect().get("/bad/?what=attack").status(), 503);
        let reply = site.post("/bad/attemptLater", r#"{"what":"attack"}"#);
        assert_eq!(reply.status(), 503, "{}", reply.text());
        // A service that is no `async` function cannot wait at all.
        let reply = site.post("/bad/attempt", r#"{"what":"attack"}"#);
        assert_eq!(reply.status(), 500, "{}", reply.text());
        site.expect_unharmed();
    }
    let log = site.log();
    assert!(log.contains("bad has exceeded its limit of await time"), "{log}");
    assert!(log.contains("its function is not `async`"), "{log}");
}

/// A thousand requests that never end do not keep other requests from their answers.
#[test]
fn answers_others_while_promises_never_settle() {
    let site = Site::with(&hostile("async () => { await new Promise(() => {}); }"), &[]);
    site.write();
    let mut waiting: Vec<Peer> = (0..50).map(|_| site.program.connect()).collect();
    for peer in &mut waiting {
        peer.send("GET /bad/?what=attack HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20));
    }
    site.expect_unharmed();
    for mut peer in waiting {
        assert_eq!(peer.reply().status(), 503);
    }
    site.expect_unharmed();
}

#[test]
fn survives_values_that_throw_wherever_they_are_used() {
    for attack in [
        "() => { throw new Error(\"hostile\"); }",
        "() => { throw { get message() { throw new Error(\"hostile\"); }, toString() { throw 1; } }; }",
        "() => { throw new Proxy({}, { get() { throw new Error(\"hostile\"); }, getPrototypeOf() { throw 1; } }); }",
        "() => { throw Object.defineProperty(new Error(\"hostile\"), \"stack\", { get() { throw 1; } }); }",
        "() => { throw Symbol(\"hostile\"); }",
        "() => ({ get then() { throw new Error(\"hostile\"); } })",
        "() => ({ then(done: any) { throw new Error(\"hostile\"); } })",
        "() => <p {...{ get title() { throw new Error(\"hostile\"); } }}>x</p>",
        "() => <p>{{ [Symbol.toPrimitive]() { throw new Error(\"hostile\"); } } as any}</p>",
        "() => <Live>{(() => { throw new Error(\"hostile\"); })()}</Live>",
        "() => { const Part = () => { throw new Error(\"hostile\"); }; return <Part />; }",
        "() => [1, 2].sort(() => { throw new Error(\"hostile\"); })",
        "() => notes.insert({ get body() { throw new Error(\"hostile\"); } } as any)",
        "() => notes.by(\"body\", { get from() { throw new Error(\"hostile\"); } } as any).all()",
        "() => notes.get({ toString() { throw new Error(\"hostile\"); } } as any).id",
        "(ctx: any) => ctx.header({ toString() { throw new Error(\"hostile\"); } })",
        "(ctx: any) => { ctx.title = { toString() { throw new Error(\"hostile\"); } }; }",
        "() => error(\"418\" as any, { toString() { throw new Error(\"hostile\"); } } as any)",
        "() => redirect({ toString() { throw new Error(\"hostile\"); } } as any)",
        "() => raw({ toString() { throw new Error(\"hostile\"); } } as any)",
    ] {
        check(attack, 500, "answered 500 (");
    }
}

#[test]
fn survives_exceptions_outside_of_a_call() {
    let attack = r#"(ctx: any, what: string) => {
  setTimeout(() => { throw new Error("in a timer"); }, 0);
  queueMicrotask(() => { throw new Error("in a microtask"); });
  Promise.reject(new Error("in no handler"));
  if (what === "later") return new Promise((done) => setTimeout(() => done(<p>later</p>), 1));
  return <p>done</p>;
}"#;
    let site = Site::with(&hostile(attack), &[]);
    site.write();
    for what in ["now", "later", "now"] {
        let reply = site.program.connect().get(&format!("/bad/?what={what}"));
        assert_eq!(reply.status(), 200, "{what}: {}", reply.text());
        site.expect_unharmed();
    }
    let log = site.log();
    for place in ["in a timer", "in a microtask", "in no handler"] {
        assert!(log.contains(&format!("bad: Error: {place}")), "{place}: {log}");
    }
}

#[test]
fn survives_layouts_and_error_pages_that_throw() {
    let layout = "export default ({ title }: any) => { throw new Error(`layout of ${title}`); };\n";
    let error =
        "export default ({ status }: any) => { throw new Error(`error page of ${status}`); };\n";
    let site = Site::with(
        &hostile("() => null"),
        &[
            ("bad/deep/_layout.tsx", layout),
            ("bad/_error.tsx", error),
            (
                "bad/deep/page.tsx",
                "import { page } from \"bine\";\nexport const title = \"Deep\";\nexport default page(() => <p>x</p>);\n",
            ),
        ],
    );
    site.write();
    let browse =
        |path: &str| site.program.connect().request("GET", path, "Accept: text/html\r\n", "");
    for _ in 0..2 {
        assert_eq!(browse("/bad/deep/page").status(), 500);
        assert_eq!(browse("/bad/nothing").status(), 404);
        site.expect_unharmed();
    }
    let log = site.log();
    assert!(log.contains("bad/deep/_layout.tsx:1:") && log.contains("layout of Deep"), "{log}");
    assert!(log.contains("`_error.tsx` has failed"), "{log}");
    assert!(log.contains("error page of 404"), "{log}");
}

/// Modules that fail while they load: their application answers 500, and other applications are not
/// affected.
#[test]
fn survives_modules_that_fail_to_load() {
    for (module, reason) in [
        ("throw new Error(\"hostile\");", "Error: hostile"),
        ("for (;;);", "run time"),
        ("const f = (): number => f() + 1; f();", "stack"),
        ("const all: unknown[] = []; for (;;) all.push({ all });", "memory"),
        ("await new Promise(() => {});", "await time"),
        (
            "import { table, text } from \"bine\"; table(\"a\", { get b() { throw new Error(\"hostile\"); } } as any);",
            "Error: hostile",
        ),
        (
            "import { table, text } from \"bine\"; table(\"a\", { __proto__: { b: text() }, c: 1 } as any);",
            "bad/index.tsx:1:",
        ),
        (
            "import { page } from \"bine\"; page({ get x() { for (;;); } } as any);",
            "`page` takes the function",
        ),
    ] {
        let site = Site::with(&format!("{module}\nexport const one = 1;\n"), &[]);
        assert_eq!(site.post("/good/write", r#"{"body":"of good"}"#).status(), 200);
        for _ in 0..2 {
            let reply = site.program.connect().get("/bad/");
            let is_limit = ["run time", "stack", "memory", "await time"].contains(&reason);
            let status = if is_limit { 503 } else { 500 };
            assert_eq!(reply.status(), status, "{module}: {}", reply.text());
            assert!(!reply.text().contains("hostile"), "{}", reply.text());
            assert!(site.program.connect().get("/good/").text().contains("<p>of good</p>"));
        }
        let log = site.log();
        assert!(log.contains(reason), "{module}: no {reason:?} in {log}");
    }
}

#[test]
fn keeps_polluted_prototypes_within_their_application() {
    let attack = r#"() => {
  (Object.prototype as any).polluted = "polluted";
  const undo = () => { delete (Object.prototype as any).polluted; };
  try {
    notes.count();
    return <p>{({} as any).polluted}</p>;
  } finally {
    setTimeout(undo, 0);
  }
}"#;
    let site = Site::with(&hostile(attack), &[]);
    site.write();
    for _ in 0..3 {
        let reply = site.program.connect().get("/bad/?what=attack");
        assert!(reply.text().contains("<p>polluted</p>"), "{}", reply.text());
        let good = site.program.connect().get("/good/");
        assert!(good.text().contains("<p>of good</p>"), "{}", good.text());
        site.expect_unharmed();
    }
    site.log();
}

/// Keys that a client chooses never reach a prototype.
#[test]
fn keeps_prototypes_apart_from_keys_of_clients() {
    let attack = r"(ctx: any, what: any) => {
  const { taken } = what;
  return <p>{String(taken)}{({} as any).polluted}</p>;
}
export const keep = service((ctx, { inner, list }: { inner?: { body: string }; list?: { body: string }[] }) => {
  if (inner) notes.insert(inner);
  for (const one of list ?? []) notes.insert({ ...one });
  return { keys: Object.keys(inner ?? {}), polluted: ({} as any).polluted ?? null };
})";
    let site = Site::with(&hostile(attack), &[]);
    site.write();
    for json in [
        r#"{"inner":{"body":"x","__proto__":{"polluted":true}}}"#,
        r#"{"__proto__":{"polluted":true},"inner":{"body":"x"}}"#,
        r#"{"constructor":{"prototype":{"polluted":true}}}"#,
        r#"{"list":[{"body":"x","__proto__":null}]}"#,
        r#"{"inner":{"__proto__":{"body":"inherited"}}}"#,
    ] {
        assert_eq!(site.post("/bad/keep", json).status(), 400, "{json}");
        site.expect_unharmed();
    }
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let fields = "body=x&__proto__=y&constructor=z";
    let reply = site.program.connect().request("POST", "/bad/write", form, fields);
    assert_eq!(reply.status(), 400, "{}", reply.text());
    let query = "/bad/?what=x&__proto__=polluted&__proto__.polluted=x&constructor=y";
    let reply = site.program.connect().get(query);
    assert!(reply.text().contains("<p>undefined</p>"), "{}", reply.text());
    site.expect_unharmed();
    site.log();
}

/// Getters, proxies and functions in the arguments of functions of the host, which might change what
/// the host has read already.
#[test]
fn rejects_getters_in_arguments_of_the_host() {
    for attack in [
        "() => notes.insert({ get body() { return \"x\"; } } as any)",
        "() => notes.insert({ get body() { notes.insert({ body: \"inner\" }); return \"x\"; } } as any)",
        "() => notes.insert({ body: { get body() { return \"x\"; } } } as any)",
        "() => notes.insertAll([{ get body() { return \"x\"; } } as any])",
        "() => notes.update(\"1\", { get body() { return \"x\"; } } as any)",
        "() => notes.page({ get size() { return 1; } } as any)",
        "() => notes.insert(new Proxy({ body: \"x\" }, {}) as any)",
        "() => notes.insert((() => 1) as any)",
        "() => notes.by(\"body\", { get from() { return \"a\"; } } as any).count()",
    ] {
        check(attack, 500, "TypeError");
    }
    check(
        "() => notes.insert({ get body() { for (;;); } } as any)",
        503,
        "bad has exceeded its limit of run time",
    );
}

#[test]
fn keeps_keys_named_proto_out_of_rows() {
    check(
        "() => notes.insert(JSON.parse('{\"body\":\"x\",\"__proto__\":{\"polluted\":1}}'))",
        500,
        "__proto__",
    );
    check("() => notes.by(\"__proto__\", \"x\").count()", 500, "__proto__");
    check("() => notes.orderBy(\"constructor\" as any).all()", 500, "constructor");
}

/// Services that call services: each within the transaction of the first, which an error takes back.
#[test]
fn survives_services_that_call_each_other_without_an_end() {
    let attack = r#"(ctx: any, what: string): any => {
  notes.insert({ body: "never" });
  return attempt({ what });
}"#;
    let site = Site::with(&hostile(attack), &[]);
    site.write();
    for _ in 0..2 {
        let reply = site.post("/bad/attempt", r#"{"what":"attack"}"#);
        assert_eq!(reply.status(), 503, "{}", reply.text());
        site.expect_unharmed();
    }
    assert!(site.log().contains("bad has exceeded its limit of stack"));
}

#[test]
fn rejects_changes_within_changes() {
    let attack = r#"(ctx: any, what: string) => change(() => {
  notes.insert({ body: "never" });
  let inner: any;
  change(() => notes.insert({ body: "inner" })).catch((reason) => { inner = reason; });
  throw new Error("outer");
})"#;
    let site = Site::with(&hostile(attack), &[]);
    site.write();
    for _ in 0..2 {
        let reply = site.post("/bad/attemptLater", r#"{"what":"attack"}"#);
        assert_eq!(reply.status(), 500, "{}", reply.text());
        let page = site.program.connect().get("/bad/?what=attack");
        assert_eq!(page.status(), 500, "{}", page.text());
    }
    let page = site.program.connect().get("/bad/");
    assert!(!page.text().contains("never"), "{}", page.text());
    let log = site.log();
    assert!(log.contains("Error: outer"), "{log}");
    assert!(log.contains("a page only reads: change tables in a service"), "{log}");
}
