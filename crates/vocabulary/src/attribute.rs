//! HTML attributes and the values that they take.

use core::fmt;

use crate::date_time;
use crate::words::Words;

/// An attribute of one element, or a global attribute.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Its name. `data-*` represents all names with this prefix.
    pub name: &'static str,
    /// The kind of value that it takes.
    pub kind: Kind,
    /// If the attribute is deprecated: the replacement to recommend.
    pub deprecated: Option<&'static str>,
    /// The values of `type` with which the attribute is allowed. Empty: any.
    pub types: Words,
}

/// The kind of value that an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// Any text, or no value, which has a separate meaning: `download`.
    TextOrNone,
    /// No value: only its presence counts (HTML 2.3.2).
    Boolean,
    /// A URL that the browser follows.
    Url,
    /// A non-negative integer (HTML 2.3.4.2).
    Whole,
    /// A positive integer.
    Positive,
    /// An integer (HTML 2.3.4.1).
    Integer,
    /// A number, with or without a fraction (HTML 2.3.4.3).
    Number,
    /// The id of an element of the page.
    Id,
    /// Ids, separated by spaces.
    Ids,
    /// A `#` followed by a name (HTML 2.3.9).
    Fragment,
    /// A language tag (BCP 47), or an empty value for an unknown language.
    Language,
    /// A date or a time in one of the formats with these names (HTML 2.3.5).
    Moment(Words),
    /// A word from the list (HTML 2.3.3).
    Words(Words),
    /// A word from the list, or no value, which has a separate meaning: `crossorigin`.
    WordsOrNone(Words),
    /// A word from the list, or a name that the page defines: `target`.
    WordsOrText(Words),
    /// Words from the list, separated by spaces (HTML 2.3.7).
    WordList(Words),
    /// ARIA roles, separated by spaces, in order of preference.
    Roles,
    /// CSS declarations.
    Style,
    /// JavaScript code that handles an event.
    Script,
}

impl Kind {
    /// Returns the words that have a meaning, for suggestions and messages.
    pub fn words(self) -> Words {
        match self {
            Self::Words(words)
            | Self::WordsOrNone(words)
            | Self::WordsOrText(words)
            | Self::WordList(words) => words,
            _ => Words::default(),
        }
    }

    /// Returns whether the value may be omitted.
    pub fn allows_no_value(self) -> bool {
        matches!(self, Self::Boolean | Self::TextOrNone | Self::WordsOrNone(_))
    }
}

/// Formats the kind for messages: `it takes ..`.
impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => to.write_str("a text"),
            Self::TextOrNone => to.write_str("a text, or no value"),
            Self::Boolean => to.write_str("no value"),
            Self::Url => to.write_str("an address"),
            Self::Whole => to.write_str("a whole number that is not negative"),
            Self::Positive => to.write_str("a whole number from 1 on"),
            Self::Integer => to.write_str("a whole number"),
            Self::Number => to.write_str("a number"),
            Self::Id => to.write_str("an id, without spaces"),
            Self::Ids => to.write_str("ids with spaces between"),
            Self::Fragment => to.write_str("a name after a `#`"),
            Self::Language => to.write_str("the tag of a language, `en` or `pt-BR`"),
            Self::Moment(forms) => {
                let formats =
                    date_time::FORMATS.iter().filter(|(format, _)| forms.contains(format));
                for (place, (_, example)) in formats.enumerate() {
                    write!(to, "{}{example}", if place == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
            Self::Words(words) => write!(to, "one of {words}"),
            Self::WordsOrNone(words) => write!(to, "no value, or one of {words}"),
            Self::WordsOrText(words) => write!(to, "a name, or one of {words}"),
            Self::WordList(words) => write!(to, "any of {words}, with spaces between"),
            Self::Roles => to.write_str("roles of ARIA with spaces between"),
            Self::Style => to.write_str("declarations of CSS"),
            Self::Script => to.write_str("a program"),
        }
    }
}

/// Returns the kind of value that `value`, `min` and `max` take on an `input` with this `type`, if
/// it is stricter than text (HTML 4.10.5.1).
pub fn input_value_kind(of: &str) -> Option<Kind> {
    let form = match of {
        "date" => "date",
        "datetime-local" => "local",
        "month" => "month",
        "time" => "time",
        "week" => "week",
        "number" | "range" => return Some(Kind::Number),
        _ => return None,
    };
    Some(Kind::Moment(Words::new(form)))
}
