// Checks the `ws` library against an echo server.
//
// usage: node frames_ws.mjs LIBRARY URL
//
// LIBRARY is the path of the module.

import assert from "node:assert/strict";
import { once } from "node:events";

import { runChecks } from "./checks.mjs";

const [library, url] = process.argv.slice(2);
const { default: WebSocket } = await import(library);
const PATIENCE = 10_000;

/** Opens a connection. `heard` waits for its events by name. */
async function open(options) {
  const socket = new WebSocket(url, ["echo"], options);
  await heard(socket, "open");
  return socket;
}

function heard(socket, event) {
  return once(socket, event, { signal: AbortSignal.timeout(PATIENCE) });
}

async function isEchoed(socket, message, send = () => socket.send(message)) {
  const answer = heard(socket, "message");
  send();
  const [data, isBinary] = await answer;
  assert.equal(isBinary, typeof message !== "string");
  assert.ok(data.equals(Buffer.from(message)));
}

await runChecks({
  "the server echoes messages of every kind to ws": async () => {
    const socket = await open();
    for (const message of ["", "Hello", "\u00e4\u20ac\u{1f600}", Buffer.of(0, 255), "x".repeat(70_000), Buffer.alloc(1 << 20, 7)]) {
      await isEchoed(socket, message);
    }
    socket.close();
  },
  "the server echoes fragments of ws as one message, with a ping between them": async () => {
    const socket = await open();
    const pong = heard(socket, "pong");
    await isEchoed(socket, "a\u20acb", () => {
      const bytes = Buffer.from("a\u20acb");
      socket.send(bytes.subarray(0, 2), { binary: false, fin: false });
      socket.ping("between");
      socket.send(bytes.subarray(2, 3), { fin: false });
      socket.send(bytes.subarray(3), { fin: true });
    });
    assert.equal(String((await pong)[0]), "between");
    socket.close();
  },
  "the server declines compression offered by ws": async () => {
    const socket = await open({ perMessageDeflate: true });
    assert.equal(socket.extensions, "");
    assert.equal(socket.protocol, "echo");
    await isEchoed(socket, "x".repeat(5000));
    socket.close();
  },
  "the server answers a close of ws with its code": async () => {
    const socket = await open();
    const closed = heard(socket, "close");
    socket.close(4001, "done");
    assert.equal((await closed)[0], 4001);
  },
  "the server rejects a frame of ws without a mask": async () => {
    const socket = await open();
    const closed = heard(socket, "close");
    socket.send("bare", { mask: false });
    assert.equal((await closed)[0], 1002);
  },
  "the server serves a hundred connections of ws at once": async () => {
    const sockets = await Promise.all(Array.from({ length: 100 }, () => open()));
    await Promise.all(sockets.map((socket, number) => isEchoed(socket, `number ${number}`)));
    sockets.forEach((socket) => socket.close());
  },
});
