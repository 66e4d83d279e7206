//! Decides who may do what with channels over HTTP.

/// Who may do what with channels over HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// Nobody: they are for the program's own pages.
    #[default]
    None,
    /// Everybody may follow; the program alone publishes.
    Follow,
    /// Everybody may follow and publish. For development, or behind a filter of the program's own.
    Everything,
}
