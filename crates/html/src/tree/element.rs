//! Decides what an element of a tree holds, and that it is shared until it is changed.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::panic::Location;

use bine_vocabulary::Context;

use super::{Node, Refused, Tree, name, value, walk};
use crate::{AddressValue, CodeValue};

/// An element with its attributes and children.
///
/// A clone is another hold on the same element: it costs one counter, however much is below it. Whoever changes
/// theirs gets a copy of this one element; what is below stays shared until it is changed in turn.
#[derive(Clone)]
pub struct Element(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    name: Cow<'static, str>,
    attributes: Vec<Attribute>,
    children: Vec<Node>,
    made_at: &'static Location<'static>,
}

/// A name and what is to be read there, not yet escaped. An address has been looked at already.
#[derive(Clone, PartialEq, Eq)]
struct Attribute {
    name: Cow<'static, str>,
    value: Cow<'static, str>,
}

impl Element {
    /// An empty element.
    ///
    /// # Errors
    ///
    /// [`Refused::ElementName`].
    #[track_caller]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Result<Self, Refused> {
        let name = name.into();
        name::element(&name)?;
        Ok(Self::made(name))
    }

    /// An element of a name that is known to be one.
    #[track_caller]
    pub(super) fn made(name: Cow<'static, str>) -> Self {
        let (attributes, children) = (Vec::new(), Vec::new());
        Self(Arc::new(Inner { name, attributes, children, made_at: Location::caller() }))
    }

    /// Gives an attribute a value, in the place of the one it has. `false` and `None` take it away. An address that a
    /// browser would run is replaced as in `html!`.
    ///
    /// # Errors
    ///
    /// [`Refused::AttributeName`], or [`Refused::Code`] for what a browser runs.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "`&true` and `&7` would be noise where it is called"
    )]
    pub fn set_attribute(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl AddressValue,
    ) -> Result<(), Refused> {
        let name = name.into();
        name::attribute(&name)?;
        let context = Context::of(self.name(), &name);
        if context == Context::Code {
            return Err(Refused::Code(name.into()));
        }
        self.put(name, value::of(context, &value).map(Cow::Owned));
        Ok(())
    }

    /// The same for an attribute that a browser runs or draws by, as `onclick` and `style`; every byte of `code` must
    /// be yours.
    ///
    /// # Errors
    ///
    /// [`Refused::AttributeName`].
    #[allow(clippy::needless_pass_by_value, reason = "as with `set_attribute`")]
    pub fn set_code(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        code: impl CodeValue,
    ) -> Result<(), Refused> {
        let name = name.into();
        name::attribute(&name)?;
        self.put(name, value::of_code(&code).map(Cow::Owned));
        Ok(())
    }

    /// Takes an attribute away; `false` if it was not there.
    pub fn remove_attribute(&mut self, name: &str) -> bool {
        let is_there = self.attribute(name).is_some();
        if is_there {
            self.inner().attributes.retain(|attribute| !attribute.name.eq_ignore_ascii_case(name));
        }
        is_there
    }

    /// Gives an attribute of a right name a value that needs no more looking at; `None` takes it away.
    pub(super) fn put(&mut self, name: Cow<'static, str>, value: Option<Cow<'static, str>>) {
        let Some(value) = value else {
            self.remove_attribute(&name);
            return;
        };
        let attributes = &mut self.inner().attributes;
        match attributes.iter_mut().find(|attribute| attribute.name.eq_ignore_ascii_case(&name)) {
            Some(attribute) => attribute.value = value,
            None => attributes.push(Attribute { name, value }),
        }
    }

    /// Its children, to be changed.
    pub fn children_mut(&mut self) -> &mut Vec<Node> {
        &mut self.inner().children
    }

    /// Adds a child behind all others.
    pub fn push(&mut self, child: impl Into<Node>) {
        self.children_mut().push(child.into());
    }

    /// Its name, as in `p`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The value of an attribute, if it is there; empty if it is bare. Its name matches in either case.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Names and values of its attributes, in their order.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.attributes.iter().map(|attribute| (&*attribute.name, &*attribute.value))
    }

    /// What stands directly in it.
    pub fn children(&self) -> &[Node] {
        &self.0.children
    }

    /// All text below it, as a reader sees it.
    pub fn text(&self) -> String {
        walk::text(self.children())
    }

    /// Where the program made it: the `tree!`, or the call.
    pub fn made_at(&self) -> &'static Location<'static> {
        self.0.made_at
    }

    /// Whether both are the same element, not only alike.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether names and attributes are alike, whatever is below.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        self.0.name == other.0.name && self.0.attributes == other.0.attributes
    }

    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }
}

/// Equal are elements that are written alike, own nodes if they are the same.
impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        walk::are_alike(&[Node::Element(self.clone())], &[Node::Element(other.clone())])
    }
}

/// As it is written.
impl fmt::Debug for Element {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        Tree::from(self.clone()).fmt(to)
    }
}

/// One level after the other: a tree may be deeper than a stack.
impl Drop for Inner {
    fn drop(&mut self) {
        let mut left = mem::take(&mut self.children);
        while let Some(node) = left.pop() {
            if let Node::Element(element) = node
                && let Some(mut inner) = Arc::into_inner(element.0)
            {
                left.append(&mut inner.children);
            }
        }
    }
}
