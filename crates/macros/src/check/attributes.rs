//! Decides which attributes an element must have, and what one of them says of another.

use bine_vocabulary::{self as vocabulary, Kind};

use super::Checker;
use crate::place::Place;
use crate::tree::{Element, Value};

impl Checker<'_> {
    /// Whether the attributes are there that have to be; [`vocabulary::Element::required`] says how they are told.
    pub(super) fn required(
        &mut self,
        element: &Element,
        known: &vocabulary::Element,
        place: &Place<'_>,
    ) {
        let name = known.name;
        let is_there = |wanted: &str| element.attribute(wanted).is_some();
        for rule in known.required {
            if let Some((wanted, given)) = rule.split_once('?') {
                let (given, value) = given.split_once('=').unwrap_or((given, ""));
                let holds = match element.attribute(given).map(|attribute| &attribute.value) {
                    None => false,
                    Some(Value::Text(text)) => value.is_empty() || text.eq_ignore_ascii_case(value),
                    Some(_) => value.is_empty(),
                };
                let given = match value {
                    "" => format!("`{given}`"),
                    value => format!("`{given}=\"{value}\"`"),
                };
                match (is_there(wanted), holds) {
                    (false, true) => self
                        .fault(element.origin, format!("`<{name}>` with {given} needs `{wanted}`")),
                    // What hangs on a value is told with all values: see `beside`.
                    (true, false) if value.is_empty() => self.fault(
                        element.origin,
                        format!("`<{name}>` has `{wanted}` only beside {given}"),
                    ),
                    _ => {}
                }
                continue;
            }
            let wanted = match rule.split_once('@') {
                None => rule,
                Some((wanted, parent)) if place.parent.is_some_and(|one| one.name == parent) => {
                    wanted
                }
                Some(_) => continue,
            };
            if wanted.split('|').any(is_there) {
                continue;
            }
            let hint = match (name, rule.split_once('@')) {
                ("img", _) if wanted == "alt" => {
                    ", what the picture says to whoever cannot see it; `alt=\"\"` if it says nothing".into()
                }
                (_, Some((_, parent))) => format!(" in `<{parent}>`"),
                _ => String::new(),
            };
            let wanted = wanted.replace('|', "` or `");
            self.fault(element.origin, format!("`<{name}>` needs `{wanted}`{hint}"));
        }
    }

    /// Whether the attributes fit the element's `type`, if that is known (HTML 4.10.5.1).
    pub(super) fn beside(&mut self, element: &Element, known: &vocabulary::Element) {
        let types = known.attribute("type").map_or(Kind::Text, |attribute| attribute.kind);
        let given = match element.attribute("type").map(|attribute| &attribute.value) {
            None => None,
            Some(Value::Text(word)) if types.accepts(word) => Some(&**word),
            Some(_) => return,
        };
        // Without a type, an `input` is a line of text.
        let word = given.unwrap_or("text");
        for attribute in &element.attributes {
            let Some(fact) = known.attribute(&attribute.name) else { continue };
            if !fact.types.is_empty() && !fact.types.contains(word) {
                let what =
                    given.map_or_else(|| "no `type`".into(), |word| format!("`type=\"{word}\"`"));
                let message = format!(
                    "`<{}>` with {what} has no `{}`: that is for {}",
                    known.name, fact.name, fact.types
                );
                self.fault(attribute.origin, message);
            } else if known.name == "input"
                && ["max", "min", "value"].contains(&fact.name)
                && let Value::Text(text) = &attribute.value
                && let Some(kind) = vocabulary::input_value(word)
                && !kind.accepts(text)
                && !(fact.name == "value" && text.is_empty())
            {
                let message = format!("`{}` takes {kind}, not `{text}`", fact.name);
                self.fault(attribute.value_origin, message);
            }
        }
    }
}
