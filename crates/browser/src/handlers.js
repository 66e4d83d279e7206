// Declarative handlers in the attribute `data-on`, so that most pages need no script of their own.
//
// `data-on="click: confirm 'Delete it?'; call /board/delete id=7; hide this; keydown.Escape: hide
// #menu"`: each event is followed by its commands, and each command by its words. Quotes enclose
// words with spaces. A command that fails or is canceled ends its sequence.

import { call, hideProblem, send, showProblem } from "./calls.js";
import { markChanged, closest } from "./morph.js";
import { applyDeferred } from "./regions.js";

// The modules of handlers that are loaded, by their URLs.
const modules = new Map();
// Queries for the next attempt to load a module, by its URL: Firefox does not request a URL again
// that could not be loaded.
const queries = new Map();
// The event of an element that came into the page, the elements that had it, and functions that run when
// one leaves.
const APPEAR = "appear";
const appeared = new WeakSet();
const stops = new Map();

// Each command receives the element, the words and the event. It returns false to cancel.
const commands = {
  __proto__: null,

  async call(element, [url, ...words]) {
    const target = new URL(url, document.baseURI);
    if (target.origin !== location.origin) throw new Error(`${url} is another site`);
    const button = element.localName === "button" && element;
    const args = {};
    for (const word of words) {
      const [, name, text] = /^([^=]+)=(.*)$/s.exec(word) ?? fail(word);
      args[name] = evaluate(element, text);
    }
    const isDone = await send(element, button, () => call(target, args));
    applyDeferred();
    return isDone;
  },

  toggle(element, [selector, name]) {
    if (!name) return setShown(element, selector);
    for (const target of findTargets(element, selector)) {
      markChanged(target, "class");
      target.classList.toggle(unquote(name));
    }
  },

  show: (element, [selector]) => setShown(element, selector, true),

  hide: (element, [selector]) => setShown(element, selector, false),

  set(element, [selector, word]) {
    const newValue = evaluate(element, word);
    for (const target of findTargets(element, selector)) {
      if (/^(checkbox|radio)$/.test(target.type)) target.checked = newValue;
      else if (/^(input|select|textarea|progress|meter)$/.test(target.localName)) target.value = newValue;
      else target.textContent = newValue;
    }
  },

  submit(element, [selector]) {
    for (const target of findTargets(element, selector)) (target.localName === "form" ? target : target.form).requestSubmit();
  },

  focus(element, [selector]) {
    findTargets(element, selector)[0].focus();
  },

  confirm: (element, words) => confirm(words.map(unquote).join(" ")),

  // Runs a function of the program. The result is a promise only if the module must be loaded, or the
  // function waits.
  run(element, words, event) {
    const [url, index, now, values] = functionOf(element, words, event.type);
    if (!url) return;
    const start = (module) => {
      // The event is dispatched at the document, and a function may wait before it asks.
      Object.defineProperty(event, "currentTarget", { value: element, configurable: true });
      const outcome = module.default[index](values ?? JSON.parse(element.dataset.with ?? "[]"))(event);
      if (event.type !== APPEAR) return outcome;
      return outcome instanceof Promise ? outcome.then((stop) => keepStop(element, stop)) : keepStop(element, outcome);
    };
    // Only an error of a service has a status.
    const report = (error) => (typeof error?.status === "number" ? showProblem(element, error) : reportError(error));
    hideProblem(element);
    try {
      let outcome = modules.get(url);
      if (outcome) outcome = start(outcome);
      else {
        // It is too late for the function to decide, and most that do cancel the event.
        if (now) event.preventDefault();
        outcome = loadModule(url).then(start);
      }
      return outcome instanceof Promise ? outcome.then(() => {}, report) : undefined;
    } catch (error) {
      report(error);
    }
  },
};

// The function of the program that a command `run` names: the URL of its module, its place in it,
// `now` if it decides about the event, and the captured values if they are not those of the element.
function functionOf(element, words, type) {
  return words.length ? words : JSON.parse(element.getAttribute(`data-on-${type}`) ?? "[]");
}

// Keeps the function that a handler of `appear` has returned, until the element leaves the page.
function keepStop(element, stop) {
  if (typeof stop !== "function") return;
  if (!element.isConnected) return stop();
  if (!stops.size) new MutationObserver(runStops).observe(document, { childList: true, subtree: true });
  stops.set(element, stop);
}

function runStops(_, observer) {
  for (const [element, stop] of stops) {
    if (element.isConnected) continue;
    stops.delete(element);
    stop();
  }
  if (!stops.size) observer.disconnect();
}

async function loadModule(url) {
  try {
    const module = await import(url + (queries.get(url) ?? ""));
    modules.set(url, module);
    return module;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    queries.set(url, `?${performance.now()}`);
    // The server has another version, or cannot be reached.
    throw Object.assign(new Error("This part of the page could not be loaded: load the page again."), { status: 404 });
  }
}

// Listens to the events that elements of the page name, and runs the handlers of new elements.
export function listen() {
  for (const element of document.querySelectorAll("[data-on]")) {
    for (const { type, row } of parseRules(element)) {
      if (type === APPEAR) {
        if (!appeared.has(element)) run(element, row, new Event(APPEAR));
        appeared.add(element);
      }
      // Some events do not bubble, but all can be captured. The browser ignores repeated listeners.
      else document.addEventListener(type, dispatch, true);
      for (const [name, ...words] of row) {
        const [url, , now] = name === "run" ? functionOf(element, words, type) : [];
        if (+now || now === "now") modules.has(url) || loadModule(url).catch(() => {});
      }
    }
  }
}

document.addEventListener("bine:patch", listen);

function dispatch(event) {
  // An element may stop the event for those around it.
  for (let element = event.target; element?.closest; element = event.bubbles && !event.cancelBubble && element.parentElement) {
    for (const { type, key, row } of parseRules(element)) {
      if (type === event.type && (!key || key === event.key)) run(element, row, event);
    }
  }
}

async function run(element, row, event) {
  try {
    for (const [name, ...words] of row) {
      const command = commands[name] ?? fail(name);
      let outcome = command(element, words, event);
      // Waits only for promises: the event must be canceled synchronously.
      if (outcome instanceof Promise) outcome = await outcome;
      if (outcome !== false) continue;
      event.preventDefault();
      event.stopPropagation();
      return;
    }
  } catch (error) {
    console.warn(`bine: ${error.message}`, element);
  }
}

// Parses the rules of an element: each event with its commands, each a list of words.
function parseRules(element) {
  const found = [];
  for (const statement of element.getAttribute("data-on")?.match(/([^;'"]|'[^']*'|"[^"]*")+/g) ?? []) {
    const words = statement.match(/([^\s'"]|'[^']*'|"[^"]*")+/g) ?? [];
    const [, type, key] = /^([\w-]+)\.?(\w*):$/.exec(words[0]) ?? [];
    if (type) {
      words.shift();
      found.push({ type, key, row: [] });
    }
    if (words.length) found.at(-1)?.row.push(words);
  }
  return found;
}

function fail(word) {
  throw new Error(`\`${word}\` is not understood`);
}

function findTargets(element, word = "this") {
  const text = unquote(word);
  const [, selector] = /^closest (.*)$/.exec(text) ?? [];
  const found = selector ? [closest.call(element, selector)] : text === "this" ? [element] : [...document.querySelectorAll(text)];
  return found[0] ? found : fail(word);
}

// Removes the quotes of a word.
function unquote(word) {
  return word.replace(/'([^']*)'|"([^"]*)"/g, "$1$2");
}

// Evaluates a word. A quoted word is text; `this.value`, `this.checked` and `data.id` read the
// element; numbers, true, false and null are themselves; any other word is text.
function evaluate(element, word) {
  if (/^this\.(value|checked|valueAsNumber)$/.test(word)) return element[word.slice(5)];
  if (word.startsWith("data.")) return element.dataset[word.slice(5)];
  if (/^(true|false|null)$/.test(word) || (word && String(Number(word)) === word)) return JSON.parse(word);
  return unquote(word);
}

function isShown(target) {
  if (target.hasAttribute("popover")) return target.matches(":popover-open");
  return /^(details|dialog)$/.test(target.localName) ? target.open : !target.hasAttribute("hidden");
}

// Shows or hides the targets, or toggles them if `shouldShow` is undefined. Updates `aria-expanded`
// of the element if it has that attribute.
function setShown(element, selector, shouldShow) {
  for (const target of findTargets(element, selector)) {
    const isWanted = shouldShow ?? !isShown(target);
    if (isShown(target) === isWanted) {
      // Already in the requested state.
    } else if (target.hasAttribute("popover")) target.togglePopover(isWanted);
    else if (target.localName === "details") target.open = isWanted;
    else if (target.localName === "dialog") isWanted ? target.showModal() : target.close();
    else {
      markChanged(target, "hidden");
      target.toggleAttribute("hidden", !isWanted);
    }
    if (element.hasAttribute("aria-expanded")) {
      markChanged(element, "aria-expanded");
      element.setAttribute("aria-expanded", isWanted);
    }
  }
}
