// The hello page as a user of Node would write it.
import http from "node:http";

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => text.replace(/[&<>"']/g, (letter) => ESCAPES[letter]);
const [host, port] = process.argv[2].split(":");

http
  .createServer((request, response) => {
    const name = new URL(request.url, "http://localhost").searchParams.get("name") ?? "";
    const page = `<h1>Hello ${escape(name)}</h1>`;
    response.writeHead(200, { "Content-Type": "text/html; charset=utf-8", "Content-Length": Buffer.byteLength(page) });
    response.end(page);
  })
  .listen({ host, port: Number(port), backlog: 1024 });
