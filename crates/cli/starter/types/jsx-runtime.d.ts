// The types of markup in TSX. The server compiles markup itself and runs no function of this module.

import type { Elements } from "./elements.d.ts";
import type { Absent, Child, Markup, Trusted } from "./markup.d.ts";

/** The events of Bine. */
interface OwnEvents {
  /** A service has taken the form, and answered without a page. */
  done: Event;
  /**
   * The element came into the page: with the page, or with a patch. If the handler returns a function,
   * it runs when the element leaves the page.
   */
  appear: Event;
}
type Events = GlobalEventHandlersEventMap & OwnEvents;

/** The handlers of an element. A function runs in the browser. */
type Handlers<Of> = {
  [Name in keyof Events as `on${Name}`]?:
    | ((event: Events[Name] & { readonly currentTarget: Of }) => unknown)
    | string
    | Trusted
    | Absent;
};
type NativeElement<Name> = Name extends keyof HTMLElementTagNameMap
  ? HTMLElementTagNameMap[Name]
  : Name extends keyof SVGElementTagNameMap
    ? SVGElementTagNameMap[Name]
    : HTMLElement;
type NativeElements = { [Name in keyof Elements]: Elements[Name] & Handlers<NativeElement<Name>> };

export namespace JSX {
  /** The value of a piece of markup. */
  type Element = Markup;
  /** A tag: the name of an element, or a function that returns content. */
  type ElementType = keyof IntrinsicElements | ((properties: any) => Child);
  interface ElementChildrenAttribute {
    children: {};
  }
  interface IntrinsicAttributes {}
  interface IntrinsicElements extends NativeElements {
    /** A custom element: its name has a dash. */
    [name: `${string}-${string}`]: { [attribute: string]: unknown; children?: Child };
  }
}

export declare const Fragment: (properties: { children?: Child }) => Markup;
export declare function jsx(tag: unknown, properties: unknown): Markup;
export declare function jsxs(tag: unknown, properties: unknown): Markup;
