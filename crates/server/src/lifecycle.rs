//! The states of a server from start to end.

/// The state of a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum State {
    /// The server serves requests.
    Serving,
    /// The server finishes the requests that have begun.
    Draining,
    /// The server ends now.
    Over,
}
