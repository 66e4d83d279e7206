// Forms that are sent without a reload, and what happens with the response.

import { readResult, send } from "./calls.js";
import { markChanged, closest, contains, parsePage, sending } from "./morph.js";
import { pathAndQuery, loadPage, startRequest, applyDeferred, reload, replacePage } from "./regions.js";
import { connect } from "./stream.js";

// The address of the current page, without its fragment.
let currentAddress = pathAndQuery(location);

const scripts = (page) => String([...page.scripts].map((script) => script.src));
// The scripts that the browser has started. A refresh may name others, but starts none.
const runningScripts = scripts(document);

document.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  // Reads attributes, because fields with these names would hide the properties.
  const attribute = (name) => submitter?.getAttribute(`form${name}`) || form.getAttribute(name) || "";
  const url = new URL(attribute("action") || location.href, document.baseURI);
  const isOurs = /^post$/i.test(attribute("method")) && /^(_self)?$/i.test(attribute("target")) && url.origin === location.origin;
  if (event.defaultPrevented || !isOurs || closest.call(submitter ?? form, "[data-reload]")) return;
  event.preventDefault();
  if (sending.has(form)) return;

  const data = new FormData(form, submitter);
  // The bytes that a browser would send.
  const texts = () => [...data].map(([name, value]) => [name, (value.name ?? value).replace(/\r?\n/g, "\r\n")]);
  const body = attribute("enctype") === "multipart/form-data" ? data : new URLSearchParams(texts());
  const contentBefore = formContent(form);
  const isNewest = startRequest();
  let answer, value;
  const isDone = await send(form, submitter, async () => {
    answer = await fetch(url, { method: "POST", body, headers: { Accept: "application/json, text/html;q=0.5" } });
    const isPage = /^text\/html/.test(answer.headers.get("Content-Type"));
    value = isPage ? parsePage(await answer.text()) : await readResult(answer);
    // An error page must not replace a form with unsent input, unless it contains the form with its
    // errors.
    if (isPage && !answer.ok && !(answer.status === 422 && value.forms.length)) {
      throw { message: (value.querySelector("p") ?? value.querySelector("title")).textContent, status: answer.status };
    }
  });
  if (isDone) {
    // Input that the user typed in the meantime stays.
    if (answer.ok && formContent(form) === contentBefore && !form.hasAttribute("data-keep")) resetForm(form);
    if (value instanceof Document) showResponse(answer, value, isNewest);
    else form.dispatchEvent(new CustomEvent("done", { bubbles: true, detail: value }));
  }
  applyDeferred();
});

// Shows another page, as a link does, without loading the scripts of the page again.
export async function navigate(address) {
  const url = new URL(address, document.baseURI);
  const isNewest = startRequest();
  const visit = () => location.assign(url);
  if (url.origin !== location.origin || url.hash) return visit();
  const answer = await fetch(url, { headers: { Accept: "text/html" } }).catch(() => {
    throw Object.assign(new Error("The page could not be loaded: try again."), { status: 503 });
  });
  if (!answer.ok || !/^text\/html/.test(answer.headers.get("Content-Type"))) return visit();
  showResponse({ ok: true, redirected: true, url: answer.url }, parsePage(await answer.text()), isNewest);
}

addEventListener("popstate", () => {
  if (currentAddress === pathAndQuery(location)) return;
  currentAddress = pathAndQuery(location);
  loadPage(true).catch(reload);
});

function formContent(form) {
  return String(new URLSearchParams(new FormData(form)));
}

// Resets a form for the next input.
function resetForm(form) {
  const focused = document.activeElement;
  HTMLFormElement.prototype.reset.call(form);
  if (focused === document.body || contains.call(form, focused)) {
    form.querySelector(":is(input:not([type=hidden],[type=submit]),select,textarea):enabled")?.focus();
  }
}

// Shows the page in the response to a form. It is a different page unless it has the current
// address or reports an error.
function showResponse({ ok, redirected, url }, page, isNewest) {
  if (!isNewest()) return loadPage();
  const isOther = ok && pathAndQuery(new URL(url)) !== currentAddress;
  if (isOther) {
    // Only a navigation by the browser starts different scripts and ends the current ones.
    if (redirected && scripts(page) !== runningScripts) return location.assign(url);
    history.pushState(null, "", url);
    currentAddress = pathAndQuery(location);
  }
  const start = page.querySelector("[autofocus],h1,main");
  replacePage(page, isOther);
  if (isOther) {
    scrollTo(0, 0);
    if (start?.tabIndex < 0) {
      markChanged(start, "tabindex");
      start.tabIndex = -1;
    }
    start?.focus({ preventScroll: true });
  }
  connect();
}
