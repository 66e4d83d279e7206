//! The settings for certificates from an ACME authority, present even in programs built without
//! ACME.

use std::path::PathBuf;

use crate::sites::HostPattern;

/// The settings for certificates from an ACME authority.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct AcmeChoices {
    /// The address of the authority's directory.
    pub(crate) directory: String,
    /// The contact address for the authority.
    pub(crate) email: Option<String>,
    /// Root certificates to trust for the authority; `None` means those of the system.
    pub(crate) roots: Option<PathBuf>,
    /// The host names of the server itself, besides the hosts of its sites.
    pub(crate) hosts: Vec<HostPattern>,
}
