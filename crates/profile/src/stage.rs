//! The stages of a request.

/// A stage of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// Work that belongs to no request: the start, timers, logs and other threads.
    Outside,
    /// A connection is accepted.
    Accept,
    /// Bytes are received, and decrypted with TLS.
    Receive,
    /// A request is parsed, its body is stored, and its client is identified.
    Parse,
    /// Filters, rights, and the search for the route or the file.
    Route,
    /// Admission control decides.
    Admission,
    /// A handler runs, with the page that it writes.
    Handler,
    /// The response is sent, and its line of the access log is written.
    Write,
    /// A connection of HTTP/2 is read and written.
    Http2,
}

impl Stage {
    /// All stages, in the order of a request.
    pub const ALL: [Self; 9] = [
        Self::Outside,
        Self::Accept,
        Self::Receive,
        Self::Parse,
        Self::Route,
        Self::Admission,
        Self::Handler,
        Self::Write,
        Self::Http2,
    ];

    /// The name of the stage in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Accept => "accept",
            Self::Receive => "receive",
            Self::Parse => "parse",
            Self::Route => "route",
            Self::Admission => "admission",
            Self::Handler => "handler",
            Self::Write => "write",
            Self::Http2 => "http2",
        }
    }

    /// The stage with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == name)
    }
}
