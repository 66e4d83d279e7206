//! Content models: which nodes an element allows as children and as descendants.

use core::fmt;

use crate::categories::Categories;
use crate::words::Words;

/// The content that an element allows directly (HTML 3.2.5, "content model").
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// The categories that are allowed.
    pub categories: Categories,
    /// Elements that are allowed in addition to the categories.
    pub elements: Words,
    /// The allowed elements that may occur at most once.
    pub once: Words,
    /// Whether text other than white space is allowed.
    pub text: bool,
    /// Whether the content model is transparent: the element allows what its parent allows, instead
    /// of `categories`. See [`Self::inherit_from`].
    pub transparent: bool,
}

impl Content {
    /// No content.
    pub const NOTHING: Self = Self {
        categories: Categories::NONE,
        elements: Words::new(""),
        once: Words::new(""),
        text: false,
        transparent: false,
    };
    /// A group of terms: the content of a `div` in a `dl` (HTML 4.4.9).
    pub const GROUP: Self = Self {
        categories: Categories::SCRIPT_SUPPORTING,
        elements: Words::new("dd dt"),
        ..Self::NOTHING
    };
    /// Any content: in `template`, in a custom element, and where the outer part of a page is
    /// unknown.
    pub const ANYTHING: Self = Self { categories: Categories::ALL, text: true, ..Self::NOTHING };

    /// Returns the content model of this element inside a parent with the content model `outer`. A
    /// transparent element takes over what the parent allows.
    #[must_use]
    pub fn inherit_from(&self, outer: &Self) -> Self {
        if !self.transparent {
            return *self;
        }
        // Elements with specific children never occur where other specific children are required,
        // so one list is enough.
        let elements = if self.elements.is_empty() { outer.elements } else { self.elements };
        Self { elements, once: self.once, transparent: false, ..*outer }
    }
}

/// Formats the content for messages: `allowed here: ..`.
impl fmt::Display for Content {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.transparent {
            to.write_str("what the parent may contain")?;
        } else if self.categories == Categories::ALL {
            to.write_str("anything")?;
        } else if !self.categories.is_empty() {
            // These categories imply text.
            write!(to, "{} content", self.categories)?;
        } else if self.text {
            to.write_str("text")?;
        } else if self.elements.is_empty() {
            to.write_str("nothing")?;
        }
        if self.elements.is_empty() {
            return Ok(());
        }
        let is_first = self.categories.is_empty() && !self.text && !self.transparent;
        write!(to, "{}{}", if is_first { "" } else { ", " }, self.elements)
    }
}

/// The descendants that an element excludes at any depth, even if a nearer element allows them.
#[derive(Clone, Copy, Debug)]
pub struct Excluded {
    /// The categories that are excluded.
    pub categories: Categories,
    /// Elements that are excluded in addition to the categories.
    pub elements: Words,
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::Content;
    use crate::element;

    fn content(name: &str) -> Content {
        element(name).expect("a standard element").content
    }

    #[track_caller]
    fn check(content: Content, expected: &str) {
        assert_eq!(content.to_string(), expected);
    }

    #[test]
    fn formats_content_for_messages() {
        check(content("ul"), "script-supporting content, `li`");
        check(content("html"), "`body`, `head`");
        check(content("p"), "phrasing content");
        check(content("title"), "text");
        check(content("br"), "nothing");
        check(content("template"), "anything");
        check(content("video"), "what the parent may contain, `source`, `track`");
    }

    #[test]
    fn transparent_content_inherits_from_parent() {
        let inline = content("video").inherit_from(&content("p"));
        check(inline, "phrasing content, `source`, `track`");
        assert!(inline.text && !inline.transparent);
        check(content("a").inherit_from(&inline), "phrasing content, `source`, `track`");
        check(content("ul").inherit_from(&inline), "script-supporting content, `li`");
    }
}
