//! The procedural macros of Bine.
//!
//! Each macro converts the compiler's tokens to plain data, calls a pure function and converts the
//! result back. Only `bridge` uses `proc_macro`, so tests of all other modules run on plain text.
//!
//! | module | responsibility |
//! |---|---|
//! | `token` | markup as tokens, independent of the compiler |
//! | `parse`, `control` | parser of markup, into the syntax tree of `tree` |
//! | `check` | validation against the HTML standard, by the shared checks of `bine-markup` |
//! | `emit`, `grow` | code for `html!` and for `tree!` |
//! | `place`, `context` | values that a hole accepts in text and in an attribute |
//! | `endpoint`, `service`, `action` | `#[page]`, `#[service]` and `action!` |
//! | `layout`, `several_pages` | functions with several `html!` |
//! | `reads` | the tables that a page or a service reads |
//! | `access` | the access rule of a service or an action |
//! | `table`, `column` | `#[derive(Table)]` and `#[derive(Enum)]` |
//! | `css` | `css!` and `css_file!` |
//! | `browser_file` | `browser_file!` |
//! | `module_head` | `mod name;` at the start of `css!`, `css_file!` and `browser_file!` |
//! | `assets` | `bundled_files!` |
#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod access;
mod action;
mod assets;
mod bridge;
#[cfg(feature = "browser")]
mod browser_file;
mod check;
mod column;
mod context;
mod css;
mod emit;
mod endpoint;
mod expansion;
mod fault;
mod function;
mod grow;
mod item;
mod layout;
mod literal;
mod locals;
mod module_head;
mod parse;
mod place;
mod polyglot;
mod reads;
mod service;
mod several_pages;
mod stored;
mod table;
mod token;
mod tree;

#[cfg(test)]
mod sample;

/// The implementation of `html!`: a bracket with the path of the `bine` crate, then markup.
#[doc(hidden)]
#[proc_macro]
pub fn __html(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    source.write(&emit::html(&source.streams[0]))
}

/// The implementation of `action!`: a bracket with the path of the `bine` crate, then an action.
#[doc(hidden)]
#[proc_macro]
pub fn __action(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    source.write(&action::action(&source.streams[0]))
}

/// The implementation of `css!`: a bracket with the path of the `bine` crate, then a style sheet.
#[doc(hidden)]
#[proc_macro]
pub fn __css(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    let site =
        css::Site { file: &source.file(), read: &|token, path| source.read_relative(token, path) };
    source.write(&css::css(&source.streams[0], &site))
}

/// The implementation of `css_file!`: a bracket with the path of the `bine` crate, then a file's
/// path.
#[doc(hidden)]
#[proc_macro]
pub fn __css_file(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    let site =
        css::Site { file: &source.file(), read: &|token, path| source.read_relative(token, path) };
    source.write(&css::css_file(&source.streams[0], &site))
}

/// The implementation of `browser_file!`: a bracket with the path of the `bine` crate, `mod name =`, then
/// a file's path.
#[cfg(feature = "browser")]
#[doc(hidden)]
#[proc_macro]
pub fn __browser_file(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    let read = |token: &token::Token, path: &str| source.read_relative(token, path);
    source.write(&browser_file::browser_file(&source.streams[0], &read))
}

/// The implementation of `bundled_files!`: the path of a folder.
#[doc(hidden)]
#[proc_macro]
pub fn __bundled_files(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    let list = |token: &token::Token, path: &str| source.list_relative(token, path);
    source.write(&assets::bundled_files(&source.streams[0], &list))
}

/// The implementation of `tree!`: a bracket with the path of the `bine` crate, then markup.
#[doc(hidden)]
#[proc_macro]
pub fn __tree(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    source.write(&grow::tree(&source.streams[0]))
}

/// Makes a function a page: `#[page("/path")]` on `async fn name(argument: Type, ..) -> Page`.
///
/// An `async fn` runs on the connection's event loop and must not block. A plain `fn` runs on a
/// worker thread and may block. Each argument is extracted from the request by its type and name.
/// `crate = path` after the path names the `bine` crate if it is not at `::bine`.
#[proc_macro_attribute]
pub fn page(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let source = bridge::Source::read([arguments, item]);
    source.write(&endpoint::page(&source.streams[0], &source.streams[1]))
}

/// Lets a layout, or another plain function that returns `impl Page`, have several `html!` as its
/// values: in `if` and `match`, and with `return`. A function with one `html!` needs no attribute.
///
/// `crate = path` names the `bine` crate if it is not at `::bine`.
#[proc_macro_attribute]
pub fn layout(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let source = bridge::Source::read([arguments, item]);
    source.write(&layout::layout(&source.streams[0], &source.streams[1]))
}

/// Makes a function a service: `#[service]` on
/// `fn name(call: &mut Call, argument: Type, ..) -> Result<Type, Error>`.
///
/// A client calls it by POST at `/<crate>/<name>`, with its arguments by name, as JSON or from a
/// form. A `fn` with `call: &mut Call` is a transaction on the program's tables. An `async fn` with
/// `caller: Caller` may await. Either may omit that argument.
///
/// | option | effect |
/// |---|---|
/// | `"/path"` | serves it at another path |
/// | `safe` | allows GET too, with the arguments in the query |
/// | `once` | does not retry after a conflict |
/// | `who = "user"` | only logged-in users may call it |
/// | `who = "anyone"` | everyone may call it |
/// | `who = NAME` | the constant of type `bine::Rule` decides who may call it |
/// | `crate = path` | names the `bine` crate if it is not at `::bine` |
#[proc_macro_attribute]
pub fn service(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let source = bridge::Source::read([arguments, item]);
    source.write(&service::service(&source.streams[0], &source.streams[1]))
}

/// Makes a struct with an `id` the row type of a table: `#[derive(Table)]`.
///
/// Each other field is a column. `#[table(..)]` on a field sets its options: `index`, `unique`,
/// `private`, `length = 1..=80`, `range = 0..=5`, `default = 0`, `was = "old name"`, `on_remove =
/// "cascade"`. On the struct it sets `name = ".."`, `index(a, b)`, `unique(a, b)`, `dropped = ".."`,
/// and `crate = path` if `bine` is not at `::bine`. Every column and every index becomes a constant
/// of the struct: `COLUMN_A`, `BY_A`, `BY_A_B`.
#[proc_macro_derive(Table, attributes(table))]
pub fn table(item: TokenStream) -> TokenStream {
    let source = bridge::Source::read([item]);
    source.write(&table::table(&source.streams[0]))
}

/// Makes an enum without fields a column type, stored by its variants' names: `#[derive(Enum)]`.
#[proc_macro_derive(Enum, attributes(table))]
pub fn word(item: TokenStream) -> TokenStream {
    let source = bridge::Source::read([item]);
    source.write(&table::word(&source.streams[0]))
}
