// Decides which parts of the page are live, and how each, or the whole page, is put anew.

import { morph, parse, parsePage, sending } from "./morph.js";

// What came for regions with a form under way: number -> [hash, markup]. It is put once more when the form is done.
const late = new Map();

// The regions that the page shows, by number: where each begins and ends, and the hash of what is between.
export function regions() {
  const [begun, found] = [new Map(), new Map()];
  const comments = document.createTreeWalker(document, NodeFilter.SHOW_COMMENT);
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
  if (begin.parentNode !== end.parentNode) {
    console.warn(`bine: live region ${number} ends in another element than it begins in`);
    return refresh();
  }
  const old = [];
  for (let node = begin.nextSibling; node !== end; node = node.nextSibling) old.push(node);
  morph(begin.parentNode, old, [...parse(markup, begin.parentNode).childNodes], end);
  end.data = `/live ${number} ${hash}`;
  late.delete(number);
  if ([...sending].some((element) => old.some((node) => node.contains(element)))) late.set(number, [hash, markup]);
  tell("patch", { region: Number(number) });
}

// Puts what a form under way has held back.
export function catchUp() {
  for (const [number, [hash, markup]] of [...late]) patch(number, hash, markup);
}

// Fetches the page that the address names. Fails if the server is away, which is no reason to lose what is written here.
// What comes too late, behind another page or another connection, is dropped by the signal.
export async function refresh(isOther, signal) {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-cache", signal });
  if (/^50[234]$/.test(answer.status)) throw answer;
  if (!answer.ok || answer.redirected) return reload();
  show(parsePage(await answer.text()), isOther);
}

// Makes the page equal to a document, whose scripts are not run. What was open or half written on this page stays, unless
// the document is another one.
export function show(page, isOther) {
  const { body, documentElement } = document;
  if (isOther) body.replaceChildren();
  morph(document, [documentElement], [page.documentElement], null);
  late.clear();
  tell("patch", { region: null });
}

// Says something to the page's own scripts.
export function tell(name, detail) {
  document.dispatchEvent(new CustomEvent(`bine:${name}`, { detail }));
}

// Loads the page again, at most once in some seconds, whatever the server says.
function reload() {
  setTimeout(() => location.reload(), Math.max(0, 5000 - performance.now()));
}
