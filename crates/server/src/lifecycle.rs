//! The states of a server, from its start to its end.

/// How far a server is from its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum State {
    /// It serves.
    Serving,
    /// It finishes what has begun.
    Draining,
    /// It ends now.
    Over,
}
