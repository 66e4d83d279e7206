// Decides when the page is connected, what it asks for, and what is done with each thing that comes.
//
// The stream is read by `fetch` and not by an EventSource, which hides the status of a refusal and the comments that
// tell a quiet connection from a dead one.

import { address, patch, refresh, regions, tell } from "./regions.js";

// The server says something every 20 seconds; a connection that is silent for so long is dead.
const SILENCE = 45_000;
// A page that nobody sees gives its connection back then, of which a browser may have six for all pages of a server.
const UNSEEN = 20_000;
// Pauses double up to this; each is cut by chance, so that a restarted server is not met by all at once.
const LONGEST_PAUSE = 30_000;
// A stream that is taken says something at once: one that is silent for so long is held back on the way. And who stayed
// connected for this long has had no failure.
const STEADY = 10_000;
// Polls are made instead for so long, then a stream is tried again.
const DETOUR = 300_000;

// Those who wait for events of the program: name -> set of functions.
const listeners = new Map();
// Counts connections: only the last one goes on.
let turn = 0;
let attempt;
// When streams, which were held back on the way, are tried again.
let detour = 0;
let unseen;

// Connects anew with what the page shows now. What is the same after a restart, a deploy or a broken line is not sent.
export async function connect() {
  const mine = leave();
  let isGood = false;
  watch();
  for (let failures = 0; mine === turn; ) {
    const target = wanted();
    if (!target) return say("closed");
    if (!isGood) say("connecting");
    const began = performance.now();
    isGood = began < detour;
    const outcome = await once(target, isGood).catch((error) => error);
    if (mine !== turn) return;
    if (!outcome) return say("closed");
    if (outcome !== true) {
      // Whatever it was: it is tried again, later each time.
      console.warn(outcome);
      isGood = false;
      if (outcome.name === "AbortError" && condition() !== "open") detour = performance.now() + DETOUR;
    }
    const isSteady = condition() === "open" && performance.now() - began > STEADY;
    failures = isGood || isSteady ? 0 : failures + 1;
    say(isGood ? "open" : "connecting");
    const pause = isGood ? 50 : Math.min(LONGEST_PAUSE, 500 * 2 ** failures) * Math.random();
    await new Promise((resolve) => setTimeout(resolve, pause));
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
  return ++turn;
}

function wanted() {
  const have = [...regions()].map(([number, { hash }]) => `${number}.${hash}`).join();
  asked = names();
  if (!have && !asked) return;
  const page = encodeURIComponent(address(location));
  return `/_bine/live?page=${page}&have=${have}${asked && `&on=${asked}`}`;
}

// One request. False: nothing of this page is live.
async function once(target, isPoll) {
  const mine = (attempt = new AbortController());
  const { signal } = mine;
  let timer;
  const hear = (patience) => {
    clearTimeout(timer);
    timer = setTimeout(() => mine.abort(), patience);
  };
  // Who has connected anew meanwhile wants nothing of this.
  const each = (event, data) => signal.aborted || take(event, data);
  try {
    hear(isPoll ? SILENCE : STEADY);
    const headers = { Accept: isPoll ? "application/json" : "text/event-stream" };
    const answer = await fetch(target, { headers, signal });
    const { status } = answer;
    // A poll that waited in vain is another matter than one that nothing can come for.
    if (status === 204) return answer.headers.has("Cursor");
    if (/^4(?!29)/.test(status)) {
      clearTimeout(timer);
      console.warn(`bine: ${await answer.text()}`);
      // Perhaps an event is not for whoever looks at this; the page is.
      const bare = target.replace(/&on=.*/, "");
      if (bare !== target) return once(bare, isPoll);
      // What a form was answered with at once is at no address.
      if (/^40[45]$/.test(status)) return false;
      await refresh();
    }
    if (status !== 200) throw answer;
    if (!isPoll) await read(answer.body, hear, each);
    else for (const { event, data } of await answer.json()) if (await each(event, data)) break;
    return true;
  } finally {
    clearTimeout(timer);
    mine.abort();
  }
}

// Server-sent events with the one end of line, and the blank behind each colon, that the server writes.
async function read(body, hear, each) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    say("open");
    hear(SILENCE);
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const lines of events) {
      const field = (name) => lines.split("\n").filter((line) => line.startsWith(name)).map((line) => line.slice(name.length));
      if (await each(field("event: ")[0], field("data: ").join("\n"))) return;
    }
  }
}

// Does what one event says. True: the page is another now and must say anew what it has.
async function take(event, data) {
  if (event === "patch") {
    const [, number, hash, markup] = /^(\d+) (\w+)\n?(.*)$/s.exec(data);
    await patch(number, hash, markup);
  } else if (event === "reload") {
    await refresh();
    return true;
  } else if (event === "event") {
    const { name, data: value } = JSON.parse(data);
    // A handler that fails is the page's own matter.
    for (const handler of listeners.get(name) ?? []) queueMicrotask(() => handler(value, name));
  }
}

// Style sheets see it as `html[data-live="open"]`, scripts hear of it.
function say(state) {
  const before = condition();
  if (before === state || (state === "closed" && !before)) return;
  document.documentElement.dataset.live = state;
  tell("live", { state });
}

function condition() {
  return document.documentElement.dataset.live;
}

// A page that is not seen is let go after a while, and comes back when it is.
function watch(event) {
  clearTimeout(unseen);
  if (document.hidden) unseen = setTimeout(() => listeners.size || disconnect(), UNSEEN);
  else if (event && condition() !== "open") connect();
}

addEventListener("online", watch);
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => event.persisted && connect());
document.addEventListener("visibilitychange", watch);
