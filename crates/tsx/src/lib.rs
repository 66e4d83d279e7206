//! The compiler of TSX: one module of TypeScript with markup becomes one module of JavaScript.
//!
//! [`compile`] is a pure function. It erases types, turns markup into calls of the run-time, checks
//! the markup with the messages of `html!`, and collects the [`Facts`] that the host needs. Every
//! line of the code is the same line of the source; [`Module::source_position`] maps columns.
//!
//! ```
//! let source = "export default ({ name }: { name: string }) => <h1>Hello {name}</h1>;";
//! let module = bine_tsx::compile("hello.tsx", source).expect("a valid module");
//! assert!(module.code.ends_with("export default ({ name }                  ) => $html($m0,name);"));
//!
//! let errors = bine_tsx::compile("hello.tsx", "export default () => <buton>a</buton>;").unwrap_err();
//! assert_eq!((errors[0].line, errors[0].column), (1, 23));
//! ```
//!
//! # The contract with the run-time
//!
//! A module with markup begins with an import from `bine:runtime`, on its first line and under names
//! that the source does not contain. The host provides that module. [`REFERENCE_RUNTIME`] is an
//! implementation in JavaScript; a native one must write the same bytes and reject the same values.
//!
//! | name | arguments | result |
//! |---|---|---|
//! | `$markup` | `(pieces, holes)`: constant strings of markup, one more than holes, and the kinds of the holes | a template, opaque. Called once for each piece of markup, when the module is loaded |
//! | `$html` | `(template, ...values)`: a value for each hole, except for those of kind `h` | markup |
//! | `$live` | `(hash, content)`: the name of a region ([`Region::hash`]) and a function that returns its markup; an `async` function if the content waits, and then the module awaits the result | markup: the region with its marks. The host may record what `content` reads, or call it alone to refresh the region |
//!
//! **Markup is not a string.** It is a value that only `$html` and `$live` make (in a native run-time
//! an object of a class without constructor), and the only value that a hole writes unescaped. A
//! string is always escaped, so no text of a visitor becomes markup by accident. `raw(text)` of
//! `bine` makes a trusted text, a third kind of value, which is not markup either.
//!
//! ## Kinds of holes
//!
//! | kind | place | value |
//! |---|---|---|
//! | `t` | text | see below |
//! | `u` | text in an element that takes text only, as `<textarea>` | as `t`, without markup and trusted text |
//! | `x` | content of `<script>` and `<style>` | only trusted text, written as it is |
//! | `h` | the end of `<head>` | none: the host writes its own markup there, if it has some |
//! | `a` name | an attribute with text | see below |
//! | `l` name | an attribute with a URL | as `a`; a URL that a browser would run becomes `about:invalid#refused`. Also trusted text, which is not filtered, and a service, which is its URL |
//! | `i` name | an attribute with the URL of an image | as `l`, and `data:image/` is allowed |
//! | `p` `action` | the `action` of a `<form>` without `method` | as `l`; a service adds ` method="post"` |
//! | `c` name | `style`, `srcdoc` and handlers | only trusted text, escaped |
//! | `s` element names | attributes of an object | its own enumerable properties; those of `names` were written in the tag and are skipped. The context of each follows from `bine_vocabulary::Context`. `children` and names with a space, a control, a quote, `<`, `>`, `/`, `=` or `&` are an error |
//!
//! The piece before an attribute ends before its space: ` name="value"` belongs to the hole, because a
//! value may omit the attribute.
//!
//! ## Values
//!
//! | value | in text | in an attribute |
//! |---|---|---|
//! | string | escaped (`&`, `<`, `>`, `"`, `'`) | escaped |
//! | number, bigint | as Rust writes it: the shortest decimal that reads back as the number (either, if two are equally near), no exponent, `NaN`, `inf`, `-0` | the same |
//! | `null`, `undefined`, `false` | nothing | no attribute |
//! | `true` | nothing | the bare attribute, `name=""` |
//! | array | its items in order, at most 64 levels | its strings, separated by spaces, without `null`, `undefined` and `false`; no attribute if there are none |
//! | markup | as it is | an error |
//! | trusted text | as it is, with `data-on` disabled | an error, except in the kinds above |
//! | anything else | a `TypeError` | a `TypeError` |
//!
//! Half of a surrogate pair becomes U+FFFD, as in all text that leaves the engine.
//!
//! ## Components
//!
//! `<Card title="a" n={1} {...more}>text</Card>` is the call
//! `Card({"title":"a","n":1,...more,children:..})`. Children that are one hole are passed as that value,
//! so a function may be a child; other children are one value of markup. A component without children
//! gets no `children`. The result is the value of a hole of kind `t` or `u`.
//!
//! # What the check of markup sees
//!
//! Markup in a tag, in `a && <b />`, `a ? <b /> : <c />` and in the result of `list.map(..)` is checked
//! as part of the element around it, so that an `<li>` outside a list is an error. The result of a
//! component and other expressions may be any content.
#![forbid(unsafe_code)]

mod compile;
mod diagnostic;
mod edits;
mod erase;
mod facts;
mod markup;
mod scan;
mod shape;
mod source;
mod text;

pub use compile::{MAX_NESTING, MAX_SOURCE, Module, compile};
pub use diagnostic::Diagnostic;
pub use edits::ColumnMap;
pub use facts::{
    ChangedVariable, Export, ExportKind, Facts, Import, ImportKind, Region, Service, Table,
};
pub use shape::{Field, Literal, Shape};
pub use source::Position;

/// The reference implementation of `bine:runtime`, in JavaScript. See
/// [the contract](self#the-contract-with-the-run-time).
pub const REFERENCE_RUNTIME: &str = include_str!("runtime.js");
