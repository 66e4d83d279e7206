// The pages of `scripts` with `Bun.serve`: bun.mjs PORT ROWS
import { page } from "./pages.mjs";

const headers = { "Content-Type": "text/html; charset=utf-8" };

Bun.serve({
  port: Number(process.argv[2]),
  hostname: "127.0.0.1",
  fetch(request) {
    const start = request.url.indexOf("/", "http://".length);
    const [path, query = ""] = request.url.slice(start).split("?");
    const body = page(path, query);
    return body === null ? new Response(null, { status: 404 }) : new Response(body, { headers });
  },
});
