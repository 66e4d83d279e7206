//! The outcomes of a stage: which stage of a connection follows.

/// What a stage returns: where its connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Receive and understand a request.
    Request,
    /// Make the response.
    Response(Kind),
    /// Send what was made.
    Reply,
    /// Nothing to do until the socket says so or the deadline comes.
    Idle,
    /// Nothing to do until a reply that is made elsewhere comes back, or something happens that it waits for.
    Park,
    /// All that was owed to a waiter has left; there may be more.
    Held,
    /// It goes to somebody who speaks its peer's protocol, at once or by agreement.
    Depart,
    /// It is over.
    Closed,
}

/// What a response may do to the thread that makes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It never blocks: files, constants, async handlers.
    Static,
    /// It may block.
    Dynamic,
}
