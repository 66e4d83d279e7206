// Decides what elements do by their attribute `data-on`, so that most pages need no script of their own.
//
// `data-on="click: confirm 'Delete it?'; call /board/delete id=7; hide this; keydown.Escape: hide #menu"`: commands with
// words, each behind the event that it waits for. Words with blanks stand in quotes. A command that fails or is refused
// ends its row.

import { call, send } from "./calls.js";
import { change, closest } from "./morph.js";
import { catchUp } from "./regions.js";

// Each takes the element and the words, and may answer false.
const commands = {
  __proto__: null,

  async call(element, [url, ...words]) {
    const target = new URL(url, document.baseURI);
    if (target.origin !== location.origin) throw new Error(`${url} is another site`);
    const button = element.localName === "button" && element;
    const given = {};
    for (const word of words) {
      const [, name, said] = /^([^=]+)=(.*)$/s.exec(word) ?? wrong(word);
      given[name] = value(element, said);
    }
    const isDone = await send(element, button, () => call(target, given));
    catchUp();
    return isDone;
  },

  toggle(element, [selector, name]) {
    if (!name) return reveal(element, selector);
    for (const target of targets(element, selector)) {
      change(target, "class");
      target.classList.toggle(text(name));
    }
  },

  show: (element, [selector]) => reveal(element, selector, true),

  hide: (element, [selector]) => reveal(element, selector, false),

  set(element, [selector, word]) {
    const wanted = value(element, word);
    for (const target of targets(element, selector)) {
      if (/^(checkbox|radio)$/.test(target.type)) target.checked = wanted;
      else if (/^(input|select|textarea|progress|meter)$/.test(target.localName)) target.value = wanted;
      else target.textContent = wanted;
    }
  },

  submit(element, [selector]) {
    for (const target of targets(element, selector)) (target.localName === "form" ? target : target.form).requestSubmit();
  },

  focus(element, [selector]) {
    targets(element, selector)[0].focus();
  },

  confirm: (element, words) => confirm(words.map(text).join(" ")),
};


// Listens to the events that elements of the page name.
export function attend() {
  for (const element of document.querySelectorAll("[data-on]")) {
    // Some events do not rise; all of them come down. What is listened to already is not listened to twice.
    for (const { type } of rules(element)) document.addEventListener(type, dispatch, true);
  }
}

document.addEventListener("bine:patch", attend);

function dispatch(event) {
  for (let element = event.target; element?.closest; element = event.bubbles && element.parentElement) {
    for (const { type, key, row } of rules(element)) {
      if (type === event.type && (!key || key === event.key)) run(element, row, event);
    }
  }
}

async function run(element, row, event) {
  try {
    for (const [name, ...words] of row) {
      const command = commands[name] ?? wrong(name);
      let outcome = command(element, words);
      // Only what must wait does: the event can be refused no later than now.
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

// What an element waits for: each event with its row of commands, each a list of words.
function rules(element) {
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

function wrong(word) {
  throw new Error(`\`${word}\` is not understood`);
}

function targets(element, word = "this") {
  const said = text(word);
  const [, selector] = /^closest (.*)$/.exec(said) ?? [];
  const found = selector ? [closest.call(element, selector)] : said === "this" ? [element] : [...document.querySelectorAll(said)];
  return found[0] ? found : wrong(word);
}

// A word without its quotes.
function text(word) {
  return word.replace(/'([^']*)'|"([^"]*)"/g, "$1$2");
}

// What a word says: in quotes it is text; `this.value`, `this.checked`, `data.id` are the element's; numbers, true, false
// and null are themselves; anything else is text.
function value(element, word) {
  if (/^this\.(value|checked|valueAsNumber)$/.test(word)) return element[word.slice(5)];
  if (word.startsWith("data.")) return element.dataset[word.slice(5)];
  if (/^(true|false|null)$/.test(word) || (word && String(Number(word)) === word)) return JSON.parse(word);
  return text(word);
}

function isShown(target) {
  if (target.hasAttribute("popover")) return target.matches(":popover-open");
  return /^(details|dialog)$/.test(target.localName) ? target.open : !target.hasAttribute("hidden");
}

// Shows or hides what is meant, each as its kind has it, or does the other if nothing is wanted; and says so at the
// element, if that tells whether something is expanded.
function reveal(element, selector, wanted) {
  for (const target of targets(element, selector)) {
    const isWanted = wanted ?? !isShown(target);
    if (isShown(target) === isWanted) {
      // It is so already.
    } else if (target.hasAttribute("popover")) target.togglePopover(isWanted);
    else if (target.localName === "details") target.open = isWanted;
    else if (target.localName === "dialog") isWanted ? target.showModal() : target.close();
    else {
      change(target, "hidden");
      target.toggleAttribute("hidden", !isWanted);
    }
    if (element.hasAttribute("aria-expanded")) {
      change(element, "aria-expanded");
      element.setAttribute("aria-expanded", isWanted);
    }
  }
}
