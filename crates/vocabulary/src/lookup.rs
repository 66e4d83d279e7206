//! Lookups by name in the table of the standards.

use crate::aria::Role;
use crate::attribute::{Attribute, Kind};
use crate::css::{AtRule, Property};
use crate::element::Element;
use crate::rule::Rule;
use crate::table::{
    AT_RULES, COLORS, ELEMENTS, EVENT_HANDLERS, FUNCTIONS, GLOBAL_ATTRIBUTES, GLOBAL_RULES,
    PROPERTIES, PSEUDO_CLASSES, PSEUDO_ELEMENTS, ROLES, STATES, WIDE,
};
use crate::words::Words;

/// Returns the element with this name.
pub fn element(name: &str) -> Option<&'static Element> {
    let place = ELEMENTS.binary_search_by(|element| element.name.cmp(name)).ok()?;
    ELEMENTS.get(place)
}

/// Returns all HTML elements, including deprecated ones, sorted by name.
pub fn elements() -> &'static [Element] {
    &ELEMENTS
}

/// Returns the global attributes of HTML, sorted by name, without `on..` and `aria-..`.
pub fn global_attributes() -> &'static [Attribute] {
    &GLOBAL_ATTRIBUTES
}

/// Returns the event handler attributes of every element, sorted by name.
pub fn event_handlers() -> &'static [Attribute] {
    &EVENT_HANDLERS
}

/// Returns the rules for every element.
pub fn global_rules() -> &'static [Rule] {
    &GLOBAL_RULES
}

/// Returns the role with this name.
pub fn role(name: &str) -> Option<&'static Role> {
    let place = ROLES.binary_search_by(|role| role.name.cmp(name)).ok()?;
    ROLES.get(place)
}

/// Returns all roles that a page may use, sorted by name. Abstract roles are not included.
pub fn roles() -> &'static [Role] {
    &ROLES
}

/// Returns the `aria-..` attribute with this name, including the prefix.
pub fn state(name: &str) -> Option<&'static Attribute> {
    find(&STATES, name)
}

/// Returns all `aria-..` attributes, sorted by name.
pub fn states() -> &'static [Attribute] {
    &STATES
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

impl Element {
    /// Returns the attribute with this name, specific to the element or global.
    pub fn attribute(&self, name: &str) -> Option<&'static Attribute> {
        find(self.attributes, name).or_else(|| global(name))
    }

    /// Returns the names of the specific and the global attributes, without deprecated ones, for
    /// [`nearest`](crate::nearest).
    pub fn attribute_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let everywhere = [global_attributes(), event_handlers()];
        let lists = [self.attributes, everywhere[0], everywhere[1], states()];
        let known = lists.into_iter().flatten().filter(|attribute| attribute.deprecated.is_none());
        known.map(|attribute| attribute.name)
    }
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

/// Returns the global attribute with this name.
pub(crate) fn global(name: &str) -> Option<&'static Attribute> {
    static DATA: Attribute =
        Attribute { name: "data-*", kind: Kind::Text, deprecated: None, types: Words::new("") };
    if name.len() > "data-".len() && name.starts_with("data-") {
        return Some(&DATA);
    }
    if name.starts_with("on") {
        return find(&EVENT_HANDLERS, name);
    }
    if name.starts_with("aria-") {
        return state(name);
    }
    find(&GLOBAL_ATTRIBUTES, name)
}

/// Returns the attribute with this name from a list that is sorted by name.
fn find(attributes: &'static [Attribute], name: &str) -> Option<&'static Attribute> {
    let place = attributes.binary_search_by(|attribute| attribute.name.cmp(name)).ok()?;
    attributes.get(place)
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::global;

    #[test]
    fn finds_global_attributes_by_prefix() {
        let kind = |name| global(name).map(|attribute| attribute.kind.to_string());
        assert_eq!(kind("data-place").as_deref(), Some("a text"));
        assert_eq!(kind("onclick").as_deref(), Some("a program"));
        assert_eq!(kind("aria-busy").as_deref(), Some("one of `false`, `true`"));
        assert_eq!(kind("tabindex").as_deref(), Some("a whole number"));
        assert_eq!(kind("data-").or(kind("onclic")).or(kind("aria-bussy")), None);
    }
}
