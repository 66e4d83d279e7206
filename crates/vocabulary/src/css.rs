//! CSS names and keywords.

use crate::words::Words;

/// A CSS property.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// Its name in lower case.
    pub name: &'static str,
    /// The keywords of the grammar outside of functions. [`colors`](crate::colors) and the CSS-wide keywords are
    /// separate.
    pub words: Words,
    /// Whether it takes a color, so that the keywords of [`colors`](crate::colors) are valid too.
    pub colors: bool,
    /// Whether it takes a number without a unit, other than 0.
    pub numbers: bool,
    /// Whether it takes names that the page defines, so that every word is valid.
    pub names: bool,
    /// The property for which this is an older name.
    pub alias_of: Option<&'static str>,
}

/// A CSS at-rule.
#[derive(Clone, Copy, Debug)]
pub struct AtRule {
    /// Its name without the `@`.
    pub name: &'static str,
    /// The descriptors that its block allows. For `media` and `container`: the features that a
    /// condition may test.
    pub descriptors: Words,
}
