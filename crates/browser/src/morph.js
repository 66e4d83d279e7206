// Morphing: makes the DOM equal to new markup from the server without disturbing focus, input,
// selection or playback.
//
// Nodes are matched by the ids that they have or contain, then by tag, `id`, `name` and `type`.
// Matched nodes stay in place if possible and are moved otherwise. Only unmatched nodes are
// removed, at the end. The recursion is as deep as the markup, and every browser's parser limits
// that to 512 elements.

// Forms and other elements with a pending request. A morph does not change them.
export const sending = new Set();
// Taken from the prototype, because form fields with these names would hide the methods of a form.
export const { closest, contains, matches } = Element.prototype;
// Attributes that a handler changed in the browser, with the server's previous value: element ->
// Map(name -> value).
const localChanges = new WeakMap();
// Parsing in this document loads no resources and runs no scripts.
const inertDocument = document.implementation.createHTMLDocument("");

// Records that the browser is about to change an attribute. A patch keeps the change until the
// server sends a new value.
export function markChanged(element, name) {
  const own = localChanges.get(element) ?? new Map();
  if (!own.has(name)) own.set(name, element.getAttribute(name));
  localChanges.set(element, own);
}

// Parses markup in the context of an element like `parent`: rows in a table, shapes in a drawing.
export function parse(markup, parent) {
  const place = inertDocument.importNode(parent, false);
  place.innerHTML = markup;
  flattenNoscript(place);
  return place;
}

// Parses a page into an inert document.
export function parsePage(markup) {
  const page = new DOMParser().parseFromString(markup, "text/html");
  flattenNoscript(page);
  return page;
}

// An inert document parses the content of `noscript` as markup. Turns it into text, as in the live
// page.
function flattenNoscript(place) {
  for (const element of place.querySelectorAll("noscript")) element.textContent = element.innerHTML;
}

// State of the current morph. Only one runs at a time, without interruption. Elements of the page
// that the new markup keeps, by id.
let persistent;
// The persistent ids that each current node, and each new node, has or contains.
let oldIds;
let freshIds;
// Nodes without a match. They are removed last, because a descendant may still match elsewhere.
let unmatched;

// Makes the nodes `old`, which are neighbors in `parent` and precede `end`, equal to the nodes
// `fresh`.
export function morph(parent, old, fresh, end) {
  const [oldElements, newElements] = [elementsById(old), elementsById(fresh)];
  // The user did not ask to move the focus.
  for (const element of within(fresh, "[autofocus]")) element.removeAttribute("autofocus");
  persistent = new Map();
  for (const [id, element] of newElements) {
    const before = oldElements.get(id);
    if (element && before && tagKey(element) === tagKey(before)) persistent.set(id, before);
  }
  oldIds = persistentIdsByNode(oldElements);
  freshIds = persistentIdsByNode(newElements);
  unmatched = new Set();
  const restore = captureControls(old);
  try {
    morphChildren(parent, old, fresh, end);
    // Removes the node. No field name can hide this method.
    for (const node of unmatched) document.adoptNode(node);
  } finally {
    restore();
  }
}

// Returns the persistent ids for each node that has or contains some.
function persistentIdsByNode(elements) {
  const ids = new Map();
  for (const id of persistent.keys()) {
    for (let node = elements.get(id); node; node = node.parentNode) {
      if (!ids.has(node)) ids.set(node, new Set());
      ids.get(node).add(id);
    }
  }
  return ids;
}

function morphChildren(parent, old, fresh, end) {
  // The server does not know about nodes that this script inserted.
  old = old.filter((node) => !node.isOurs);
  // Most of a list is unchanged: skips equal nodes at both ends.
  let from = 0;
  while (from < old.length && from < fresh.length && isUnchanged(old[from], fresh[from])) from++;
  let [oldTo, freshTo] = [old.length, fresh.length];
  while (oldTo > from && freshTo > from && isUnchanged(old[oldTo - 1], fresh[freshTo - 1])) oldTo--, freshTo--;
  let next = old[oldTo] ?? end;
  old = old.slice(from, oldTo);
  fresh = fresh.slice(from, freshTo);

  const pairs = matchNodes(old, fresh);
  const known = new Set(pairs.values());
  const staying = longestIncreasing(old, fresh.map((node) => pairs.get(node)).filter(Boolean));
  for (const node of fresh.reverse()) {
    let current = pairs.get(node);
    if (!current) {
      current = persistent.get(idOf(node));
      unmatched.delete(current);
      known.add(current);
    }
    if (!current && !freshIds.has(node)) {
      current = parent.insertBefore(node, next);
    } else {
      if (!current) current = parent.insertBefore(document.importNode(node, false), next);
      else if (!staying.has(current)) move(parent, current, next);
      morphNode(current, node);
    }
    next = current;
  }
  // A node with another parent was matched inside another element.
  for (const node of old) if (!known.has(node) && node.parentNode === parent) unmatched.add(node);
}

// Matches new nodes with old ones: fresh -> old.
function matchNodes(old, fresh) {
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
      if (!free.has(before) || matchKey(before) !== matchKey(node)) continue;
      shared.set(before, (shared.get(before) ?? 0) + 1);
      if (!best || shared.get(before) > shared.get(best)) best = before;
    }
    if (best) take(node, best);
  }
  // Nodes without persistent ids match by their key, in order.
  const left = new Map();
  for (const node of old.toReversed()) {
    if (free.has(node)) left.get(matchKey(node))?.push(node) ?? left.set(matchKey(node), [node]);
  }
  for (const node of fresh) {
    const before = !pairs.has(node) && left.get(matchKey(node))?.pop();
    if (before) take(node, before);
  }
  return pairs;
}

function morphNode(current, node) {
  if (!(current instanceof Element)) {
    if (current.data !== node.data) current.data = node.data;
  } else if (!isFrozen(current)) {
    morphAttributes(current, node);
    if (current instanceof HTMLTemplateElement) {
      // The content of a template is a separate fragment.
      if (current.innerHTML !== node.innerHTML) current.content.replaceChildren(...node.content.childNodes);
    } else {
      morphChildren(current, [...current.childNodes], [...node.childNodes], null);
    }
  }
}

// An element stays unchanged if it has the author's `data-keep`, has a pending request, or is being
// edited in place.
function isFrozen(element) {
  const isWritten = element.isContentEditable && element === document.activeElement;
  return element.hasAttribute("data-keep") || sending.has(element) || isWritten;
}

function morphAttributes(current, node) {
  const own = localChanges.get(current);
  for (const name of new Set([...current.getAttributeNames(), ...node.getAttributeNames()])) {
    const newValue = node.getAttribute(name);
    if (current.getAttribute(name) === newValue && !own?.has(name)) continue;
    // The user decides whether these elements are open.
    if (name === "open" && "open" in current) continue;
    if (name === "data-live" || name === "data-stale") continue;
    if (own?.has(name)) {
      if (own.get(name) === newValue) continue;
      own.delete(name);
    }
    if (newValue === null) current.removeAttribute(name);
    else current.setAttributeNode(node.getAttributeNode(name).cloneNode());
  }
}

// Moves a node, without losing focus, playback or scroll position if the browser can do so.
function move(parent, node, next) {
  (parent.moveBefore ?? parent.insertBefore).call(parent, node, next);
}

function idOf(node) {
  // Not `node.id`, because a form field with that name would hide it.
  return node.getAttribute?.("id");
}

function tagKey(element) {
  return element.namespaceURI + element.localName;
}

// Nodes with the same key may match.
function matchKey(node) {
  if (!(node instanceof Element)) return node.nodeName;
  // Controls without typed text are distinguished by their value.
  const valueAttribute = /^(checkbox|radio|hidden)$/.test(node.type) && "value";
  return [tagKey(node), ...["id", "name", "type", "rel", valueAttribute].map((name) => node.getAttribute(name))].join();
}

function isUnchanged(current, node) {
  if (!current.isEqualNode(node)) return false;
  const all = within([current], "*");
  // The server has confirmed the local changes.
  for (const element of all) localChanges.delete(element);
  // `isEqualNode` does not compare the content of a template.
  return !all.some((element) => element.localName === "template");
}

// Maps ids to elements. The value is null for a repeated id, whose elements match by key only.
function elementsById(nodes) {
  const found = new Map();
  // Excludes descendants of elements that stay unchanged.
  for (const element of within(nodes, "[id]:not([data-keep] *,.is-sending *)")) {
    const id = idOf(element);
    if (found.has(id)) console.warn(`bine: id "${id}" more than once`);
    found.set(id, found.has(id) ? null : element);
  }
  return found;
}

// Returns the elements that match the selector, among these nodes and inside them.
export function within(nodes, selector) {
  const elements = nodes.filter((node) => node instanceof Element);
  return elements.flatMap((node) => [...(matches.call(node, selector) ? [node] : []), ...node.querySelectorAll(selector)]);
}

// Returns the largest set of nodes that can stay in place while `kept`, some of `old`, are put into
// this order (the longest increasing subsequence of their positions).
function longestIncreasing(old, kept) {
  const places = new Map(old.map((node, place) => [node, place]));
  // The last node of the best subsequence of each length, and the predecessor of each node.
  const ends = [];
  const before = new Map();
  for (const node of kept) {
    // Subsequences are short or nearly in order, so this search is fast.
    const shorter = ends.findLastIndex((end) => places.get(end) < places.get(node));
    before.set(node, ends[shorter]);
    ends[shorter + 1] = node;
  }
  const staying = new Set();
  for (let node = ends.at(-1); node; node = before.get(node)) staying.add(node);
  return staying;
}

// Records the user's changes to controls, and the focus. The returned function restores both, and
// sets the server's new value on controls that the user has not changed.
function captureControls(nodes) {
  const [edited, unchangedControls] = [new Map(), []];
  for (const control of within(nodes, "input,select,textarea")) {
    if (controlState(control) === controlState(defaultControl(control))) unchangedControls.push(control);
    else edited.set(control, controlState(control));
  }
  const focused = document.activeElement;
  return () => {
    for (const control of unchangedControls) if (control.isConnected) setControl(control, controlState(defaultControl(control)));
    for (const [control, value] of edited) if (control.isConnected) setControl(control, value);
    // Restoring the focus also restores the cursor of a field.
    focused?.focus({ preventScroll: true });
  };
}

// Returns the control as the server's markup alone defines it.
function defaultControl(control) {
  if (control.localName === "input" && control.value === control.defaultValue && control.checked === control.defaultChecked) return control;
  return parse(control.outerHTML, document.body).firstChild;
}

function controlState(control) {
  if (control.selectedOptions) return [...control.selectedOptions].map((option) => option.value).join("\n");
  return /^(checkbox|radio)$/.test(control.type) ? control.checked : control.value;
}

function setControl(control, wanted) {
  if (controlState(control) === wanted) return;
  if (control.selectedOptions) {
    const values = wanted.split("\n");
    for (const option of control.options) option.selected = values.includes(option.value);
  } else if (/^(checkbox|radio)$/.test(control.type)) {
    control.checked = wanted;
  } else if (control.type !== "file") {
    control.value = wanted;
  }
}
