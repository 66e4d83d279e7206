//! Services: arguments, transactions, answers.

use bine::test::{Method, Site};
use serde_json::{Value, json};

use crate::folder::Folder;

const NOTES: &str = r#"import { change, error, now, page, redirect, service, table, text } from "bine";
const notes = table("notes", { author: text().unique(), body: text().max(20), at: now() });

export const write = service((ctx, { author, body }: { author: string; body: string }) =>
  notes.insert({ author, body }));
export const count = service(() => notes.count());
export const both = service((ctx, { fails }: { fails?: boolean }) => {
  notes.insert({ author: "first", body: "a" });
  if (fails) throw error(409, "Not both");
  notes.insert({ author: "second", body: "b" });
});
export const go = service(() => redirect("/elsewhere"));
export const later = service(async (ctx, { author }: { author: string }) => {
  await null;
  const id = await change(() => notes.insert({ author, body: "later" }));
  return { known: notes.get(id).body };
});
export const unsaved = service(async () => notes.insert({ author: "x", body: "y" }));
export const broken = service(() => new Promise(() => {}));

export default page(() => (
  <main>
    <form action={write}><input name="author" /><input name="body" /><button>Write</button></form>
    <ul>{notes.all().map((note) => <li id={note.id}>{note.author}: {note.body}</li>)}</ul>
  </main>
));
"#;

fn notes() -> Folder {
    Folder::with(&[("notes/index.tsx", NOTES)])
}

#[test]
fn runs_services_as_transactions() {
    let folder = notes();
    let site = folder.site();
    let written = site.post_json("/notes/write", &json!({ "author": "Ada", "body": "hi" }));
    assert_eq!(written.status(), 200, "{}", written.text());
    let id: String = written.json();
    let page = site.get("/notes/").text().to_owned();
    assert!(page.contains(&format!("<li id=\"{id}\">Ada: hi</li>")), "{page}");
    let failed = site.post_json("/notes/both", &json!({ "fails": true }));
    assert_eq!(failed.status(), 409);
    assert!(failed.text().contains("Not both"), "{}", failed.text());
    assert_eq!(site.post_json("/notes/count", &json!({})).json::<u64>(), 1);
    assert_eq!(site.post_json("/notes/both", &json!({})).status(), 204);
    assert_eq!(site.post_json("/notes/count", &json!({})).json::<u64>(), 3);
}

#[test]
fn accepts_forms_without_script() {
    let folder = notes();
    let site = folder.site();
    let page = site.get("/notes/").text().to_owned();
    assert!(page.contains("<form action=\"/notes/write\" method=\"post\">"), "{page}");
    let from = format!("http://{}/notes/?a=1", site.address());
    let send = |body: &str| {
        let request = site.request(Method::Post, "/notes/write");
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        let request = request.header("Accept", "text/html").header("Referer", &*from);
        request.body(body).send()
    };
    let sent = send("author=Bo&body=from+a+form");
    assert_eq!((sent.status(), sent.header("location")), (303, Some(&*from)));
    assert!(site.get("/notes/").text().contains("Bo: from a form"));
    let rejected = send("author=Bo&body=again");
    assert_eq!(rejected.status(), 409);
    assert!(rejected.text().contains("value=\"again\""), "{}", rejected.text());
}

#[test]
fn rejects_wrong_arguments() {
    let folder = notes();
    let site = folder.site();
    let wrong = |arguments: Value| {
        let reply = site.post_json("/notes/write", &arguments);
        assert_eq!(reply.status(), 400, "{}", reply.text());
        reply.text().to_owned()
    };
    assert!(wrong(json!({ "author": 1, "body": "a" })).contains("author"));
    let missing = wrong(json!({}));
    assert!(missing.contains("author") && missing.contains("body"), "{missing}");
    assert!(wrong(json!({ "author": "a", "body": "b", "autor": "c" })).contains("autor"));
    assert_eq!(site.post_json("/notes/count", &json!({})).json::<u64>(), 0);
}

#[test]
fn answers_rejected_values_as_rust_does() {
    let folder = notes();
    let site = folder.site();
    let write = |author: &str, body: &str| {
        site.post_json("/notes/write", &json!({ "author": author, "body": body }))
    };
    assert_eq!(write("Ada", "hi").status(), 200);
    let twice = write("Ada", "again");
    assert_eq!(twice.status(), 409, "{}", twice.text());
    let long = write("Bo", &"x".repeat(21));
    assert_eq!(long.status(), 422, "{}", long.text());
    let problem: Value = long.json();
    assert_eq!(problem["errors"][0]["name"], "body", "{problem}");
}

#[test]
fn changes_tables_in_async_services_by_change() {
    let folder = notes();
    let site = folder.site();
    let later = site.post_json("/notes/later", &json!({ "author": "Cy" }));
    assert_eq!(later.json::<Value>(), json!({ "known": "later" }), "{}", later.text());
    let unsaved = site.post_json("/notes/unsaved", &json!({}));
    assert_eq!(unsaved.status(), 500);
    assert_eq!(site.post_json("/notes/broken", &json!({})).status(), 500);
    assert_eq!(site.post_json("/notes/count", &json!({})).json::<u64>(), 1);
}

#[test]
fn answers_unknown_services_and_foreign_pages() {
    let folder = notes();
    let site = folder.site();
    assert_eq!(site.post_json("/notes/nothing", &json!({})).status(), 404);
    for name in ["__proto__", "constructor", "toString"] {
        let reply = site.post_json(&format!("/notes/{name}"), &json!({}));
        assert_eq!(reply.status(), 404, "{name}");
    }
    let foreign = site
        .request(Method::Post, "/notes/count")
        .header("Sec-Fetch-Site", "cross-site")
        .header("Origin", "https://other.example")
        .send();
    assert_eq!(foreign.status(), 403);
    let gone = site.post_json("/notes/go", &json!({}));
    assert_eq!((gone.status(), gone.header("location")), (303, Some("/elsewhere")));
}

#[test]
fn lets_only_users_use_an_application_for_users() {
    let folder =
        Folder::with(&[("notes/index.tsx", NOTES), ("notes/app.toml", "access = \"users\"")]);
    let site = folder.site();
    assert_eq!(site.get("/notes/").status(), 401);
    assert_eq!(site.post_json("/notes/count", &json!({})).status(), 401);
}

#[test]
fn checks_access_before_it_loads_an_application() {
    let broken = "export default 1 +;";
    let folder = Folder::with(&[
        ("index.tsx", broken),
        ("notes/index.tsx", broken),
        ("notes/app.toml", "access = \"users\""),
        ("staff/index.tsx", broken),
        ("staff/app.toml", "access = \"group:staff\""),
    ]);
    let site = folder.site();
    assert_eq!(site.get("/").status(), 500);
    for app in ["notes", "staff"] {
        assert_eq!(site.get(&format!("/{app}/")).status(), 401);
        assert_eq!(site.post_json(&format!("/{app}/count"), &json!({})).status(), 401);
    }
}

#[test]
fn service_runs_at_an_interval_by_configuration() {
    let folder = Folder::with(&[(
        "notes/index.tsx",
        r#"import { Live, now, page, service, table } from "bine";
const runs = table("runs", { at: now() });
export const note = service(() => { runs.insert({}); });
export default page(() => <Live><p>{runs.count()} runs</p></Live>);
"#,
    )]);
    let site = Site::with_settings(folder.app(), &["--every", "1s /notes/note"]);
    site.visit("/notes/").expect("p", "2 runs");
}
