//! ARIA roles, states and properties.

use crate::Words;
use crate::attribute::{self, Attribute};
use crate::table::{ROLES, STATES};

/// An ARIA role.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// The word for the attribute `role`.
    pub name: &'static str,
    /// The `aria-..` attributes that this role supports, besides the global ones.
    pub states: Words,
    /// The attributes that it requires.
    pub required: Words,
    /// The global attributes that it prohibits.
    pub prohibited: Words,
}

/// Returns the role with this name.
pub fn role(name: &str) -> Option<&'static Role> {
    let place = ROLES.binary_search_by(|role| role.name.cmp(name)).ok()?;
    ROLES.get(place)
}

/// Returns all roles that a page may use, sorted by name. Abstract roles are not included.
pub fn roles() -> &'static [Role] {
    &ROLES
}

/// Returns the `aria-..` attribute with this name, including the prefix.
pub fn state(name: &str) -> Option<&'static Attribute> {
    attribute::find(&STATES, name)
}

/// Returns all `aria-..` attributes, sorted by name.
pub fn states() -> &'static [Attribute] {
    &STATES
}
