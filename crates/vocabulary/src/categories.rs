//! HTML content categories as bit sets.

use core::fmt;

/// A set of the content categories of HTML 3.2.5.2, and of elements without one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Categories(u16);

impl Categories {
    /// No category.
    pub const NONE: Self = Self(0);
    /// Sets up the rest of the page: `title`, `link`.
    pub const METADATA: Self = Self(1);
    /// Elements in the body: nearly all.
    pub const FLOW: Self = Self(1 << 1);
    /// Elements in a line of text: `em`, `img`.
    pub const PHRASING: Self = Self(1 << 2);
    /// Elements that embed a resource or language: `img`, `svg`.
    pub const EMBEDDED: Self = Self(1 << 3);
    /// Elements for interaction: `button`.
    pub const INTERACTIVE: Self = Self(1 << 4);
    /// `h1` to `h6`, `hgroup`.
    pub const HEADING: Self = Self(1 << 5);
    /// `article`, `aside`, `nav`, `section`.
    pub const SECTIONING: Self = Self(1 << 6);
    /// `script`, `template`.
    pub const SCRIPT_SUPPORTING: Self = Self(1 << 7);
    /// Elements that are allowed only in certain parents: `li`, `td`. Not a category of the
    /// standard.
    pub const PART: Self = Self(1 << 8);
    /// Elements that a `label` may refer to: `input`, `meter`.
    pub const LABELABLE: Self = Self(1 << 9);
    /// All categories.
    pub const ALL: Self = Self((1 << 10) - 1);

    const NAMES: [(Self, &'static str); 10] = [
        (Self::METADATA, "metadata"),
        (Self::FLOW, "flow"),
        (Self::PHRASING, "phrasing"),
        (Self::EMBEDDED, "embedded"),
        (Self::INTERACTIVE, "interactive"),
        (Self::HEADING, "heading"),
        (Self::SECTIONING, "sectioning"),
        (Self::SCRIPT_SUPPORTING, "script-supporting"),
        (Self::PART, "part"),
        (Self::LABELABLE, "labelable"),
    ];

    /// Returns the union of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns whether the sets have a category in common.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Formats the set for messages: the names in the standard, separated by commas.
impl fmt::Display for Categories {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (category, name) in Self::NAMES {
            if self.intersects(category) {
                write!(to, "{comma}{name}")?;
                comma = ", ";
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Categories {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Categories({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::Categories;

    #[test]
    fn formats_names_of_the_standard() {
        let both = Categories::FLOW.or(Categories::SCRIPT_SUPPORTING);
        assert_eq!(both.to_string(), "flow, script-supporting");
        assert_eq!(Categories::NONE.to_string(), "");
    }

    #[test]
    fn each_category_has_its_own_bit_and_name() {
        let named = Categories::NAMES.iter().fold(Categories::NONE, |all, (one, _)| {
            assert!(!all.intersects(*one), "{one}");
            all.or(*one)
        });
        assert_eq!(named, Categories::ALL);
    }
}
