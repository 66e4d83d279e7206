//! The words for channels, sessions and events with arguments of any kind: each call returns or
//! throws, and the application and the server go on.

use serde_json::{Value, json};

use crate::folder::Folder;

const SCRIPT: &str = r#"import { channel, event, page, presence, service } from "bine";

const news = channel("news", { follow: "anyone", publish: "anyone" }) as any;
const rooms = channel("rooms/{room}/{part}", { follow: "users" }) as any;
const bell = event("bell") as any;

const cyclic: any = {};
cyclic.own = cyclic;
const values: (() => unknown)[] = [
  () => undefined, () => null, () => true, () => 0, () => -1, () => 1.5, () => NaN, () => Infinity, () => 1e300,
  () => 10n, () => Symbol("s"), () => "", () => "a", () => "\0", () => "\ud800", () => "*", () => "{user}", () => "a/b",
  () => "__proto__", () => "x".repeat(5000), () => [], () => [undefined], () => [[]], () => ({}), () => ({ json: 1 }),
  () => ({ also: [news, rooms] }), () => ({ event: "\n" }), () => ({ __proto__: null }), () => cyclic, () => new Map(),
  () => ({ get event() { throw new Error("getter"); } }), () => ({ toJSON() { throw new Error("json"); } }),
  () => new Proxy({}, { get() { throw new Error("proxy"); }, ownKeys() { throw new Error("keys"); } }),
  () => () => 1, () => new Date(NaN), () => new Uint8Array(3), () => Promise.resolve(1),
  () => news, () => rooms, () => bell, () => rooms.at("a", "b"), () => Object.create(news),
];

const seconds: (() => unknown)[] = [
  () => null, () => 1, () => "a", () => ({}), () => ({ event: 1 }), () => ({ follow: "anyone" }), () => [news], () => cyclic,
];

const calls = (session: any): Record<string, Function> => ({
  publish: (...all: unknown[]) => news.publish(...all),
  newest: (...all: unknown[]) => news.newest(...all),
  describe: (...all: unknown[]) => news.describe(...all),
  at: (...all: unknown[]) => rooms.at(...all).newest(1),
  publishAt: (...all: unknown[]) => rooms.at(...all).publish("a"),
  urlAt: (...all: unknown[]) => rooms.at(...all).url(),
  url: (...all: unknown[]) => (channel as any).url(...all),
  revoke: (...all: unknown[]) => (channel as any).revoke(...all),
  channel: (...all: unknown[]) => (channel as any)(...all),
  event: (...all: unknown[]) => (event as any)(...all),
  broadcast: (...all: unknown[]) => bell.broadcast(...all),
  notifyOne: (...all: unknown[]) => bell.notifyOne(...all),
  listeners: (...all: unknown[]) => bell.listeners(...all),
  people: (...all: unknown[]) => (presence as any).people(...all),
  names: (...all: unknown[]) => (presence as any).names(...all),
  get: (...all: unknown[]) => session.get(...all),
  set: (...all: unknown[]) => session.set(...all),
  remove: (...all: unknown[]) => session.remove(...all),
  logIn: (...all: unknown[]) => session.logIn(...all),
  logOut: (...all: unknown[]) => session.logOut(...all),
  all: (...all: unknown[]) => session.all(...all),
  revokeSession: (...all: unknown[]) => session.revoke(...all),
  revokeUser: (...all: unknown[]) => session.revokeUser(...all),
});

/** Calls a function without arguments, with any argument, and with a second one. Counts results and exceptions. */
function tried(run: Function) {
  const done = { returned: 0, thrown: 0, promises: [] as Promise<unknown>[] };
  const one = (...all: unknown[]) => {
    try {
      const result = run(...all);
      if (result instanceof Promise) done.promises.push(result.catch(() => {}));
      done.returned++;
    } catch {
      done.thrown++;
    }
  };
  one();
  for (const first of values) {
    one(first());
    for (const second of seconds) one(first(), second());
  }
  return done;
}

export const within = service((ctx, { name }: { name: string }) => {
  const { returned, thrown } = tried(calls(ctx.session)[name]);
  return { returned, thrown };
});
export const outside = service(async (ctx, { name }: { name: string }) => {
  const { returned, thrown, promises } = tried(calls(ctx.session)[name]);
  await Promise.all(promises);
  return { returned, thrown };
});
export const names = service((ctx) => Object.keys(calls(ctx.session)));
export default page((ctx, { name = "newest" }) => {
  const { returned, thrown } = tried(calls(ctx.session)[name]);
  return <p>{returned + thrown}</p>;
});
"#;

#[test]
fn accepts_or_rejects_arguments_of_any_kind() {
    let limits = "timeout_ms = 60000\nawait_ms = 60000\nmemory_mb = 512\n";
    let folder = Folder::with(&[("index.tsx", SCRIPT), ("app.toml", limits)]);
    let site = folder.site();
    let names: Vec<String> = site.post_json("/names", &json!({})).json();
    assert!(names.len() > 20);
    let mut counts = Vec::new();
    for name in &names {
        for service in ["/within", "/outside"] {
            // Shown if the test fails.
            println!("{service} {name}");
            let reply = site.client().post_json(service, &json!({ "name": name }));
            assert_eq!(reply.status(), 200, "{service} {name}: {}", reply.text());
            let tried: Value = reply.json();
            let sum = tried["returned"].as_u64().unwrap() + tried["thrown"].as_u64().unwrap();
            counts.push(sum);
        }
        let page = site.get(&format!("/?name={name}"));
        assert_eq!(page.status(), 200, "{name}: {}", page.text());
    }
    assert!(counts.iter().all(|count| *count == counts[0] && *count > 300), "{counts:?}");
}
