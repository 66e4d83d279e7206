//! The part of a connection's state that exists only while it is busy.

use std::rc::Rc;

use crate::access::PendingEntry;
use crate::connection::AnsweredRequest;
use crate::handler::{BodyFlow, FilePart, Retained, Streaming, Upgrade};
use crate::limits::Reservation;

/// The state of a connection that exists only while it is busy.
#[derive(Default)]
pub(crate) struct Busy {
    /// Received bytes that are not parsed yet, or that belong to a later request.
    pub(crate) input: Vec<u8>,
    /// Replies that did not fit into the socket; the bytes before `sent` have been sent.
    pub(crate) output: Vec<u8>,
    pub(crate) sent: usize,
    /// The bytes that `output` holds of the server's budget.
    pub(crate) output_reservation: Reservation,
    /// A file that follows `output`.
    pub(crate) file: Option<FilePart>,
    /// The file was in the page cache up to this offset at the last check.
    pub(crate) warm_to: u64,
    /// Whether a worker reads the next part of the file into the page cache.
    pub(crate) warms_up: bool,
    /// Content that follows `output` and is still being written.
    pub(crate) stream: Option<Streaming>,
    /// Takes over the connection after `output` has been sent.
    pub(crate) upgrade: Option<Upgrade>,
    /// The access log entry of the reply that is being sent.
    pub(crate) pending_entry: Option<PendingEntry>,
    /// The request whose body is being collected, or whose handler runs elsewhere.
    pub(crate) request: Option<Box<Retained>>,
    /// The limit of the body that is collected into `request`, in bytes.
    pub(crate) collect: u64,
    /// Whether a body that does not fit into memory is stored on disk.
    pub(crate) on_disk: bool,
    /// Whether a piece of the body is being written to disk.
    pub(crate) storing: Option<Storing>,
    /// Whether the request that is being answered is a HEAD.
    pub(crate) is_head: bool,
    /// The request whose response takes more than one turn, for the log.
    pub(crate) answered: AnsweredRequest,
    /// The handler that runs elsewhere, for the log.
    pub(crate) handler: &'static str,
    /// Aborts the task of an async handler.
    pub(crate) task: Option<tokio::task::AbortHandle>,
    /// The rest of the body, which goes to the handler in pieces while the task runs.
    pub(crate) body_flow: Option<Rc<BodyFlow>>,
    /// Whether the task is aborted when the client closes its sending half.
    pub(crate) is_while_open: bool,
}

/// The next step after a piece of a body has been stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Storing {
    /// More of the body.
    Part,
    /// The handler.
    Last,
}

impl Busy {
    /// A larger buffer is freed instead of kept. The pool of buffers stays at its peak size: with
    /// 16 KiB each, an hour of mixed load with short peaks made it 300 KiB larger.
    const MAX_BUFFER: usize = 4 * 1024;

    pub(crate) fn is_spent(&self) -> bool {
        self.input.is_empty()
            && self.output.len() == self.sent
            && self.file.is_none()
            && self.stream.is_none()
            && self.upgrade.is_none()
            && self.storing.is_none()
            && self.request.is_none()
            && self.pending_entry.is_none()
            && self.task.is_none()
            && self.body_flow.is_none()
            && !self.is_head
    }

    /// The bytes of the current replies that are not in the socket, as far as they are known: the
    /// rest of a stream is not written yet.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        let file = self.file.as_ref().map_or(0, |file| file.length);
        (self.output.len() - self.sent) as u64 + file
    }

    /// Empties it for the next use and keeps small buffers.
    pub(crate) fn reset(&mut self) {
        let empty = |mut buffer: Vec<u8>| {
            buffer.clear();
            if buffer.capacity() > Self::MAX_BUFFER { Vec::new() } else { buffer }
        };
        self.answered.clear();
        *self = Self {
            answered: std::mem::take(&mut self.answered),
            input: empty(std::mem::take(&mut self.input)),
            output: empty(std::mem::take(&mut self.output)),
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_bytes_that_are_not_in_the_socket() {
        let mut busy = Busy { output: vec![0; 10], sent: 4, ..Busy::default() };
        assert_eq!(busy.unsent_bytes(), 6);
        let file = std::sync::Arc::new(std::fs::File::open("/dev/null").unwrap().into());
        busy.file = Some(FilePart { file, offset: 7, length: 100 });
        assert_eq!(busy.unsent_bytes(), 106);
        busy.sent = 10;
        assert_eq!(busy.unsent_bytes(), 100);
        assert!(!busy.is_spent(), "a part of a file is unsent");
        busy.file = None;
        assert!(busy.is_spent());
        busy.sent = 9;
        assert!(!busy.is_spent(), "a byte is unsent");
    }

    #[test]
    fn keeps_only_small_buffers() {
        let buffer = |length| Vec::with_capacity(length);
        let mut busy = Busy {
            input: buffer(Busy::MAX_BUFFER),
            output: buffer(Busy::MAX_BUFFER + 1),
            sent: 3,
            ..Busy::default()
        };
        busy.input.push(1);
        busy.reset();
        assert_eq!((busy.input.len(), busy.input.capacity()), (0, Busy::MAX_BUFFER));
        assert_eq!((busy.output.capacity(), busy.sent), (0, 0));
    }
}
