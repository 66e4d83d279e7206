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
//! | `$shape` | `(steps)`: the steps that build a tree, see below | a shape, opaque, for `$tree`. Called as `$markup` is |
//! | `$tree` | `(shape, ...values)`: a value for each hole | a tree of nodes; written, it is the markup of `$html`, except for the line feed that a parser drops after `<pre>` |
//! | `$live` | `(hash, content)`: the name of a region ([`Region::hash`]) and a function that returns its markup; an `async` function if the content waits, and then the module awaits the result | markup: the region with its marks. The host may record what `content` reads, or call it alone to refresh the region |
//! | `$row` | `(template, values)`: for each hole of the template the name of a column, or the position of a captured value | a row template, opaque. Called once, when the module is loaded |
//! | `$rows` | `(row, list, method, limit, each, ...captured)` | `list.map(each)` if `method` is `map`, or else `list[method](limit).map(each)` (`list.all().map(each)`), as the value of a hole. See [Rows](#rows) |
//!
//! **Markup is not a string.** It is a value that only `$html` and `$live` make (in a native run-time
//! an object of a class without constructor), and the only value that a hole writes unescaped. A
//! string is always escaped, so no text of a visitor becomes markup by accident. `raw(text)` of
//! `bine` makes a trusted text, a third kind of value, which is not markup either.
//!
//! ## Trees
//!
//! All markup within the call of `tree` of `bine` is built by `$tree`. A step of its shape begins
//! with a character for its kind; a hole is one of the kinds below, except `h`.
//!
//! | step | meaning |
//! |---|---|
//! | `!` | `<!DOCTYPE html>` |
//! | `<` name | opens an element; the steps of its attributes follow |
//! | `.` name, space, value | a constant attribute |
//! | `'` text | constant text |
//! | `"` text | constant content of `<script>` or `<style>` |
//! | `>` | closes the element |
//!
//! A tree has no `<Live>`: it is built once.
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
//! | `v` places | the values that the handlers of an element capture, after a line for each: line, colon, column, space, expression | an array of plain data, written as JSON in the attribute `data-with`. If a value is `undefined`, the JSON is an object with the positions as keys, without it |
//! | `c` name | `style`, `srcdoc` and constant handlers | only trusted text, escaped |
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
//! ## Rows
//!
//! `{list.map((row) => <li>{row.text}</li>)}` becomes a call of `$rows` if the callback is an arrow
//! function with one parameter whose result is one element, and each hole in it is `row.column`, or a
//! variable that has its value before the list is read: a parameter, or a variable of the same function
//! that is declared before. A list may also be `query.newest(n)`, `.oldest(n)`, `.list(n)` or `.all()`.
//! Such a callback has no effect, and nothing else sees the list, so a run-time may write the rows
//! itself, by the row template; the markup and the exceptions must be those of the callback. At most
//! 4 variables are captured.
//!
//! # Handlers
//!
//! A function at `on..` of an element runs in the browser: it leaves the code and becomes part of
//! [`Module::browser`]. The element gets an attribute `data-on` with `click: run URL 3` for each, and
//! ` now` after it if the function decides about its event while the event is dispatched. The host calls
//! [`Module::set_browser_url`].
//!
//! The function in a call `browser(..)` leaves the code in the same way. The call becomes
//! `browser(url, index, now, values, places)`: the place of the function, `1` if it decides about its event
//! and else `0`, the array of captured values, and their places as in a hole of kind `v`. Its result is a
//! handler of any element: `onclick={expression}` becomes ` data-on-click` with the text that
//! `$handler(expression)` of `bine:runtime` returns, and the rule `click: run`. The text is the JSON of
//! `[url, index, now, values]`. `$handler` returns `null` for `null`, `undefined` and `false`, and throws a
//! `TypeError` for anything else.
//!
//! # What the check of markup sees
//!
//! Markup in a tag, in `a && <b />`, `a ? <b /> : <c />` and in the result of `list.map(..)` is checked
//! as part of the element around it, so that an `<li>` outside a list is an error. The result of a
//! component and other expressions may be any content.
#![forbid(unsafe_code)]

mod browser;
mod compile;
mod diagnostic;
mod edits;
mod erase;
mod facts;
mod link;
mod markup;
mod scan;
mod service_calls;
mod shape;
mod source;
mod text;

pub use browser::{
    BrowserFunction, BrowserImport, BrowserModule, BrowserSource, browser_globals, is_browser_file,
};
pub use compile::{MAX_NESTING, MAX_SOURCE, Module, compile};
pub use diagnostic::Diagnostic;
pub use edits::ColumnMap;
pub use facts::{
    ChangedVariable, Export, ExportKind, Facts, Import, ImportKind, NamedExport, Region, Service,
    Table,
};
pub use link::{BrowserHost, BrowserLinker, browser_hash};
pub use service_calls::{CallArgument, CallArguments, LiteralKind, ServiceCall};
pub use shape::{Field, Literal, Shape};
pub use source::Position;

/// The reference implementation of `bine:runtime`, in JavaScript. See
/// [the contract](self#the-contract-with-the-run-time).
pub const REFERENCE_RUNTIME: &str = include_str!("runtime.js");
