//! Decides how the kinds of content that HTML tells apart are kept: as bits.

use core::fmt;

/// A set of the categories of HTML 3.2.5.2, and what belongs to none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Categories(u16);

impl Categories {
    /// No category.
    pub const NONE: Self = Self(0);
    /// What sets up the rest of the page: `title`, `link`.
    pub const METADATA: Self = Self(1);
    /// What stands in a body: nearly everything.
    pub const FLOW: Self = Self(1 << 1);
    /// What runs in a line of text: `em`, `img`.
    pub const PHRASING: Self = Self(1 << 2);
    /// What shows another resource or language: `img`, `svg`.
    pub const EMBEDDED: Self = Self(1 << 3);
    /// What the reader acts upon: `button`.
    pub const INTERACTIVE: Self = Self(1 << 4);
    /// `h1` to `h6`, `hgroup`.
    pub const HEADING: Self = Self(1 << 5);
    /// `article`, `aside`, `nav`, `section`.
    pub const SECTIONING: Self = Self(1 << 6);
    /// `script`, `template`.
    pub const SCRIPT_SUPPORTING: Self = Self(1 << 7);
    /// What has its place in certain elements only: `li`, `td`. No category of the standard's.
    pub const PART: Self = Self(1 << 8);
    /// What a `label` may be for: `input`, `meter`.
    pub const LABELABLE: Self = Self(1 << 9);
    /// All of them.
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

    /// What is in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the two have a category in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it has none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// As in a message: the standard's names, commas between.
impl fmt::Display for Categories {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (category, name) in Self::NAMES {
            if self.meets(category) {
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
    fn a_set_is_told_by_the_names_of_the_standard() {
        let both = Categories::FLOW.or(Categories::SCRIPT_SUPPORTING);
        assert_eq!(both.to_string(), "flow, script-supporting");
        assert_eq!(Categories::NONE.to_string(), "");
    }

    #[test]
    fn every_category_has_its_own_bit_and_a_name() {
        let named = Categories::NAMES.iter().fold(Categories::NONE, |all, (one, _)| {
            assert!(!all.meets(*one), "{one}");
            all.or(*one)
        });
        assert_eq!(named, Categories::ALL);
    }
}
