//! CSS names and keywords.

use crate::Words;
use crate::table::{
    AT_RULES, COLORS, FUNCTIONS, PROPERTIES, PSEUDO_CLASSES, PSEUDO_ELEMENTS, WIDE,
};

/// A CSS property.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// Its name in lower case.
    pub name: &'static str,
    /// The keywords of the grammar outside of functions. [`colors`] and the CSS-wide keywords are
    /// separate.
    pub words: Words,
    /// Whether it takes a color, so that the keywords of [`colors`] are valid too.
    pub colors: bool,
    /// Whether it takes a number without a unit, other than 0.
    pub numbers: bool,
    /// Whether it takes names that the page defines, so that every word is valid.
    pub names: bool,
    /// The property for which this is an older name.
    pub alias_of: Option<&'static str>,
}

impl Property {
    /// Returns whether a keyword is valid in its value, outside of functions. Numbers, strings and
    /// functions are not keywords. Words that begin with a dash belong to a browser or to the page.
    pub fn accepts(&self, word: &str) -> bool {
        self.names
            || word.starts_with('-')
            || self.words.contains(word)
            || (self.colors && COLORS.contains(word))
            || WIDE.contains(word)
    }
}

/// A CSS at-rule.
#[derive(Clone, Copy, Debug)]
pub struct AtRule {
    /// Its name without the `@`.
    pub name: &'static str,
    /// The descriptors that its block allows. For `media` and `container`: the features that a
    /// condition may test.
    pub descriptors: Words,
}

/// Returns the property with this name.
pub fn property(name: &str) -> Option<&'static Property> {
    let place = PROPERTIES.binary_search_by(|property| property.name.cmp(name)).ok()?;
    PROPERTIES.get(place)
}

/// Returns all properties, sorted by name.
pub fn properties() -> &'static [Property] {
    &PROPERTIES
}

/// Returns the at-rule with this name, without the `@`.
pub fn at_rule(name: &str) -> Option<&'static AtRule> {
    let place = AT_RULES.binary_search_by(|rule| rule.name.cmp(name)).ok()?;
    AT_RULES.get(place)
}

/// Returns all at-rules, sorted by name.
pub fn at_rules() -> &'static [AtRule] {
    &AT_RULES
}

/// Returns all pseudo-classes without the colon, sorted by bytes. Those with arguments end with
/// `()`.
pub fn pseudo_classes() -> &'static [&'static str] {
    &PSEUDO_CLASSES
}

/// Returns all pseudo-elements without the colons, sorted by bytes. Those with arguments end with
/// `()`.
pub fn pseudo_elements() -> &'static [&'static str] {
    &PSEUDO_ELEMENTS
}

/// Returns all functions for values without the parentheses, sorted by bytes.
pub fn functions() -> &'static [&'static str] {
    &FUNCTIONS
}

/// Returns the color keywords, including system colors.
pub fn colors() -> Words {
    COLORS
}

/// Returns whether the word is a CSS-wide keyword, such as `inherit`.
pub fn is_css_wide_keyword(word: &str) -> bool {
    WIDE.contains(word)
}
