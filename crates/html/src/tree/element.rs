//! [`Element`]: an element of a tree, shared by its clones until it is changed.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::panic::Location;

use bine_vocabulary::Context;

use super::{Node, Tree, TreeError, name, value, walk};
use crate::{CodeValue, UrlValue};

/// An element with its attributes and children.
///
/// A clone shares the element: it costs one counter for a subtree of any size. A change copies this
/// one element; its descendants stay shared until they are changed.
#[derive(Clone)]
pub struct Element(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    name: Cow<'static, str>,
    attributes: Vec<ElementAttribute>,
    children: Vec<Node>,
    source_location: &'static Location<'static>,
}

/// A name and its value, unescaped. A URL has already passed the filter.
#[derive(Clone, PartialEq, Eq)]
struct ElementAttribute {
    name: Cow<'static, str>,
    value: Cow<'static, str>,
}

impl Element {
    /// An empty element.
    ///
    /// # Errors
    ///
    /// [`TreeError::ElementName`].
    #[track_caller]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Result<Self, TreeError> {
        let name = name.into();
        name::element(&name)?;
        Ok(Self::from_valid_name(name))
    }

    /// Creates an element from a valid name.
    #[track_caller]
    pub(super) fn from_valid_name(name: Cow<'static, str>) -> Self {
        let source_location = Location::caller();
        Self(Arc::new(Inner {
            name,
            attributes: Vec::new(),
            children: Vec::new(),
            source_location,
        }))
    }

    /// Sets an attribute. `false` and `None` remove it. A URL that a browser would run is replaced
    /// as in `html!`.
    ///
    /// # Errors
    ///
    /// [`TreeError::AttributeName`], or [`TreeError::Code`] for an attribute that contains code.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "`&true` and `&7` would be noise in each call"
    )]
    pub fn set_attribute(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl UrlValue,
    ) -> Result<(), TreeError> {
        let name = name.into();
        name::attribute(&name)?;
        let context = Context::of(self.name(), &name);
        if context == Context::Code {
            return Err(TreeError::Code(name.into()));
        }
        self.put(name, value::of(context, &value).map(Cow::Owned));
        Ok(())
    }

    /// Sets an attribute that a browser runs or applies as style, as `onclick` and `style`. The
    /// caller vouches for every byte of `code`.
    ///
    /// # Errors
    ///
    /// [`TreeError::AttributeName`].
    #[allow(clippy::needless_pass_by_value, reason = "as with `set_attribute`")]
    pub fn set_code(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        code: impl CodeValue,
    ) -> Result<(), TreeError> {
        let name = name.into();
        name::attribute(&name)?;
        self.put(name, value::of_code(&code).map(Cow::Owned));
        Ok(())
    }

    /// Removes an attribute; `false` if the element does not have it.
    pub fn remove_attribute(&mut self, name: &str) -> bool {
        let is_there = self.attribute(name).is_some();
        if is_there {
            self.inner().attributes.retain(|attribute| !attribute.name.eq_ignore_ascii_case(name));
        }
        is_there
    }

    /// Sets an attribute of a valid name to a checked value; `None` removes it.
    pub(super) fn put(&mut self, name: Cow<'static, str>, value: Option<Cow<'static, str>>) {
        let Some(value) = value else {
            self.remove_attribute(&name);
            return;
        };
        let attributes = &mut self.inner().attributes;
        match attributes.iter_mut().find(|attribute| attribute.name.eq_ignore_ascii_case(&name)) {
            Some(attribute) => attribute.value = value,
            None => attributes.push(ElementAttribute { name, value }),
        }
    }

    /// The children, mutable.
    pub fn children_mut(&mut self) -> &mut Vec<Node> {
        &mut self.inner().children
    }

    /// Appends a child.
    pub fn push(&mut self, child: impl Into<Node>) {
        self.children_mut().push(child.into());
    }

    /// The name of the element, as in `p`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The value of an attribute, or `None` if it is absent; empty for a bare attribute. The name
    /// is compared without regard to case.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The names and values of the attributes, in document order.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.attributes.iter().map(|attribute| (&*attribute.name, &*attribute.value))
    }

    /// The children.
    pub fn children(&self) -> &[Node] {
        &self.0.children
    }

    /// The concatenated text of all descendants.
    pub fn text(&self) -> String {
        walk::text(self.children())
    }

    /// The source location of the `tree!` or the call that created the element.
    pub fn source_location(&self) -> &'static Location<'static> {
        self.0.source_location
    }

    /// Whether both are the same object, not merely equal.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether names and attributes are equal, without regard to descendants.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        self.0.name == other.0.name && self.0.attributes == other.0.attributes
    }

    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }
}

/// Two elements are equal if their markup is equal. Custom nodes are equal if they are the same
/// object.
impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        walk::are_alike(&[Node::Element(self.clone())], &[Node::Element(other.clone())])
    }
}

/// Shows the markup.
impl fmt::Debug for Element {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        Tree::from(self.clone()).fmt(to)
    }
}

/// Drops descendants in a loop: a deep tree would overflow the stack in a recursion.
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
