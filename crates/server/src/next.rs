//! The result of a stage: the next step of a connection.

/// The next step of a connection after a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Receives and parses a request.
    Request,
    /// Produces the response.
    Response(ResponseKind),
    /// Sends the reply.
    Reply,
    /// Waits for its socket or its deadline.
    Idle,
    /// Waits for a reply from a worker or a task, or for an event if its response is suspended.
    Park,
    /// Has sent all output of a suspended response. There may be more.
    Held,
    /// Leaves HTTP: the connection moves to the owner of a different protocol, at once or after an
    /// upgrade.
    Depart,
    /// Has ended.
    Closed,
}

/// Whether a response may block the thread that produces it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseKind {
    /// Never blocks: files, constants, async handlers.
    Static,
    /// May block.
    Dynamic,
}
