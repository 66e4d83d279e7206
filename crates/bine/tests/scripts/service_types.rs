//! The types of services in Rust for editors, and the check of calls before an application runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bine::App;
use bine::prelude::*;
use bine::test::{Method, Site};
use serde::{Deserialize, Serialize};

use crate::folder::Folder;

#[derive(Table, Serialize, Deserialize)]
struct Barrel {
    id: Id<Barrel>,
    label: Text,
    liters: f32,
    filled: Option<Time>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Ale,
    Stout,
}

#[derive(Serialize, Deserialize)]
enum Price {
    Free,
    Cents(u32),
    Range { least: u32, most: Option<u32> },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    barrel_id: Id<Barrel>,
    kind: Kind,
    #[serde(default)]
    count: u8,
}

/// An answer that serde cannot read.
#[derive(Serialize)]
struct Report {
    total: u32,
}

#[service]
fn fill(
    call: &mut Call,
    label: Text,
    liters: f32,
    kind: Kind,
    filled: Option<Time>,
    tags: Vec<Text>,
) -> Result<Id<Barrel>, Error> {
    let label = format!("{label} {} {}", serde_json::to_string(&kind)?, tags.join(","));
    Ok(call.insert(Barrel {
        id: Id::unassigned(),
        label: label.as_str().into(),
        liters,
        filled,
    })?)
}

#[service]
fn barrels(call: &mut Call) -> Vec<Barrel> {
    call.newest(50)
}

#[service]
async fn bill(lines: Vec<Line>, prices: BTreeMap<Text, Price>, exact: bool) -> (u64, Option<Text>) {
    let known = lines.iter().filter(|line| line.count > 0 && exact).count() as u64;
    let first = lines.first().map(|line| format!("{:?} {}", line.barrel_id, line.kind as u8));
    let free = prices.values().filter(|price| match price {
        Price::Free => true,
        Price::Cents(cents) => *cents == 0,
        Price::Range { least, most } => *least == 0 && most.is_none(),
    });
    (known + free.count() as u64, first.map(|first| first.as_str().into()))
}

#[service]
fn report() -> Report {
    let report = Report { total: 1 };
    Report { total: report.total + 1 }
}

#[service]
fn name() -> &'static str {
    "cellar"
}

#[service("/cellar/delete")]
fn delete(anything: serde_json::Value) -> Result<(), Error> {
    if anything.is_null() { Err(Error::bad_request("nothing")) } else { Ok(()) }
}

fn app(folder: &Folder) -> App {
    App::new()
        .scripts(folder.path())
        .table::<Barrel>()
        .service(fill)
        .service(barrels)
        .service(bill)
        .service(report)
        .service(name)
        .service(delete)
}

const INDEX: &str = "import { page } from \"bine\";\nexport default page(() => <p>hi</p>);\n";

/// The declarations that the TypeScript compiler checks programs against.
fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/typescript/services/services.d.ts")
}

#[test]
fn declares_the_services_of_the_program_for_editors() {
    let folder = Folder::with(&[("index.tsx", INDEX)]);
    let exit = app(&folder).run_with("usage", ["--types"]);
    drop(exit);
    let written = fs::read_to_string(folder.path().join(".bine/types/services.d.ts")).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(golden(), &written).unwrap();
    }
    let expected = fs::read_to_string(golden()).unwrap_or_default();
    assert_eq!(written, expected, "repeat with UPDATE=1, and look at the difference");
}

#[test]
fn writes_the_types_at_a_start_in_development() {
    let folder = Folder::with(&[("index.tsx", INDEX)]);
    drop(Site::new(app(&folder)));
    // The folder has no types for editors.
    let file = folder.path().join(".bine/types/services.d.ts");
    assert!(!file.exists());
    folder.write(".bine/types/bine.d.ts", "");
    drop(Site::new(app(&folder)));
    assert!(fs::read_to_string(&file).unwrap().contains("export declare const fill: RustService<"));
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 2);
}

/// The error page of an application with this call.
#[track_caller]
fn check_call(call: &str, expected: &str) {
    let source = format!(
        "import {{ page, service }} from \"bine\";\nimport {{ barrels, bill, fill }} from \"bine:services\";\nimport * as rust from \"bine:services\";\nconst more = {{}};\nexport const run = service(() =>\n  {call});\nexport default page(() => <p>hi</p>);\n"
    );
    let folder = Folder::with(&[("index.tsx", &source)]);
    let site = Site::new(app(&folder));
    let reply = site.request(Method::Get, "/").header("Accept", "application/json").send();
    if expected.is_empty() {
        assert_eq!(reply.status(), 200, "{call}: {}", reply.text());
        return;
    }
    assert_eq!(reply.status(), 500, "{call}: {}", reply.text());
    let told = format!("index.tsx:{expected}");
    let problem: serde_json::Value = reply.json();
    assert!(
        problem["causes"].to_string().contains(&told.replace('"', "\\\"")),
        "{call}: {problem}"
    );
}

#[test]
fn rejects_calls_that_no_service_in_rust_accepts_before_the_application_runs() {
    check_call("fill({ label: \"a\", liters: 1, kind: \"ale\", tags: [] })", "");
    check_call(
        "fill({ label: `a`, liters: -1, kind: \"stout\", filled: null, tags: more.tags })",
        "",
    );
    check_call("fill({ ...more, label: \"a\" })", "");
    check_call("fill(more)", "");
    check_call("rust.barrels()", "");
    check_call("bill({ lines: [], prices: {}, exact: true })", "");
    check_call(
        "fill({ lable: \"a\", liters: 1, kind: \"ale\", tags: [] })",
        "6:10: `fill` has no argument `lable`; did you mean `label`?: scripts::service_types::fill takes `label: Text`, `liters: f32`,",
    );
    check_call(
        "fill({ liters: 1, kind: \"ale\", tags: [] })",
        "6:3: the call of `fill` has no argument `label`: scripts::service_types::fill takes `label: Text`",
    );
    check_call("bill()", "6:3: the call of `bill` has no argument `lines`");
    check_call(
        "fill({ label: \"a\", liters: \"1\", kind: \"ale\", tags: [] })",
        "6:22: the argument `liters` of `fill` must be a value for `f32`, not the text `1`",
    );
    check_call(
        "fill({ label: \"a\", liters: 1, kind: \"porter\", tags: [] })",
        "6:33: the argument `kind` of `fill` must be one of `ale`, `stout`, not the text `porter`",
    );
    check_call(
        "fill({ label: null, ...more })",
        "6:10: the argument `label` of `fill` must be a value for `Text`, not `null`",
    );
    check_call(
        "barrels({ all: true })",
        "6:13: `barrels` has no argument `all`: scripts::service_types::barrels takes no arguments",
    );
    check_call(
        "rust.barels()",
        "6:3: the program has no service `barels`; did you mean `barrels`?",
    );
}
