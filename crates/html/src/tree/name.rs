//! Decides which names an element and an attribute may have that come while the program runs.

use alloc::boxed::Box;
use core::error::Error;
use core::fmt;

use super::SelectorError;

/// What cannot be done to a tree, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// No element can be called so: letters, digits, `-`, `_`, `.` and `:`, a letter of ASCII first.
    ElementName(Box<str>),
    /// No attribute can be called so: it has a space, a quote, `<`, `>`, `/`, `=`, `&` or a control character, or is
    /// empty.
    AttributeName(Box<str>),
    /// A browser runs or draws by what stands in this attribute (`onclick`, `style`, `srcdoc`), where no escape makes
    /// text safe: it takes [`raw`](crate::raw) text alone, by [`set_code`](super::Element::set_code).
    Code(Box<str>),
    /// Where it was to be changed cannot be told.
    Selector(SelectorError),
}

impl fmt::Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ElementName(name) => write!(
                to,
                "no element can be called {name:?}: a name is a letter, then letters, digits, `-`, `_`, `.` or `:`"
            ),
            Self::AttributeName(name) => write!(
                to,
                "no attribute can be called {name:?}: a name has no space, quote, `<`, `>`, `/`, `=` or `&`"
            ),
            Self::Code(name) => write!(
                to,
                "text cannot be made safe in `{name}`, which a browser runs: give it to a `data-*` attribute, or use \
                 `set_code` with `raw(..)` if every byte of it is yours"
            ),
            Self::Selector(error) => error.fmt(to),
        }
    }
}

impl Error for Refused {}

impl From<SelectorError> for Refused {
    fn from(error: SelectorError) -> Self {
        Self::Selector(error)
    }
}

/// Checks an element's name.
pub(super) fn element(name: &str) -> Result<(), Refused> {
    let is_right = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(is_of_a_name);
    if is_right { Ok(()) } else { Err(Refused::ElementName(name.into())) }
}

/// Checks an attribute's name: what ends none in HTML (13.1.2.3). XML is stricter: see [`is_xml`].
pub(super) fn attribute(name: &str) -> Result<(), Refused> {
    let ends_a_name =
        |char: char| char.is_whitespace() || char.is_control() || "\"'<>/=&".contains(char);
    if name.is_empty() || name.contains(ends_a_name) {
        return Err(Refused::AttributeName(name.into()));
    }
    Ok(())
}

/// Whether a name is one in XML too (XML 1.0, section 2.3).
pub(super) fn is_xml(name: &str) -> bool {
    let begins =
        |first: char| is_of_a_name(first) && !first.is_ascii_digit() && !"-.\u{b7}".contains(first);
    name.starts_with(begins) && name.chars().all(is_of_a_name)
}

/// The characters of a name in XML (section 2.3), of which those of HTML's own names are a part.
fn is_of_a_name(char: char) -> bool {
    match char {
        // These lie among the letters: the multiplication and division signs, and the Greek question mark.
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
    fn a_name_that_could_leave_its_tag_is_refused() {
        for name in ["", "1a", "a b", "a>", "a/", "a\"", "<a", "a\n", "a=b", "\u{e4}"] {
            assert_eq!(element(name), Err(Refused::ElementName(name.into())), "{name:?}");
        }
        for name in ["", "a b", "a>", "a/", "a\"", "a'", "<a", "a\n", "a=b", "a\0", "a&b"] {
            assert_eq!(attribute(name), Err(Refused::AttributeName(name.into())), "{name:?}");
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
