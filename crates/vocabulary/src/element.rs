//! Decides what an element of HTML is, and which there are.

use core::fmt;

use crate::attribute::{self, Attribute};
use crate::content::{Content, Excluded};
use crate::table::ELEMENTS;
use crate::{Categories, Rule, Words};

/// An element of HTML.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Its name, in small letters.
    pub name: &'static str,
    /// Whether it has neither content nor an end tag.
    pub void: bool,
    /// Where it counts to whatever its attributes are.
    pub categories: Categories,
    /// Where it counts to besides, with certain attributes.
    pub sometimes: Option<Sometimes>,
    /// What may stand directly in it.
    pub content: Content,
    /// What may not stand below it, at any depth.
    pub excluded: Excluded,
    /// The elements that it has to stand directly in, where what is transparent counts as what is around it; none:
    /// wherever its categories are admitted.
    pub parents: Words,
    /// The elements of which one has to stand around it, at any distance; none: no such rule.
    pub within: Words,
    /// The elements that alone may stand around it, besides elements of a page's own; none: no such rule.
    pub around: Words,
    /// The order in which its children come, `*` for all that it does not name; none: any order.
    pub order: Words,
    /// The children that have to be there, each once; `h1|h2`: one of the two.
    pub needs: Words,
    /// What its attributes say of each other, besides the [rules for every element](crate::global_rules).
    pub rules: &'static [Rule],
    /// That the standard has done away with it, and what to write instead.
    pub deprecated: Option<&'static str>,
    /// The attributes that it has beyond those of every element, in the order of their names.
    pub attributes: &'static [Attribute],
}

impl Element {
    /// An attribute that may stand on this element: its own, or one of every element's.
    pub fn attribute(&self, name: &str) -> Option<&'static Attribute> {
        attribute::find(self.attributes, name).or_else(|| attribute::global(name))
    }

    /// Whether an element of that name may be around it, at any distance.
    pub fn may_stand_within(&self, outer: &str) -> bool {
        self.around.is_empty() || self.around.contains(outer)
    }

    /// The names of its own attributes and of every element's, for the nearest one; what is deprecated is not
    /// among them.
    pub fn attribute_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let everywhere = [attribute::global_attributes(), attribute::event_handlers()];
        let lists = [self.attributes, everywhere[0], everywhere[1], crate::states()];
        let known = lists.into_iter().flatten().filter(|attribute| attribute.deprecated.is_none());
        known.map(|attribute| attribute.name)
    }
}

/// Categories that an element has only with certain attributes: `a` is interactive if it has `href`.
#[derive(Clone, Copy, Debug)]
pub struct Sometimes {
    /// What it then counts to, beside what it always does.
    pub categories: Categories,
    /// When it does: if any of these holds.
    pub given: &'static [Given],
}

impl Sometimes {
    /// Whether the condition holds, with the attributes that `value_of` tells; nothing if that hangs on a value
    /// which is not known yet.
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
    /// It is there.
    Present(&'static str),
    /// It is there and has one of these words, others beside it or not.
    Among(&'static str, Words),
    /// It is not there or has none of these words.
    Except(&'static str, Words),
}

impl Given {
    /// Whether it holds, as [`Sometimes::holds`].
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

/// As in a message: `it needs .. beside ..`.
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

/// What is known of an attribute's value while a page is compiled.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// The attribute is not there.
    Absent,
    /// It is there; its value comes while the program runs.
    Unknown,
    /// It is there with this value.
    Is(&'a str),
}

/// The element of a name.
pub fn element(name: &str) -> Option<&'static Element> {
    let place = ELEMENTS.binary_search_by(|element| element.name.cmp(name)).ok()?;
    ELEMENTS.get(place)
}

/// Every element of HTML, deprecated ones too, in the order of their names.
pub fn elements() -> &'static [Element] {
    &ELEMENTS
}

/// Whether a name is one that a page may give to an element of its own (HTML 4.13.3): small letters and a dash.
pub fn is_custom(name: &str) -> bool {
    /// Names with a dash that SVG and MathML had first.
    const TAKEN: [&str; 8] = [
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
        && !TAKEN.contains(&name)
}
