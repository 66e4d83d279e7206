//! HTML attributes and the values that they take.

use core::fmt;

use crate::table::{EVENT_HANDLERS, GLOBAL_ATTRIBUTES};
use crate::{Words, aria, date_time};

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
    /// Returns whether a value is well-formed. CSS declarations and code are not checked, nor
    /// whether the page has an element with an id.
    pub fn accepts(self, value: &str) -> bool {
        match self {
            Self::Text
            | Self::TextOrNone
            | Self::WordsOrText(_)
            | Self::Url
            | Self::Style
            | Self::Script => true,
            // The XHTML form has an empty value.
            Self::Boolean => value.is_empty(),
            Self::Whole => is_whole(value),
            Self::Positive => is_whole(value) && value.bytes().any(|byte| byte != b'0'),
            Self::Integer => is_whole(value.strip_prefix('-').unwrap_or(value)),
            Self::Number => is_number(value),
            Self::Id => {
                !value.is_empty() && !value.contains(|char: char| char.is_ascii_whitespace())
            }
            Self::Ids => value.split_ascii_whitespace().next().is_some(),
            Self::Fragment => value.len() > 1 && value.starts_with('#'),
            Self::Language => value.is_empty() || is_language(value),
            Self::Moment(forms) => forms.iter().any(|form| date_time::has_format(form, value)),
            Self::Words(words) => words.contains(value),
            Self::WordsOrNone(words) => value.is_empty() || words.contains(value),
            Self::WordList(words) => {
                value.split_ascii_whitespace().all(|word| words.contains(word))
            }
            Self::Roles => {
                let mut roles = value.split_ascii_whitespace().peekable();
                roles.peek().is_some() && roles.all(|role| aria::role(role).is_some())
            }
        }
    }

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

/// Returns the global attributes of HTML, sorted by name, without `on..` and `aria-..`.
pub fn global_attributes() -> &'static [Attribute] {
    &GLOBAL_ATTRIBUTES
}

/// Returns the event handler attributes of every element, sorted by name.
pub fn event_handlers() -> &'static [Attribute] {
    &EVENT_HANDLERS
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
        return aria::state(name);
    }
    find(&GLOBAL_ATTRIBUTES, name)
}

/// Returns the attribute with this name from a list that is sorted by name.
pub(crate) fn find(attributes: &'static [Attribute], name: &str) -> Option<&'static Attribute> {
    let place = attributes.binary_search_by(|attribute| attribute.name.cmp(name)).ok()?;
    attributes.get(place)
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

/// Returns whether the value looks like a language tag: parts of one to eight letters or digits,
/// separated by dashes; the first part has letters only. The meaning of the parts is not checked.
fn is_language(value: &str) -> bool {
    let is_part = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    value.split('-').all(is_part)
        && value
            .split('-')
            .next()
            .is_some_and(|first| first.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

fn is_whole(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// An optional sign, digits, an optional fraction and an optional exponent. Digits or a fraction
/// are required.
fn is_number(value: &str) -> bool {
    let value = value.strip_prefix('-').unwrap_or(value);
    let (value, exponent) = value.split_once(['e', 'E']).map_or((value, "0"), |split| split);
    if !is_whole(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)) {
        return false;
    }
    match value.split_once('.') {
        None => is_whole(value),
        Some((whole, fraction)) => (whole.is_empty() || is_whole(whole)) && is_whole(fraction),
    }
}

#[cfg(test)]
mod tests {
    use std::string::{String, ToString as _};

    use proptest::prelude::*;

    use super::{Kind, global, input_value_kind};
    use crate::Words;

    #[test]
    fn accepts_numbers_in_the_format_of_the_standard() {
        for (kind, right, wrong) in [
            (Kind::Whole, &["0", "007", "65534"][..], &["", "-1", "+1", "1.0", "1 ", "ten"][..]),
            (Kind::Positive, &["1", "10"], &["0", "00", "-1", "", "1.5"]),
            (Kind::Integer, &["0", "-1", "12"], &["", "-", "--1", "+1", "1e3"]),
            (Kind::Number, &["0", "-.5", "1.5e-3", "2E+6"], &["", ".", "1.", "-", "e3", "+1"]),
        ] {
            assert!(right.iter().all(|value| kind.accepts(value)), "{kind}");
            assert!(!wrong.iter().any(|value| kind.accepts(value)), "{kind}");
        }
    }

    #[test]
    fn accepts_listed_words_and_meaningful_empty_values() {
        let words = Words::new("anonymous use-credentials");
        assert!(Kind::Words(words).accepts("Anonymous") && !Kind::Words(words).accepts(""));
        assert!(Kind::WordsOrNone(words).accepts("") && !Kind::WordsOrNone(words).accepts("x"));
        assert!(Kind::WordsOrText(words).accepts("x"));
        assert!(Kind::WordList(words).accepts("use-credentials anonymous"));
        assert!(!Kind::WordList(words).accepts("anonymous x"));
        assert!(Kind::Roles.accepts("none presentation") && !Kind::Roles.accepts("buton"));
    }

    #[test]
    fn checks_language_tags_and_fragments() {
        for tag in ["", "en", "pt-BR", "zh-Hant-TW", "de-1996", "x-hop", "sl-rozaj-biske"] {
            assert!(Kind::Language.accepts(tag), "{tag}");
        }
        for tag in ["en_US", "english please", "e n", "-", "en-", "1a", "languages1"] {
            assert!(!Kind::Language.accepts(tag), "{tag}");
        }
        assert!(Kind::Fragment.accepts("#a") && !Kind::Fragment.accepts("a"));
        assert!(!Kind::Fragment.accepts("#") && !Kind::Fragment.accepts(""));
    }

    #[test]
    fn input_value_kind_depends_on_type() {
        let takes = |of, value| input_value_kind(of).is_none_or(|kind| kind.accepts(value));
        assert!(takes("date", "2026-11-21") && !takes("date", "21.11.2026"));
        assert!(takes("datetime-local", "2026-11-21T08:30") && !takes("week", "2026-47"));
        assert!(takes("range", "0.5") && !takes("number", "many") && takes("text", "many"));
        let message = input_value_kind("time").map(|kind| kind.to_string());
        assert_eq!(message.as_deref(), Some("a time, `08:30`"));
    }

    #[test]
    fn rejects_spaces_in_ids() {
        assert!(Kind::Id.accepts("a-1") && !Kind::Id.accepts("a 1") && !Kind::Id.accepts(""));
        assert!(Kind::Ids.accepts("a b") && !Kind::Ids.accepts(" "));
    }

    #[test]
    fn finds_global_attributes_by_prefix() {
        let kind = |name| global(name).map(|attribute| attribute.kind.to_string());
        assert_eq!(kind("data-place").as_deref(), Some("a text"));
        assert_eq!(kind("onclick").as_deref(), Some("a program"));
        assert_eq!(kind("aria-busy").as_deref(), Some("one of `false`, `true`"));
        assert_eq!(kind("tabindex").as_deref(), Some("a whole number"));
        assert_eq!(kind("data-").or(kind("onclic")).or(kind("aria-bussy")), None);
    }

    proptest! {
        #[test]
        fn accepts_numbers_that_rust_and_the_standard_accept(
            value in "-?[0-9]{0,2}[.]?[0-9]{0,2}([eE][+-]?[0-9]{0,2})?",
        ) {
            // Rust also accepts a point at the end.
            let ends_well = !value.contains(".e") && !value.contains(".E") && !value.ends_with('.');
            prop_assert_eq!(Kind::Number.accepts(&value), value.parse::<f64>().is_ok() && ends_well);
        }

        #[test]
        fn checks_any_text(value in any::<String>()) {
            if Kind::Whole.accepts(&value) {
                prop_assert!(Kind::Integer.accepts(&value) && Kind::Id.accepts(&value));
            }
            if Kind::Integer.accepts(&value) {
                prop_assert!(Kind::Number.accepts(&value));
            }
        }
    }
}
