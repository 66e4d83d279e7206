// The types of markup in TSX. The server compiles markup itself and runs no function of this module.

import type { Elements } from "./elements.d.ts";
import type { Child, Markup } from "./markup.d.ts";

export namespace JSX {
  /** The value of a piece of markup. */
  type Element = Markup;
  /** A tag: the name of an element, or a function that returns content. */
  type ElementType = keyof IntrinsicElements | ((properties: any) => Child);
  interface ElementChildrenAttribute {
    children: {};
  }
  interface IntrinsicAttributes {}
  interface IntrinsicElements extends Elements {
    /** A custom element: its name has a dash. */
    [name: `${string}-${string}`]: { [attribute: string]: unknown; children?: Child };
  }
}

export declare const Fragment: (properties: { children?: Child }) => Markup;
export declare function jsx(tag: unknown, properties: unknown): Markup;
export declare function jsxs(tag: unknown, properties: unknown): Markup;
