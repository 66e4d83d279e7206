//! Byte streams in memory: a connection of HTTP/2 carries many of them, and each one is a connection
//! for the event loop.
//!
//! A stream has two ends on one thread. The [`MemoryTransport`] is the transport of a connection in
//! the slab of the event loop, as a socket is. The [`StreamEnd`] is used by a task. Events of a
//! stream, which epoll reports for a socket, go through a [`StreamQueue`] that the loop reads in
//! each turn.

mod pipe;
mod queue;

pub(crate) use pipe::{Closed, MemoryTransport, StreamEnd, stream};
pub(crate) use queue::{Arrival, StreamQueue};
