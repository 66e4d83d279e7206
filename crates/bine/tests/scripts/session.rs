//! The session of the visitor in applications: values, the login, and other sessions of a user.

use bine::App;
use bine::prelude::*;
use bine::test::{Client, Site};
use serde_json::{Value, json};

use crate::folder::Folder;

const VISITS: &str = r#"import { Live, change, error, page, service, table, text } from "bine";
const notes = table("notes", { body: text().unique() });

export const set = service((ctx, { name, value }: { name: string; value: string }) => ctx.session.set(name, value));
export const visit = service((ctx) => {
  ctx.session.set("visits", (ctx.session.get("visits") ?? 0) + 1);
  return ctx.session.get("visits");
});
export const fail = service((ctx) => {
  ctx.session.set("visits", 100);
  ctx.session.logIn("mallory");
  throw error(409, `${ctx.user?.name} failed`);
});
export const clash = service((ctx, { body }: { body: string }) => {
  ctx.session.set("last", body);
  notes.insert({ body });
});
export const later = service(async (ctx, { value }: { value: string }) => {
  await ctx.session.set("theme", value);
  await change(() => { notes.insert({ body: value }); ctx.session.set("second", value); });
  await ctx.session.remove("visits");
  return [ctx.session.get("theme"), ctx.session.get("second"), ctx.session.get("visits") === undefined];
});
export const together = service(async (ctx, { user }: { user: string }) => {
  const [first, , second] = await Promise.all([
    change(() => { notes.insert({ body: "first" }); ctx.session.set("one", user); return notes.count(); }),
    ctx.session.logIn(user),
    change(() => { notes.insert({ body: "second" }); ctx.session.set("two", user); return notes.count(); }),
    ctx.session.set("theme", "dark"),
  ]);
  const failed = change(() => { notes.insert({ body: "first" }); ctx.session.set("one", "taken back"); });
  const kept = ctx.session.set("three", user);
  const told = await failed.then(() => "no failure", (error) => error.name);
  await kept;
  const values = ["one", "two", "three", "theme"].map((name) => ctx.session.get(name));
  return { first, second, told, values, user: ctx.user?.name };
});
export const enter = service((ctx, { user, brief }: { user: string; brief?: boolean }) => {
  ctx.session.logIn(user, { brief: brief ?? false });
  ctx.session.set("since", "login");
  return ctx.user?.name;
});
export const leave = service(async (ctx) => { await ctx.session.logOut(); });
export const others = service((ctx) => ctx.session.revokeOthers());
export const end = service((ctx, { id }: { id: string }) => ctx.session.revoke(id));
export const ban = service((ctx, { user }: { user: string }) => ctx.session.revokeUser(user));
export const all = service((ctx) => ctx.session.all());
export const big = service((ctx) => ctx.session.set("big", "x".repeat(5000)));

export default page((ctx) => (
  <main>
    <Live><p>{ctx.user?.name ?? "nobody"}: {ctx.session.get("theme") ?? "light"}, {ctx.session.get("visits") ?? 0}</p></Live>
  </main>
));
"#;

fn visits() -> (Folder, Site) {
    let folder = Folder::with(&[("index.tsx", VISITS)]);
    let site = folder.site();
    (folder, site)
}

#[track_caller]
fn call(client: &Client, service: &str, arguments: &Value) -> Value {
    let reply = client.post_json(service, arguments);
    match reply.status() {
        200 => reply.json(),
        204 => Value::Null,
        status => panic!("{service}: {status} {}", reply.text()),
    }
}

fn shown(client: &Client) -> String {
    let page = client.get("/").text().to_owned();
    let (_, rest) = page.split_once("<p>").unwrap();
    rest.split_once("</p>").unwrap().0.to_owned()
}

#[test]
fn stores_values_for_one_visitor() {
    let (_folder, site) = visits();
    let (ann, bob) = (site.client(), site.client());
    assert_eq!(shown(&ann), "nobody: light, 0");
    call(&ann, "/set", &json!({ "name": "theme", "value": "dark" }));
    assert_eq!(call(&ann, "/visit", &json!({})), 1);
    assert_eq!(call(&ann, "/visit", &json!({})), 2);
    assert_eq!(shown(&ann), "nobody: dark, 2");
    assert_eq!(shown(&bob), "nobody: light, 0");
}

#[test]
fn reads_no_session_into_existence() {
    let (_folder, site) = visits();
    let client = site.client();
    assert_eq!(client.get("/").header("set-cookie"), None);
    let set = client.post_json("/set", &json!({ "name": "theme", "value": "dark" }));
    assert!(set.header("set-cookie").is_some());
}

#[test]
fn takes_changes_back_with_the_transaction() {
    let (_folder, site) = visits();
    let client = site.client();
    assert_eq!(call(&client, "/visit", &json!({})), 1);
    let failed = client.post_json("/fail", &json!({}));
    assert_eq!(failed.status(), 409);
    // Within the transaction, the login was visible.
    assert!(failed.text().contains("mallory failed"), "{}", failed.text());
    assert_eq!(failed.header("set-cookie"), None);
    assert_eq!(shown(&client), "nobody: light, 1");
    call(&client, "/clash", &json!({ "body": "one" }));
    let clash = client.post_json("/clash", &json!({ "body": "one" }));
    assert_eq!(clash.status(), 409, "{}", clash.text());
    assert_eq!(call(&client, "/visit", &json!({})), 2);
}

#[test]
fn changes_the_session_in_async_services() {
    let (_folder, site) = visits();
    let client = site.client();
    assert_eq!(call(&client, "/visit", &json!({})), 1);
    let later = call(&client, "/later", &json!({ "value": "dark" }));
    assert_eq!(later, json!(["dark", "dark", true]));
    assert_eq!(shown(&client), "nobody: dark, 0");
}

#[test]
fn keeps_changes_of_one_service_that_overlap() {
    let (_folder, site) = visits();
    let client = site.client();
    assert_eq!(call(&client, "/visit", &json!({})), 1);
    let done = call(&client, "/together", &json!({ "user": "ann" }));
    let expected = json!({
        "first": 1, "second": 2, "told": "TableError", "user": "ann", "values": ["ann", "ann", "ann", "dark"],
    });
    assert_eq!(done, expected);
    assert_eq!(shown(&client), "ann: dark, 1");
}

#[test]
fn counts_concurrent_visits_of_one_session_once_each() {
    let (_folder, site) = visits();
    let client = site.client();
    assert_eq!(call(&client, "/visit", &json!({})), 1);
    let visit = |client: Client| {
        std::thread::spawn(move || {
            let done = (0..10).filter(|_| client.post_json("/visit", &json!({})).status() == 200);
            done.count()
        })
    };
    let threads: Vec<_> = (0..4).map(|_| visit(client.clone())).collect();
    let done: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(call(&client, "/visit", &json!({})), json!(done + 2));
}

#[test]
fn logs_users_in_and_out_with_a_new_cookie() {
    let (_folder, site) = visits();
    let client = site.client();
    let set = client.post_json("/set", &json!({ "name": "theme", "value": "dark" }));
    let before = set.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let entered = client.post_json("/enter", &json!({ "user": "ann" }));
    assert_eq!(entered.json::<String>(), "ann", "{}", entered.text());
    let cookie = entered.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && !cookie.starts_with(&before), "{cookie}");
    assert!(cookie.contains("Max-Age"), "{cookie}");
    assert_eq!(shown(&client), "ann: dark, 0");
    // The cookie before the login has no user.
    let old = site.request(bine::test::Method::Get, "/").header("Cookie", before).send();
    assert!(old.text().contains("<p>nobody: light, 0</p>"), "{}", old.text());
    call(&client, "/leave", &json!({}));
    assert_eq!(shown(&client), "nobody: light, 0");
    let brief = client.post_json("/enter", &json!({ "user": "ann", "brief": true }));
    let cookie = brief.header("set-cookie").unwrap();
    assert!(!cookie.contains("Max-Age"), "{cookie}");
    for user in ["", "a/b", "{user}", " ann", "ann\n"] {
        let wrong = client.post_json("/enter", &json!({ "user": user }));
        assert_eq!(wrong.status(), 422, "{user:?}: {}", wrong.text());
    }
    assert_eq!(shown(&client), "ann: light, 0");
}

#[test]
fn lists_and_ends_sessions_of_a_user() {
    let (_folder, site) = visits();
    let clients: Vec<Client> = (0..4).map(|_| site.client()).collect();
    for client in &clients {
        assert_eq!(call(client, "/enter", &json!({ "user": "ann" })), "ann");
    }
    let [first, second, third, last] = &clients[..] else { panic!() };
    let all = call(first, "/all", &json!({}));
    assert_eq!(all.as_array().unwrap().len(), 4);
    assert_eq!(all[0]["isCurrent"], true);
    assert_eq!(call(first, "/end", &json!({ "id": all[1]["id"] })), true);
    assert_eq!(call(first, "/end", &json!({ "id": "nothing" })), false);
    assert_eq!(shown(second), "nobody: light, 0");
    assert_eq!(call(third, "/others", &json!({})), 2);
    assert_eq!(
        (shown(first).as_str(), shown(third).as_str()),
        ("nobody: light, 0", "ann: light, 0")
    );
    assert_eq!(shown(last), "nobody: light, 0");
    let stranger = site.client();
    assert_eq!(call(&stranger, "/all", &json!({})), json!([]));
    assert_eq!(call(&stranger, "/ban", &json!({ "user": "ann" })), 1);
    assert_eq!(shown(third), "nobody: light, 0");
}

#[test]
fn renders_live_regions_again_when_the_session_changes() {
    let (_folder, site) = visits();
    let client = site.client();
    call(&client, "/visit", &json!({}));
    let mut tab = client.visit("/");
    let mut other = site.visit("/");
    tab.expect("p", "nobody: light, 1");
    call(&client, "/set", &json!({ "name": "theme", "value": "dark" }));
    tab.expect("p", "nobody: dark, 1");
    other.expect("p", "nobody: light, 0");
}

/// Calls a service in TSX that changes the session within the transaction of this one.
#[service]
fn outer(call: &mut Call) -> Result<(), Error> {
    call.call_service("/set", &json!({ "name": "theme", "value": "dark" }))
}

#[service]
async fn outside(caller: Caller) -> Result<(), Error> {
    caller.call_service("/set", &json!({ "name": "theme", "value": "dark" })).await
}

#[test]
fn changes_the_session_for_rust_outside_of_its_transactions() {
    let folder = Folder::with(&[("index.tsx", VISITS)]);
    let site = Site::new(App::new().scripts(folder.path()).service(outer).service(outside));
    let client = site.client();
    assert_eq!(shown(&client), "nobody: light, 0");
    let within = client.post_json("/scripts/outer", &json!({}));
    assert_eq!(within.status(), 500, "{}", within.text());
    assert!(within.text().contains("in the service that the visitor calls"), "{}", within.text());
    assert_eq!(call(&client, "/scripts/outside", &json!({})), Value::Null);
    assert_eq!(shown(&client), "nobody: dark, 0");
}

#[test]
fn rejects_wrong_changes_of_a_session() {
    let folder = Folder::with(&[(
        "index.tsx",
        r#"import { page, service } from "bine";
const cyclic: any = {};
cyclic.own = cyclic;
const cases: Record<string, (session: any) => unknown> = {
  page: (session) => session.set("a", 1),
  nothing: (session) => session.set("a", undefined),
  work: (session) => session.set("a", () => 1),
  cyclic: (session) => session.set("a", cyclic),
  name: (session) => session.set(5, 1),
  getName: (session) => session.get(),
  user: (session) => session.logIn(5),
  noUser: (session) => session.logIn(),
  option: (session) => session.logIn("ann", { breif: true }),
  optionKind: (session) => session.logIn("ann", "brief"),
  big: (session) => session.set("a", "x".repeat(5000)),
  deep: (session) => { let value: any = 1; for (let n = 0; n < 500; n++) value = [value]; return session.set("a", value); },
  id: (session) => session.revoke(5),
};
const told = (run: () => unknown) => {
  try {
    return `${run()}`;
  } catch (error: any) {
    return `${error.name}: ${error.message}`;
  }
};
export const run = service((ctx, { name }: { name: string }) => told(() => cases[name](ctx.session)));
export const later = service(async (ctx, { name }: { name: string }) => {
  try {
    return `${await cases[name](ctx.session)}`;
  } catch (error: any) {
    return `${error.name}: ${error.message}`;
  }
});
export default page((ctx, { name = "page" }) => <p>{told(() => cases[name](ctx.session))}</p>);
"#,
    )]);
    let site = folder.site();
    let page = site.get("/").text().to_owned();
    assert!(page.contains("a page only reads: change the session in a service"), "{page}");
    for (name, message) in [
        ("nothing", "TypeError: a session holds values that JSON can hold"),
        ("work", "TypeError: a session holds"),
        ("cyclic", "TypeError: circular"),
        ("name", "must be a string, not 5"),
        ("getName", "must be a string, not undefined"),
        ("user", "must be a string"),
        ("noUser", "must be a string"),
        ("option", "a login has the option `brief`"),
        ("optionKind", "the options of a login are an object"),
        ("big", "4096"),
        ("deep", "RangeError: the value is nested too deep"),
        ("id", "must be a string"),
    ] {
        for service in ["/run", "/later"] {
            let reply = site.post_json(service, &json!({ "name": name }));
            assert_eq!(reply.status(), 200, "{service} {name}: {}", reply.text());
            let told: String = reply.json();
            assert!(told.contains(message), "{service} {name}: {told}");
        }
    }
}
