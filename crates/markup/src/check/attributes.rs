//! Required and conflicting attributes of an element.

use bine_vocabulary::{self as vocabulary, Kind, Rule, Value as Known};

use super::Checker;
use crate::place::{Place, value_of};
use crate::tree::{Element, Value};

const WORDS: &str = ", a text alternative for the image; `alt=\"\"` if it is decorative";

impl Checker<'_> {
    /// Reports missing attributes, and attributes that others exclude.
    pub(super) fn check_rules<C>(
        &mut self,
        element: &Element<C>,
        known: &vocabulary::Element,
        place: &Place<'_>,
    ) {
        // An invalid word has been reported already.
        let value_of = |name: &str| match value_of(element, name) {
            Known::Is(text) if known.attribute(name).is_some_and(|one| !one.kind.accepts(text)) => {
                Known::Unknown
            }
            value => value,
        };
        let (name, parent) = (known.name, place.parent.map(|parent| parent.name));
        let rules = known.rules.iter().chain(vocabulary::global_rules());
        for rule in rules.filter(|rule| rule.is_violated(value_of, parent)) {
            if let Rule::Only(names, given) = rule {
                for attribute in names.iter().filter_map(|name| element.attribute(name)) {
                    let message = format!("`<{name}>` has `{}` only {given}", attribute.name);
                    self.fault(attribute.origin, message);
                }
                continue;
            }
            let hint = match rule {
                Rule::Any(names) if name == "img" && names.contains("alt") => WORDS,
                _ => "",
            };
            self.fault(element.origin, format!("`<{name}>` {rule}{hint}"));
        }
    }

    /// Checks the attributes against the element's `type`, if it is known (HTML 4.10.5.1).
    pub(super) fn check_type_specific<C>(
        &mut self,
        element: &Element<C>,
        known: &vocabulary::Element,
    ) {
        let types = known.attribute("type").map_or(Kind::Text, |attribute| attribute.kind);
        let given = match element.attribute("type").map(|attribute| &attribute.value) {
            None if element.has_more_attributes => return,
            None => None,
            Some(Value::Text(word)) if types.accepts(word) => Some(&**word),
            Some(_) => return,
        };
        // The default type of `input` is text.
        let word = given.unwrap_or("text");
        for attribute in &element.attributes {
            let Some(fact) = known.attribute(&attribute.name) else { continue };
            if !fact.types.is_empty() && !fact.types.contains(word) {
                let given =
                    given.map_or_else(|| "no `type`".into(), |word| format!("`type=\"{word}\"`"));
                let message = format!(
                    "`<{}>` with {given} has no `{}`: that is for {}",
                    known.name, fact.name, fact.types
                );
                self.fault(attribute.origin, message);
            } else if known.name == "input"
                && ["max", "min", "value"].contains(&fact.name)
                && let Value::Text(text) = &attribute.value
                && let Some(kind) = vocabulary::input_value_kind(word)
                && !kind.accepts(text)
                && !(fact.name == "value" && text.is_empty())
            {
                let message = format!("`{}` takes {kind}, not `{text}`", fact.name);
                self.fault(attribute.value_origin, message);
            }
        }
    }
}
