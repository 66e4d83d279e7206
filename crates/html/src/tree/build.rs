//! [`Builder`]: the target of `tree!`, with one call for each tag and each hole, in document order.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use bine_vocabulary::Context;

use super::{Element, Node, RawMarkup, Tree, value};
use crate::attribute::IntoUrl;
use crate::{AttributeValue, CodeValue, Writer};

/// A tree under construction. `tree!` generates the calls, with names that it has checked.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Builder {
    /// The nodes outside all open elements.
    roots: Vec<Node>,
    open: Vec<Element>,
}

#[doc(hidden)]
impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    #[track_caller]
    pub fn open(&mut self, name: &'static str) {
        self.open.push(Element::from_valid_name(Cow::Borrowed(name)));
    }

    pub fn close(&mut self) {
        if let Some(element) = self.open.pop() {
            self.push(element.into());
        }
    }

    pub fn push(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(element) => element.children_mut().push(node),
            None => self.roots.push(node),
        }
    }

    /// Appends the nodes of an existing tree.
    pub fn push_tree(&mut self, tree: &Tree) {
        tree.roots().iter().for_each(|node| self.push(node.clone()));
    }

    pub fn text(&mut self, text: &'static str) {
        self.push(Node::Text(Cow::Borrowed(text)));
    }

    /// Appends the source text of `<script>` and `<style>`.
    pub fn code_text(&mut self, code: &'static str) {
        self.push(Node::Raw(RawMarkup::of_source(code.into())));
    }

    /// Sets an attribute to a constant of the source.
    pub fn constant(&mut self, name: &'static str, text: &'static str) {
        self.put(name, Some(Cow::Borrowed(text)));
    }

    pub fn attribute(&mut self, name: &'static str, value: &(impl AttributeValue + ?Sized)) {
        self.put(name, value::of(Context::Text, value).map(Cow::Owned));
    }

    pub fn link<Kind>(&mut self, name: &'static str, value: &(impl IntoUrl<Kind> + ?Sized)) {
        self.put(name, value::of(Context::Link, value).map(Cow::Owned));
    }

    pub fn image<Kind>(&mut self, name: &'static str, value: &(impl IntoUrl<Kind> + ?Sized)) {
        self.put(name, value::of(Context::Image, value).map(Cow::Owned));
    }

    pub fn code(&mut self, name: &'static str, value: &(impl CodeValue + ?Sized)) {
        self.put(name, value::of_code(value).map(Cow::Owned));
    }

    pub fn fill_raw(&mut self, value: &(impl crate::RawText + ?Sized)) {
        let code = value::written(|writer| writer.fill_raw(value));
        self.push(Node::Raw(RawMarkup::of_source(code.into())));
    }

    /// Appends the output of `write`, as text or as markup.
    pub fn written(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        if let Some(node) = value::node(write) {
            self.push(node);
        }
    }

    pub fn finish(mut self) -> Tree {
        while !self.open.is_empty() {
            self.close();
        }
        Tree::from(self.roots)
    }

    fn put(&mut self, name: &'static str, value: Option<Cow<'static, str>>) {
        if let Some(element) = self.open.last_mut() {
            element.put(Cow::Borrowed(name), value);
        }
    }
}
