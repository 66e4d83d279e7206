//! Decides what may stand in an element: directly, and anywhere below.

use crate::{Categories, Element, Words};

/// What an element may have as children (HTML 3.2.5, "content model").
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// Any element of one of these.
    pub categories: Categories,
    /// These elements as well.
    pub elements: Words,
    /// Those of them that may come but once.
    pub once: Words,
    /// Whether text that is not blank may stand in it.
    pub text: bool,
    /// Whether what may stand in its parent may stand in it too, in place of `categories`: see [`Self::inside`].
    pub transparent: bool,
}

impl Content {
    /// Nothing at all.
    pub const NOTHING: Self = Self {
        categories: Categories::NONE,
        elements: Words::new(""),
        once: Words::new(""),
        text: false,
        transparent: false,
    };
    /// Anything: in `template`, in a custom element, and where a page's outer part is not known.
    pub const ANYTHING: Self = Self { categories: Categories::ALL, text: true, ..Self::NOTHING };

    /// Whether an element may be a child. `categories` are the child's own and those that its attributes add: see
    /// [`Element::sometimes`].
    pub fn admits(&self, child: &Element, categories: Categories) -> bool {
        self.categories.meets(categories) || self.elements.contains(child.name)
    }

    /// The content of an element that stands in one with the content `outer`: what is transparent takes over what
    /// that admits.
    #[must_use]
    pub fn inside(&self, outer: &Self) -> Self {
        if !self.transparent {
            return *self;
        }
        // No element that has parts of its own may stand where other parts are wanted, so one list is enough.
        let elements = if self.elements.is_empty() { outer.elements } else { self.elements };
        Self { elements, once: self.once, transparent: false, ..*outer }
    }
}

/// What an element may not have below it, at any depth, though a nearer element would admit it.
#[derive(Clone, Copy, Debug)]
pub struct Excluded {
    /// Any element of one of these.
    pub categories: Categories,
    /// These elements as well.
    pub elements: Words,
}

impl Excluded {
    /// Whether an element may not be a descendant. `categories` as for [`Content::admits`].
    pub fn names(&self, descendant: &Element, categories: Categories) -> bool {
        self.categories.meets(categories) || self.elements.contains(descendant.name)
    }
}
