//! Decides what markup says of itself: the kind of content it is, and so where it may stand.
//!
//! HTML lets `<p>` hold what runs in a line of text, `<div>` nearly everything, and `<ul>` only what is made for it
//! (HTML 3.2.5.2). Between functions this is carried by types: a component returns `impl Html<Phrasing>`,
//! `impl Html<Flow>` or `impl Html<Parts>`, and the hole it stands in takes it or does not.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::frozen::Frozen;
use crate::page::Page;
use crate::tree::{Element, Node, Tree};

/// What stands in a body: `<p>`, `<div>`, `<ul>`, and whatever is [`Phrasing`].
#[derive(Debug)]
pub enum Flow {}

/// What runs in a line of text: text, `<b>`, `<a>`, `<img>`.
#[derive(Debug)]
pub enum Phrasing {}

/// What has its place in certain elements only: `<li>`, `<tr>`, `<option>`, `<title>`.
#[derive(Debug)]
pub enum Parts {}

/// What may stand in text and among parts: `<script>`, `<template>`.
#[derive(Debug)]
#[doc(hidden)]
pub enum Anywhere {}

/// A whole page, which stands in no other.
#[derive(Debug)]
#[doc(hidden)]
pub enum Whole {}

/// The same with `<html>` around all of it.
#[derive(Debug)]
#[doc(hidden)]
pub enum Document {}

/// What stands outermost in a page.
#[doc(hidden)]
pub trait Outermost {
    /// Whether it is one element, `<html>`: then readers of XML find a document too.
    const IS_DOCUMENT: bool = false;
    /// Whether it stands in no body.
    const IS_WHOLE: bool = false;
}

impl Outermost for Flow {}
impl Outermost for Phrasing {}
impl Outermost for Parts {}
impl Outermost for Anywhere {}

impl Outermost for Whole {
    const IS_WHOLE: bool = true;
}

impl Outermost for Document {
    const IS_DOCUMENT: bool = true;
    const IS_WHOLE: bool = true;
}

/// Markup of a known kind of content: what a component returns, and takes.
///
/// `html!` sees from its outermost elements which it is, and what it makes has this trait for all of `Content` that
/// fit: text and `<b>` are `Html<Phrasing>` and `Html<Flow>`, a `<p>` is `Html<Flow>` alone, an `<li>` `Html<Parts>`.
/// A whole page is a [`Page`] and nothing else. `Vec` and `Box<dyn Html<Flow>>` are what they hold.
#[diagnostic::on_unimplemented(
    message = "this is not `Html<{Content}>`",
    label = "`{Self}` is something else",
    note = "what stands outermost decides: text and `<b>`, `<a>`, `<img>` are `Html<Phrasing>` and `Html<Flow>`; `<p>`, `<div>`, \
            `<ul>`, and holes alone, are `Html<Flow>`; `<li>`, `<tr>`, `<option>`, `<title>` are `Html<Parts>`",
    note = "text is made `Html<Flow>` by `html!({{text}})`; in a hole it stands by itself"
)]
pub trait Html<Content: Model>: Stands<Content::Widest> {}

/// A kind of content.
#[doc(hidden)]
pub trait Model {
    /// The widest kind that it is counted to. By this a hole for flow content takes what is only known to be
    /// phrasing content: no trait can have itself, with another parameter, above it.
    type Widest;
}

impl Model for Flow {
    type Widest = Flow;
}

impl Model for Phrasing {
    type Widest = Flow;
}

impl Model for Parts {
    type Widest = Parts;
}

/// What may stand where that kind of content may.
#[doc(hidden)]
pub trait Stands<Content>: Piece {}

/// A page that may stand in another.
#[doc(hidden)]
pub trait Piece: Page {}

macro_rules! carried {
    ($($of:ident [$($bound:tt)*])*) => {$(
        impl<P: $($bound)*> Piece for $of<P> where P: Piece {}
        impl<P: $($bound)*, Content> Stands<Content> for $of<P> where P: Stands<Content> {}
        #[diagnostic::do_not_recommend]
        impl<P: $($bound)*, Content: Model> Html<Content> for $of<P> where P: Html<Content> {}
    )*};
}

carried!(Vec[Sized] Box[?Sized]);

/// What of a tree or of what is frozen may stand where is only known when it is made.
macro_rules! unknown {
    ($($of:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Piece for $of {}
        #[diagnostic::do_not_recommend]
        impl<Content> Stands<Content> for $of {}
        #[diagnostic::do_not_recommend]
        impl<Content: Model> Html<Content> for $of {}
    )*};
}

unknown!(Tree Element Node Frozen);
