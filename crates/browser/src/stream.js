// The live connection: when the page connects, what it requests, and how it handles each event.
//
// The script reads the stream with `fetch`. An EventSource hides the status of an error response,
// and the comments that distinguish a quiet connection from a dead one.

import { pathAndQuery, patch, refresh, regions, emit, hide, allSent, loadPage, reload } from "./regions.js";

// The server sends data every 20 seconds. A connection that is silent for longer than this is dead.
const IDLE_TIMEOUT = 45_000;
// A hidden page closes its connection after this time, because a browser allows six connections per
// server for all pages.
const HIDDEN_TIMEOUT = 20_000;
// Retry delays double up to this value. Each is randomized, so that clients of a restarted server
// do not reconnect at once.
const MAX_RETRY_DELAY = 30_000;
// An accepted stream sends data at once. A stream that is silent for this time is buffered by a
// proxy. A connection that lasted longer than this resets the count of failures.
const STREAM_TIMEOUT = 10_000;
// The script polls for this time before it tries a stream again.
const POLL_PERIOD = 300_000;

// The numbers of the marks that hold the version of the program, and the login of the page.
const VERSION_MARK = "998";
const VIEWER_MARK = "999";

// Listeners for events of the program: name -> set of functions.
const listeners = new Map();
// Counts connections. Only the newest continues.
let generation = 0;
let controller;
// The time at which streams are tried again after a proxy buffered one.
let pollUntil = 0;
let hiddenTimer;
// The version for which the page was refreshed last. It replaces the version in the page, which an
// intermediate cache may have stored, so that each version refreshes the page once.
let version;

// Reconnects with the current regions of the page. The server does not resend content that is
// unchanged after a restart, a deployment or a broken connection.
export async function connect() {
  const mine = startGeneration();
  let isGood = false;
  onVisibilityChange();
  for (let failures = 0; mine === generation; ) {
    const target = requestTarget();
    if (!target) return setState("closed");
    if (!isGood) setState("connecting");
    const began = performance.now();
    isGood = began < pollUntil;
    const outcome = await request(target, isGood).catch((error) => error);
    if (mine !== generation) return;
    if (!outcome) return setState("closed");
    if (outcome !== true) {
      // Any error leads to a retry, with growing delays.
      console.warn(outcome);
      isGood = false;
      if (outcome.name === "AbortError" && connectionState() !== "open") pollUntil = performance.now() + POLL_PERIOD;
    }
    const isSteady = connectionState() === "open" && performance.now() - began > STREAM_TIMEOUT;
    failures = isGood || isSteady ? 0 : failures + 1;
    setState(isGood ? "open" : "connecting");
    await pauseAfter(failures, isGood && 50);
  }
}

// Waits longer after each failure, and for a random part of that time.
export function pauseAfter(failures, fixed) {
  const pause = fixed || Math.min(MAX_RETRY_DELAY, 500 * 2 ** failures) * Math.random();
  return new Promise((resolve) => setTimeout(resolve, pause));
}

// Closes the connection until the next call of `connect`.
export function disconnect() {
  startGeneration();
  setState("closed");
}

// Calls a function for each event of the program with this name, until the returned function is
// called.
export function on(name, handler) {
  const handlers = listeners.get(name) ?? new Set();
  listeners.set(name, handlers.add(handler));
  // Several listeners added together cause one reconnection.
  if (handlers.size === 1) queueMicrotask(reconnectIfNamesChanged);
  return () => {
    handlers.delete(handler);
    if (!handlers.size) listeners.delete(name);
  };
}

let requestedNames = "";

// Reconnects if the names of the listeners differ from those requested.
function reconnectIfNamesChanged() {
  if (eventNames() !== requestedNames) connect();
}

function eventNames() {
  return [...listeners.keys()].map(encodeURIComponent).join();
}

// Ends the current connection and returns the number of the next.
function startGeneration() {
  controller?.abort();
  return ++generation;
}

function requestTarget() {
  const shownRegions = [...regions()].map(([number, { hash }]) => `${number}.${number === VERSION_MARK && version || hash}`).join();
  requestedNames = eventNames();
  if (!shownRegions && !requestedNames) return;
  const page = encodeURIComponent(pathAndQuery(location));
  return `/_bine/live?page=${page}&have=${shownRegions}${requestedNames && `&on=${requestedNames}`}`;
}

// Sends one request. Returns false if no part of this page is live.
async function request(target, isPoll) {
  const mine = (controller = new AbortController());
  const { signal } = mine;
  let timer;
  const resetTimeout = (timeout) => {
    clearTimeout(timer);
    timer = setTimeout(() => mine.abort(), timeout);
  };
  // Discards events after a reconnection.
  const handle = (event, data) => signal.aborted || handleEvent(event, data);
  try {
    resetTimeout(isPoll ? IDLE_TIMEOUT : STREAM_TIMEOUT);
    const headers = { Accept: isPoll ? "application/json" : "text/event-stream" };
    const answer = await fetch(target, { headers, signal });
    const { status } = answer;
    if (status < 400) setStale(answer.headers.has("Bine-Stale"));
    // A poll that timed out has a cursor. Without one, no event can arrive.
    if (status === 204) return answer.headers.has("Cursor");
    if (/^4(?!29)/.test(status)) {
      clearTimeout(timer);
      console.warn(`bine: ${await answer.text()}`);
      // The visitor may have no access to an event, but has access to the page.
      const withoutEvents = target.replace(/&on=.*/, "");
      if (withoutEvents !== target) return request(withoutEvents, isPoll);
      // The direct response to a form has no address of its own.
      if (/^40[45]$/.test(status)) return false;
      await refresh();
    }
    if (status !== 200) throw answer;
    if (!isPoll) await readEvents(answer.body, resetTimeout, handle);
    else for (const { event, data } of await answer.json()) if (await handle(event, data)) break;
    return true;
  } finally {
    clearTimeout(timer);
    mine.abort();
  }
}

// Reads server-sent events in the server's format: LF line ends, and a space after each colon.
async function readEvents(body, resetTimeout, handle) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    setState("open");
    resetTimeout(IDLE_TIMEOUT);
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const lines of events) {
      const field = (name) => lines.split("\n").filter((line) => line.startsWith(name)).map((line) => line.slice(name.length));
      if (await handle(field("event: ")[0], field("data: ").join("\n"))) return;
    }
  }
}

// Handles one event. Returns true if the page was replaced, so that the connection must announce
// the new regions.
async function handleEvent(event, data) {
  if (event === "patch") {
    const [, number, hash, markup] = /^(\d+) (\w+)\n?(.*)$/s.exec(data);
    await patch(number, hash, markup);
  } else if (event === "reload") {
    const isPrivate = data === "hide";
    if (isPrivate) {
      document.title = "";
      hide();
      await allSent();
    } else version = data;
    await refresh(isPrivate);
    return true;
  } else if (event === "stale") {
    setStale(data === "true");
  } else if (event === "event") {
    const { name, data: value } = JSON.parse(data);
    // An exception in a handler must not affect the connection.
    for (const handler of listeners.get(name) ?? []) queueMicrotask(() => handler(value, name));
  }
}

// Publishes the state as `html[data-live="open"]` for style sheets and as an event for scripts.
function setState(state) {
  const before = connectionState();
  if (before === state || (state === "closed" && !before)) return;
  document.documentElement.dataset.live = state;
  emit("live", { state });
}

// Publishes whether the server may lack changes, as `html[data-stale]` and as an event: it is one node of
// several and cut off from the others.
function setStale(stale) {
  const { dataset } = document.documentElement;
  if (stale === "stale" in dataset) return;
  if (stale) dataset.stale = "";
  else delete dataset.stale;
  emit("stale", { stale });
}

// Whether the page was rendered for a login.
function isOfUser() {
  return regions().has(VIEWER_MARK);
}

function connectionState() {
  return document.documentElement.dataset.live;
}

// Closes the connection of a hidden page after a while, and reconnects when the page is visible.
function onVisibilityChange(event) {
  clearTimeout(hiddenTimer);
  if (document.hidden) hiddenTimer = setTimeout(() => listeners.size || disconnect(), HIDDEN_TIMEOUT);
  else if (event && connectionState() !== "open") connect();
}

addEventListener("online", onVisibilityChange);
addEventListener("pagehide", () => {
  disconnect();
  // The browser may keep the page, and show it again after the user has logged out.
  if (isOfUser()) hide();
});
addEventListener("pageshow", ({ persisted }) => persisted && (isOfUser() ? loadPage(true).catch(reload) : connect()));
document.addEventListener("visibilitychange", onVisibilityChange);
