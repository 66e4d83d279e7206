//! Decides which roles and states ARIA has.

use crate::Words;
use crate::attribute::{self, Attribute};
use crate::table::{ROLES, STATES};

/// A role that an element can be given.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// The word in `role`.
    pub name: &'static str,
    /// The `aria-..` attributes that an element of this role may have beyond those of every role.
    pub states: Words,
    /// Those that it must have.
    pub required: Words,
    /// Those of every role that it may not have.
    pub prohibited: Words,
}

/// The role of a name.
pub fn role(name: &str) -> Option<&'static Role> {
    let place = ROLES.binary_search_by(|role| role.name.cmp(name)).ok()?;
    ROLES.get(place)
}

/// Every role that a page may use, in the order of their names.
pub fn roles() -> &'static [Role] {
    &ROLES
}

/// The `aria-..` attribute of a name, with the prefix.
pub fn state(name: &str) -> Option<&'static Attribute> {
    attribute::find(&STATES, name)
}

/// Every `aria-..` attribute, in the order of their names.
pub fn states() -> &'static [Attribute] {
    &STATES
}
