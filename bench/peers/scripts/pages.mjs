// The pages of `scripts` as template strings, for Node and Bun. The rows are an array in memory,
// which costs them less than any database; `head` is the script of live pages.
import { readFileSync } from "node:fs";

const { entries, messages, head } = JSON.parse(readFileSync(process.argv[3], "utf8"));

const REPLACED = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escaped = (text) => String(text).replace(/[&<>"']/g, (found) => REPLACED[found]);

const layout = (title, content) =>
  `<!DOCTYPE html><html lang="en"><head><title>${escaped(title)}</title>${head}</head><body>${content}</body></html>`;

const hello = (name) => layout("Hello", `<h1>Hello ${escaped(name)}</h1>`);

const rows20 = () =>
  layout("Visits", `<h1>Visits</h1><ul>${entries
    .slice(0, 20)
    .map((entry) => `<li id="${escaped(entry.number)}">${escaped(entry.body)} <i>${escaped(entry.author)}</i></li>`)
    .join("")}</ul>`);

const rows50 = () =>
  layout("Messages", `<h1>Messages</h1><ol>${messages
    .slice(0, 50)
    .map((message) => `<li><b>${escaped(message.author)}</b> <time>${escaped(message.at)}</time><p>${escaped(message.body)}</p></li>`)
    .join("")}</ol>`);

/** The page at a path with a query; null: there is none. */
export const page = (path, query) => {
  switch (path) {
    case "/pages/":
      return hello(new URLSearchParams(query).get("name") ?? "");
    case "/pages/rows20":
      return rows20();
    case "/pages/rows50":
      return rows50();
    default:
      return null;
  }
};
