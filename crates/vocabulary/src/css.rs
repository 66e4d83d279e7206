//! Decides which names and words CSS has.

use crate::Words;
use crate::table::{
    AT_RULES, COLORS, FUNCTIONS, PROPERTIES, PSEUDO_CLASSES, PSEUDO_ELEMENTS, WIDE,
};

/// A property.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// Its name, in small letters.
    pub name: &'static str,
    /// The words that its grammar has outside of functions; `colors` and what is wide come on top.
    pub words: Words,
    /// Whether it takes a color, so that the words of [`colors`] are right too.
    pub colors: bool,
    /// Whether it takes a number without a unit, other than 0.
    pub numbers: bool,
    /// Whether it takes names that the page makes up, so that no word is wrong.
    pub names: bool,
    /// The property of which it is an older spelling.
    pub alias_of: Option<&'static str>,
}

impl Property {
    /// Whether a word may stand in its value, outside of functions. What is a number, a string or a function is no
    /// word. Words that begin with a dash are a browser's own, or the page's.
    pub fn accepts(&self, word: &str) -> bool {
        self.names
            || word.starts_with('-')
            || self.words.contains(word)
            || (self.colors && COLORS.contains(word))
            || WIDE.contains(word)
    }
}

/// A rule that begins with `@`.
#[derive(Clone, Copy, Debug)]
pub struct AtRule {
    /// Its name, without the `@`.
    pub name: &'static str,
    /// The names that may stand in its block in a property's place; for `media` and `container` the features that
    /// may be asked for.
    pub descriptors: Words,
}

/// The property of a name.
pub fn property(name: &str) -> Option<&'static Property> {
    let place = PROPERTIES.binary_search_by(|property| property.name.cmp(name)).ok()?;
    PROPERTIES.get(place)
}

/// Every property, in the order of their names.
pub fn properties() -> &'static [Property] {
    &PROPERTIES
}

/// The at-rule of a name, without the `@`.
pub fn at_rule(name: &str) -> Option<&'static AtRule> {
    let place = AT_RULES.binary_search_by(|rule| rule.name.cmp(name)).ok()?;
    AT_RULES.get(place)
}

/// Every at-rule, in the order of their names.
pub fn at_rules() -> &'static [AtRule] {
    &AT_RULES
}

/// Every pseudo-class, in the order of their bytes, without the colon; one that takes arguments ends with `()`.
pub fn pseudo_classes() -> &'static [&'static str] {
    &PSEUDO_CLASSES
}

/// Every pseudo-element, in the order of their bytes, without the colons; one that takes arguments ends with `()`.
pub fn pseudo_elements() -> &'static [&'static str] {
    &PSEUDO_ELEMENTS
}

/// Every function that may stand in a value, in the order of their bytes, without the parentheses.
pub fn functions() -> &'static [&'static str] {
    &FUNCTIONS
}

/// The words for colors, those of the reader's system too.
pub fn colors() -> Words {
    COLORS
}

/// Whether a word may stand in the value of every property, such as `inherit`.
pub fn is_wide(word: &str) -> bool {
    WIDE.contains(word)
}
