// Channels that handlers follow. One request waits for the messages of all of them, because a browser
// opens six connections to a server.

import { pauseAfter } from "./stream.js";

// The server's messages in one response.
const MAX_MESSAGES = 100;
// The server responds after 25 seconds at the latest. A request that takes longer than this is dead.
const FOLLOW_TIMEOUT = 45_000;

// Each has a channel, functions, and the cursor after which it reads on.
const followers = new Set();
let followRequest;

// Calls a function for each message of a channel, until the returned function is called. `values`
// replace the segments in braces of a pattern. Options: `after`, a cursor or "earliest"; `lost`, a
// function that is called if messages may be missing.
export function follow(name, handler, { after = "now", lost } = {}, values) {
  const channel = values ? name.replace(/\{\w+\}|\*/g, () => values.shift()) : name;
  // All cursors are between -1 and "now", also as text.
  const follower = { channel, handler, after: after === "earliest" ? "-1" : after, lost };
  joinFollowers(follower);
  return () => {
    follower.hasEnded = true;
    if (followers.delete(follower)) readFollowed();
  };
}

// Reads what a follower has missed, alone: the others do not share a request that the server refuses.
async function joinFollowers(follower) {
  for (let failures = 0; !follower.hasEnded; ) {
    try {
      if (!(await readChannels([follower], follower.after, 0))) continue;
      if (follower.hasEnded) return;
      followers.add(follower);
      return readFollowed();
    } catch (error) {
      // A channel may be created later.
      if (isRefusal(error) && error.status !== 404) return console.warn(`bine: ${await error.text()}`);
      await pauseAfter(failures++);
    }
  }
}

// Reads the messages of all followers, until one joins or leaves.
async function readFollowed() {
  followRequest?.abort();
  const { signal } = (followRequest = new AbortController());
  for (let failures = 0; followers.size && !signal.aborted; ) {
    const all = [...followers];
    try {
      await readChannels(all, all.map(({ after }) => after).sort()[0], 25, signal);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (isRefusal(error)) {
        followers.clear();
        all.forEach(joinFollowers);
      } else await pauseAfter(failures++);
    }
  }
}

function isRefusal({ status }) {
  return /^4(?!08|29)/.test(status);
}

// Reads messages once. Returns whether these are all until now. Throws a response that is an error.
async function readChannels(readers, after, wait, signal) {
  const names = new Set(readers.map(({ channel }) => `c=${encodeURIComponent(channel)}`));
  const signals = [AbortSignal.timeout(FOLLOW_TIMEOUT), ...(signal ? [signal] : [])];
  const answer = await fetch(`/channels?${[...names].join("&")}&after=${after}&wait=${wait}&gap=allow`, { headers: { Accept: "application/json" }, signal: AbortSignal.any(signals) });
  const { status, ok, headers } = answer;
  // The cursor is one of other data.
  const isForeign = status === 410;
  if (!ok && !isForeign) throw answer;
  const messages = status === 200 ? await answer.json() : [];
  if (signal?.aborted) return;
  const cursor = headers.get("Cursor");
  for (const reader of readers) {
    if (isForeign || headers.has("Cursor-Lost")) reader.lost?.();
    const { channel, handler, after: before } = reader;
    for (const message of messages) {
      // An exception in a handler must not affect the others.
      if (message.channels.includes(channel) && (before === "now" || message.cursor > before)) queueMicrotask(() => reader.hasEnded || handler(messageOf(message)));
    }
    if (isForeign) reader.after = "now";
    else if (before === "now" || cursor > before) reader.after = cursor;
  }
  return !isForeign && messages.length < MAX_MESSAGES;
}

// A message with the fields that it has in programs of the server.
function messageOf({ time, base64 = "", data = Uint8Array.from(atob(base64), (byte) => byte.charCodeAt()), event = null, id = null, cursor, type }) {
  return { cursor, time: new Date(time).toISOString(), type, event, id, data };
}
