//! Names of elements and attributes that are known only at run time.

use alloc::boxed::Box;
use core::error::Error;
use core::fmt;

use super::SelectorError;

/// The reason why a tree operation is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TreeError {
    /// The name is not a valid element name: an ASCII letter, then letters, digits, `-`, `_`, `.`
    /// or `:`.
    ElementName(Box<str>),
    /// The name is not a valid attribute name: it is empty, or contains a space, a quote, `<`, `>`,
    /// `/`, `=`, `&` or a control character.
    AttributeName(Box<str>),
    /// The attribute contains code (`onclick`, `style`, `srcdoc`), where no escape makes text safe.
    /// Use [`set_code`](super::Element::set_code), which accepts only [`raw`](crate::raw) text.
    Code(Box<str>),
    /// The selector of the change is invalid.
    Selector(SelectorError),
}

impl fmt::Display for TreeError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ElementName(name) => write!(
                to,
                "invalid element name {name:?}: use a letter, then letters, digits, `-`, `_`, `.` or `:`"
            ),
            Self::AttributeName(name) => write!(
                to,
                "invalid attribute name {name:?}: do not use spaces, quotes, `<`, `>`, `/`, `=` or `&`"
            ),
            Self::Code(name) => write!(
                to,
                "text cannot be made safe in `{name}`, which a browser runs: use a `data-*` attribute, or \
                 `set_code` with `raw(..)` for trusted code"
            ),
            Self::Selector(error) => error.fmt(to),
        }
    }
}

impl Error for TreeError {}

impl From<SelectorError> for TreeError {
    fn from(error: SelectorError) -> Self {
        Self::Selector(error)
    }
}

/// Checks an element's name.
pub(super) fn element(name: &str) -> Result<(), TreeError> {
    let is_right = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(is_name_char);
    if is_right { Ok(()) } else { Err(TreeError::ElementName(name.into())) }
}

/// Checks an attribute's name by the rules of HTML (13.1.2.3). XML is stricter: see [`is_xml`].
pub(super) fn attribute(name: &str) -> Result<(), TreeError> {
    let ends_a_name =
        |char: char| char.is_whitespace() || char.is_control() || "\"'<>/=&".contains(char);
    if name.is_empty() || name.contains(ends_a_name) {
        return Err(TreeError::AttributeName(name.into()));
    }
    Ok(())
}

/// Whether a name is also valid in XML (XML 1.0, section 2.3).
pub(super) fn is_xml(name: &str) -> bool {
    let begins =
        |first: char| is_name_char(first) && !first.is_ascii_digit() && !"-.\u{b7}".contains(first);
    name.starts_with(begins) && name.chars().all(is_name_char)
}

/// Whether XML allows the character in a name (section 2.3). HTML's own names use a subset.
fn is_name_char(char: char) -> bool {
    match char {
        // Excluded from the ranges below: multiplication and division signs, Greek question mark.
        '\u{d7}' | '\u{f7}' | '\u{37e}' => false,
        'a'..='z'
        | 'A'..='Z'
        | '0'..='9'
        | '-'
        | '_'
        | '.'
        | ':'
        | '\u{b7}'
        | '\u{c0}'..='\u{1fff}'
        | '\u{200c}'
        | '\u{200d}'
        | '\u{203f}'
        | '\u{2040}'
        | '\u{2070}'..='\u{218f}'
        | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}'
        | '\u{f900}'..='\u{fdcf}'
        | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_names_that_end_the_tag() {
        for name in ["", "1a", "a b", "a>", "a/", "a\"", "<a", "a\n", "a=b", "\u{e4}"] {
            assert_eq!(element(name), Err(TreeError::ElementName(name.into())), "{name:?}");
        }
        for name in ["", "a b", "a>", "a/", "a\"", "a'", "<a", "a\n", "a=b", "a\0", "a&b"] {
            assert_eq!(attribute(name), Err(TreeError::AttributeName(name.into())), "{name:?}");
        }
        for name in ["p", "my-element.x_1", "foreignObject", "svg:g", "a-\u{e4}"] {
            assert_eq!(element(name), Ok(()));
        }
        for name in ["a", "@click", "data-x", "xlink:href", "[x]", "\u{e4}"] {
            assert_eq!(attribute(name), Ok(()));
        }
        assert!(is_xml("data-x") && is_xml("_a") && !is_xml("@click") && !is_xml("-a"));
    }
}
