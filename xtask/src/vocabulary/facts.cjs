// Prints the data of html-validate and aria-query as JSON: `node facts.cjs FOLDER`, with the two packages unpacked there.
// Both are programs that build their tables at run time, so only a program can read them. A rule that html-validate
// implements as a function is printed as the text of that function; the generator knows each such text or rejects it.
"use strict";
const path = require("node:path");
const folder = path.resolve(process.argv[2]);
const { html5 } = require(path.join(folder, "html-validate/package/dist/cjs/elements.js"));
const { roles, aria } = require(path.join(folder, "aria-query/package/lib/index.js"));

const plain = (_key, value) => {
  if (value instanceof RegExp) return { pattern: value.source };
  if (typeof value === "function") return { code: value.toString().replace(/\s+/g, " ") };
  return value;
};
const entries = (map) => Object.fromEntries(map.entries());
process.stdout.write(JSON.stringify({ html: html5, roles: entries(roles), states: entries(aria) }, plain));
