// Decides which forms are sent without a reload, and what the page becomes then.

import { result, send } from "./calls.js";
import { change, closest, contains, parsePage, sending } from "./morph.js";
import { address, arrive, ask, catchUp, reload, show } from "./regions.js";
import { connect } from "./stream.js";

// The page that is shown; an address that differs by its fragment alone is the same.
let here = address(location);

document.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  // Attributes and not properties, which fields of these names would hide.
  const said = (name) => submitter?.getAttribute(`form${name}`) || form.getAttribute(name) || "";
  const url = new URL(said("action") || location.href, document.baseURI);
  const isOurs = /^post$/i.test(said("method")) && /^(_self)?$/i.test(said("target")) && url.origin === location.origin;
  if (event.defaultPrevented || !isOurs || closest.call(submitter ?? form, "[data-reload]")) return;
  event.preventDefault();
  if (sending.has(form)) return;

  const data = new FormData(form, submitter);
  // The bytes that the browser itself would send.
  const texts = () => [...data].map(([name, value]) => [name, (value.name ?? value).replace(/\r?\n/g, "\r\n")]);
  const body = said("enctype") === "multipart/form-data" ? data : new URLSearchParams(texts());
  const before = written(form);
  const take = ask();
  let answer, value;
  const isDone = await send(form, submitter, async () => {
    answer = await fetch(url, { method: "POST", body, headers: { Accept: "application/json, text/html;q=0.5" } });
    const isPage = /^text\/html/.test(answer.headers.get("Content-Type"));
    value = isPage ? parsePage(await answer.text()) : await result(answer);
    // A page of an error is no place to leave what is written for, unless it is the form itself, with what is wrong.
    if (isPage && !answer.ok && !(answer.status === 422 && value.forms.length)) {
      throw { message: (value.querySelector("p") ?? value.querySelector("title")).textContent, status: answer.status };
    }
  });
  if (isDone) {
    // Who has written on meanwhile keeps it.
    if (answer.ok && written(form) === before && !form.hasAttribute("data-keep")) begin(form);
    if (value instanceof Document) visit(answer, value, take);
    else form.dispatchEvent(new CustomEvent("done", { bubbles: true, detail: value }));
  }
  catchUp();
});

addEventListener("popstate", async () => {
  if (here === address(location)) return;
  here = address(location);
  try {
    await arrive(true);
  } catch {
    reload();
  }
});

function written(form) {
  return String(new URLSearchParams(new FormData(form)));
}

// Makes a form ready for the next one.
function begin(form) {
  const focused = document.activeElement;
  HTMLFormElement.prototype.reset.call(form);
  if (focused === document.body || contains.call(form, focused)) {
    form.querySelector(":is(input:not([type=hidden],[type=submit]),select,textarea):enabled")?.focus();
  }
}

// Shows the page that a form was answered with. It is another page unless it has this one's address, or tells an error.
function visit({ ok, redirected, url }, page, take) {
  if (!take()) return arrive();
  const isOther = ok && address(new URL(url)) !== here;
  if (isOther) {
    const scripts = (of) => String([...of.scripts].map((script) => script.src));
    // Other scripts begin, and these end, only if the browser itself goes there.
    if (redirected && scripts(page) !== scripts(document)) return location.assign(url);
    history.pushState(null, "", url);
    here = address(location);
  }
  const start = page.querySelector("[autofocus],h1,main");
  show(page, isOther);
  if (isOther) {
    scrollTo(0, 0);
    if (start?.tabIndex < 0) {
      change(start, "tabindex");
      start.tabIndex = -1;
    }
    start?.focus({ preventScroll: true });
  }
  connect();
}
