// Decides what the `ws` library must find in a server that sends back what it hears.
//
// usage: node frames_ws.mjs LIBRARY URL
//
// LIBRARY is the module itself.

import assert from "node:assert/strict";
import { once } from "node:events";

import { judge } from "./judge.mjs";

const [library, url] = process.argv.slice(2);
const { default: WebSocket } = await import(library);
const PATIENCE = 10_000;

/** An open connection; what happens on it within the time is awaited by name. */
async function open(options) {
  const socket = new WebSocket(url, ["echo"], options);
  await heard(socket, "open");
  return socket;
}

function heard(socket, event) {
  return once(socket, event, { signal: AbortSignal.timeout(PATIENCE) });
}

async function comesBack(socket, message, send = () => socket.send(message)) {
  const answer = heard(socket, "message");
  send();
  const [data, isBinary] = await answer;
  assert.equal(isBinary, typeof message !== "string");
  assert.ok(data.equals(Buffer.from(message)));
}

await judge({
  "messages of every kind come back to ws": async () => {
    const socket = await open();
    for (const message of ["", "Hello", "\u00e4\u20ac\u{1f600}", Buffer.of(0, 255), "x".repeat(70_000), Buffer.alloc(1 << 20, 7)]) {
      await comesBack(socket, message);
    }
    socket.close();
  },
  "fragments of ws come back as one message, with a ping between": async () => {
    const socket = await open();
    const pong = heard(socket, "pong");
    await comesBack(socket, "a\u20acb", () => {
      const bytes = Buffer.from("a\u20acb");
      socket.send(bytes.subarray(0, 2), { binary: false, fin: false });
      socket.ping("between");
      socket.send(bytes.subarray(2, 3), { fin: false });
      socket.send(bytes.subarray(3), { fin: true });
    });
    assert.equal(String((await pong)[0]), "between");
    socket.close();
  },
  "an offer of compression by ws is declined": async () => {
    const socket = await open({ perMessageDeflate: true });
    assert.equal(socket.extensions, "");
    assert.equal(socket.protocol, "echo");
    await comesBack(socket, "x".repeat(5000));
    socket.close();
  },
  "a close of ws is answered with its code": async () => {
    const socket = await open();
    const closed = heard(socket, "close");
    socket.close(4001, "done");
    assert.equal((await closed)[0], 4001);
  },
  "a frame of ws without a mask is refused": async () => {
    const socket = await open();
    const closed = heard(socket, "close");
    socket.send("bare", { mask: false });
    assert.equal((await closed)[0], 1002);
  },
  "a hundred connections of ws are served at once": async () => {
    const sockets = await Promise.all(Array.from({ length: 100 }, () => open()));
    await Promise.all(sockets.map((socket, number) => comesBack(socket, `number ${number}`)));
    sockets.forEach((socket) => socket.close());
  },
});
