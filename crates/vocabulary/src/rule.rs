//! Decides what the attributes of one element say of each other.

use core::fmt;

use crate::table::GLOBAL_RULES;
use crate::{Given, Value, Words};

/// A rule on the attributes of one element (HTML 4, "must be present", "must be omitted").
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// One of these has to be there.
    Any(Words),
    /// It has to be there if that holds.
    Needs(&'static str, Given),
    /// None of these may be there unless that holds.
    Only(Words, Given),
    /// It has to be there if the parent is one of these elements.
    In(&'static str, Words),
}

impl Rule {
    /// Whether an element breaks it, with the attributes that `value_of` tells; not if that hangs on a value which is
    /// not known yet. `parent` is the element that it stands in, if that is known.
    pub fn is_broken<'a>(
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

/// As in a message, after the element's name.
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

/// The rules that hold for every element.
pub fn global_rules() -> &'static [Rule] {
    &GLOBAL_RULES
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use crate::{Value, element, global_rules};

    /// `attributes` are names and values; a value of `?` is not known yet.
    #[track_caller]
    fn check(name: &str, attributes: &[(&str, &'static str)], parent: Option<&str>, told: &[&str]) {
        let value_of = |wanted: &str| match attributes.iter().find(|(name, _)| *name == wanted) {
            None => Value::Absent,
            Some((_, "?")) => Value::Unknown,
            Some((_, value)) => Value::Is(value),
        };
        let known = element(name).expect("a name of the standard");
        let rules = known.rules.iter().chain(global_rules());
        let broken = rules.filter(|rule| rule.is_broken(value_of, parent));
        assert!(broken.map(ToString::to_string).eq(told.iter().copied()), "{name}");
    }

    #[test]
    fn what_breaks_a_rule_is_told() {
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
    fn what_is_not_known_breaks_no_rule() {
        check("input", &[("type", "?")], None, &[]);
        check("link", &[("rel", "?"), ("href", "a"), ("as", "font"), ("sizes", "any")], None, &[]);
        check("source", &[], None, &[]);
        check("script", &[("defer", ""), ("src", "?")], None, &[]);
    }
}
