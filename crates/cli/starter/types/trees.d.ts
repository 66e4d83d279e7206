// Trees of markup: what `tree`, `element` and `node` of the module `bine` make.

import type { Context } from "./bine.d.ts";
import type { Child, Markup, Trusted } from "./markup.d.ts";

/** What a method inserts. Markup is written as `tree(<p>..</p>)`, so that selectors find it. */
export type Nodes = Tree | string | number | readonly Nodes[];

/** Text, markup that was written elsewhere, a comment, a doctype, or a node of the script. */
export type LeafKind = "text" | "markup" | "comment" | "doctype" | "node";

/** The place of inserted nodes: before or after an element, or first or last in it. */
export type Place = "before" | "first" | "last" | "after";

/**
 * Markup as a value: a program searches, changes and writes it. A page may show or return it.
 *
 * A tree that is made while a module loads is built once and shared by all requests: to change it,
 * change a `clone()`.
 */
export interface Tree extends Markup {
  /** What the only node of the tree is; `list` for a tree of no node or of several. */
  readonly kind: "element" | LeafKind | "list";
  /** The name of the only element, or null. */
  readonly name: string | null;
  /** The first element that matches a selector, or null. It is for reading. */
  find(selector: string): TreeElement | null;
  /** All elements that match, in the order of the markup. */
  findAll(selector: string): TreeElement[];
  /** All nodes in the order of the markup, each as a tree of one node. */
  walk(): Generator<TreeNode, void, undefined>;
  /** The text of all nodes. */
  text(): string;
  /** Where the tree violates the rules of HTML, in words. */
  findings(): string[];
  /** Inserts nodes at each matching element. Returns the number of matches. */
  insert(selector: string, place: Place, nodes: Nodes): number;
  /** Replaces each matching element. Returns the number of matches. */
  replace(selector: string, nodes: Nodes): number;
  /** Removes each matching element with its content. Returns the number of matches. */
  remove(selector: string): number;
  /**
   * Calls a function with each matching element, which it changes. Returns the number of matches. If
   * the function throws, the tree is unchanged.
   */
  change(selector: string, run: (element: TreeElement) => void): number;
  /** A tree that shares all nodes until one of both is changed. */
  clone(): this;
  /** The markup that a writer makes of the tree. */
  write(writer: TreeWriter): Markup;
  /** A table of contents: lists of links to the headings that have an id. */
  tableOfContents(): Tree;
  /** The text that a reader sees: paragraphs, lists, tables. */
  plainText(): string;
  /** The tree as XML. */
  xhtml(): string;
  /** The tree as HTML. */
  toString(): string;
}

/** A tree of one element. */
export interface TreeElement extends Tree {
  readonly kind: "element";
  readonly name: string;
  /** The nodes in the element, each as a tree of one node. They are for reading. */
  children(): TreeNode[];
  /** The value of an attribute, or null. */
  attribute(name: string): string | null;
  /** The attributes by name. */
  attributes(): Record<string, string>;
  /** Sets an attribute. `false` and `null` remove it; `true` is an attribute without a value. */
  setAttribute(
    name: string,
    value: string | number | boolean | null | undefined | Trusted | readonly string[],
  ): this;
  /** Removes an attribute. Returns whether it was there. */
  removeAttribute(name: string): boolean;
  /** Adds nodes at the end of the content. */
  append(nodes: Nodes): this;
}

/** A tree of one node that is no element. */
export interface TreeLeaf extends Tree {
  readonly kind: LeafKind;
  readonly name: null;
}

/** A tree of one node: `if (node.kind === "element") node.attribute("id")`. */
export type TreeNode = TreeElement | TreeLeaf;

/** For what a node is written. */
export interface NodeTarget {
  /** The request, as the function of a page gets it. */
  readonly ctx: Context;
  /** The format: `text` for `plainText()`, `xhtml` for `xhtml()`, else `html`. */
  readonly format: "html" | "xhtml" | "text";
}

/** A kind of node. In markup it is a component: `<Stars count={3} />`. */
export type NodeKind<Data> = (data: Data) => Tree;

/**
 * Functions that write nodes in a way of their own. A node for which there is none, or for which it
 * returns `undefined`, is written as it is.
 */
export interface TreeWriter {
  /** By selector. The first selector that matches an element decides. `content` is written already. */
  readonly elements?: {
    readonly [selector: string]: (element: TreeElement, content: Markup) => Child;
  };
  readonly text?: (text: string) => Child;
  readonly comment?: (text: string) => Child;
  /** Nodes of the script: `(kind, data) => (kind === Stars ? data.count : undefined)`. */
  readonly node?: (kind: NodeKind<any>, data: any) => Child;
}
