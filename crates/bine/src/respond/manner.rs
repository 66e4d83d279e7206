//! How the client of a service or an action reads its response.

/// How a caller wants to be spoken to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manner {
    /// It reads pages rather than JSON.
    pub(crate) reads_pages: bool,
    /// Nothing was changed, so that there is nothing to go back for.
    pub(crate) is_safe: bool,
    /// The page that called.
    pub(crate) page: Option<String>,
}
