//! Events of applications, and the present visitors of their pages.

use bine::App;
use bine::live::Events;
use bine::prelude::*;
use bine::test::{Method, Site};
use serde_json::{Value, json};

use crate::folder::Folder;

const HOUSE: &str = r#"import { Live, change, error, event, page, presence, service, table, text } from "bine";
const bell = event("bell");
const job = event("job", { listen: "users" });
const notes = table("notes", { body: text() });

export const ring = service((ctx, { body, fails }: { body: string; fails?: boolean }) => {
  notes.insert({ body });
  bell.broadcast({ body });
  if (fails) throw error(409, "Not rung");
});
export const ringNow = service(async (ctx, { body }: { body: string }) => { bell.broadcast(body); });
export const give = service(async (ctx, { number }: { number: number }) => job.notifyOne(number));
export const enter = service((ctx, { user }: { user: string }) => ctx.session.logIn(user));
export const wrong = service(() => presence.people());

export default page((ctx) => (
  <main data-event={bell.name}>
    <Live><p>{bell.listeners()} hear the bell</p></Live>
    <Live><b>{presence.people()} people, {presence.tabs()} tabs: {presence.names(5).join(", ")}</b></Live>
  </main>
));
"#;

fn house() -> (Folder, Site) {
    let folder = Folder::with(&[("house/index.tsx", HOUSE)]);
    let site = folder.site();
    (folder, site)
}

#[test]
fn sends_events_to_open_pages() {
    let (_folder, site) = house();
    let mut one = site.visit("/house/");
    one.listen("house/bell");
    one.expect("p", "1 hear the bell");
    let mut other = site.visit("/house/");
    other.listen("house/bell");
    one.expect("p", "2 hear the bell");
    let failed = site.post_json("/house/ring", &json!({ "body": "no", "fails": true }));
    assert_eq!(failed.status(), 409);
    assert_eq!(site.post_json("/house/ring", &json!({ "body": "door" })).status(), 204);
    // The event of the transaction that failed was not sent.
    assert_eq!(one.expect_event("house/bell"), json!({ "body": "door" }));
    assert_eq!(other.expect_event("house/bell"), json!({ "body": "door" }));
    assert_eq!(site.post_json("/house/ringNow", &json!({ "body": "now" })).status(), 204);
    assert_eq!(one.expect_event("house/bell"), "now");
}

#[test]
fn sends_an_event_to_one_listener_who_has_logged_in() {
    let (_folder, site) = house();
    let give = || site.post_json("/house/give", &json!({ "number": 7 })).json::<bool>();
    assert!(!give());
    let client = site.client();
    assert_eq!(client.post_json("/house/enter", &json!({ "user": "ann" })).status(), 204);
    let mut tab = client.visit("/house/");
    tab.listen("house/job");
    assert!(give());
    assert_eq!(tab.expect_event("house/job"), 7);
    let listen = "/_bine/live?page=%2Fhouse%2F&have=&on=house%2Fjob";
    let refused = site.request(Method::Get, listen).header("Accept", "text/event-stream").send();
    assert_eq!(refused.status(), 401, "{}", refused.text());
}

#[test]
fn shows_who_is_present() {
    let (_folder, site) = house();
    let client = site.client();
    assert_eq!(client.post_json("/house/enter", &json!({ "user": "ann" })).status(), 204);
    let mut one = client.visit("/house/");
    one.expect("b", "1 people, 1 tabs: ann");
    let other = client.visit("/house/");
    one.expect("b", "1 people, 2 tabs: ann");
    let stranger = site.visit("/house/");
    one.expect("b", "2 people, 3 tabs: ann");
    drop((other, stranger));
    one.expect("b", "1 people, 1 tabs: ann");
    let wrong = site.post_json("/house/wrong", &json!({}));
    assert_eq!(wrong.status(), 500);
    assert!(wrong.text().contains("read `presence` in a page"), "{}", wrong.text());
}

#[page(POST "/rust/ring")]
async fn ring(events: Events) -> Result<Response, Error> {
    events.broadcast("house/bell", "from Rust")?;
    Ok(Response::text("rung"))
}

#[test]
fn shares_an_event_with_the_program_in_rust() {
    let folder = Folder::with(&[("house/index.tsx", HOUSE)]);
    let site = Site::new(App::new().scripts(folder.path()).page(ring));
    let mut tab = site.visit("/house/");
    tab.listen("house/bell");
    tab.expect("p", "1 hear the bell");
    let rung = site.request(Method::Post, "/rust/ring").send();
    assert_eq!(rung.status() / 100, 2, "{}", rung.text());
    assert_eq!(tab.expect_event("house/bell"), "from Rust");
}

#[test]
fn rejects_wrong_events_with_the_correction() {
    let folder = Folder::with(&[(
        "index.tsx",
        r#"import { event, page, presence, service } from "bine";
const bell = event("bell") as any;
const cyclic: any = {};
cyclic.own = cyclic;
const cases: Record<string, () => unknown> = {
  page: () => bell.broadcast("a"),
  inside: () => event("late"),
  work: () => bell.broadcast(() => 1),
  cyclic: () => bell.broadcast(cyclic),
  deep: () => { let value: any = 1; for (let n = 0; n < 500; n++) value = [value]; bell.broadcast(value); },
  names: () => presence.names(0),
  fake: () => Object.getPrototypeOf(bell).broadcast.call({}, 1),
};
const told = (name: string) => {
  try {
    return `${cases[name]()}`;
  } catch (error: any) {
    return `${error.name}: ${error.message}`;
  }
};
export const run = service((ctx, { name }: { name: string }) => told(name));
export const later = service(async (ctx, { name }: { name: string }) => told(name));
export default page((ctx, { name = "page" }) => <p>{told(name)}</p>);
"#,
    )]);
    let site = folder.site();
    assert!(site.get("/").text().contains("a page only reads: send events in a service"));
    assert!(site.get("/?name=names").text().contains("reads from 1 to 1000 names, not 0"));
    for (name, message) in [
        ("inside", "move `event(..)` to the top of a module"),
        ("work", "TypeError: an event has a value that JSON can hold"),
        ("cyclic", "TypeError: circular"),
        ("deep", "RangeError: the data of the event is nested too deep"),
        ("fake", "TypeError"),
    ] {
        for service in ["/run", "/later"] {
            let told: String = site.post_json(service, &json!({ "name": name })).json();
            assert!(told.contains(message), "{service} {name}: {told}");
        }
    }
    for (declaration, message) in [
        ("event(5 as any)", "must be a string"),
        ("event(\"a b\")", "has 1 to 64 letters"),
        ("event(\"a/b\")", "has 1 to 64 letters"),
        ("event(\"a\", { listen: \"everyone\" } as any)", "says who may listen"),
        ("event(\"a\", 5 as any)", "says who may listen"),
        ("event(\"a\"); event(\"a\")", "is declared twice"),
    ] {
        let page = format!(
            "import {{ event, page }} from \"bine\";\n{declaration};\nexport default page(() => <p />);\n"
        );
        let folder = Folder::with(&[("index.tsx", &*page)]);
        let failed = folder.site().request(Method::Get, "/").header("Accept", "text/html").send();
        assert_eq!(failed.status(), 500, "{declaration}");
        assert!(failed.text().contains(message), "{declaration}: {}", failed.text());
    }
    let told: Value = site.post_json("/run", &json!({ "name": "work" })).json();
    assert!(told.is_string());
}

#[test]
fn rejects_an_event_of_an_application_for_a_group() {
    let page = r#"import { event, page } from "bine";
const bell = event("bell");
export default page(() => <p>{bell.name}</p>);
"#;
    let start = "import { group } from \"bine:start\";\ngroup(\"staff\", \"ann\");";
    let door = r#"import { page, service } from "bine";
export const enter = service((ctx, { user }: { user: string }) => ctx.session.logIn(user));
export default page(() => <p>door</p>);
"#;
    let folder = Folder::with(&[
        ("start.ts", start),
        ("club/index.tsx", page),
        ("club/app.toml", "access = \"group:staff\""),
        ("door/index.tsx", door),
    ]);
    let site = folder.site();
    let ann = site.client();
    assert_eq!(ann.post_json("/door/enter", &json!({ "user": "ann" })).status(), 204);
    let failed = ann.request(Method::Get, "/club/").header("Accept", "text/html").send();
    assert_eq!(failed.status(), 500);
    assert!(failed.text().contains("club/index.tsx:2:14"), "{}", failed.text());
    assert!(failed.text().contains("which an event cannot check: use a channel"));
}

#[test]
fn lets_only_users_listen_to_events_of_an_application_for_users() {
    let club = r#"import { Live, event, page, service } from "bine";
const bell = event("bell");
export const ring = service(async () => bell.broadcast("in the club"));
export default page(() => <Live><p>{bell.listeners()} hear the bell</p></Live>);
"#;
    let door = r#"import { Live, page, service } from "bine";
export const enter = service((ctx, { user }: { user: string }) => ctx.session.logIn(user));
export default page(() => <Live><p>door</p></Live>);
"#;
    let folder = Folder::with(&[
        ("club/index.tsx", club),
        ("club/app.toml", "access = \"users\""),
        ("door/index.tsx", door),
    ]);
    let site = folder.site();
    let ann = site.client();
    assert_eq!(ann.post_json("/door/enter", &json!({ "user": "ann" })).status(), 204);
    let mut tab = ann.visit("/club/");
    tab.listen("club/bell");
    tab.expect("p", "1 hear the bell");
    assert_eq!(ann.post_json("/club/ring", &json!({})).status(), 204);
    assert_eq!(tab.expect_event("club/bell"), "in the club");
    // The page of another application, which is open to everyone, gives no access to the event.
    let listen = "/_bine/live?page=%2Fdoor%2F&have=&on=club%2Fbell";
    let refused = site.request(Method::Get, listen).header("Accept", "text/event-stream").send();
    assert_eq!(refused.status(), 401, "{}", refused.text());
}
