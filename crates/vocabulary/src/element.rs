//! HTML elements.

use core::fmt;

use crate::attribute::{self, Attribute};
use crate::content::{Content, Excluded};
use crate::table::ELEMENTS;
use crate::{Categories, Rule, Words};

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
    /// Returns the attribute with this name, specific to the element or global.
    pub fn attribute(&self, name: &str) -> Option<&'static Attribute> {
        attribute::find(self.attributes, name).or_else(|| attribute::global(name))
    }

    /// Returns whether an element with this name is allowed as an ancestor.
    pub fn allows_ancestor(&self, outer: &str) -> bool {
        self.around.is_empty() || self.around.contains(outer)
    }

    /// Returns the names of the specific and the global attributes, without deprecated ones, for
    /// [`nearest`](crate::nearest).
    pub fn attribute_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let everywhere = [attribute::global_attributes(), attribute::event_handlers()];
        let lists = [self.attributes, everywhere[0], everywhere[1], crate::states()];
        let known = lists.into_iter().flatten().filter(|attribute| attribute.deprecated.is_none());
        known.map(|attribute| attribute.name)
    }
}

/// Categories that an element has only with certain attributes: `a` is interactive if it has
/// `href`.
#[derive(Clone, Copy, Debug)]
pub struct Sometimes {
    /// The additional categories.
    pub categories: Categories,
    /// Conditions, at least one must hold.
    pub given: &'static [Given],
}

impl Sometimes {
    /// Evaluates the condition for the attributes that `value_of` returns. Returns `None` if the
    /// result depends on an unknown value.
    pub fn holds<'a>(&self, value_of: impl Fn(&str) -> Value<'a>) -> Option<bool> {
        let mut outcome = Some(false);
        for given in self.given {
            match given.holds(&value_of) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => outcome = None,
            }
        }
        outcome
    }
}

/// A condition on one attribute.
#[derive(Clone, Copy, Debug)]
pub enum Given {
    /// The attribute is present.
    Present(&'static str),
    /// The attribute is present and contains a word from the list.
    Among(&'static str, Words),
    /// The attribute is absent or contains no such word.
    Except(&'static str, Words),
}

impl Given {
    /// Evaluates the condition, like [`Sometimes::holds`].
    pub fn holds<'a>(&self, value_of: impl Fn(&str) -> Value<'a>) -> Option<bool> {
        let has_one = |name: &str, words: Words| match value_of(name) {
            Value::Absent => Some(false),
            Value::Unknown => None,
            Value::Is(text) => Some(text.split_ascii_whitespace().any(|word| words.contains(word))),
        };
        match *self {
            Self::Present(name) => Some(!matches!(value_of(name), Value::Absent)),
            Self::Among(name, words) => has_one(name, words),
            Self::Except(name, words) => has_one(name, words).map(|has| !has),
        }
    }
}

/// Formats the condition for messages: `it needs .. beside ..`.
impl fmt::Display for Given {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one_of = |words: &Words| if words.iter().count() > 1 { "one of " } else { "" };
        match self {
            Self::Present(name) => write!(to, "beside `{name}`"),
            Self::Among(name, words) => write!(to, "where `{name}` is {}{words}", one_of(words)),
            Self::Except(name, words) => {
                write!(to, "where `{name}` is not {}{words}", one_of(words))
            }
        }
    }
}

/// The value of an attribute, as far as it is known when a page is compiled.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// The attribute is absent.
    Absent,
    /// The attribute is present. Its value is known only at run time.
    Unknown,
    /// The attribute has this value.
    Is(&'a str),
}

/// Returns the element with this name.
pub fn element(name: &str) -> Option<&'static Element> {
    let place = ELEMENTS.binary_search_by(|element| element.name.cmp(name)).ok()?;
    ELEMENTS.get(place)
}

/// Returns all HTML elements, including deprecated ones, sorted by name.
pub fn elements() -> &'static [Element] {
    &ELEMENTS
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
