//! Conditions on the attributes of an element.

use core::fmt;

use crate::categories::Categories;
use crate::words::Words;

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
