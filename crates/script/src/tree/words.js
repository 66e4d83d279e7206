// Trees of markup: the methods of their class, and the words that make them.
import * as native from "bine:internal/tree-functions";
export {
  expand, fill as $tree, isDocument, isTree, shape as $shape,
} from "bine:internal/tree-functions";

/** A tree of markup that is written in the call, or of text and lists. */
export function tree(...content) {
  if (content.length !== 1) {
    throw new TypeError("`tree` takes one piece of markup, as in tree(<p>Hello</p>)");
  }
  return native.tree(content[0]);
}

/** An element whose name is known only here. */
export const element = (name, attributes, ...content) => native.element(name, attributes, content);

/** A kind of node: `write` runs whenever a tree with such a node is written. */
export function nodeKind(write) {
  const kind = (data) =>
    native.node((...format) => (format.length === 0 ? [kind, data] : write(data, format[0])));
  return kind;
}

const WRITER = ["elements", "text", "comment", "node"];

/** The functions of a writer, checked. */
function writerOf(writer) {
  const usage = "a writer is an object, as in tree.write({ elements: { \"a[href]\": (link, content) => content } })";
  if (typeof writer !== "object" || writer === null) throw new TypeError(usage);
  for (const [name, value] of Object.entries(writer)) {
    if (!WRITER.includes(name)) {
      throw new TypeError(`a writer has \`elements\`, \`text\`, \`comment\` and \`node\`, but no \`${name}\``);
    }
    if (name !== "elements" && value !== undefined && typeof value !== "function") {
      throw new TypeError(`\`${name}\` of a writer is a function`);
    }
  }
  const own = (name) => (Object.hasOwn(writer, name) ? writer[name] : undefined);
  const elements = own("elements") ?? {};
  if (typeof elements !== "object") throw new TypeError(usage);
  const selectors = Object.keys(elements);
  if (selectors.length > 1000) throw new RangeError("a writer has at most 1000 selectors");
  const functions = selectors.map((selector) => {
    const run = elements[selector];
    if (typeof run !== "function") {
      throw new TypeError(`the value of the selector "${selector}" in a writer is a function`);
    }
    return run;
  });
  return [selectors, functions, own("text"), own("comment"), own("node")];
}

const prototype = native.prototype();

const methods = class {
  /** `structuredClone` copies plain objects only: `tree.clone()` copies a tree. */
  get [Symbol.toStringTag]() {
    return "Tree";
  }
  get kind() {
    return native.kind(this);
  }
  get name() {
    return native.name(this);
  }
  find(selector) {
    return native.find(this, selector);
  }
  findAll(selector) {
    return native.findAll(this, selector);
  }
  *walk() {
    const cursor = native.beginWalk(this);
    for (let node; (node = native.step(cursor, this)) !== undefined; ) yield node;
  }
  children() {
    return native.children(this);
  }
  attribute(name) {
    return native.attribute(this, name);
  }
  attributes() {
    return native.attributes(this);
  }
  text() {
    return native.text(this);
  }
  findings() {
    return native.findings(this);
  }
  insert(selector, place, nodes) {
    return native.insert(this, selector, place, nodes);
  }
  replace(selector, nodes) {
    return native.replace(this, selector, nodes);
  }
  remove(selector) {
    return native.remove(this, selector);
  }
  change(selector, run) {
    return native.change(this, selector, run);
  }
  setAttribute(name, value) {
    return native.setAttribute(this, name, value);
  }
  removeAttribute(name) {
    return native.removeAttribute(this, name);
  }
  append(nodes) {
    return native.append(this, nodes);
  }
  clone() {
    return native.clone(this);
  }
  write(writer) {
    return native.write(this, ...writerOf(writer));
  }
  tableOfContents() {
    return native.tableOfContents(this);
  }
  plainText() {
    return native.plainText(this);
  }
  xhtml() {
    return native.xhtml(this);
  }
  toString() {
    return native.html(this);
  }
};

const { constructor: _, ...descriptors } = Object.getOwnPropertyDescriptors(methods.prototype);
Object.freeze(Object.defineProperties(prototype, descriptors));
