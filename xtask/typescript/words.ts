// Uses of the words of `bine` that an editor accepts, and those that it rejects.

import {
  boolean, bytes, change, channel, choice, error, event, integer, notFound, now, number, page, position, presence, redirect,
  ref, service, table,
  TableError, text, time, waitForPosition, type RowOf,
} from "bine";

const rooms = table("rooms", { name: text().unique().max(40), kind: choice("open", "closed").default("open") });
const messages = table("messages", {
  room: ref(rooms).onRemove("remove"),
  body: text().min(1).max(500).index(),
  stars: integer().min(0).max(5).optional(),
  weight: number().default(1),
  isNew: boolean().default(true),
  picture: bytes().max(1000).optional(),
  due: time().optional(),
  at: now(),
}, { indexes: [["room", "at"]] });
type Message = RowOf<typeof messages>;

export const post = service((ctx, { room, body }: { room: string; body: string }) =>
  messages.insert({ room, body, due: new Date() }));
export const leave = service(() => redirect("/"));
export const all = service((ctx, { id }: { id: string }) => {
  if (!ctx.user) return error(403, `${ctx.path} is for users`);
  const found: Message | null = messages.get(id);
  if (found === null) throw notFound();
  messages.update(id, { stars: null, at: Date.now() });
  messages.insertAll([{ room: found.room, body: "a" }]);
  const again: string = post({ room: found.room, body: "b" });
  leave();
  for (const [room, count] of messages.groupBy("room").count()) console.log(room.length, count + 1);
  const latest: [boolean, string | null][] = messages.groupBy("isNew").max("at");
  console.log(latest);
  const kinds: ("open" | "closed")[] = rooms.map((room) => room.kind);
  for (const message of messages.where({ room: id }).orderBy("at", "descending")) console.log(message.at);
  return [again, kinds, messages.sum("stars"), messages.by("room", id).newest(3), messages.remove(id)];
});
export const add = service((ctx, { name }: { name: string }) => {
  try {
    return rooms.insert({ name });
  } catch (reason) {
    if (reason instanceof TableError && reason.reason === "duplicate") return rooms.by("name", name).first()?.id;
    throw reason;
  }
});
export const load = service(async (ctx, { url }: { url: string }) => {
  const request = new Request(url, { method: "POST", body: "a", headers: { accept: "text/plain" } });
  const answer = await fetch(request);
  const body: string = answer.headers.has("etag") ? await answer.text() : String((await answer.bytes()).length);
  return await change(() => messages.insert({ room: ctx.session.name, body }));
});
const news = channel("news", { follow: "anyone", retention: { messages: 100, age: null }, expiry: { at: new Date() } });
const lobby = channel("rooms/{room}", { follow: "users", publish: "users", durability: "commit" });
export const announce = service((ctx, { body }: { body: string }) => {
  ctx.session.set("last", { body });
  const last: string | undefined = ctx.session.get<{ body: string }>("last")?.body;
  if (ctx.user) ctx.session.logIn(ctx.user.name, { brief: true });
  news.publish({ last }, { event: "sold", also: lobby.at("hall") });
  channel.revoke("ann");
  ctx.frame.set("tab", ctx.frame.get<number>("tab") ?? 1);
});
const bell = event("bell", { listen: "users" });
export const ring = service(async () => {
  bell.broadcast({ at: Date.now() });
  const heard: boolean | undefined = bell.notifyOne();
  return [bell.name, heard, bell.listeners(), presence.people() + presence.tabs(), presence.names(5).join()];
});
export const announceLater = service(async (ctx) => {
  const receipt = await news.publish("text", { id: "1", also: [lobby.at("hall")] });
  const ended: number = await ctx.session.revokeOthers();
  await lobby.at("hall").close();
  const state = news.describe();
  return [receipt?.cursor, ended, state?.messages, ctx.session.all()[0]?.lastUsed, channel.url(news)];
});
export default page(async (ctx, { room = "hall", after }) => {
  for (const message of lobby.at(room).newest(10)) console.log(message.event, message.data.body, news.url());
  const answer = await fetch(new URL("/", "http://127.0.0.1:8080"), { signal: AbortSignal.timeout(100) });
  const shown = messages.by("room", room).by("stars", { from: 3, before: 5 }).page({ size: 20, after });
  console.log(shown.rows.length, ctx.header("accept"), answer.status, crypto.randomUUID(), structuredClone(shown.next));
  return shown.rows.length === 0 ? notFound() : redirect("/");
});

export const waits = service(async (ctx, { after }: { after: string }) => {
  await waitForPosition(after);
  await waitForPosition(after, { timeout: 100 });
  const now: string = position();
  return now;
});

waitForPosition(5); // rejected: Argument of type 'number'
waitForPosition("1-00000000", { within: 5 }); // rejected: 'within' does not exist
event("bell", { listen: "everyone" }); // rejected: Type '"everyone"' is not assignable
presence.names("5"); // rejected: Argument of type 'string'
news.at("hall"); // rejected: Property 'at' does not exist
lobby.publish("text"); // rejected: Property 'publish' does not exist
lobby.at(5); // rejected: Argument of type 'number'
channel("a", { follow: "everyone" }); // rejected: Type '"everyone"' is not assignable
channel("a", { folow: "anyone" }); // rejected: 'folow' does not exist
news.publish("a", { also: "wall" }); // rejected: Type 'string' is not assignable
channel("a", { expiry: { after: 5 } }); // rejected: 'after' does not exist
service((ctx) => ctx.frame.to(5)); // rejected: Argument of type 'number'
service((ctx) => ctx.session.logIn()); // rejected: Expected 1-2 arguments
service((ctx) => ctx.session.logIn("ann", { breif: true })); // rejected: 'breif' does not exist
post({ room: "hall", body: 1 }); // rejected: Type 'number' is not assignable to type 'string'
post({ room: "hall" }); // rejected: Property 'body' is missing
post(); // rejected: Expected 1 arguments
messages.insert({ room: "hall", bdoy: "a" }); // rejected: 'bdoy' does not exist
messages.insert({ room: "hall" }); // rejected: Property 'body' is missing
messages.insert({ room: "hall", body: "a", stars: "five" }); // rejected: Type 'string' is not assignable
messages.insert({ id: "a", room: "hall", body: "a" }); // rejected: 'id' does not exist
messages.update("a", { boddy: "a" }); // rejected: 'boddy'
messages.by("romo", "hall"); // rejected: '"romo"' is not assignable
messages.by("room", 1); // rejected: Argument of type 'number'
messages.where({ romo: "hall" }); // rejected: 'romo'
messages.orderBy("bodi"); // rejected: '"bodi"' is not assignable
messages.by("stars", { least: 3 }); // rejected: 'least' does not exist
table("a", { body: text() }, { indexes: [["bdoy"]] }); // rejected: '"bdoy"' is not assignable
messages.groupBy("romo").count(); // rejected: '"romo"' is not assignable
messages.sum("body"); // rejected: '"body"' is not assignable
rooms.insert({ name: "hall", kind: "shut" }); // rejected: Type '"shut"' is not assignable
rooms.first().name; // rejected: Object is possibly 'null'
table("a", { id: text() }); // rejected: is not assignable to type 'undefined'
table("a", { at: time().max(3) }); // rejected: Property 'max' does not exist
choice("open", "closed").default("shut"); // rejected: '"shut"' is not assignable
service((ctx) => ctx.user.name); // rejected: 'ctx.user' is possibly 'null'
page(() => "text"); // rejected: Type 'string' is not assignable
service((ctx) => ctx.usr); // rejected: Did you mean 'user'?
redirect(303); // rejected: Argument of type 'number'
fetch("/", { redirect: "never" }); // rejected: Type '"never"' is not assignable
process.exit(); // rejected: Cannot find name 'process'
enum Color { Red } // rejected: 'erasableSyntaxOnly'
import { readFileSync } from "fs"; // rejected: Cannot find name 'fs'
