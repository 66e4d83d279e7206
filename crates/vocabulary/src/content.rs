//! Decides what may stand in an element: directly, and anywhere below.

use core::fmt;

use crate::{Categories, Element, Words};

/// What an element may have as children (HTML 3.2.5, "content model").
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// Any element of one of these.
    pub categories: Categories,
    /// These elements as well.
    pub elements: Words,
    /// Those of them that may come but once.
    pub once: Words,
    /// Whether text that is not blank may stand in it.
    pub text: bool,
    /// Whether what may stand in its parent may stand in it too, in place of `categories`: see [`Self::inside`].
    pub transparent: bool,
}

impl Content {
    /// Nothing at all.
    pub const NOTHING: Self = Self {
        categories: Categories::NONE,
        elements: Words::new(""),
        once: Words::new(""),
        text: false,
        transparent: false,
    };
    /// A group of terms: what a `div` in `dl` has (HTML 4.4.9).
    pub const GROUP: Self = Self {
        categories: Categories::SCRIPT_SUPPORTING,
        elements: Words::new("dd dt"),
        ..Self::NOTHING
    };
    /// Anything: in `template`, in a custom element, and where a page's outer part is not known.
    pub const ANYTHING: Self = Self { categories: Categories::ALL, text: true, ..Self::NOTHING };

    /// Whether an element may be a child. `categories` are the child's own and those that its attributes add: see
    /// [`Element::sometimes`].
    pub fn admits(&self, child: &Element, categories: Categories) -> bool {
        self.categories.meets(categories) || self.elements.contains(child.name)
    }

    /// The content of an element that stands in one with the content `outer`: what is transparent takes over what
    /// that admits.
    #[must_use]
    pub fn inside(&self, outer: &Self) -> Self {
        if !self.transparent {
            return *self;
        }
        // No element that has parts of its own may stand where other parts are wanted, so one list is enough.
        let elements = if self.elements.is_empty() { outer.elements } else { self.elements };
        Self { elements, once: self.once, transparent: false, ..*outer }
    }
}

/// As in a message: `allowed here: ..`.
impl fmt::Display for Content {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.transparent {
            to.write_str("what the parent may contain")?;
        } else if self.categories == Categories::ALL {
            to.write_str("anything")?;
        } else if !self.categories.is_empty() {
            // Where these may stand, text may too.
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

/// What an element may not have below it, at any depth, though a nearer element would admit it.
#[derive(Clone, Copy, Debug)]
pub struct Excluded {
    /// Any element of one of these.
    pub categories: Categories,
    /// These elements as well.
    pub elements: Words,
}

impl Excluded {
    /// Whether an element may not be a descendant. `categories` as for [`Content::admits`].
    pub fn names(&self, descendant: &Element, categories: Categories) -> bool {
        self.categories.meets(categories) || self.elements.contains(descendant.name)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::Content;
    use crate::element;

    fn content(name: &str) -> Content {
        element(name).expect("a name of the standard").content
    }

    #[track_caller]
    fn check(content: Content, told: &str) {
        assert_eq!(content.to_string(), told);
    }

    #[test]
    fn what_may_stand_there_is_told_for_a_message() {
        check(content("ul"), "script-supporting content, `li`");
        check(content("html"), "`body`, `head`");
        check(content("p"), "phrasing content");
        check(content("title"), "text");
        check(content("br"), "nothing");
        check(content("template"), "anything");
        check(content("video"), "what the parent may contain, `source`, `track`");
    }

    #[test]
    fn what_is_transparent_takes_over_what_is_around_it() {
        let in_line = content("video").inside(&content("p"));
        check(in_line, "phrasing content, `source`, `track`");
        assert!(in_line.text && !in_line.transparent);
        check(content("a").inside(&in_line), "phrasing content, `source`, `track`");
        check(content("ul").inside(&in_line), "script-supporting content, `li`");
    }
}
