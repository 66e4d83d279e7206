//! Content kinds of markup as types, and the places where each kind is allowed.
//!
//! HTML allows phrasing content in `<p>`, flow content in `<div>`, and only list items in `<ul>`
//! (HTML 3.2.5.2). Types carry this rule across functions: a component returns
//! `impl Html<Phrasing>`, `impl Html<Flow>` or `impl Html<Parts>`, and a hole accepts the kinds
//! that its parent element allows.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::frozen::Frozen;
use crate::page::Page;
use crate::tree::{Element, Node, Tree};

/// Content of a body: `<p>`, `<div>`, `<ul>`, and all [`Phrasing`] content.
#[derive(Debug)]
pub enum Flow {}

/// Content of a line of text: text, `<b>`, `<a>`, `<img>`.
#[derive(Debug)]
pub enum Phrasing {}

/// Content that is allowed in certain parents only: `<li>`, `<tr>`, `<option>`, `<title>`.
#[derive(Debug)]
pub enum Parts {}

/// Content that is allowed both in text and among [`Parts`]: `<script>`, `<template>`.
#[derive(Debug)]
#[doc(hidden)]
pub enum ScriptSupporting {}

/// A whole page without `<html>`. No other page can contain it.
#[derive(Debug)]
#[doc(hidden)]
pub enum Whole {}

/// A whole page inside `<html>`.
#[derive(Debug)]
#[doc(hidden)]
pub enum Document {}

/// The kind of a page's outermost content.
#[doc(hidden)]
pub trait RootContent {
    /// Whether the page is a single `<html>` element, and so a document for XML parsers too.
    const IS_DOCUMENT: bool = false;
    /// Whether the page cannot be part of a body.
    const IS_WHOLE: bool = false;
}

impl RootContent for Flow {}
impl RootContent for Phrasing {}
impl RootContent for Parts {}
impl RootContent for ScriptSupporting {}

impl RootContent for Whole {
    const IS_WHOLE: bool = true;
}

impl RootContent for Document {
    const IS_DOCUMENT: bool = true;
    const IS_WHOLE: bool = true;
}

/// Markup of a known kind of content: the return type and the parameter type of components.
///
/// `html!` derives the kind from the outermost elements, and its result implements this trait for
/// every `Content` that fits: text and `<b>` are `Html<Phrasing>` and `Html<Flow>`, a `<p>` is only
/// `Html<Flow>`, an `<li>` is `Html<Parts>`. A whole page is only a [`Page`]. `Vec` and
/// `Box<dyn Html<Flow>>` have the kind of their items.
#[diagnostic::on_unimplemented(
    message = "this is not `Html<{Content}>`",
    label = "`{Self}` is not markup of this kind",
    note = "the outermost elements decide: text and `<b>`, `<a>`, `<img>` are `Html<Phrasing>` and `Html<Flow>`; `<p>`, `<div>`, \
            `<ul>`, and holes alone, are `Html<Flow>`; `<li>`, `<tr>`, `<option>`, `<title>` are `Html<Parts>`",
    note = "convert text to `Html<Flow>` with `html!({{text}})`; a hole accepts it directly"
)]
pub trait Html<Content: ContentKind>: FitsIn<Content::Widest> {}

/// A kind of content.
#[doc(hidden)]
pub trait ContentKind {
    /// The widest kind that includes this one. It lets a hole for flow content accept a value that
    /// is only known to be phrasing content: a trait cannot be its own supertrait with another
    /// parameter.
    type Widest;
}

impl ContentKind for Flow {
    type Widest = Flow;
}

impl ContentKind for Phrasing {
    type Widest = Flow;
}

impl ContentKind for Parts {
    type Widest = Parts;
}

/// A fragment that is allowed where `Content` is allowed.
#[doc(hidden)]
pub trait FitsIn<Content>: Fragment {}

/// A page that another page can contain.
#[doc(hidden)]
pub trait Fragment: Page {}

macro_rules! impl_for_containers {
    ($($of:ident [$($bound:tt)*])*) => {$(
        impl<P: $($bound)*> Fragment for $of<P> where P: Fragment {}
        impl<P: $($bound)*, Content> FitsIn<Content> for $of<P> where P: FitsIn<Content> {}
        #[diagnostic::do_not_recommend]
        impl<P: $($bound)*, Content: ContentKind> Html<Content> for $of<P> where P: Html<Content> {}
    )*};
}

impl_for_containers!(Vec[Sized] Box[?Sized]);

/// Implements every kind for types whose content is known only at run time.
macro_rules! impl_every_kind {
    ($($of:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Fragment for $of {}
        #[diagnostic::do_not_recommend]
        impl<Content> FitsIn<Content> for $of {}
        #[diagnostic::do_not_recommend]
        impl<Content: ContentKind> Html<Content> for $of {}
    )*};
}

impl_every_kind!(Tree Element Node Frozen);
