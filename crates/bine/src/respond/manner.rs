//! The kind of response that the client of a service or an action expects.

/// The kind of response that the client of a call expects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResponsePreference {
    /// Whether the client reads pages rather than JSON.
    pub(crate) reads_pages: bool,
    /// Whether the call was safe, so that no redirect back is necessary.
    pub(crate) is_safe: bool,
    /// The page that sent the call.
    pub(crate) page: Option<String>,
}
