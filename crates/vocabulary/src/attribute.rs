//! Decides what an attribute is, and what values it takes.

use core::fmt;

use crate::table::{EVENT_HANDLERS, GLOBAL_ATTRIBUTES};
use crate::{Words, aria, moment};

/// An attribute, of one element or of all.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Its name as it is written; `data-*` stands for all that begin so.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// That the standard has done away with it, and what to write instead.
    pub deprecated: Option<&'static str>,
    /// The words in `type` beside which it may stand; none: beside any.
    pub types: Words,
}

/// What values an attribute takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// Any text, or no value at all, which means something of its own: `download`.
    TextOrNone,
    /// No value: that the attribute is there is all it says (HTML 2.3.2).
    Boolean,
    /// An address, which a browser follows.
    Url,
    /// A whole number, not negative (HTML 2.3.4.2).
    Whole,
    /// A whole number, not zero nor negative.
    Positive,
    /// A whole number (HTML 2.3.4.1).
    Integer,
    /// A number, with a fraction or not (HTML 2.3.4.3).
    Number,
    /// The id of an element of the page.
    Id,
    /// Ids with spaces between.
    Ids,
    /// A name after a `#` (HTML 2.3.9).
    Fragment,
    /// The tag of a language, or nothing: a language that is not known (BCP 47).
    Language,
    /// A date or a time in one of the forms of these names (HTML 2.3.5).
    Moment(Words),
    /// One of these words (HTML 2.3.3).
    Words(Words),
    /// One of these words, or no value, which means something of its own: `crossorigin`.
    WordsOrNone(Words),
    /// One of these words, which have a meaning, or a name of the page's own: `target`.
    WordsOrText(Words),
    /// Any of these words, with spaces between (HTML 2.3.7).
    WordList(Words),
    /// Roles of ARIA with spaces between, the preferred one first.
    Roles,
    /// Declarations of CSS.
    Style,
    /// A program: what an event is answered with.
    Script,
}

impl Kind {
    /// Whether a value is well formed. Declarations and programs are not looked into, and whether an id is one of
    /// the page's only the page knows.
    pub fn accepts(self, value: &str) -> bool {
        match self {
            Self::Text
            | Self::TextOrNone
            | Self::WordsOrText(_)
            | Self::Url
            | Self::Style
            | Self::Script => true,
            // As XHTML spells it.
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
            Self::Moment(forms) => forms.iter().any(|form| moment::has_form(form, value)),
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

    /// The words that have a meaning, for the nearest one and for a list of them.
    pub fn words(self) -> Words {
        match self {
            Self::Words(words)
            | Self::WordsOrNone(words)
            | Self::WordsOrText(words)
            | Self::WordList(words) => words,
            _ => Words::default(),
        }
    }

    /// Whether the attribute may stand without a value.
    pub fn may_be_bare(self) -> bool {
        matches!(self, Self::Boolean | Self::TextOrNone | Self::WordsOrNone(_))
    }
}

/// As in a message: `it takes ..`.
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
                let told = moment::FORMS.iter().filter(|(form, _)| forms.contains(form));
                for (place, (_, example)) in told.enumerate() {
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

/// The attributes that every element of HTML has, in the order of their names; `on..` and `aria-..` are in lists of
/// their own.
pub fn global_attributes() -> &'static [Attribute] {
    &GLOBAL_ATTRIBUTES
}

/// The `on..` attributes that every element has, in the order of their names.
pub fn event_handlers() -> &'static [Attribute] {
    &EVENT_HANDLERS
}

/// An attribute that every element has.
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

/// The attribute of a name in a list that is in the order of names.
pub(crate) fn find(attributes: &'static [Attribute], name: &str) -> Option<&'static Attribute> {
    let place = attributes.binary_search_by(|attribute| attribute.name.cmp(name)).ok()?;
    attributes.get(place)
}

/// What `value`, `min` and `max` take beside a word in the `type` of an `input`, if that is more than some text
/// (HTML 4.10.5.1).
pub fn input_value(of: &str) -> Option<Kind> {
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

/// Letters and digits in parts of one to eight, dashes between; letters first. What the parts mean is not looked at.
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

/// A sign, digits, a fraction, an exponent; of digits and fraction at least one.
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

    use super::{Kind, global, input_value};
    use crate::Words;

    #[test]
    fn numbers_have_the_form_that_the_standard_gives_them() {
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
    fn words_are_those_of_the_list_and_nothing_only_where_it_means_something() {
        let words = Words::new("anonymous use-credentials");
        assert!(Kind::Words(words).accepts("Anonymous") && !Kind::Words(words).accepts(""));
        assert!(Kind::WordsOrNone(words).accepts("") && !Kind::WordsOrNone(words).accepts("x"));
        assert!(Kind::WordsOrText(words).accepts("x"));
        assert!(Kind::WordList(words).accepts("use-credentials anonymous"));
        assert!(!Kind::WordList(words).accepts("anonymous x"));
        assert!(Kind::Roles.accepts("none presentation") && !Kind::Roles.accepts("buton"));
    }

    #[test]
    fn languages_have_dashes_and_fragments_a_hash() {
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
    fn what_an_input_takes_hangs_on_its_type() {
        let takes = |of, value| input_value(of).is_none_or(|kind| kind.accepts(value));
        assert!(takes("date", "2026-11-21") && !takes("date", "21.11.2026"));
        assert!(takes("datetime-local", "2026-11-21T08:30") && !takes("week", "2026-47"));
        assert!(takes("range", "0.5") && !takes("number", "many") && takes("text", "many"));
        let told = input_value("time").map(|kind| kind.to_string());
        assert_eq!(told.as_deref(), Some("a time, `08:30`"));
    }

    #[test]
    fn ids_have_no_spaces() {
        assert!(Kind::Id.accepts("a-1") && !Kind::Id.accepts("a 1") && !Kind::Id.accepts(""));
        assert!(Kind::Ids.accepts("a b") && !Kind::Ids.accepts(" "));
    }

    #[test]
    fn what_every_element_has_is_found_by_the_beginning_of_its_name() {
        let kind = |name| global(name).map(|attribute| attribute.kind.to_string());
        assert_eq!(kind("data-place").as_deref(), Some("a text"));
        assert_eq!(kind("onclick").as_deref(), Some("a program"));
        assert_eq!(kind("aria-busy").as_deref(), Some("one of `false`, `true`"));
        assert_eq!(kind("tabindex").as_deref(), Some("a whole number"));
        assert_eq!(kind("data-").or(kind("onclic")).or(kind("aria-bussy")), None);
    }

    proptest! {
        #[test]
        fn a_number_is_what_rust_reads_as_one_and_the_standard_too(
            value in "-?[0-9]{0,2}[.]?[0-9]{0,2}([eE][+-]?[0-9]{0,2})?",
        ) {
            // Rust also reads a point at the end.
            let ends_well = !value.contains(".e") && !value.contains(".E") && !value.ends_with('.');
            prop_assert_eq!(Kind::Number.accepts(&value), value.parse::<f64>().is_ok() && ends_well);
        }

        #[test]
        fn any_text_is_judged(value in any::<String>()) {
            if Kind::Whole.accepts(&value) {
                prop_assert!(Kind::Integer.accepts(&value) && Kind::Id.accepts(&value));
            }
            if Kind::Integer.accepts(&value) {
                prop_assert!(Kind::Number.accepts(&value));
            }
        }
    }
}
