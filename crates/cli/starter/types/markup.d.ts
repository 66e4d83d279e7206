// What markup may contain, and what the value of an attribute may be.

declare const brand: unique symbol;

/** A piece of markup. It is no string: a string in a page is always escaped. */
export interface Markup {
  readonly [brand]: "markup";
}

/** A text that is written without escapes: the result of `raw`. */
export interface Trusted {
  readonly [brand]: "trusted";
}

/** The address of a service: `action={post}` of a form. */
export interface Addressed {
  readonly [brand]: "service";
}

/** Content that is text: `null`, `undefined`, `true` and `false` are written as no text. */
export type TextChild =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | readonly TextChild[];

/** The content of an element. A list is written item by item. */
export type Child =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | Markup
  | Trusted
  | readonly Child[];

/** No attribute. */
export type Absent = false | null | undefined;
/** The items are joined by spaces. */
export type List = readonly (string | number | Absent)[];
/** The value of an attribute that takes text. */
export type Text = string | number | bigint | List | Absent;
/** The value of an attribute that takes a text or no value. */
export type TextOrBare = Text | true;
/** An attribute without a value: `true` writes it. */
export type Flag = boolean | null | undefined;
/** The value of an attribute that takes a number. */
export type Numeric = number | bigint | `${number}` | Absent;
/** The value of an attribute that takes one of these words. */
export type OneOf<Word extends string> = Word | Absent;
/** The value of an attribute that takes an address. `javascript:` and the like are not written. */
export type Address = string | Addressed | Trusted | Absent;
/** The value of an attribute that a browser runs or applies: a constant, or the result of `raw`. */
export type Code = string | Trusted | Absent;
