//! Checks of attribute values against their kind.

use crate::attribute::Kind;
use crate::{date_time, lookup};

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
                roles.peek().is_some() && roles.all(|role| lookup::role(role).is_some())
            }
        }
    }
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

    use crate::attribute::{Kind, input_value_kind};
    use crate::words::Words;

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
