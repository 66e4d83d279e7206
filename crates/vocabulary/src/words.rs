//! Decides how a set of words is kept: as one text, so that it costs a compiler and a program next to nothing.

use core::fmt;
use core::str::SplitAsciiWhitespace;

/// Words, such as the values of an attribute that are allowed, in the order of their bytes unless they tell one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Words(&'static str);

impl Words {
    /// The words of a text, one space between two of them.
    pub(crate) const fn new(text: &'static str) -> Self {
        Self(text)
    }

    /// Whether a word is among them; ASCII letters match in either case, as they do in HTML and CSS.
    pub fn contains(self, word: &str) -> bool {
        self.iter().any(|own| own.eq_ignore_ascii_case(word))
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Each of them, in order.
    pub fn iter(self) -> SplitAsciiWhitespace<'static> {
        self.0.split_ascii_whitespace()
    }
}

impl IntoIterator for Words {
    type Item = &'static str;
    type IntoIter = SplitAsciiWhitespace<'static>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// As in a message: each word in backticks, commas between.
impl fmt::Display for Words {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, word) in self.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(to, "{comma}`{word}`")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, to)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::Words;

    #[test]
    fn a_word_is_found_whole_and_in_either_case() {
        let words = Words::new("flex flow-root none");
        assert!(words.contains("flex") && words.contains("None"));
        assert!(
            !words.contains("flow") && !words.contains("flex flow-root") && !words.contains("")
        );
    }

    #[test]
    fn words_are_told_in_order_and_none_as_nothing() {
        assert_eq!(Words::new("a b c").to_string(), "`a`, `b`, `c`");
        assert_eq!(Words::default().to_string(), "");
        assert!(Words::default().is_empty() && Words::default().iter().next().is_none());
    }
}
