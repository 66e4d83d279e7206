// Live regions: finds them in the page, and patches a region or the whole page.

import { contains, morph, parse, parsePage, sending } from "./morph.js";
import { connect, disconnect } from "./stream.js";

// Functions that apply patches which arrived while a form was being sent, by region number, or ""
// for the page.
const deferred = new Map();
// The number of page requests, and the newest whose response was shown: an older response is
// discarded.
let requestCount = 0;
let newestShown = 0;

// Returns the regions of the page by number: their begin and end marks, and the hash of their
// content.
export function regions() {
  const [open, found] = [new Map(), new Map()];
  // 128 is NodeFilter.SHOW_COMMENT.
  const comments = document.createTreeWalker(document, 128);
  for (let comment; (comment = comments.nextNode()); ) {
    const [, isEnd, number, hash] = /^(\/?)live (\d+) ?(\w*)$/.exec(comment.data) ?? [];
    const begin = open.get(number);
    if (isEnd && begin) found.set(number, { begin, end: comment, hash });
    else if (number) open.set(number, comment);
  }
  return found;
}

// Replaces the content of a region. The end mark keeps the hash, so the page itself records its
// version.
export function patch(number, hash, markup) {
  const { begin, end } = regions().get(number) ?? {};
  if (!end) return;
  const retry = () => patch(number, hash, markup);
  // A form with a pending request may contain the region, or be inside it.
  if ([...sending].some((element) => contains.call(element, begin))) return deferred.set(number, retry);
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
  deferred.delete(number);
  if ([...sending].some((element) => old.some((node) => contains.call(node, element)))) deferred.set(number, retry);
  emit("patch", { region: Number(number) });
}

// Applies the patches that a pending request deferred.
export function applyDeferred() {
  for (const retry of [...deferred.values()]) retry();
}

// Starts a page request. The returned function reports whether its response may be shown: no
// response to a later request has been shown.
export function startRequest() {
  const number = ++requestCount;
  return () => number >= newestShown && (newestShown = number);
}

// Shows the page at the current address and reconnects with its regions.
export async function loadPage(isOther) {
  await refresh(isOther);
  connect();
}

// Fetches the page at the current address. Throws if the server is unavailable, so that the user's
// input stays.
export async function refresh(isOther) {
  const isNewest = startRequest();
  // A redirect may lead to a different site, which `fetch` could not follow.
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-cache", redirect: "manual" });
  if (/^(429|5..)$/.test(answer.status)) throw answer;
  const page = parsePage(await answer.text());
  // The style sheet is in the cache when the markup changes, and the old one stays until then.
  const sheet = page.querySelector('link[href^="/_bine/style"]');
  if (sheet) await fetch(sheet.href, { signal: AbortSignal.timeout(5000) }).then((answer) => answer.text()).catch(() => {});
  if (!isNewest()) return;
  if (!answer.ok) return reload();
  replacePage(page, isOther);
}

// Hides a page that the visitor may no longer see, until the next page replaces it. No author's
// style has precedence over this one, and a morph removes it.
export function hide() {
  document.documentElement.style.setProperty("display", "none", "important");
}

// Waits until no form is being sent. Never ends if a response has replaced the page meanwhile.
export async function allSent() {
  while (sending.size) await new Promise((resolve) => deferred.set("", resolve));
}

// Makes the page equal to a document, without running its scripts. Open elements and unfinished
// input stay, unless the document is a different page.
export function replacePage(page, isOther) {
  const { body, documentElement } = document;
  if (isOther) body.replaceChildren();
  morph(document, [documentElement], [page.documentElement], null);
  deferred.clear();
  if (sending.size) deferred.set("", loadPage);
  emit("patch", { region: null });
}

// Returns an address without its fragment, which the server never receives.
export function pathAndQuery({ pathname, search }) {
  return pathname + search;
}

// Dispatches an event to the page's own scripts.
export function emit(name, detail) {
  document.dispatchEvent(new CustomEvent(`bine:${name}`, { detail }));
}

// Hides the page and loads it again, at most once in five seconds, whatever the server responds.
// Uses GET even if the page is the response to a form. A pause lets the browser complete a
// navigation that has begun, such as one that the user's logout leads to.
export function reload() {
  disconnect();
  hide();
  let pause = 5000 - performance.now();
  try {
    pause = 5000 - Date.now() + Number(sessionStorage.reloaded ?? 0);
  } catch {
    // The user has disabled storage.
  }
  setTimeout(() => {
    location.replace(pathAndQuery(location));
    sessionStorage.reloaded = Date.now();
  }, Math.max(200, Math.min(pause, 5000)));
}
