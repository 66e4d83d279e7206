//! Errors in markup: a message and the place that it refers to.

/// An error in markup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The origin of the node or the attribute that is wrong.
    pub origin: usize,
    /// The error and its fix, in a form for the author of the markup.
    pub message: String,
}
