//! User names, as sessions, tokens and grants use them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::text::Text;

/// The name of a user. [`Session::log_in`](crate::Session::log_in), the `sub` of a
/// [token](crate::channels::TokenVerifier) and [`Grant::to`](crate::channels::Grant::to) all check names
/// by the same rule.
///
/// A name has 1 to 200 letters. It must not contain control characters, because names occur in logs
/// and header fields; white space at its ends, which readers cannot see; or any of `/ * { }`, so
/// that a name within the name of a channel is exactly one segment and never a pattern.
///
/// ```
/// use bine::UserName;
///
/// assert!(UserName::parse("ann@example.org").is_ok());
/// assert!(UserName::parse("*").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UserName(Arc<str>);

/// The error for a text that is not a [`UserName`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadUserName(String);

/// The most letters of a name.
const MOST: usize = 200;

impl UserName {
    /// Checks a text.
    ///
    /// # Errors
    ///
    /// The text is not a valid name; the error's message names the rule.
    pub fn parse(text: &str) -> Result<Self, BadUserName> {
        let is_wrong = |letter: char| {
            // Letters that change the direction of text, and the two line separators, disguise a
            // name.
            letter.is_control()
                || matches!(letter, '/' | '*' | '{' | '}')
                || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let is_right = (1..=MOST).contains(&text.chars().take(MOST + 1).count())
            && !text.contains(is_wrong)
            && text.trim() == text;
        if is_right {
            Ok(Self(text.into()))
        } else {
            Err(BadUserName(text.chars().take(MOST).collect()))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_shared(self) -> Arc<str> {
        self.0
    }
}

/// The form by which names and e-mail addresses are compared: case is folded by the mappings of the
/// standard library, and full-width letters become ordinary ones. This is less than NFKC, for which
/// the standard library has no tables; names of accounts have no combining characters.
pub(crate) fn name_key(name: &str) -> Text {
    let narrow = |letter: char| match letter {
        '\u{ff01}'..='\u{ff5e}' => {
            char::from_u32(u32::from(letter) - 0xff01 + 0x21).unwrap_or(letter)
        }
        letter => letter,
    };
    // In this order, letters such as the German sharp s and the final sigma fold as well.
    let upper: String = name.chars().map(narrow).flat_map(char::to_uppercase).collect();
    Text::from(upper.chars().flat_map(char::to_lowercase).collect::<String>())
}

/// How a program compares the names of users.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum NameComparison {
    /// Letter by letter: the program's own login may distinguish users by case.
    #[default]
    Exact,
    /// By [`name_key`], as accounts do.
    Folded,
}

impl NameComparison {
    /// The form of a name that is equal for all of its spellings.
    pub(crate) fn key(self, name: &str) -> Cow<'_, str> {
        // Most names are their own form, so that a comparison does not allocate.
        let is_plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
        match self {
            Self::Folded if !name.bytes().all(is_plain) => name_key(name).to_string().into(),
            Self::Exact | Self::Folded => name.into(),
        }
    }
}

impl Deref for UserName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl fmt::Display for BadUserName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{:?} is no name of a user: use 1 to {MOST} letters, without control characters, white space at the ends, \
             and / * {{ }}",
            self.0
        )
    }
}

impl std::error::Error for BadUserName {}

#[cfg(test)]
mod tests {
    use super::{UserName, name_key};

    #[test]
    fn rejects_names_that_are_ambiguous_in_other_contexts() {
        for right in
            ["a", "17", "Ann Smith", "ann@example.org", "auth0|17", "\u{e9}va", &"n".repeat(200)]
        {
            assert_eq!(UserName::parse(right).as_deref(), Ok(right));
        }
        for wrong in [
            "",
            " ",
            "*",
            "a*",
            "{x}",
            "{user}",
            "a/b",
            " a",
            "a ",
            "a\nb",
            "a\0",
            "\u{202e}a",
            &"n".repeat(201),
        ] {
            let message = UserName::parse(wrong).unwrap_err().to_string();
            assert!(message.contains("is no name of a user: use 1 to 200 letters"), "{message}");
        }
    }

    #[test]
    fn names_that_differ_in_case_only_are_the_same() {
        for (one, other) in [
            ("ann", "ANN"),
            ("Stra\u{df}e", "STRASSE"),
            ("\u{3a3}\u{3b1}\u{3c2}", "\u{3a3}\u{391}\u{3a3}"),
            ("\u{ff41}\u{ff4e}\u{ff4e}", "Ann"),
        ] {
            assert_eq!(name_key(one), name_key(other));
        }
        assert_ne!(name_key("ann"), name_key("anna"));
    }
}
