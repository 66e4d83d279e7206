// Decides which parts of the page are live, and how each, or the whole page, is put anew.

import { contains, morph, parse, parsePage, sending } from "./morph.js";
import { connect } from "./stream.js";

// What puts once more what came for regions, by number, or for the page while a form was under way.
const late = new Map();
// Pages that were asked for, and the number of the last that was taken: an older one is not shown behind it.
let begun = 0;
let shown = 0;

// The regions that the page shows, by number: where each begins and ends, and the hash of what is between.
export function regions() {
  const [begun, found] = [new Map(), new Map()];
  // Comments alone.
  const comments = document.createTreeWalker(document, 128);
  for (let comment; (comment = comments.nextNode()); ) {
    const [, isEnd, number, hash] = /^(\/?)live (\d+) ?(\w*)$/.exec(comment.data) ?? [];
    const begin = begun.get(number);
    if (isEnd && begin) found.set(number, { begin, end: comment, hash });
    else if (number) begun.set(number, comment);
  }
  return found;
}

// Shows new markup in a region. The mark at its end keeps the hash, so the page itself tells what it shows.
export function patch(number, hash, markup) {
  const { begin, end } = regions().get(number) ?? {};
  if (!end) return;
  const again = () => patch(number, hash, markup);
  // A form under way may be around the region, or in it.
  if ([...sending].some((element) => contains.call(element, begin))) return late.set(number, again);
  const old = [];
  try {
    if (begin.parentNode !== end.parentNode) throw `bine: region ${number} spans elements`;
    for (let node = begin.nextSibling; node !== end; node = node.nextSibling) old.push(node);
    morph(begin.parentNode, old, [...parse(markup, begin.parentNode).childNodes], end);
  } catch (error) {
    console.warn(error);
    return refresh();
  }
  end.data = `/live ${number} ${hash}`;
  late.delete(number);
  if ([...sending].some((element) => old.some((node) => contains.call(node, element)))) late.set(number, again);
  tell("patch", { region: Number(number) });
}

// Puts what a form under way has held back.
export function catchUp() {
  for (const again of [...late.values()]) again();
}

// Says that a page is about to be asked for. What comes back takes it, unless one that was asked for later is shown.
export function ask() {
  const number = ++begun;
  return () => number >= shown && (shown = number);
}

// Shows the page that the address names, and goes on with what it has.
export async function arrive(isOther) {
  await refresh(isOther);
  connect();
}

// Fetches the page that the address names. Fails if the server is away, which is no reason to lose what is written here.
export async function refresh(isOther) {
  const take = ask();
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-cache" });
  if (/^(429|5..)$/.test(answer.status)) throw answer;
  const markup = await answer.text();
  if (!take()) return;
  if (!answer.ok || answer.redirected) return reload();
  show(parsePage(markup), isOther);
}

// Makes the page equal to a document, whose scripts are not run. What was open or half written on this page stays, unless
// the document is another one.
export function show(page, isOther) {
  const { body, documentElement } = document;
  if (isOther) body.replaceChildren();
  morph(document, [documentElement], [page.documentElement], null);
  late.clear();
  if (sending.size) late.set("", arrive);
  tell("patch", { region: null });
}

// An address without its fragment, which no server sees.
export function address({ pathname, search }) {
  return pathname + search;
}

// Says something to the page's own scripts.
export function tell(name, detail) {
  document.dispatchEvent(new CustomEvent(`bine:${name}`, { detail }));
}

// Loads the page again, at most once in some seconds, whatever the server says; by GET, even if a form led here.
export function reload() {
  setTimeout(() => location.replace(address(location)), 5000 - performance.now());
}
