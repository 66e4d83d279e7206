//! ARIA roles, states and properties.

use crate::words::Words;

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
