// Checks the parser `eventsource-parser` against the events of a channel.
//
// usage: node events_parser.mjs LIBRARY URL
//
// LIBRARY is the path of the module, URL a server where any client may publish to the channel `news`.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

import { runChecks } from "./checks.mjs";

const [library, url] = process.argv.slice(2);
const { createParser } = await import(library);
const PATIENCE = 10_000;

async function end() {
  const answer = await fetch(new URL("/channels?c=news&after=now&wait=0", url));
  assert.equal(answer.status, 204);
  return answer.headers.get("cursor");
}

async function publish(messages) {
  const body = JSON.stringify(messages.map(({ data, event }) => ({ channels: "news", data, event })));
  const answer = await fetch(new URL("/channels", url), { method: "POST", body });
  assert.equal(answer.status, 200, await answer.text());
}

/** At least `count` of the events after a cursor, fed to the parser byte by byte. */
async function events(after, count) {
  const seen = [];
  const parser = createParser({ onEvent: (event) => seen.push(event), onError: (error) => { throw error; } });
  const answer = await fetch(new URL("/channels?c=news", url), {
    headers: { accept: "text/event-stream", "last-event-id": after },
    signal: AbortSignal.timeout(PATIENCE),
  });
  assert.equal(answer.headers.get("content-type"), "text/event-stream");
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for await (const chunk of answer.body) {
    for (const byte of chunk) parser.feed(decoder.decode(Uint8Array.of(byte), { stream: true }));
    if (seen.length >= count) return seen;
  }
  throw new Error(`the stream ended after ${seen.length} events`);
}

await runChecks({
  "eventsource-parser reads messages of every kind": async () => {
    const messages = JSON.parse(await readFile(new URL("events.json", import.meta.url)));
    const after = await end();
    await publish(messages);
    const seen = await events(after, messages.length);
    assert.deepEqual(seen.map(({ data }) => data), messages.map(({ data, read }) => read ?? data));
    assert.deepEqual(seen.map(({ event }) => event), messages.map(({ event }) => event));
    assert.ok(seen.every(({ id }, at) => at === 0 || id > seen[at - 1].id));
  },
  "eventsource-parser resumes after the last event that it received": async () => {
    const after = await end();
    await publish(Array.from({ length: 200 }, (_, number) => ({ data: `${number}` })));
    const first = await events(after, 71);
    const rest = await events(first[70].id, 129);
    assert.deepEqual(rest.map(({ data }) => Number(data)), Array.from({ length: 129 }, (_, at) => 71 + at));
  },
});
