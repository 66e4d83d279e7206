//! [`Polyglot`]: serialization as markup that HTML and XML parsers read alike, as `html!` writes
//! it.

use super::TreeWriter;

/// Writes HTML in a spelling that is valid XML too. It overrides no method of [`TreeWriter`]; other
/// writers delegate to it for the default behavior.
#[derive(Clone, Copy, Default, Debug)]
pub struct Polyglot;

impl TreeWriter for Polyglot {}
