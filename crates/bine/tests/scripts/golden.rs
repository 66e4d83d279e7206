//! Golden files: what a service answers to each argument, and the places in stack traces.
//! `UPDATE_GOLDENS=1` writes them.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use bine::test::{Method, Site};

use crate::folder::Folder;

#[track_caller]
fn check(name: &str, written: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/golden").join(name);
    if env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&golden, written).unwrap();
        return;
    }
    let expected = fs::read_to_string(&golden).unwrap();
    assert!(expected == written, "{name} differs from its golden file:\n{written}");
}

/// A service with an argument of each kind, which answers what it has received.
const SERVICES: &str = r#"import { page, service } from "bine";
type Place = { row: number; name?: string };
export const text = service((ctx, { a }: { a: string }) => ({ a }));
export const number = service((ctx, { a }: { a: number }) => ({ a }));
export const boolean = service((ctx, { a }: { a: boolean }) => ({ a }));
export const word = service((ctx, { a }: { a: "open" | "closed" | 3 }) => ({ a }));
export const list = service((ctx, { a }: { a: string[] }) => ({ a }));
export const object = service((ctx, { a }: { a: Place }) => ({ a }));
export const objects = service((ctx, { a }: { a: { b: Place[] } }) => ({ a }));
export const optional = service((ctx, { a }: { a?: number }) => ({ a: a ?? "none" }));
export const nothing = service(() => "called");
export default page(() => <p>x</p>);
"#;

/// Values of `a` as JSON; empty for none.
const VALUES: [&str; 23] = [
    "",
    "null",
    "true",
    "0",
    "-1.5",
    "1e400",
    "3",
    "\"\"",
    "\"open\"",
    "\"1\"",
    "\"\\ud800\"",
    "[]",
    "[\"a\",1]",
    "[\"a\",\"b\"]",
    "{}",
    "{\"row\":1}",
    "{\"row\":\"1\"}",
    "{\"row\":1,\"nmae\":\"x\"}",
    "{\"row\":1,\"__proto__\":{}}",
    "{\"b\":[{\"row\":1},{\"row\":null}]}",
    "{\"b\":[{\"row\":1,\"name\":\"x\"}]}",
    "1,\"b\":2",
    "1,\"a\":2",
];

#[test]
fn answers_each_argument_as_the_golden_file_says() {
    let folder = Folder::with(&[("index.tsx", SERVICES)]);
    let site = folder.site();
    assert_eq!(site.get("/").status(), 200, "{}", site.get("/").text());
    let mut written = String::new();
    for service in
        ["text", "number", "boolean", "word", "list", "object", "objects", "optional", "nothing"]
    {
        let _ = writeln!(written, "{service}");
        for value in VALUES {
            let body =
                if value.is_empty() { "{}".to_owned() } else { format!("{{\"a\":{value}}}") };
            let request = site.request(Method::Post, &format!("/{service}"));
            let reply = request.header("Content-Type", "application/json").body(&*body).send();
            let _ = writeln!(written, "  {body}  {}  {}", reply.status(), answer(reply.text()));
        }
        for form in ["a=", "a=1", "a=on", "a=open&a=closed", "b=1", "a=%ff"] {
            let request = site.request(Method::Post, &format!("/{service}"));
            let request = request.header("Content-Type", "application/x-www-form-urlencoded");
            let reply = request.body(form).send();
            let _ = writeln!(written, "  {form}  {}  {}", reply.status(), answer(reply.text()));
        }
    }
    check("arguments.txt", &written);
}

/// The value of a service, or the message of its error.
fn answer(text: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value) if value["detail"].is_string() => value["detail"].as_str().unwrap().to_owned(),
        Ok(value) => value.to_string(),
        Err(_) => text.trim_end().to_owned(),
    }
}

/// Modules whose functions throw at known places, after types, markup and long lines.
const THROWING: [(&str, &str); 3] = [
    (
        "index.tsx",
        r#"import { change, Live, page, service } from "bine";
import { deep } from "./parts/deep.ts";
import { Card } from "./parts/card.tsx";

interface Row {
  name: string;
}

/* uni */ const direct = (row: Row | null) => row!.name.length as number;

const cases: Record<string, () => unknown> = {
  direct: () => <p>{direct(null)}</p>,
  module: () => deep<string>(3),
  component: () => (
    <main>
      <Card title="x">
        {[1, 2].map((n) => <b>{n}</b>)}
      </Card>
    </main>
  ),
  region: () => <Live><p>{(undefined as any).name}</p></Live>,
  later: async () => {
    await null;
    return <p>{(undefined as any).name}</p>;
  },
  native: () => [3, 1].sort(() => { throw new TypeError("in a comparison"); }),
  caused: () => { throw new Error("outer", { cause: new RangeError("inner") }); },
  text: () => { throw "a text"; },
  host: () => <a href={{} as any}>x</a>,
};

export const run = service((ctx, { what }: { what: string }) => cases[what]());
export const runLater = service(async (ctx, { what }: { what: string }) => await change(() => cases[what]()));
export default page((ctx, { what = "" }) => cases[what]());
"#,
    ),
    (
        "parts/deep.ts",
        r#"export function deep<T extends string>(n: number): T {
  if (n === 0) {
    throw new Error("at the bottom");
  }
  return deep<T>(n - 1);
}
"#,
    ),
    (
        "parts/card.tsx",
        r#"import type { Child } from "bine";
export const Card = ({ title, children }: { title: string; children?: Child }) => (
  <section title={title}>
    {children}
    {(children as any).missing.property}
  </section>
);
"#,
    ),
];

#[test]
fn shows_places_in_stack_traces_as_the_golden_file_says() {
    let files = THROWING.map(|(file, text)| (format!("app/{file}"), text));
    let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (&**file, *text)).collect();
    let folder = Folder::with(&files);
    let site = folder.site();
    let mut written = String::new();
    for what in
        ["direct", "module", "component", "region", "later", "native", "caused", "text", "host"]
    {
        let _ = writeln!(written, "{what} as a page\n{}", causes(&site, what, "page"));
    }
    let _ = writeln!(written, "module as a service\n{}", causes(&site, "module", "run"));
    let _ = writeln!(written, "direct in a change\n{}", causes(&site, "direct", "runLater"));
    check("stacks.txt", &written);
}

/// The error of a call as development shows it.
fn causes(site: &Site, what: &str, how: &str) -> String {
    let json = "application/json";
    let reply = match how {
        "page" => {
            site.request(Method::Get, &format!("/app/?what={what}")).header("Accept", json).send()
        }
        service => {
            let request = site.request(Method::Post, &format!("/app/{service}"));
            request
                .header("Content-Type", json)
                .header("Accept", json)
                .body(format!("{{\"what\":\"{what}\"}}"))
                .send()
        }
    };
    assert_eq!(reply.status(), 500, "{what}: {}", reply.text());
    let problem: serde_json::Value = reply.json();
    let causes = problem["causes"].as_array().unwrap().iter();
    causes.map(|cause| cause.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}
