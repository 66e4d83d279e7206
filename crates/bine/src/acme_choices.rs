//! The choices by which certificates are had from an authority, whether or not the program can ask one.

use std::path::PathBuf;

use crate::sites::HostPattern;

/// How certificates are had from an authority.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct AcmeChoices {
    /// The address of the authority.
    pub(crate) directory: String,
    /// Whom it may write to.
    pub(crate) email: Option<String>,
    /// Whom to trust when speaking to it; `None`: whom the system trusts.
    pub(crate) roots: Option<PathBuf>,
    /// Of the server itself, beside those of its sites.
    pub(crate) hosts: Vec<HostPattern>,
}
