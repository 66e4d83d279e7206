//! Byte streams in memory: a connection of HTTP/2 carries many of them, and each one is a connection
//! for the event loop.
//!
//! A stream has two ends on one thread. The [`MemoryTransport`] is the transport of a connection in
//! the slab of the event loop, as a socket is. The [`ClientEnd`] is used by a task, which acts as the
//! client. Events of a stream, which epoll reports for a socket, go through a [`StreamQueue`] that the
//! loop reads in each turn.

mod events;
mod pipe;
mod queue;

pub(crate) use pipe::{ClientEnd, Closed, MemoryTransport};
pub(crate) use queue::{StreamArrival, StreamQueue};
