// Decides how what a page shows becomes what the server says, without disturbing who reads, types or listens.
//
// Elements are known again by the ids that they bear or hold, then by tag, `id`, `name` and `type`. What stays is left
// where it is if it can be, what must move is moved, and only what nobody knows again is removed, at the end.
// The depth of recursion is that of the markup: every browser's parser stops at 512 elements within each other.

// Forms and other elements whose request is under way: nothing in them is touched.
export const sending = new Set();
// Of a form these may be hidden by fields with such names.
export const { closest, contains, matches } = Element.prototype;
// Attributes that a handler has changed here, with what the server had said: element -> Map(name -> value).
const changes = new WeakMap();
// What is parsed here loads nothing and runs nothing.
const inert = document.implementation.createHTMLDocument("");

// Says that an attribute is about to be changed here: a patch leaves it alone until the server says something new.
export function change(element, name) {
  const mine = changes.get(element) ?? new Map();
  if (!mine.has(name)) mine.set(name, element.getAttribute(name));
  changes.set(element, mine);
}

// The nodes of a piece of markup, read as what lies in an element like this one: rows in a table, shapes in a drawing.
export function parse(markup, parent) {
  const place = inert.importNode(parent, false);
  place.innerHTML = markup;
  quiet(place);
  return place;
}

// A page of markup as a document that does nothing.
export function parsePage(markup) {
  const page = new DOMParser().parseFromString(markup, "text/html");
  quiet(page);
  return page;
}

// Where scripts do not run, the content of `noscript` is read as markup; here it is text, as everywhere on the page.
function quiet(place) {
  for (const element of place.querySelectorAll("noscript")) element.textContent = element.innerHTML;
}

// One morph is under way at a time, from beginning to end. What it knows:
// the elements that are here and stay, by their ids;
let lasting;
// the lasting ids that each node here, and each fresh node, bears or holds;
let oldIds;
let freshIds;
// what nobody has known again. It goes last, since what it holds may still be known again elsewhere.
let doomed;

// Makes the nodes `old`, which are neighbors in `parent` and lie before `end`, equal to the nodes `fresh`.
export function morph(parent, old, fresh, end) {
  const [had, has] = [identified(old), identified(fresh)];
  // Nobody asked for the focus to go elsewhere.
  for (const element of within(fresh, "[autofocus]")) element.removeAttribute("autofocus");
  lasting = new Map();
  for (const [id, element] of has) {
    const before = had.get(id);
    if (element && before && tag(element) === tag(before)) lasting.set(id, before);
  }
  oldIds = held(had);
  freshIds = held(has);
  doomed = new Set();
  const restore = remember(old);
  try {
    children(parent, old, fresh, end);
    // This takes a node from where it is, and no field's name can hide it.
    for (const node of doomed) document.adoptNode(node);
  } finally {
    restore();
  }
}

// The ids that last, for each node that bears or holds some.
function held(elements) {
  const ids = new Map();
  for (const id of lasting.keys()) {
    for (let node = elements.get(id); node; node = node.parentNode) {
      if (!ids.has(node)) ids.set(node, new Set());
      ids.get(node).add(id);
    }
  }
  return ids;
}

function children(parent, old, fresh, end) {
  // Of what this script has put into the page the server does not know.
  old = old.filter((node) => !node.isOurs);
  // Most of a list stays as it is: what is equal at both ends needs no further look.
  let from = 0;
  while (from < old.length && from < fresh.length && equal(old[from], fresh[from])) from++;
  let [oldTo, freshTo] = [old.length, fresh.length];
  while (oldTo > from && freshTo > from && equal(old[oldTo - 1], fresh[freshTo - 1])) oldTo--, freshTo--;
  let next = old[oldTo] ?? end;
  old = old.slice(from, oldTo);
  fresh = fresh.slice(from, freshTo);

  const pairs = pair(old, fresh);
  const known = new Set(pairs.values());
  const staying = longest(old, fresh.map((node) => pairs.get(node)).filter(Boolean));
  for (const node of fresh.reverse()) {
    let here = pairs.get(node);
    if (!here) {
      here = lasting.get(identity(node));
      doomed.delete(here);
      known.add(here);
    }
    if (!here && !freshIds.has(node)) {
      here = parent.insertBefore(node, next);
    } else {
      if (!here) here = parent.insertBefore(document.importNode(node, false), next);
      else if (!staying.has(here)) move(parent, here, next);
      update(here, node);
    }
    next = here;
  }
  // What is no longer here has been known again within another.
  for (const node of old) if (!known.has(node) && node.parentNode === parent) doomed.add(node);
}

// Which old node each fresh one is: fresh -> old.
function pair(old, fresh) {
  const pairs = new Map();
  const free = new Set(old);
  const take = (node, before) => free.delete(before) && pairs.set(node, before);
  const holder = new Map();
  for (const node of old) for (const id of oldIds.get(node) ?? []) holder.set(id, node);
  for (const node of fresh) {
    const shared = new Map();
    let best;
    for (const id of freshIds.get(node) ?? []) {
      const before = holder.get(id);
      if (!free.has(before) || kind(before) !== kind(node)) continue;
      shared.set(before, (shared.get(before) ?? 0) + 1);
      if (!best || shared.get(before) > shared.get(best)) best = before;
    }
    if (best) take(node, best);
  }
  // What holds no id that lasts is known by its kind, in order.
  const left = new Map();
  for (const node of old.toReversed()) {
    if (free.has(node)) left.get(kind(node))?.push(node) ?? left.set(kind(node), [node]);
  }
  for (const node of fresh) {
    const before = !pairs.has(node) && left.get(kind(node))?.pop();
    if (before) take(node, before);
  }
  return pairs;
}

function update(here, node) {
  if (!(here instanceof Element)) {
    if (here.data !== node.data) here.data = node.data;
  } else if (!isFrozen(here)) {
    attributes(here, node);
    if (here instanceof HTMLTemplateElement) {
      // Its content is beside the page.
      if (here.innerHTML !== node.innerHTML) here.content.replaceChildren(...node.content.childNodes);
    } else {
      children(here, [...here.childNodes], [...node.childNodes], null);
    }
  }
}

// The author's `data-keep`, a form under way, text that is being written in place.
function isFrozen(element) {
  const isWritten = element.isContentEditable && element === document.activeElement;
  return element.hasAttribute("data-keep") || sending.has(element) || isWritten;
}

function attributes(here, node) {
  const mine = changes.get(here);
  for (const name of new Set([...here.getAttributeNames(), ...node.getAttributeNames()])) {
    const said = node.getAttribute(name);
    if (here.getAttribute(name) === said && !mine?.has(name)) continue;
    // Whether these are open is for who reads to say.
    if (name === "open" && "open" in here) continue;
    if (name === "data-live") continue;
    if (mine?.has(name)) {
      if (mine.get(name) === said) continue;
      mine.delete(name);
    }
    if (said === null) here.removeAttribute(name);
    else here.setAttributeNode(node.getAttributeNode(name).cloneNode());
  }
}

// Nodes are moved without losing focus, playing or scrolling where the browser can.
function move(parent, node, next) {
  (parent.moveBefore ?? parent.insertBefore).call(parent, node, next);
}

function identity(node) {
  // Not `node.id`: of a form that may be a field with that name.
  return node.getAttribute?.("id");
}

function tag(element) {
  return element.namespaceURI + element.localName;
}

// Nodes of one kind may become each other.
function kind(node) {
  if (!(node instanceof Element)) return node.nodeName;
  // What cannot be typed over is told from its neighbors by its value.
  const own = /^(checkbox|radio|hidden)$/.test(node.type) && "value";
  return [tag(node), ...["id", "name", "type", "rel", own].map((name) => node.getAttribute(name))].join();
}

function equal(here, node) {
  if (!here.isEqualNode(node)) return false;
  const all = within([here], "*");
  // The server says what was changed here, too.
  for (const element of all) changes.delete(element);
  // The content of a template is not compared.
  return !all.some((element) => element.localName === "template");
}

// Elements by id; null where several bear it, who are then known by kind alone.
function identified(nodes) {
  const found = new Map();
  // What is left as it is keeps what it holds.
  for (const element of within(nodes, "[id]:not([data-keep] *,.is-sending *)")) {
    const id = identity(element);
    if (found.has(id)) console.warn(`bine: id "${id}" more than once`);
    found.set(id, found.has(id) ? null : element);
  }
  return found;
}

// The elements that match among these nodes and in them.
export function within(nodes, selector) {
  const elements = nodes.filter((node) => node instanceof Element);
  return elements.flatMap((node) => [...(matches.call(node, selector) ? [node] : []), ...node.querySelectorAll(selector)]);
}

// The most that can stay where they are while `kept`, some of `old`, come into this order (the longest increasing
// subsequence of their places).
function longest(old, kept) {
  const places = new Map(old.map((node, place) => [node, place]));
  // The last node of the best row of each length, and who stands before each node in its row.
  const ends = [];
  const before = new Map();
  for (const node of kept) {
    // Rows are short or nearly in order, so this is found at once.
    const shorter = ends.findLastIndex((end) => places.get(end) < places.get(node));
    before.set(node, ends[shorter]);
    ends[shorter + 1] = node;
  }
  const staying = new Set();
  for (let node = ends.at(-1); node; node = before.get(node)) staying.add(node);
  return staying;
}

// Notes what who uses the page has made of its controls, and where they are. What comes back puts all that back, and
// gives the server's new value to those controls that nobody has changed.
function remember(nodes) {
  const [mine, theirs] = [new Map(), []];
  for (const control of within(nodes, "input,select,textarea")) {
    if (state(control) === state(pristine(control))) theirs.push(control);
    else mine.set(control, state(control));
  }
  const focused = document.activeElement;
  return () => {
    for (const control of theirs) if (control.isConnected) set(control, state(pristine(control)));
    for (const [control, own] of mine) if (control.isConnected) set(control, own);
    // With the focus a field has its cursor again.
    focused?.focus({ preventScroll: true });
  };
}

// The control as the server's markup alone would have it.
function pristine(control) {
  if (control.localName === "input" && control.value === control.defaultValue && control.checked === control.defaultChecked) return control;
  return parse(control.outerHTML, document.body).firstChild;
}

function state(control) {
  if (control.selectedOptions) return [...control.selectedOptions].map((option) => option.value).join("\n");
  return /^(checkbox|radio)$/.test(control.type) ? control.checked : control.value;
}

function set(control, wanted) {
  if (state(control) === wanted) return;
  if (control.selectedOptions) {
    const values = wanted.split("\n");
    for (const option of control.options) option.selected = values.includes(option.value);
  } else if (/^(checkbox|radio)$/.test(control.type)) {
    control.checked = wanted;
  } else if (control.type !== "file") {
    control.value = wanted;
  }
}
