//! Rejected changes of tables, as answers of services.

use serde_json::{Value, json};

use crate::folder::Folder;

const USERS: &str = r#"import { TableError, change, error, page, ref, service, table, text } from "bine";
const users = table("users", { name: text().unique().min(1).max(8), mail: text().label("E-mail") });
const posts = table("posts", { author: ref(users), body: text() });

type User = { name: string; mail?: string };
export const join = service((ctx, { name, mail }: User) => users.insert({ name, mail }));
export const later = service(async (ctx, { name, mail }: User) => {
  await null;
  return await change(() => users.insert({ name, mail }));
});
export const caught = service(async (ctx, { name, mail }: User) => {
  try {
    return await change(() => users.insert({ name, mail }));
  } catch (reason) {
    if (reason instanceof TableError) return { reason: reason.reason, errors: reason.errors };
    throw reason;
  }
});
export const refused = service(async () => {
  await change(() => {
    users.insert({ name: "Eve", mail: "e" });
    throw error(403, "Not Eve");
  });
});
export const post = service((ctx, { author }: { author: string }) => posts.insert({ author, body: "a" }));
export const leave = service((ctx, { id }: { id: string }) => users.remove(id));
export const count = service(() => users.count());
export default page((ctx, { after }: { after?: string }) => {
  const { rows, next } = users.page({ size: 2, after });
  return <main><p>{rows.map((user) => user.name).join(" ")}</p><p>{next}</p></main>;
});
"#;

#[test]
fn answers_rejected_changes_as_a_service_in_rust_does() {
    let folder = Folder::with(&[("users/index.tsx", USERS)]);
    let site = folder.site();
    let call = |service: &str, arguments: Value| {
        let reply = site.post_json(&format!("/users/{service}"), &arguments);
        (reply.status(), reply.text().to_owned())
    };
    let (status, id) = call("join", json!({ "name": "Ada", "mail": "a" }));
    assert_eq!(status, 200);
    let id: String = serde_json::from_str(&id).unwrap();
    for service in ["join", "later"] {
        let (status, text) = call(service, json!({ "name": "far too long" }));
        assert_eq!(status, 422, "{service}: {text}");
        assert!(text.contains("must have from 1 to 8 letters, not 12"), "{service}: {text}");
        assert!(text.contains("E-mail must be given"), "{service}: {text}");
        let (status, text) = call(service, json!({ "name": "Ada", "mail": "b" }));
        assert_eq!(status, 409, "{service}: {text}");
        assert!(text.contains("is taken already"), "{service}: {text}");
    }
    assert_eq!(call("post", json!({ "author": "nobody" })).0, 422);
    assert_eq!(call("post", json!({ "author": "00000000-0000-7000-8000-000000000000" })).0, 404);
    assert_eq!(call("post", json!({ "author": id.as_str() })).0, 200);
    assert_eq!(call("leave", json!({ "id": id })).0, 409);
    assert_eq!(call("count", json!({})), (200, "1".to_owned()));
}

/// An exception in the function of `change` reaches the service as it was thrown.
#[test]
fn throws_the_exceptions_of_a_change_again() {
    let folder = Folder::with(&[("users/index.tsx", USERS)]);
    let site = folder.site();
    let caught = site.post_json("/users/caught", &json!({ "name": "", "mail": "a" }));
    let expected = json!({ "reason": "invalid", "errors": [
        { "column": "name", "message": "must have from 1 to 8 letters, not 0" },
    ] });
    assert_eq!(caught.json::<Value>(), expected);
    let refused = site.post_json("/users/refused", &json!({}));
    assert_eq!(refused.status(), 403, "{}", refused.text());
    assert_eq!(site.post_json("/users/count", &json!({})).json::<u64>(), 0);
}

#[test]
fn answers_a_wrong_cursor_with_400() {
    let folder = Folder::with(&[("users/index.tsx", USERS)]);
    let site = folder.site();
    for name in ["Ada", "Ben", "Eve"] {
        site.post_json("/users/join", &json!({ "name": name, "mail": "m" }));
    }
    let first = site.get("/users/").text().to_owned();
    let (_, rest) = first.split_once("<p>Ada Ben</p><p>").unwrap();
    let (next, _) = rest.split_once("</p>").unwrap();
    let second = site.get(&format!("/users/?after={next}"));
    assert!(second.text().contains("<p>Eve</p><p></p>"), "{}", second.text());
    assert_eq!(site.get("/users/?after=nonsense").status(), 400);
}
