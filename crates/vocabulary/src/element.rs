//! HTML elements.

use crate::attribute::Attribute;
use crate::categories::Categories;
use crate::condition::Sometimes;
use crate::content::{Content, Excluded};
use crate::rule::Rule;
use crate::words::Words;

/// An HTML element.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Its name in lower case.
    pub name: &'static str,
    /// Whether it has neither content nor an end tag.
    pub void: bool,
    /// Its categories, whatever its attributes are.
    pub categories: Categories,
    /// Additional categories that depend on its attributes.
    pub sometimes: Option<Sometimes>,
    /// The content that it allows directly.
    pub content: Content,
    /// The descendants that it excludes at any depth.
    pub excluded: Excluded,
    /// The allowed parents. A transparent element counts as its parent. Empty: any parent that
    /// allows the categories.
    pub parents: Words,
    /// Elements to require as an ancestor: at least one. Empty: no such rule.
    pub within: Words,
    /// The allowed ancestors, besides custom elements. Empty: no such rule.
    pub around: Words,
    /// The order of the children. `*` represents all children that are not listed. Empty: any
    /// order.
    pub order: Words,
    /// The children that it requires, each once. `h1|h2` requires one of the two.
    pub needs: Words,
    /// Rules about combinations of attributes, in addition to the [rules for every
    /// element](crate::global_rules).
    pub rules: &'static [Rule],
    /// If the element is deprecated: the replacement to recommend.
    pub deprecated: Option<&'static str>,
    /// The specific attributes (without global ones), sorted by name.
    pub attributes: &'static [Attribute],
}

impl Element {
    /// Returns whether an element with this name is allowed as an ancestor.
    pub fn allows_ancestor(&self, outer: &str) -> bool {
        self.around.is_empty() || self.around.contains(outer)
    }
}

impl Content {
    /// Returns whether an element is allowed as a child. `categories` are those of the child,
    /// including those that its attributes add: see [`Element::sometimes`].
    pub fn allows(&self, child: &Element, categories: Categories) -> bool {
        self.categories.intersects(categories) || self.elements.contains(child.name)
    }
}

impl Excluded {
    /// Returns whether an element is excluded as a descendant. `categories` as for
    /// [`Content::allows`].
    pub fn contains(&self, descendant: &Element, categories: Categories) -> bool {
        self.categories.intersects(categories) || self.elements.contains(descendant.name)
    }
}

/// Returns whether this is a valid name for a custom element (HTML 4.13.3): lower case with a dash.
pub fn is_custom(name: &str) -> bool {
    /// Names with a dash that SVG and MathML already use.
    const RESERVED: [&str; 8] = [
        "annotation-xml",
        "color-profile",
        "font-face",
        "font-face-format",
        "font-face-name",
        "font-face-src",
        "font-face-uri",
        "missing-glyph",
    ];
    let is_plain = |char: char| {
        char.is_ascii_lowercase()
            || char.is_ascii_digit()
            || "-._".contains(char)
            || !char.is_ascii()
    };
    name.starts_with(|char: char| char.is_ascii_lowercase())
        && name.contains('-')
        && name.chars().all(is_plain)
        && !RESERVED.contains(&name)
}
