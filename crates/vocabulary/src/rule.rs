//! Rules about combinations of attributes on one element.

use core::fmt;

use crate::condition::{Given, Value};
use crate::words::Words;

/// A rule about the attributes of one element (HTML 4, "must be present", "must be omitted").
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// At least one attribute from the list is required.
    Any(Words),
    /// The attribute is required if the condition holds.
    Needs(&'static str, Given),
    /// These attributes are allowed only if the condition holds.
    Only(Words, Given),
    /// The attribute is required if the parent is in the list.
    In(&'static str, Words),
}

impl Rule {
    /// Returns whether an element violates the rule, given the attributes that `value_of` returns.
    /// Returns false if the result depends on an unknown value. `parent` is the parent element, if
    /// known.
    pub fn is_violated<'a>(
        &self,
        value_of: impl Fn(&str) -> Value<'a>,
        parent: Option<&str>,
    ) -> bool {
        let is_there = |name: &str| !matches!(value_of(name), Value::Absent);
        match *self {
            Self::Any(names) => !names.iter().any(is_there),
            Self::Needs(name, given) => !is_there(name) && given.holds(value_of) == Some(true),
            Self::Only(names, given) => {
                names.iter().any(is_there) && given.holds(value_of) == Some(false)
            }
            Self::In(name, parents) => {
                !is_there(name) && parent.is_some_and(|parent| parents.contains(parent))
            }
        }
    }
}

/// Formats the rule for messages, after the name of the element.
impl fmt::Display for Rule {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(names) => {
                for (place, name) in names.iter().enumerate() {
                    write!(to, "{} `{name}`", if place == 0 { "needs" } else { " or" })?;
                }
                Ok(())
            }
            Self::Needs(name, given) => write!(to, "needs `{name}` {given}"),
            Self::Only(names, given) => write!(to, "has {names} only {given}"),
            Self::In(name, parents) => {
                write!(to, "needs `{name}`")?;
                for (place, parent) in parents.iter().enumerate() {
                    write!(to, " {} `<{parent}>`", if place == 0 { "in" } else { "or" })?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use crate::{Value, element, global_rules};

    /// `attributes` contains names and values. The value `?` is unknown.
    #[track_caller]
    fn check(
        name: &str,
        attributes: &[(&str, &'static str)],
        parent: Option<&str>,
        expected: &[&str],
    ) {
        let value_of = |wanted: &str| match attributes.iter().find(|(name, _)| *name == wanted) {
            None => Value::Absent,
            Some((_, "?")) => Value::Unknown,
            Some((_, value)) => Value::Is(value),
        };
        let known = element(name).expect("a standard element");
        let rules = known.rules.iter().chain(global_rules());
        let broken = rules.filter(|rule| rule.is_violated(value_of, parent));
        assert!(broken.map(ToString::to_string).eq(expected.iter().copied()), "{name}");
    }

    #[test]
    fn reports_violated_rules() {
        check("base", &[], None, &["needs `href` or `target`"]);
        check(
            "input",
            &[("type", "image"), ("src", "a")],
            None,
            &["needs `alt` where `type` is `image`"],
        );
        check("script", &[("defer", "")], None, &["has `defer`, `integrity` only beside `src`"]);
        check("source", &[("src", "a")], Some("picture"), &["needs `srcset` in `<picture>`"]);
        check("p", &[("itemref", "a")], None, &["has `itemref` only beside `itemscope`"]);
    }

    #[test]
    fn ignores_unknown_values() {
        check("input", &[("type", "?")], None, &[]);
        check("link", &[("rel", "?"), ("href", "a"), ("as", "font"), ("sizes", "any")], None, &[]);
        check("source", &[], None, &[]);
        check("script", &[("defer", ""), ("src", "?")], None, &[]);
    }
}
