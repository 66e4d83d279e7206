//! Channels of applications: rules, messages in pages, and sharing with the program in Rust.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use bine::App;
use bine::channels::{Access, Channels, ClientLimits};
use bine::prelude::*;
use bine::test::{Client, Method, Site};
use serde_json::{Value, json};

use crate::folder::Folder;

const BOARD: &str = r#"import { Live, channel, change, error, page, service, table, text } from "bine";
const news = channel("news", { follow: "anyone", retention: { messages: 3 } });
const wall = channel("wall", { follow: "anyone", publish: "users" });
const rooms = channel("rooms/{room}", { follow: "users" });
const inbox = channel("inbox/{user}", { follow: "users" });
const secret = channel("secret");
const notes = table("notes", { body: text().max(20) });

export const enter = service((ctx, { user }: { user: string }) => { ctx.session.logIn(user); });
export const say = service((ctx, { body, fails }: { body: string; fails?: boolean }) => {
  notes.insert({ body });
  const nothing = news.publish({ body, by: ctx.session.name });
  if (nothing !== undefined) throw new Error("a transaction has no receipt");
  if (fails) throw error(409, "Not said");
});
export const tell = service(async (ctx, { body, id }: { body: string; id?: string }) =>
  await news.publish(body, { event: "told", id, also: [wall, rooms.at("hall")] }));
export const both = service(async (ctx, { body }: { body: string }) => {
  await change(() => { notes.insert({ body }); news.publish(body); });
  return await secret.publish(body);
});
export const write = service((ctx, { user, body }: { user: string; body: string }) => {
  inbox.at(user).publish(body);
});
export const enterRoom = service((ctx, { room }: { room: string }) => rooms.at(room).create());
export const close = service(async () => { await wall.close(); return wall.describe(); });
export const sayOnWall = service((ctx, { body }: { body: string }) => { notes.insert({ body }); wall.publish(body); });
export const leave = service((ctx) => ctx.session.logOut());
export const expel = service((ctx, { user }: { user: string }) => { channel.revoke(user); });
export const count = service(() => notes.count());
export const state = service(() => ({
  name: news.name, room: rooms.at("hall").name, wall: wall.describe(), missing: rooms.at("none").describe(),
  secret: secret.newest(5).map((message) => message.data),
}));

export default page((ctx, { room }) => (
  <main data-events={channel.url(news, wall)} data-room={room ? rooms.at(room).url() : ""}>
    <Live>
      <ol>{news.newest(10).map((message) => (
        <li id={message.cursor}>{message.data.body ?? message.data}: {message.event ?? "said"}</li>
      ))}</ol>
    </Live>
  </main>
));
"#;

fn board() -> (Folder, Site) {
    let folder = Folder::with(&[("board/index.tsx", BOARD)]);
    let site = folder.site();
    (folder, site)
}

/// The messages that a client reads of a channel, once there is one.
#[track_caller]
fn read(client: &Client, channel: &str) -> Vec<Value> {
    let reply = client.get(&format!("/channels?c={channel}&after=earliest&wait=20"));
    assert_eq!(reply.status(), 200, "{channel}: {}", reply.text());
    reply.json()
}

fn status(client: &Client, channel: &str) -> u16 {
    client.get(&format!("/channels?c={channel}&after=earliest&wait=0")).status()
}

/// Reads a channel, which exists, until it has a number of messages.
fn read_all(client: &Client, channel: &str, count: usize) -> Vec<Value> {
    let mut url = format!("/channels?c={channel}&after=earliest&limit=100&wait=20");
    let mut messages = Vec::new();
    loop {
        let reply = client.get(&url);
        assert_eq!(reply.status(), 200, "{channel}: {}", reply.text());
        messages.extend(reply.json::<Vec<Value>>());
        if messages.len() >= count {
            return messages;
        }
        let cursor = messages.last().unwrap()["cursor"].as_str().unwrap();
        url = format!("/channels?c={channel}&after={cursor}&limit=100&wait=20");
    }
}

fn text(text: &str) -> Value {
    Value::from(text)
}

#[test]
fn loads_an_application_for_a_request_to_its_channels() {
    let (_folder, site) = board();
    let client = site.client();
    // No client has requested a page, so the rules are not known yet.
    assert_eq!(status(&client, "board/news"), 204);
    assert_eq!(status(&client, "board/secret"), 403);
    assert_eq!(status(&client, "board/rooms/hall"), 401);
    assert_eq!(status(&client, "boar/news"), 403);
    assert_eq!(status(&client, "board/newsletter"), 403);
    let posted = client.post_json("/channels", &json!({ "channels": "board/news", "data": 1 }));
    assert_eq!(posted.status(), 401, "{}", posted.text());
}

#[test]
fn publishes_after_the_commit_of_a_transaction() {
    let (_folder, site) = board();
    let client = site.client();
    let failed = client.post_json("/board/say", &json!({ "body": "no", "fails": true }));
    assert_eq!(failed.status(), 409, "{}", failed.text());
    assert_eq!(client.post_json("/board/say", &json!({ "body": "hops" })).status(), 204);
    let messages = read(&client, "board/news");
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["data"]["body"], "hops");
    assert_eq!(messages[0]["channels"], json!(["board/news"]));
    assert_eq!(client.post_json("/board/count", &json!({})).json::<u64>(), 1);
}

#[test]
fn returns_receipts_outside_of_transactions() {
    let (_folder, site) = board();
    let client = site.client();
    let tell = |body: &str| {
        let reply = client.post_json("/board/tell", &json!({ "body": body, "id": "one" }));
        assert_eq!(reply.status(), 200, "{}", reply.text());
        reply.json::<Value>()
    };
    let first = tell("first");
    assert_eq!(first["repeated"], false);
    assert_eq!(tell("again"), json!({ "cursor": first["cursor"], "repeated": true }));
    let messages = read(&client, "board/news&c=board/wall");
    assert_eq!(messages.len(), 1, "{messages:?}");
    let message = &messages[0];
    assert_eq!((&message["data"], &message["event"]), (&text("first"), &text("told")));
    assert_eq!(message["channels"], json!(["board/news", "board/wall", "board/rooms/hall"]));
}

#[test]
fn publishes_in_changes_of_async_services() {
    let (_folder, site) = board();
    let client = site.client();
    let both = client.post_json("/board/both", &json!({ "body": "hops" }));
    assert_eq!(both.status(), 200, "{}", both.text());
    assert_eq!(read(&client, "board/news")[0]["data"], "hops");
    let state: Value = client.post_json("/board/state", &json!({})).json();
    assert_eq!(state["secret"], json!(["hops"]));
    assert_eq!(state["name"], "board/news");
    assert_eq!(state["room"], "board/rooms/hall");
    assert_eq!(state["missing"], Value::Null);
    assert_eq!(state["wall"]["messages"], 0);
}

#[test]
fn shows_new_messages_in_live_regions() {
    let (_folder, site) = board();
    let mut tab = site.visit("/board/");
    tab.expect_count("li", 0);
    assert_eq!(site.post_json("/board/say", &json!({ "body": "hops" })).status(), 204);
    tab.expect("li", "hops: said");
    let told = site.post_json("/board/tell", &json!({ "body": "malt" }));
    assert_eq!(told.status(), 200, "{}", told.text());
    tab.expect("li", "malt: told");
    assert_eq!(tab.texts("li"), ["malt: told", "hops: said"]);
    for body in ["a", "b", "c"] {
        assert_eq!(site.post_json("/board/say", &json!({ "body": body })).status(), 204);
        tab.expect("li", &*format!("{body}: said"));
    }
    // The retention of the channel keeps three messages.
    assert_eq!(tab.texts("li"), ["c: said", "b: said", "a: said"]);
}

#[test]
fn gives_the_page_an_address_that_continues_after_what_it_shows() {
    let (_folder, site) = board();
    let client = site.client();
    assert_eq!(client.post_json("/board/say", &json!({ "body": "shown" })).status(), 204);
    assert_eq!(read(&client, "board/news").len(), 1);
    let page = client.get("/board/").text().to_owned();
    assert!(page.contains("shown"), "{page}");
    let (_, rest) = page.split_once("data-events=\"").unwrap();
    let (url, _) = rest.split_once('"').unwrap();
    let url = url.replace("&amp;", "&");
    assert!(url.starts_with("/channels?c=board%2Fnews&c=board%2Fwall&after="), "{url}");
    assert_eq!(client.post_json("/board/say", &json!({ "body": "later" })).status(), 204);
    let messages: Vec<Value> = client.get(&url).json();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0]["data"]["body"], "later");
}

#[test]
fn lets_users_follow_their_own_channels_only() {
    let (_folder, site) = board();
    let (ann, bob) = (site.client(), site.client());
    for (client, user) in [(&ann, "ann"), (&bob, "bob")] {
        let entered = client.post_json("/board/enter", &json!({ "user": user }));
        assert_eq!(entered.status(), 204, "{}", entered.text());
    }
    let sent = bob.post_json("/board/write", &json!({ "user": "ann", "body": "hello" }));
    assert_eq!(sent.status(), 204, "{}", sent.text());
    assert_eq!(read(&ann, "board/inbox/ann")[0]["data"], "hello");
    assert_eq!(status(&bob, "board/inbox/ann"), 403);
    assert_eq!(status(&site.client(), "board/inbox/ann"), 401);
    // A visitor's input stays within its segment.
    for user in ["*", "{user}", "a/b", "", "ann\n"] {
        let wrong = bob.post_json("/board/write", &json!({ "user": user, "body": "x" }));
        assert_eq!(wrong.status(), 422, "{user:?}: {}", wrong.text());
    }
    assert_eq!(status(&ann, "board/inbox/%7Buser%7D"), 403);
    assert_eq!(status(&ann, "board/inbox/*"), 403);
    // Users may publish on the wall.
    let posted = ann.post_json("/channels", &json!({ "channels": "board/wall", "data": "hi" }));
    assert_eq!(posted.status(), 200, "{}", posted.text());
    let posted = site.post_json("/channels", &json!({ "channels": "board/wall", "data": "hi" }));
    assert_eq!(posted.status(), 401, "{}", posted.text());
}

/// Follows the hall as a user with this cookie, and returns after the first message.
fn follow_hall(site: &Site, cookie: &str) -> TcpStream {
    let mut stream = TcpStream::connect(site.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let target = "/channels?c=board/rooms/hall&after=earliest";
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).contains("data: begin") {
        let mut part = [0; 1000];
        let length = stream.read(&mut part).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&part[..length]);
    }
    stream
}

/// Logs a user in, and returns the cookie.
fn enter(client: &Client, user: &str) -> String {
    let entered = client.post_json("/board/enter", &json!({ "user": user }));
    assert_eq!(entered.status(), 204, "{}", entered.text());
    let cookie = entered.header("set-cookie").expect("a login sets a cookie");
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn ends_what_a_revoked_or_logged_out_user_follows() {
    let (_folder, site) = board();
    let client = site.client();
    let cookie = enter(&client, "ann");
    let told = client.post_json("/board/tell", &json!({ "body": "begin" }));
    assert_eq!(told.status(), 200, "{}", told.text());
    let mut left = Vec::new();
    let mut stream = follow_hall(&site, &cookie);
    assert_eq!(site.post_json("/board/expel", &json!({ "user": "ann" })).status(), 204);
    stream.read_to_end(&mut left).unwrap();
    // Revoking is no ban: the login may follow again, until it ends.
    let mut stream = follow_hall(&site, &cookie);
    assert_eq!(client.post_json("/board/leave", &json!({})).status(), 204);
    stream.read_to_end(&mut left).unwrap();
    assert_eq!(status(&client, "board/rooms/hall"), 401);
}

#[test]
fn rejects_a_message_that_a_channel_does_not_take_with_the_transaction() {
    let (_folder, site) = board();
    let client = site.client();
    let closed = client.post_json("/board/close", &json!({}));
    assert_eq!(closed.json::<Value>()["isClosed"], true, "{}", closed.text());
    let said = client.post_json("/board/sayOnWall", &json!({ "body": "late" }));
    assert_eq!(said.status(), 409, "{}", said.text());
    assert!(said.text().contains("is closed"), "{}", said.text());
    assert_eq!(client.post_json("/board/count", &json!({})).json::<u64>(), 0);
}

#[page(POST "/rust/say")]
async fn say(channels: Channels) -> Result<Response, Error> {
    channels.publish("board/news", "from Rust").await?;
    Ok(Response::text("said"))
}

#[page("/rust/last")]
async fn last(channels: Channels) -> Result<Response, Error> {
    let mut follower = channels.follow(["board/news"]).earliest();
    let next = follower.next().await.ok_or_else(|| Error::not_found("no message"))?;
    Ok(Response::text(next?.text()?.to_owned()))
}

#[test]
fn shares_a_channel_with_the_program_in_rust() {
    let folder = Folder::with(&[("board/index.tsx", BOARD)]);
    let app = App::new().scripts(folder.path()).channels(Access::none().follow("own"));
    let site = Site::new(app.page(say).page(last));
    let mut tab = site.visit("/board/");
    let said = site.request(Method::Post, "/rust/say").send();
    assert_eq!(said.status() / 100, 2, "{}", said.text());
    tab.expect("li", "from Rust: said");
    assert_eq!(site.get("/rust/last").text(), "from Rust");
    // The rules of Rust and those of the application both hold.
    let client = site.client();
    assert_eq!(status(&client, "own"), 404);
    assert_eq!(status(&client, "other"), 403);
    assert_eq!(read(&client, "board/news").len(), 1);
}

/// Rooms that visitors name: `say` in a transaction, `tell` outside of one.
const ROOMS: &str = r#"import { channel, page, service, table, text } from "bine";
const rooms = channel("rooms/{room}", { follow: "anyone" });
const news = channel("news", { follow: "anyone" });
const notes = table("notes", { body: text() });
export const enter = service((ctx, { user }: { user: string }) => { ctx.session.logIn(user); });
export const say = service((ctx, { room, bodies }: { room: string; bodies: string[] }) => {
  for (const body of bodies) {
    notes.insert({ body });
    rooms.at(room).publish(body);
  }
});
export const tell = service(async (ctx, { room, body }: { room: string; body: string }) => {
  await rooms.at(room).publish(body);
});
export const announce = service((ctx, { body }: { body: string }) => { news.publish(body); });
export const count = service(() => notes.count());
export default page(() => <p>rooms</p>);
"#;

#[test]
fn counts_channels_of_a_pattern_for_the_visitor_who_names_them() {
    let folder = Folder::with(&[("board/index.tsx", ROOMS)]);
    let client_limits = ClientLimits { bytes_per_subject: Some(20_000), ..ClientLimits::default() };
    let access = Access::none().client_limits(client_limits);
    let site = Site::new(App::new().scripts(folder.path()).channels(access));
    let (ann, bob) = (site.client(), site.client());
    enter(&ann, "ann");
    enter(&bob, "bob");
    let body = "x".repeat(1000);
    for (service, argument) in [
        ("say", json!({ "room": "r", "bodies": [body] })),
        ("tell", json!({ "room": "r", "body": body })),
    ] {
        let mut accepted = 0;
        let refused = (0..100).find_map(|number| {
            let mut argument = argument.clone();
            argument["room"] = json!(format!("{service}{number}"));
            let reply = ann.post_json(&format!("/board/{service}"), &argument);
            accepted += u32::from(reply.status() == 204);
            (reply.status() != 204).then_some(reply)
        });
        let refused = refused.expect("the quota is exceeded");
        assert_eq!(refused.status(), 429, "{service}: {}", refused.text());
        assert!(refused.text().contains("what `ann` has published"), "{}", refused.text());
        assert!(accepted <= 20, "{accepted} of {service}");
    }
    // Neither the other user nor the application's own channel is affected.
    let said = bob.post_json("/board/say", &json!({ "room": "b", "bodies": [body] }));
    assert_eq!(said.status(), 204, "{}", said.text());
    let announced = ann.post_json("/board/announce", &json!({ "body": body }));
    assert_eq!(announced.status(), 204, "{}", announced.text());
    // What was refused has changed no table.
    let notes = ann.post_json("/board/count", &json!({})).json::<usize>();
    assert_eq!(read_all(&ann, "board/rooms/b", 1).len(), 1);
    for number in 0..notes - 1 {
        let messages = read_all(&ann, &format!("board/rooms/say{number}"), 1);
        assert_eq!(messages.len(), 1);
    }
    assert_eq!(status(&ann, &format!("board/rooms/say{}", notes - 1)), 404);
}

#[test]
fn fails_a_service_whose_messages_exceed_the_quota_together() {
    let folder = Folder::with(&[("board/index.tsx", ROOMS)]);
    let client_limits = ClientLimits { bytes_per_subject: Some(20_000), ..ClientLimits::default() };
    let access = Access::none().client_limits(client_limits);
    let site = Site::new(App::new().scripts(folder.path()).channels(access));
    let ann = site.client();
    enter(&ann, "ann");
    let say = |count| {
        let bodies = vec!["x".repeat(1000); count];
        ann.post_json("/board/say", &json!({ "room": "r", "bodies": bodies })).status()
    };
    // Each of these messages alone is within the quota.
    assert_eq!(say(40), 429);
    assert_eq!(status(&ann, "board/rooms/r"), 404);
    // What the failed service had reserved is free again.
    for _ in 0..3 {
        assert_eq!(say(4), 204);
    }
    assert_eq!(ann.post_json("/board/count", &json!({})).json::<usize>(), 12);
    assert_eq!(read_all(&ann, "board/rooms/r", 12).len(), 12);
}

#[test]
fn keeps_the_order_of_messages_that_create_their_channel() {
    let folder = Folder::with(&[("board/index.tsx", ROOMS)]);
    let site = folder.site();
    let client = site.client();
    let bodies: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    let (first, second) = bodies.split_at(10);
    for room in ["a", "b", "c"] {
        for bodies in [first, second] {
            let said = client.post_json("/board/say", &json!({ "room": room, "bodies": bodies }));
            assert_eq!(said.status(), 204, "{}", said.text());
        }
    }
    for room in ["a", "b", "c"] {
        let read = read_all(&client, &format!("board/rooms/{room}"), bodies.len());
        let read: Vec<_> = read.iter().map(|message| message["data"].clone()).collect();
        assert_eq!(json!(read), json!(bodies), "{room}");
    }
}

#[test]
fn keeps_channels_of_two_applications_apart() {
    let app = |body: &str| {
        format!(
            r#"import {{ channel, page, service }} from "bine";
const news = channel("news", {{ follow: "{body}" }});
export const say = service(async () => await news.publish("{body}"));
export default page(() => <p>{{news.newest(5).map((message) => message.data).join(" ")}}</p>);
"#
        )
    };
    let (one, other) = (app("anyone"), app("users"));
    let folder = Folder::with(&[("one/index.tsx", &*one), ("one/two/index.tsx", &*other)]);
    folder.write("one/two/app.toml", "");
    let site = folder.site();
    let client = site.client();
    for path in ["/one/say", "/one/two/say"] {
        let said = client.post_json(path, &json!({}));
        assert_eq!(said.status(), 200, "{}", said.text());
    }
    assert_eq!(read(&client, "one/news")[0]["data"], "anyone");
    assert_eq!(status(&client, "one.two/news"), 401);
    assert_eq!(status(&client, "one/two/news"), 403);
    assert!(client.get("/one/").text().contains("<p>anyone</p>"));
    assert!(client.get("/one/two/").text().contains("<p>users</p>"));
}

#[test]
fn leaves_the_address_of_channels_to_a_page_that_has_it() {
    let page = "import { page } from \"bine\";\nexport default page((ctx, { name = \"index\" }) => <p>{name}</p>);\n";
    let wrong = "import { channel, page } from \"bine\";\nchannel(\"news\");\nexport default page(() => <p />);\n";
    let folder = Folder::with(&[("index.tsx", page), ("channels.tsx", page), ("wrong.tsx", page)]);
    let site = folder.site();
    assert!(site.get("/channels").text().contains("<p>index</p>"));
    folder.write("wrong.tsx", wrong);
    let folder = Folder::with(&[("index.tsx", page), ("channels.tsx", wrong)]);
    let failed = folder.site().request(Method::Get, "/").header("Accept", "text/html").send();
    assert_eq!(failed.status(), 500);
    assert!(failed.text().contains("give it another name"), "{}", failed.text());
    // A page with a parameter keeps the addresses that name no channel.
    let folder = Folder::with(&[("index.tsx", page), ("[name].tsx", page)]);
    assert!(folder.site().get("/channels").text().contains("<p>channels</p>"));
}

/// Wrong uses of the words, by name.
const WRONG: &str = r#"import { channel, page, service } from "bine";
const news = channel("news", { follow: "anyone" }) as any;
const rooms = channel("rooms/{room}") as any;
const cyclic: any = {};
cyclic.own = cyclic;
const cases: Record<string, () => unknown> = {
  inside: () => channel("late"),
  publish: () => news.publish("text"),
  undefinedData: () => news.publish(undefined),
  functionData: () => news.publish(() => 1),
  cyclic: () => news.publish(cyclic),
  option: () => news.publish("text", { evnt: "a" }),
  optionKind: () => news.publish("text", "event"),
  eventKind: () => news.publish("text", { event: 5 }),
  also: () => news.publish("text", { also: ["news"] }),
  eventText: () => news.publish("text", { event: "a\nb" }),
  newestNone: () => news.newest(),
  newestText: () => news.newest("5"),
  newestMany: () => news.newest(1001),
  newestHalf: () => news.newest(0.5),
  noValue: () => rooms.at().newest(1),
  twoValues: () => rooms.at("a", "b").newest(1),
  numberValue: () => rooms.at(5),
  badValue: () => rooms.at("a/b").newest(1),
  urlNone: () => channel.url(),
  urlText: () => channel.url("news" as any),
  revoke: () => channel.revoke(5 as any),
  revokeName: () => channel.revoke("a/b"),
  fake: () => Object.getPrototypeOf(news).newest.call({}, 1),
  long: () => news.publish("x".repeat(2 ** 20 + 1)),
};
const told = (name: string) => {
  try {
    return `${cases[name]()}`;
  } catch (error: any) {
    return `${error.name}: ${error.message}`;
  }
};
export const run = service((ctx, { name }: { name: string }) => told(name));
export const later = service(async (ctx, { name }: { name: string }) => {
  try {
    return `${await cases[name]()}`;
  } catch (error: any) {
    return `${error.name}: ${error.message}`;
  }
});
export default page((ctx, { name = "" }) => <p>{told(name)}</p>);
"#;

#[test]
fn rejects_wrong_uses_with_the_correction() {
    let folder = Folder::with(&[("index.tsx", WRONG)]);
    let site = folder.site();
    let page = site.get("/?name=publish").text().to_owned();
    assert!(page.contains("a page only reads"), "{page}");
    for (name, message) in [
        ("inside", "move `channel(..)` to the top of a module"),
        ("undefinedData", "TypeError: a message is a string, bytes"),
        ("functionData", "not a function"),
        ("cyclic", "TypeError: circular"),
        ("option", "TypeError: a message has no option `evnt`; there are event, id, type and also"),
        ("optionKind", "the options of a message are an object"),
        ("eventKind", "`event` is a string, not a number"),
        ("also", "this is no channel"),
        ("newestNone", "TypeError: argument 3 must be a finite number, not undefined"),
        ("newestText", "must be a finite number"),
        ("newestMany", "RangeError: newest(n) reads from 1 to 1000 messages, not 1001"),
        ("newestHalf", "RangeError"),
        ("noValue", "takes a string for `{room}`, not nothing"),
        ("twoValues", "takes 1 values, not 2"),
        ("numberValue", "made of strings, not of a number"),
        ("badValue", "cannot be a part of the name of a channel"),
        ("urlNone", "RangeError: one address is for 1 to 64 channels"),
        ("urlText", "this is no channel"),
        ("revoke", "must be a string"),
        ("revokeName", "a/b"),
        ("fake", "TypeError"),
    ] {
        for service in ["/run", "/later"] {
            let reply = site.post_json(service, &json!({ "name": name }));
            assert_eq!(reply.status(), 200, "{service} {name}: {}", reply.text());
            let told: String = reply.json();
            assert!(told.contains(message), "{service} {name}: {told}");
        }
    }
    // The hub rejects these, also within a transaction.
    for name in ["eventText", "long"] {
        for service in ["/run", "/later"] {
            let told: String = site.post_json(service, &json!({ "name": name })).json();
            assert!(told.starts_with("Error: "), "{service} {name}: {told}");
        }
    }
    assert_eq!(status(&site.client(), "site/news"), 204);
}

#[test]
fn reports_a_wrong_declaration_with_its_place() {
    let folder = Folder::with(&[(
        "index.tsx",
        "import { channel, page } from \"bine\";\n\nchannel(\"news\", { folow: \"anyone\" });\nexport default page(() => <p />);\n",
    )]);
    let site = folder.site();
    let failed = site.request(Method::Get, "/").header("Accept", "text/html").send();
    assert_eq!(failed.status(), 500);
    assert!(failed.text().contains("index.tsx:3:"), "{}", failed.text());
    assert!(failed.text().contains("did you mean `follow`?"), "{}", failed.text());
    // Its channels are unavailable, with a reason without details of the program.
    let denied = site.get("/channels?c=site/news&wait=0");
    assert_eq!(denied.status(), 503, "{}", denied.text());
}

#[test]
fn opens_the_channels_of_an_application_for_users_to_users_only() {
    let script = r#"import { channel, page, service } from "bine";
const news = channel("news", { follow: "users" });
export default page(() => <p>{news.newest(1).length}</p>);
"#;
    let door = r#"import { page, service } from "bine";
export const enter = service((ctx, { user }: { user: string }) => ctx.session.logIn(user));
export default page(() => <p />);
"#;
    let folder = Folder::with(&[
        ("club/index.tsx", script),
        ("club/app.toml", "access = \"users\""),
        ("door/index.tsx", door),
    ]);
    let site = folder.site();
    let (ann, stranger) = (site.client(), site.client());
    // A stranger cannot make the server load the application.
    assert_eq!(status(&stranger, "club/news"), 401);
    assert_eq!(ann.post_json("/door/enter", &json!({ "user": "ann" })).status(), 204);
    assert_eq!(status(&ann, "club/news"), 204);
    assert_eq!(status(&stranger, "club/news"), 401);
}

/// A WebSocket to `/channels`, for texts of fewer than 126 bytes.
struct Socket(TcpStream);

impl Socket {
    fn open(site: &Site, target: &str) -> Self {
        let mut stream = TcpStream::connect(site.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: bine.v1\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Self(stream)
    }

    /// Sends a text. Its mask is zero, so the bytes stay as they are.
    fn send(&mut self, text: &str) {
        let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
        frame.extend_from_slice(text.as_bytes());
        self.0.write_all(&frame).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        assert_eq!(head[0], 0x81, "not a text");
        let mut length = usize::from(head[1]);
        if length == 126 {
            self.0.read_exact(&mut head).unwrap();
            length = u16::from_be_bytes(head).into();
        }
        let mut text = vec![0; length];
        self.0.read_exact(&mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

#[test]
fn loads_applications_for_the_frames_of_an_open_websocket() {
    let members = r#"import { channel, page } from "bine";
const inner = channel("inner", { follow: "anyone" });
export default page(() => <p>members</p>);
"#;
    let folder = Folder::with(&[
        ("board/index.tsx", ROOMS),
        (
            "wall/index.tsx",
            &ROOMS.replace("follow: \"anyone\"", "follow: \"anyone\", publish: \"anyone\""),
        ),
        ("members/index.tsx", members),
        ("members/app.toml", "access = \"users\""),
        ("broken/index.tsx", "export default 1 +;"),
    ]);
    let access = Access::none().follow("own").manage("own");
    let site = Site::new(App::new().scripts(folder.path()).channels(access));
    assert_eq!(site.request(Method::Put, "/channels/own").send().status(), 201);
    let mut socket = Socket::open(&site, "/channels?c=own");
    assert!(socket.receive()["cursor"].is_string());
    // No application is loaded so far.
    socket.send(r#"{"follow":["board/news","own"]}"#);
    assert!(socket.receive()["cursor"].is_string());
    socket.send(r#"{"publish":[{"channels":"wall/news","data":"hello"}]}"#);
    let told = socket.receive();
    assert_eq!(told["published"].as_array().map(Vec::len), Some(1), "{told}");
    let announced = site.post_json("/board/announce", &json!({ "body": "news" }));
    assert_eq!(announced.status(), 204, "{}", announced.text());
    assert_eq!(socket.receive()["data"], "news");
    for (channel, reason) in [
        ("members/inner", "log in"),
        ("broken/news", "the application of this channel cannot be loaded"),
        ("board/secret", "board/secret"),
    ] {
        socket.send(&format!("{{\"follow\":[\"{channel}\"]}}"));
        let refused = socket.receive()["refused"].as_str().unwrap_or_default().to_lowercase();
        assert!(refused.contains(reason), "{channel}: {refused}");
    }
    // The channels stay as they were.
    assert_eq!(site.post_json("/board/announce", &json!({ "body": "more" })).status(), 204);
    assert_eq!(socket.receive()["data"], "more");
}
