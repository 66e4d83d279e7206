//! Word sets, stored as one string: they cost little at compile time and at run time.

use core::fmt;
use core::str::SplitAsciiWhitespace;

/// A set of words, such as the allowed values of an attribute. Sorted by bytes, unless their order
/// has a meaning.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Words(&'static str);

impl Words {
    /// Creates a set from words separated by single spaces.
    pub(crate) const fn new(text: &'static str) -> Self {
        Self(text)
    }

    /// Returns whether the set contains a word. ASCII letters match in either case, as in HTML and
    /// CSS.
    pub fn contains(self, word: &str) -> bool {
        self.iter().any(|own| own.eq_ignore_ascii_case(word))
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the words in order.
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

/// Formats the words for messages: in backticks, separated by commas.
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
    fn finds_whole_words_in_either_case() {
        let words = Words::new("flex flow-root none");
        assert!(words.contains("flex") && words.contains("None"));
        assert!(
            !words.contains("flow") && !words.contains("flex flow-root") && !words.contains("")
        );
    }

    #[test]
    fn formats_words_in_order() {
        assert_eq!(Words::new("a b c").to_string(), "`a`, `b`, `c`");
        assert_eq!(Words::default().to_string(), "");
        assert!(Words::default().is_empty() && Words::default().iter().next().is_none());
    }
}
