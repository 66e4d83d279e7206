//! Decides how `tree!` puts a tree together: one call for each tag and each hole, in their order.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use bine_vocabulary::Context;

use super::{Element, Node, RawMarkup, Tree, value};
use crate::attribute::Address;
use crate::{AttributeValue, CodeValue, Writer};

/// A tree that is being put together; `tree!` writes the calls. Names in them were checked by the compiler.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Builder {
    /// What is not in an element that is still open.
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
        self.open.push(Element::made(Cow::Borrowed(name)));
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

    /// Adds what was built before.
    pub fn kept(&mut self, tree: &Tree) {
        tree.roots().iter().for_each(|node| self.push(node.clone()));
    }

    pub fn text(&mut self, text: &'static str) {
        self.push(Node::Text(Cow::Borrowed(text)));
    }

    /// What stands in the source of `<script>` and `<style>`.
    pub fn code_text(&mut self, code: &'static str) {
        self.push(Node::Raw(RawMarkup::of_source(code.into())));
    }

    /// An attribute whose value stands in the source.
    pub fn constant(&mut self, name: &'static str, text: &'static str) {
        self.put(name, Some(Cow::Borrowed(text)));
    }

    pub fn attribute(&mut self, name: &'static str, value: &(impl AttributeValue + ?Sized)) {
        self.put(name, value::of(Context::Text, value).map(Cow::Owned));
    }

    pub fn link<Kind>(&mut self, name: &'static str, value: &(impl Address<Kind> + ?Sized)) {
        self.put(name, value::of(Context::Link, value).map(Cow::Owned));
    }

    pub fn image<Kind>(&mut self, name: &'static str, value: &(impl Address<Kind> + ?Sized)) {
        self.put(name, value::of(Context::Image, value).map(Cow::Owned));
    }

    pub fn code(&mut self, name: &'static str, value: &(impl CodeValue + ?Sized)) {
        self.put(name, value::of_code(value).map(Cow::Owned));
    }

    pub fn fill_raw(&mut self, value: &(impl crate::RawText + ?Sized)) {
        let code = value::written(|writer| writer.fill_raw(value));
        self.push(Node::Raw(RawMarkup::of_source(code.into())));
    }

    /// Whatever is written, as text or as markup.
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
