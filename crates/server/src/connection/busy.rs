//! The part of a connection that exists only while something is under way.

use crate::access::Leaving;
use crate::handler::{FilePart, Retained, Streaming, Upgrade};
use crate::limits::Reservation;

/// What a connection needs only while something is under way.
#[derive(Default)]
pub(crate) struct Busy {
    /// Received, but not yet understood or not yet due.
    pub(crate) input: Vec<u8>,
    /// Replies that did not fit into the socket, from `sent` on.
    pub(crate) output: Vec<u8>,
    pub(crate) sent: usize,
    /// What `output` holds of the server's budget.
    pub(crate) owed: Reservation,
    /// A file behind `output`.
    pub(crate) file: Option<FilePart>,
    /// The file is in memory up to here, or was when somebody looked.
    pub(crate) warm_to: u64,
    /// Its next part is being brought there.
    pub(crate) warms_up: bool,
    /// Content behind `output` that is still being written.
    pub(crate) stream: Option<Streaming>,
    /// Takes the connection over behind `output`.
    pub(crate) upgrade: Option<Upgrade>,
    /// What the access log will tell of the reply that leaves.
    pub(crate) leaving: Option<Leaving>,
    /// The request whose body is being collected or whose handler is at work elsewhere.
    pub(crate) request: Option<Box<Retained>>,
    /// The most bytes of body to collect into `request`.
    pub(crate) collect: u64,
    /// What does not fit into memory goes to disk.
    pub(crate) on_disk: bool,
    /// A piece of the body is on its way to disk.
    pub(crate) storing: Option<Storing>,
    /// The request whose answer is being made is a HEAD.
    pub(crate) is_head: bool,
    /// The handler that is at work elsewhere, for the log.
    pub(crate) handler: &'static str,
    /// Drops the task of a handler that awaits.
    pub(crate) task: Option<tokio::task::AbortHandle>,
    /// The task is of no use once the client has closed its half.
    pub(crate) is_while_open: bool,
}

/// What comes behind a piece of a body that is being stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Storing {
    /// More of the body.
    Part,
    /// The handler.
    Last,
}

impl Busy {
    /// Buffers above this size are given back to the system rather than kept. A pool of them is as large as the
    /// worst moment was: with 16 KiB each, an hour of mixed use with such moments made it 300 KiB larger.
    const KEPT: usize = 4 * 1024;

    pub(crate) fn is_spent(&self) -> bool {
        self.input.is_empty()
            && self.output.len() == self.sent
            && self.file.is_none()
            && self.stream.is_none()
            && self.upgrade.is_none()
            && self.storing.is_none()
            && self.request.is_none()
            && self.leaving.is_none()
            && self.task.is_none()
            && !self.is_head
    }

    /// Empties it for the next use, and keeps small buffers.
    pub(crate) fn reset(&mut self) {
        let empty = |mut buffer: Vec<u8>| {
            buffer.clear();
            if buffer.capacity() > Self::KEPT { Vec::new() } else { buffer }
        };
        *self = Self {
            input: empty(std::mem::take(&mut self.input)),
            output: empty(std::mem::take(&mut self.output)),
            ..Self::default()
        };
    }
}
