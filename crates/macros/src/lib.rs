//! Decides nothing itself: it hands the compiler's tokens to the pure half and the result back.
//!
//! `token` is what markup looks like without the compiler; `parse` and `control` read it into the syntax of
//! `tree`; `emit` writes that as a page and `grow` as a tree, and both ask `place` and `context` what a hole in text and
//! in an attribute may hold. `endpoint` does both for `#[page]`, `service` for `#[service]`, `action` for `action!`, `who` for whom the last two are, `css` for style sheets. None of them touches
//! `proc_macro`, so all are tested from plain text; `bridge` alone translates,
//! both ways.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod action;
mod bridge;
mod check;
mod column;
mod context;
mod control;
mod css;
mod emit;
mod endpoint;
mod expansion;
mod fault;
mod function;
mod grow;
mod item;
mod literal;
mod parse;
mod place;
mod polyglot;
mod service;
mod table;
mod token;
mod tree;
mod who;

#[cfg(test)]
mod sample;

/// The inside of `html!`: a bracket with the path of the `bine` crate, then markup.
#[doc(hidden)]
#[proc_macro]
pub fn __html(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    source.write(&emit::html(&source.streams[0]))
}

/// The inside of `action!`: a bracket with the path of the `bine` crate, then an action.
#[doc(hidden)]
#[proc_macro]
pub fn __action(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    source.write(&action::action(&source.streams[0]))
}

/// The inside of `css!`: a bracket with the path of the `bine` crate, then a style sheet.
#[doc(hidden)]
#[proc_macro]
pub fn __css(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    let site =
        css::Site { file: &source.file(), read: &|token, path| source.read_beside(token, path) };
    source.write(&css::css(&source.streams[0], &site))
}

/// The inside of `css_file!`: the same with the path of a file in the place of the style sheet.
#[doc(hidden)]
#[proc_macro]
pub fn __css_file(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    let site =
        css::Site { file: &source.file(), read: &|token, path| source.read_beside(token, path) };
    source.write(&css::css_file(&source.streams[0], &site))
}

/// The inside of `tree!`: as that of `html!`.
#[doc(hidden)]
#[proc_macro]
pub fn __tree(input: TokenStream) -> TokenStream {
    let source = bridge::Source::read([input]);
    source.write(&grow::tree(&source.streams[0]))
}

/// Makes a function a page: `#[page("/path")]` above `async fn name(argument: Type, ..) -> Page`.
///
/// An `async fn` runs on the connection's own loop and must not block; a plain `fn` runs on a worker and may.
/// Each argument is taken from the request by its type, under its own name. `crate = path` after the path says
/// where `bine` is, if not at `::bine`.
#[proc_macro_attribute]
pub fn page(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let source = bridge::Source::read([arguments, item]);
    source.write(&endpoint::page(&source.streams[0], &source.streams[1]))
}

/// Makes a function a service: `#[service]` above `fn name(call: &mut Call, argument: Type, ..) -> Result<Type, Error>`.
///
/// It is called by POST at `/<crate>/<name>`, with its arguments by name, as JSON or from a form. One that takes
/// `call: &mut Call` is a transaction of the program's tables; an `async fn` takes `caller: Caller` and may await; either
/// may take neither. `#[service("/path")]` says another path; `safe` lets it be called by GET too, with the arguments in the
/// query; `once` does not run it again after a conflict; `who = "user"` is for those who have logged in, `who = "anyone"`
/// for all, and `who = NAME` for whom a constant of the type `bine::Rule` says; `crate = path` says where `bine` is, if not
/// at `::bine`.
#[proc_macro_attribute]
pub fn service(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let source = bridge::Source::read([arguments, item]);
    source.write(&service::service(&source.streams[0], &source.streams[1]))
}

/// Makes a struct with an `id` the row of a table: `#[derive(Table)]`.
///
/// Each other field is a column. `#[table(..)]` above it says more: `index`, `unique`, `private`, `length = 1..=80`,
/// `range = 0..=5`, `default = 0`, `was = "old name"`. Above the struct it says `name = ".."`, `index(a, b)`,
/// `unique(a, b)`, `dropped = ".."`, and `crate = path` where `bine` is not at `::bine`. Every index becomes a constant
/// of the struct: `BY_A`, `BY_A_B`.
#[proc_macro_derive(Table, attributes(table))]
pub fn table(item: TokenStream) -> TokenStream {
    let source = bridge::Source::read([item]);
    source.write(&table::table(&source.streams[0]))
}

/// Makes an enum without fields what a column holds, by the names of its variants: `#[derive(Word)]`.
#[proc_macro_derive(Word, attributes(table))]
pub fn word(item: TokenStream) -> TokenStream {
    let source = bridge::Source::read([item]);
    source.write(&table::word(&source.streams[0]))
}
