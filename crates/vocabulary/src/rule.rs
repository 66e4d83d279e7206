//! Decides what the attributes of one element say of each other.

use crate::table::GLOBAL_RULES;
use crate::{Given, Words};

/// A rule on the attributes of one element (HTML 4, "must be present", "must be omitted").
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// One of these has to be there.
    Any(Words),
    /// It has to be there if that holds.
    Needs(&'static str, Given),
    /// None of these may be there unless that holds.
    Only(Words, Given),
    /// It has to be there if the parent is one of these elements.
    In(&'static str, Words),
}

/// The rules that hold for every element.
pub fn global_rules() -> &'static [Rule] {
    &GLOBAL_RULES
}
