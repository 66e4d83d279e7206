// The pages of `scripts` with `node:http`: node.mjs PORT ROWS
import { createServer } from "node:http";

import { page } from "./pages.mjs";

const server = createServer((request, response) => {
  const [path, query = ""] = request.url.split("?");
  const body = page(path, query);
  if (body === null) {
    response.writeHead(404);
    return response.end();
  }
  response.writeHead(200, {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
  });
  response.end(body);
});
server.keepAliveTimeout = 300_000;
server.listen(Number(process.argv[2]), "127.0.0.1");
