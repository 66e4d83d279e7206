//! [`TreeBuilder`]: the nodes of a new tree from values of a script.

use std::borrow::Cow;
use std::rc::Rc;

use bine_html::tree::{Element, Node, RawMarkup};
use bine_html::{Tree, raw};
use rquickjs::Value;

use super::Trees;
use super::charge::{self, Charges};
use super::object::{TreeContent, TreeObject, check_size, reserve};
use crate::markup::{MarkupPart, MarkupParts, code_of};
use crate::quickjs::{self, Kind, Property, Thrown};
use crate::template::{self, Attribute, MAX_DEPTH, Refused, TREE_IN_TEXT};

/// A tree under construction.
pub(super) struct TreeBuilder<'t> {
    trees: &'t Trees,
    roots: Vec<Node>,
    open: Vec<Element>,
    /// Bytes of new nodes, and of the trees that became part of this one.
    own: usize,
    parts: usize,
    charges: Charges,
    /// Whether the parts have more charges than a tree holds.
    has_many_charges: bool,
    has_custom: bool,
}

impl<'t> TreeBuilder<'t> {
    pub(super) const fn new(trees: &'t Trees) -> Self {
        Self {
            trees,
            roots: Vec::new(),
            open: Vec::new(),
            own: 0,
            parts: 0,
            charges: Vec::new(),
            has_many_charges: false,
            has_custom: false,
        }
    }

    /// Opens an element of this size.
    pub(super) fn open(&mut self, element: Element, size: usize) -> Result<(), Refused> {
        self.open.push(element);
        self.spend(size)
    }

    pub(super) fn close(&mut self) {
        if let Some(element) = self.open.pop() {
            self.siblings().push(element.into());
        }
    }

    /// Adds a node of this size.
    pub(super) fn push(&mut self, node: Node, size: usize) -> Result<(), Refused> {
        self.siblings().push(node);
        self.spend(size)
    }

    /// Adds a custom node.
    pub(super) fn push_custom(&mut self, node: Node) -> Result<(), Refused> {
        self.has_custom = true;
        self.push(node, charge::NODE)
    }

    /// Adds the nodes of a tree, which they share from now on.
    pub(super) fn push_tree(&mut self, object: &TreeObject) -> Result<(), Refused> {
        let mut part = object.share();
        self.siblings().extend(part.tree.roots().iter().cloned());
        self.has_custom |= part.has_custom;
        self.has_many_charges |= self.charges.len() + part.charges.len() > charge::MAX_CHARGES;
        if !self.has_many_charges {
            charge::add(&mut self.charges, &part.charges);
        }
        self.parts = self.parts.saturating_add(part.size());
        self.spend(0)
    }

    /// Adds what a hole in the content of an element shows.
    pub(super) fn content(&mut self, value: &Value<'_>) -> Result<(), Refused> {
        self.content_within(value, 0)
    }

    fn content_within(&mut self, value: &Value<'_>, depth: u32) -> Result<(), Refused> {
        let classes = self.trees.classes();
        if quickjs::is_object(value) {
            if let Some(object) = classes.tree.read(value) {
                return self.push_tree(object);
            }
            if let Some(markup) = classes.markup.read(value) {
                return self.markup(markup);
            }
        }
        match quickjs::kind(value) {
            Kind::Text => {
                let text = quickjs::with_text(value, str::to_owned);
                self.text(text.ok_or_else(|| template::refused(value))?)
            }
            Kind::Number => {
                let mut written = Vec::new();
                template::write_number(value, &mut written);
                self.text(String::from_utf8_lossy(&written).into_owned())
            }
            Kind::Undefined | Kind::Null | Kind::Bool => Ok(()),
            Kind::Array if depth < MAX_DEPTH => {
                let length = quickjs::length(value).unwrap_or(0);
                for index in 0..u32::try_from(length).unwrap_or(u32::MAX) {
                    match quickjs::element(value, index) {
                        Ok(Property::Value(element)) => self.content_within(&element, depth + 1)?,
                        Ok(Property::Missing) => {}
                        Ok(Property::Accessor) | Err(Thrown) => {
                            return Err(template::refused(value));
                        }
                    }
                }
                Ok(())
            }
            _ => Err(template::refused(value)),
        }
    }

    /// Adds what a hole in an element with text only shows.
    pub(super) fn plain(&mut self, value: &Value<'_>) -> Result<(), Refused> {
        let classes = self.trees.classes();
        if classes.tree.read(value).is_some() {
            return Err(Refused(TREE_IN_TEXT.to_owned()));
        }
        if quickjs::kind(value) == Kind::Text {
            return self.content(value);
        }
        let mut written = Vec::new();
        template::write_plain(value, classes.markup, &mut written)?;
        self.text(String::from_utf8_lossy(&written).into_owned())
    }

    /// Adds code to `<script>` or `<style>`.
    pub(super) fn code(&mut self, value: &Value<'_>) -> Result<(), Refused> {
        match self.trees.classes().markup.read(value) {
            Some(markup) => self.markup(&code_of(markup)),
            None => Err(Refused(template::VALUE_IN_CODE.to_owned())),
        }
    }

    /// Sets an attribute of the open element to a value, which may omit it.
    pub(super) fn attribute(
        &mut self,
        name: Cow<'static, str>,
        attribute: &Attribute,
        value: &Value<'_>,
    ) -> Result<(), Refused> {
        let Some(text) = attribute_text(self.trees, attribute, value)? else { return Ok(()) };
        let size = charge::size_of_attribute(&name, &text);
        self.set(name, text)?;
        self.spend(size)
    }

    /// Sets the target of a form. A service also decides the method.
    pub(super) fn action(
        &mut self,
        name: Cow<'static, str>,
        attribute: &Attribute,
        value: &Value<'_>,
    ) -> Result<(), Refused> {
        let Some(url) = template::url_of_service(value)? else {
            return self.attribute(name, attribute, value);
        };
        self.attribute(name, attribute, &url)?;
        self.set("method".into(), "post".to_owned())
    }

    /// Sets the attributes of an object, except those that are written and those that exist.
    pub(super) fn spread(
        &mut self,
        value: &Value<'_>,
        element: &str,
        written: &[String],
    ) -> Result<(), Refused> {
        let markup = self.trees.classes().markup;
        template::visit_spread(value, element, written, markup, |name, attribute, value| {
            // Of two attributes with one name, a browser reads the first.
            match self.open.last() {
                Some(element) if element.attribute(name).is_some() => Ok(()),
                _ => self.attribute(name.to_owned().into(), attribute, value),
            }
        })
    }

    /// Sets an attribute to text whose context has been checked.
    pub(super) fn set(&mut self, name: Cow<'static, str>, text: String) -> Result<(), Refused> {
        let Some(element) = self.open.last_mut() else { return Ok(()) };
        element.set_code(name, raw(text)).map_err(|error| Refused(error.to_string()))
    }

    /// The tree. Its new nodes count against the limit of memory.
    pub(super) fn finish(mut self) -> Result<TreeContent, Refused> {
        while !self.open.is_empty() {
            self.close();
        }
        let size = self.own.saturating_add(self.parts);
        // In place of many charges, one counts all nodes.
        let counted = if self.has_many_charges { size } else { self.own };
        let own = Rc::new(reserve(self.trees, counted)?);
        if self.has_many_charges {
            self.charges.clear();
        }
        self.charges.push(own);
        Ok(TreeContent::new(Tree::from(self.roots), size, self.charges, self.has_custom))
    }

    fn text(&mut self, text: String) -> Result<(), Refused> {
        if text.is_empty() {
            return Ok(());
        }
        let size = charge::NODE + text.len();
        self.push(Node::from(text), size)
    }

    /// Adds markup that was written elsewhere. Selectors do not search it.
    fn markup(&mut self, markup: &[u8]) -> Result<(), Refused> {
        let mut text = String::new();
        for part in MarkupParts::of(markup) {
            match part {
                MarkupPart::Text(part) => text.push_str(part),
                MarkupPart::HeadEnd => {}
                MarkupPart::RegionStart(_) | MarkupPart::RegionEnd => {
                    return Err(Refused(
                        "a tree has no live regions, because it is built once: put the tree into the region"
                            .to_owned(),
                    ));
                }
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        let size = charge::NODE + text.len();
        self.push(Node::Raw(RawMarkup::trusted(text)), size)
    }

    fn siblings(&mut self) -> &mut Vec<Node> {
        match self.open.last_mut() {
            Some(element) => element.children_mut(),
            None => &mut self.roots,
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Refused> {
        self.own = self.own.saturating_add(bytes);
        check_size(self.trees, self.own.saturating_add(self.parts))
    }
}

/// The text that a value sets an attribute to; `None` if it omits the attribute.
pub(super) fn attribute_text(
    trees: &Trees,
    attribute: &Attribute,
    value: &Value<'_>,
) -> Result<Option<String>, Refused> {
    let mut written = Vec::new();
    template::write_attribute(value, attribute, trees.classes().markup, &mut written)?;
    if written.is_empty() {
        return Ok(None);
    }
    let escaped = String::from_utf8_lossy(attribute.value_in(&written));
    Ok(Some(unescaped(&escaped)))
}

/// Text without the character references of an escape.
fn unescaped(text: &str) -> String {
    const REFERENCES: [(&str, char); 5] =
        [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&#39;", '\'')];
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        plain.push_str(&rest[..start]);
        rest = &rest[start..];
        let (length, letter) = REFERENCES
            .iter()
            .find(|(reference, _)| rest.starts_with(reference))
            .map_or((1, '&'), |(reference, letter)| (reference.len(), *letter));
        plain.push(letter);
        rest = &rest[length..];
    }
    plain + rest
}
