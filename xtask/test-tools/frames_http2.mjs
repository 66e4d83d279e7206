// Checks an echo server by WebSocket over HTTP/2 (RFC 8441), with the client of Node.
//
// usage: node frames_http2.mjs URL

import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";

import { runChecks } from "./checks.mjs";

const url = new URL(process.argv[2]);
const PATIENCE = 10_000;

function heard(source, event) {
  return once(source, event, { signal: AbortSignal.timeout(PATIENCE) });
}

/** Opens a tunnel as a stream of `connection`. */
async function open(connection) {
  const stream = connection.request({
    ":method": "CONNECT",
    ":protocol": "websocket",
    ":scheme": "http",
    ":authority": url.host,
    ":path": url.pathname,
    "sec-websocket-version": "13",
    "sec-websocket-protocol": "echo",
  });
  const [headers] = await heard(stream, "response");
  assert.equal(headers[":status"], 200);
  assert.equal(headers["sec-websocket-protocol"], "echo");
  assert.equal(headers["sec-websocket-accept"], undefined);
  return stream;
}

/** A frame of fewer than 126 bytes, with a mask of zeros. */
function frame(opcode, content) {
  return Buffer.concat([Buffer.of(0x80 | opcode, 0x80 | content.length, 0, 0, 0, 0), content]);
}

async function receive(stream, length) {
  let received = Buffer.alloc(0);
  const patience = AbortSignal.timeout(PATIENCE);
  while (received.length < length) {
    const piece = stream.read();
    if (piece) received = Buffer.concat([received, piece]);
    else await once(stream, "readable", { signal: patience });
  }
  return received;
}

async function isEchoed(stream, text) {
  const content = Buffer.from(text);
  stream.write(frame(1, content));
  const answer = await receive(stream, content.length + 2);
  assert.deepEqual(answer, Buffer.concat([Buffer.of(0x81, content.length), content]));
}

async function connected(use) {
  const connection = http2.connect(url.origin);
  try {
    const [settings] = await heard(connection, "remoteSettings");
    assert.equal(settings.enableConnectProtocol, true);
    await use(connection);
  } finally {
    connection.destroy();
  }
}

await runChecks({
  "the server echoes messages over HTTP/2": () =>
    connected(async (connection) => {
      const stream = await open(connection);
      for (const text of ["", "Hello", "\u00e4\u20ac"]) await isEchoed(stream, text);
    }),
  "the server answers a close over HTTP/2 and ends the stream": () =>
    connected(async (connection) => {
      const stream = await open(connection);
      const code = Buffer.of(0x0f, 0xa1);
      stream.write(frame(8, code));
      assert.deepEqual(await receive(stream, 4), Buffer.concat([Buffer.of(0x88, 2), code]));
      stream.resume();
      await heard(stream, "end");
      stream.end();
    }),
  "the server serves twenty streams of WebSocket on one connection": () =>
    connected(async (connection) => {
      const streams = await Promise.all(Array.from({ length: 20 }, () => open(connection)));
      await Promise.all(streams.map((stream, number) => isEchoed(stream, `number ${number}`)));
    }),
});
