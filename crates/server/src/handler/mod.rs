//! The interface between the server and the program that it serves: requests in, answers out.

mod body_stream;
pub(crate) mod failure;
mod file_part;
mod identity;
mod incoming;
mod outgoing;
pub(crate) mod page_cache;
pub(crate) mod spool;
mod stream;
mod suspended_response;
mod wire;

use std::rc::Rc;
use std::sync::Arc;

use bine_admission::Admission;
use bine_http::{Exchange, Head, Status};

use crate::address::ClientAddress;
use crate::time::Clock;

pub use body_stream::{BodyReader, BodySource, body_stream};
pub use file_part::FilePart;
pub use identity::{Identity, Principal};
pub use incoming::{Body, Incoming, Retained};
pub use outgoing::{Done, Finished, Follow, Outgoing, ReplyFuture};
pub(crate) use spool::STORING;
pub use spool::Spool;
pub use stream::{ContentEncoder, Disconnected, Sender, Stream, StreamFuture};
pub use suspended_response::{
    SendOutcome, ServeOutcome, ServeReason, SuspendedResponse, WaiterSink, Waiters, WaitersFactory,
    WakeHandle,
};
pub use wire::{CloseReason, Upgrade, UpgradeFuture, UpgradedConnection};

pub(crate) use body_stream::{BodyEnd, BodyFlow};
pub(crate) use failure::{
    FAILURE_TEXT, closing_exchange_for, error_reply, failed, reply_after_panic, run_work,
    write_failure,
};
pub(crate) use incoming::RetainedPool;
pub(crate) use stream::{Streaming, Taken, guarded};
pub(crate) use wire::{ReceiveBuffer, UpgradeContext, run_upgrade};

/// The program that a server runs, shared by all threads.
pub trait Handler: Send + Sync + 'static {
    /// Creates the part of the program that one thread owns. It may keep state there without a
    /// lock.
    fn local(&self, handler_context: HandlerContext) -> Box<dyn Responder>;
}

/// The parts of its thread that a [`Responder`] may use.
#[derive(Clone)]
pub struct HandlerContext {
    /// The thread's clock, read once per turn.
    pub clock: Rc<Clock>,
    /// While content is written, a part longer than this many bytes should be drained.
    pub chunk_at: usize,
    /// Decides which sessions are admitted.
    pub admission: Arc<Admission>,
    /// Whether the requests are those that the program sends to itself. Their replies are written at
    /// once or later, by [`Answer::Written`], [`Answer::Later`] or [`Answer::Work`].
    pub is_internal: bool,
}

/// The part of a program that one thread owns.
pub trait Responder {
    /// Identifies the client, before anything else runs. Reads memory only and never waits.
    fn identify(&mut self, head: &Head<'_>, peer: ClientAddress) -> Identity;

    /// Answers one request: appends a whole reply to `out`, or returns a different [`Answer`]. If
    /// it panics, the server drops the bytes that it appended and sends a 500.
    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer;

    /// Appends the whole reply to a request whose handler panicked in `respond`. `request` asks for
    /// the connection to close after the reply. If this appends no bytes, the server sends a line
    /// of text.
    fn failed(&mut self, _request: &Incoming<'_>, _out: &mut Vec<u8>) {}

    /// Appends the whole reply to a request that the server rejects by itself. `request` is `None` if
    /// the server does not have it. If this appends no bytes, the server sends the text of the
    /// refusal.
    fn refuse(
        &mut self,
        _request: Option<&Incoming<'_>>,
        _refusal: &ServerRefusal,
        _out: &mut Outgoing<'_>,
    ) {
    }

    /// Whether the last answer of `respond` began a session or continued one. If so, a later
    /// request on the same connection counts as part of an existing session. Otherwise admission
    /// recognizes a session by its ticket only.
    fn begins(&self) -> bool {
        false
    }

    /// The name of the handler that `respond` ran last, for the log.
    fn last(&self) -> &'static str;

    /// Whether the last answer gets no line in the access log.
    fn is_unlogged(&self) -> bool {
        false
    }
}

/// The reply by which the server rejects a request by itself.
#[derive(Clone, Copy, Debug)]
pub struct ServerRefusal {
    /// The status: 503 for a queue that is full, 504 for a handler that was too slow, and that of the
    /// fault for a request that is malformed, too large or too slow.
    pub status: Status,
    /// The English text, a line.
    pub text: &'static str,
    /// Further lines of the head, each with its CRLF.
    pub lines: &'static str,
    /// The properties of the request that the reply depends on. The connection closes afterwards.
    pub exchange: Exchange,
}

/// How a request is answered.
pub enum Answer {
    /// The whole reply is in the buffer.
    Written {
        /// The connection must close after it.
        close: bool,
    },
    /// The head of the reply is in the buffer; a file follows it.
    File(FilePart),
    /// The head of the reply is in the buffer; content that is not written yet follows it.
    Stream(Stream),
    /// The head of the reply is in the buffer. When it has been sent, the upgrade takes over the
    /// connection.
    Upgrade(Upgrade),
    /// The server calls the handler again when it has received the whole body. It rejects a longer
    /// body with 413.
    Collect {
        /// The maximum length of the body in bytes.
        limit: u64,
        /// The handler also accepts a body from disk: one of more than 256 KiB is [stored
        /// there](Body::OnDisk), and the limit is at least the size that the settings allow on
        /// disk.
        on_disk: bool,
    },
    /// Like `Later`, for a handler that takes the body in pieces: the server receives it while the
    /// future runs, from the [source](BodySource) into its [reader](BodyReader).
    Receive(ReplyFuture, BodySource),
    /// A future produces the reply. It must not block; the server drops it at its deadline.
    Later(ReplyFuture),
    /// Like `Later`, for a reply that is useful only while the client keeps both directions of its
    /// connection open: the server drops the future when the client closes its sending half, which
    /// browsers do when they abandon a request. A scheduler with one thread per connection notices
    /// it only when the reply is ready.
    WhileOpen(ReplyFuture),
    /// The response is suspended: the connection waits for an event.
    Suspend(SuspendedResponse),
    /// Runs on a thread that may block, such as a worker.
    Work(Arc<dyn Work>),
}

/// A handler that may block, and writes its page.
pub trait Work: Send + Sync {
    /// Writes the reply to `request` into `out`, on a thread that the scheduler chooses. It may
    /// drain a long reply while it writes it; a drain waits for a client that reads slowly.
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done;

    /// Appends the whole reply to a request whose `run` panicked. `request` asks for the connection
    /// to close after the reply. If this appends no bytes, the server sends a line of text.
    fn failed(&self, _request: &Incoming<'_>, _clock: &Clock, _out: &mut Vec<u8>) {}

    /// The name of the handler, for the log.
    fn name(&self) -> &'static str;
}
