// Decides when the page is connected, what it asks for, and what is done with each thing that comes.
//
// The stream is read by `fetch` and not by an EventSource, which hides the status of a refusal and the comments that
// tell a quiet connection from a dead one.

import { patch, refresh, regions, tell } from "./regions.js";

// The server says something every 20 seconds; a connection that is silent for so long is dead.
const SILENCE = 45_000;
// A page that nobody sees gives its connection back then, of which a browser may have six for all pages of a server.
const UNSEEN = 20_000;
// Pauses double up to this; each is cut by chance, so that a restarted server is not met by all at once.
const LONGEST_PAUSE = 30_000;
// Who stayed connected for this long has had no failure.
const STEADY = 10_000;

// Those who wait for events of the program: name -> set of functions.
const listeners = new Map();
// Counts connections: only the last one goes on.
let turn = 0;
let attempt;
let wake;
// Whether a stream has ever brought a byte. If not, something on the way may hold it back, and polls are tried.
let isHeard = false;
let isPolling = false;

// Connects anew with what the page shows now. What is the same after a restart, a deploy or a broken line is not sent.
export async function connect() {
  const mine = leave();
  for (let failures = 0; mine === turn; ) {
    const target = wanted();
    if (!target) return say("closed");
    say("connecting");
    const began = performance.now();
    let isGood = false;
    try {
      isPolling ||= !isHeard && failures > 1;
      if (!(await once(target)) && mine === turn) return say("closed");
      isGood = isPolling;
    } catch {
      // Whatever it was: it is tried again, later each time.
    }
    if (mine !== turn) return;
    failures = isGood || performance.now() - began > STEADY ? 0 : failures + 1;
    if (!isGood) say("connecting");
    const pause = isGood ? 50 : Math.min(LONGEST_PAUSE, 500 * 2 ** failures) * Math.random();
    await new Promise((resolve) => setTimeout((wake = resolve), pause));
  }
}

// Ends the connection until somebody connects again.
export function disconnect() {
  leave();
  say("closed");
}

// Has events of the program with this name heard by a function, until what comes back is called.
export function on(name, handler) {
  const heard = listeners.get(name) ?? new Set();
  listeners.set(name, heard.add(handler));
  // A page that asks for several connects once.
  if (heard.size === 1) queueMicrotask(renew);
  return () => {
    heard.delete(handler);
    if (!heard.size) listeners.delete(name);
  };
}

let asked = "";

// Connects anew if other names are wanted than were asked for.
function renew() {
  if (names() !== asked) connect();
}

function names() {
  return [...listeners.keys()].map(encodeURIComponent).join();
}

// The number of the next connection; the last one is over.
function leave() {
  attempt?.abort();
  wake?.();
  return ++turn;
}

function wanted() {
  const have = [...regions()].map(([number, { hash }]) => `${number}.${hash}`).join();
  asked = names();
  if (!have && !asked) return;
  const page = encodeURIComponent(location.pathname + location.search);
  return `/_bine/live?page=${page}&have=${have}${asked && `&on=${asked}`}`;
}

// One request. False: nothing of this page is live.
async function once(target) {
  const mine = (attempt = new AbortController());
  let timer;
  const hear = () => {
    clearTimeout(timer);
    timer = setTimeout(() => mine.abort(), SILENCE);
  };
  try {
    hear();
    const began = performance.now();
    const accept = isPolling ? "application/json" : "text/event-stream";
    const answer = await fetch(target, { headers: { Accept: accept }, cache: "no-store", signal: mine.signal });
    // A poll that waited in vain is another matter than one that nothing can come for.
    if (answer.status === 204) return isPolling && performance.now() - began > 1000;
    if (/^4(?!29)/.test(answer.status)) {
      console.warn(`bine: ${await answer.text()}`);
      await refresh(false, attempt.signal);
    }
    if (answer.status !== 200 || !answer.headers.get("Content-Type")?.startsWith(accept)) throw answer;
    say("open");
    if (isPolling) for (const { event, data } of await answer.json()) await take(event, data);
    else await read(answer.body, hear);
    return true;
  } finally {
    clearTimeout(timer);
    mine.abort();
  }
}

// Server-sent events with the one end of line, and the blank behind each colon, that the server writes.
async function read(body, hear) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    isHeard = true;
    hear();
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const lines of events) {
      const field = (name) => lines.split("\n").filter((line) => line.startsWith(name)).map((line) => line.slice(name.length));
      if (await take(field("event: ")[0], field("data: ").join("\n"))) return;
    }
  }
}

// Does what one event says. True: the page is another now and must say anew what it has.
async function take(event, data) {
  if (event === "patch") {
    const [, number, hash, markup] = /^(\d+) (\w+)\n?(.*)$/s.exec(data);
    await patch(number, hash, markup);
  } else if (event === "reload") {
    await refresh(false, attempt.signal);
    return true;
  } else if (event === "event") {
    const { name, data: value } = JSON.parse(data);
    for (const handler of listeners.get(name) ?? []) {
      // A handler that fails is the page's own matter.
      try {
        handler(value, name);
      } catch (error) {
        reportError(error);
      }
    }
  }
}

// Style sheets see it as `html[data-live="open"]`, scripts hear of it.
function say(state) {
  const { dataset } = document.documentElement;
  if (dataset.live === state || (state === "closed" && !dataset.live)) return;
  dataset.live = state;
  tell("live", { state });
}

addEventListener("online", connect);
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => event.persisted && connect());
document.addEventListener("visibilitychange", () => {
  if (document.hidden) setTimeout(() => document.hidden && !listeners.size && disconnect(), UNSEEN);
  else if (document.documentElement.dataset.live === "closed") connect();
  else wake?.();
});
