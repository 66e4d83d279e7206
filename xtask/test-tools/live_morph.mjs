// Properties of every morph, checked with thousands of random pairs of markup.

import { morph, parse, within } from "/source/morph.js";

const PARENTS = ["div", "ul", "table", "tbody", "tr", "select", "svg", "form", "p"];
const CHILDREN = {
  table: ["tbody", "thead", "caption"],
  tbody: ["tr"],
  thead: ["tr"],
  tr: ["td", "th"],
  ul: ["li", "li", "li", "template"],
  select: ["option", "optgroup", "option"],
  optgroup: ["option"],
  svg: ["g", "circle", "text"],
  g: ["circle", "g"],
};
const ANY = ["div", "p", "ul", "span", "b", "table", "select", "svg", "form", "input", "textarea", "details", "a", "video", "template", "noscript", "br"];
const TEXTS = ["one", "two", "a < b", "\u00e4 \u{1f33f}", " ", "three"];
const VOID = new Set(["input", "br"]);

// Repeatable random numbers: mulberry32.
function chance(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function writer(random) {
  const below = (count) => Math.floor(random() * count);
  const one = (list) => list[below(list.length)];
  const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  const attributes = (name) => {
    let text = "";
    if (random() < 0.35) text += ` id="i${below(12)}"`;
    if (random() < 0.2) text += ` class="${one(["red", "wide", "red wide"])}"`;
    if (random() < 0.1) text += ` data-at="${below(3)}" @odd="1"`;
    if (name === "input") {
      text += ` name="n${below(3)}"`;
      text += one(["", ` value="${one(TEXTS).replace(/</g, "")}"`, " type=checkbox", " type=checkbox checked", " type=range value=7", " type=radio checked"]);
    }
    if (name === "option" && random() < 0.3) text += " selected";
    if (name === "svg") text += ' viewBox="0 0 9 9"';
    return text;
  };
  const nodes = (parent, depth) => {
    let text = "";
    for (let count = below(5); count > 0; count--) text += node(parent, depth);
    return text;
  };
  const node = (parent, depth) => {
    const kinds = CHILDREN[parent];
    if (!kinds && random() < 0.3) return escape(one(TEXTS));
    if (random() < 0.05) return `<!--${one(["a", "b"])}-->`;
    const name = one(kinds ?? ANY);
    if (VOID.has(name)) return `<${name}${attributes(name)}>`;
    const inner = name === "textarea" || name === "option" ? escape(one(TEXTS)) : depth > 4 ? "" : nodes(name, depth + 1);
    return `<${name}${attributes(name)}>${inner}</${name}>`;
  };
  // Half of the time the new markup is the old one with elements moved, removed, duplicated or added.
  const altered = (parent, markup) => {
    const place = parse(markup, parent);
    for (let count = 1 + below(4); count > 0; count--) {
      const elements = [...place.querySelectorAll("*")];
      if (!elements.length) break;
      const element = one(elements);
      const other = one(elements);
      const way = below(5);
      if (way === 0) element.remove();
      else if (way === 1 && !element.contains(other)) other.before(element);
      else if (way === 2) element.after(element.cloneNode(true));
      else if (way === 3) element.parentNode.prepend(element);
      else element.append(one(TEXTS));
    }
    return place.innerHTML;
  };
  return { one, nodes, altered };
}

function shown(place) {
  const within = (node) => [...node.querySelectorAll("input,select,textarea")].filter((control) => control instanceof HTMLElement).map((control) =>
    control.localName === "select" ? [...control.selectedOptions].map((option) => option.value).join() : `${control.value} ${control.checked}`);
  return JSON.stringify(within(place));
}

// Elements by id, where only one element has it.
function unique(place) {
  const found = new Map();
  for (const element of place.querySelectorAll("[id]")) {
    const id = element.getAttribute("id");
    found.set(id, found.has(id) ? null : element);
  }
  return found;
}

// Runs one case. Returns the error, if any.
export function tried(seed) {
  const random = chance(seed);
  const { one, nodes, altered } = writer(random);
  const name = one(PARENTS);
  const parent = name === "svg" ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  const first = nodes(name, 0);
  const second = random() < 0.5 ? nodes(name, 0) : altered(parent, first);
  document.body.replaceChildren(parent);
  parent.append(document.createComment("begin"), ...parse(first, parent).childNodes, document.createComment("end"));
  const [begin, end] = [parent.firstChild, parent.lastChild];
  const before = unique(parent);
  const put = () => {
    const old = [...parent.childNodes].slice(1, -1);
    morph(parent, old, [...parse(second, parent).childNodes], end);
  };
  put();
  // The marks are added by hand: an element that the markup leaves open would contain the second one.
  const wanted = parse(second, parent);
  wanted.prepend(document.createComment("begin"));
  wanted.append(document.createComment("end"));
  const context = `${name}: ${first}\n  -> ${second}\n  =  ${parent.innerHTML}`;
  const same = document.importNode(parent, true);
  const templates = (place) => within([place], "template").map((template) => template.innerHTML).join("|");
  if (!same.isEqualNode(document.importNode(wanted, true)) || templates(parent) !== templates(wanted)) return `differs: ${context}`;
  if (parent.firstChild !== begin || parent.lastChild !== end) return `the marks have moved: ${context}`;
  // Two radio buttons may both be marked as checked; the order of insertion decides.
  const fresh = parent.cloneNode(false);
  fresh.append(...parse(second, parent).childNodes);
  document.body.append(fresh);
  if (!second.includes("radio") && shown(parent) !== shown(fresh)) return `controls differ: ${context} ${shown(parent)} ${shown(fresh)}`;
  fresh.remove();
  for (const [id, element] of unique(parent)) {
    const was = before.get(id);
    if (element && was && was.namespaceURI + was.localName === element.namespaceURI + element.localName && was !== element) return `#${id} was replaced: ${context}`;
  }
  const watch = new MutationObserver(() => {});
  watch.observe(parent, { subtree: true, childList: true, attributes: true, characterData: true });
  put();
  const changes = watch.takeRecords().filter((record) => record.target.localName !== "template");
  watch.disconnect();
  if (changes.length) return `changes without a difference: ${context}`;
}

export function all(from, count) {
  const warn = console.warn;
  // Duplicate ids are on purpose here.
  console.warn = () => {};
  try {
    for (let seed = from; seed < from + count; seed++) {
      const wrong = tried(seed);
      if (wrong) return `seed ${seed}: ${wrong}`;
    }
  } finally {
    console.warn = warn;
  }
}
