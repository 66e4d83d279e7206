//! Decides what the server asks of the program it serves: who is asking, and what to answer.

pub(crate) mod failure;
mod file_part;
mod hold;
mod incoming;
mod outgoing;
pub(crate) mod spool;
mod stream;
mod visitor;
pub(crate) mod warmth;
mod wire;

use std::rc::Rc;
use std::sync::Arc;

use bine_admission::Admission;
use bine_http::Head;

use crate::address::Peer;
use crate::time::Clock;

pub use file_part::FilePart;
pub use hold::{After, Bell, Deliver, Hold, MakeWaiters, Sent, Waiters, Why};
pub use incoming::{Body, Incoming, Retained};
pub use outgoing::{Done, Finished, Follow, LaterReply, Outgoing};
pub use spool::Spool;
pub use stream::{Gone, Sender, Stream, Writing};
pub use visitor::{Visitor, Who};
pub use wire::{Living, Parting, Upgrade, Wire};

pub(crate) use failure::{FAILED, apologize, error_reply, excuse, failed, farewell_to, run_work};
pub(crate) use incoming::RetainedPool;
pub(crate) use stream::{Streaming, Taken, guarded};
pub(crate) use wire::{Space, Terms, live};

/// A program behind the server, shared by all threads.
pub trait Handler: Send + Sync + 'static {
    /// A part of the program for one thread, which may keep what needs no lock there.
    fn local(&self, bench: Bench) -> Box<dyn Responder>;
}

/// What a [`Responder`] may use of the thread it lives on.
#[derive(Clone)]
pub struct Bench {
    /// The thread's clock, read once per turn.
    pub clock: Rc<Clock>,
    /// Content beyond this many bytes should be drained while it is written.
    pub chunk_at: usize,
    /// Who lets sessions in.
    pub admission: Arc<Admission>,
}

/// One thread's share of a program.
pub trait Responder {
    /// Who is asking, settled before anything else runs. Looks at memory only and never waits.
    fn admit(&mut self, head: &Head<'_>, peer: Peer) -> Who;

    /// Answers one request, by appending a whole reply to `out` or as [`Answer`] says. When it
    /// panics, what it appended is dropped and the peer gets a 500.
    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer;

    /// Appends the whole reply to a request whose handler panicked in `respond`; the connection closes behind it,
    /// as `request` says. Where it appends nothing the peer gets a line of text.
    fn failed(&mut self, _request: &Incoming<'_>, _out: &mut Vec<u8>) {}

    /// Whether what `respond` has answered last begins a session, or goes on with one: so whoever asks again on the same
    /// connection is no stranger. Without it they are known by their tickets alone.
    fn begins(&self) -> bool {
        false
    }

    /// The handler that `respond` ran last, for the log.
    fn last(&self) -> &'static str;

    /// Whether what it answered has no line in the access log.
    fn is_unlogged(&self) -> bool {
        false
    }
}

/// How a request is answered.
pub enum Answer {
    /// The reply stands in the buffer.
    Written {
        /// The connection must close behind it.
        close: bool,
    },
    /// The reply's head stands in the buffer; a file follows it.
    File(FilePart),
    /// The reply's head stands in the buffer; content that is yet to be written follows it.
    Stream(Stream),
    /// The reply's head stands in the buffer; what it agrees to takes the connection over when it has left.
    Upgrade(Upgrade),
    /// Ask again when the whole body is here. A longer one is refused with 413.
    Collect {
        /// The most bytes this handler takes.
        limit: u64,
        /// It takes them from disk too: a body of more than 256 KiB is [filed](Body::Filed), and as
        /// many bytes are taken as the settings allow on disk.
        on_disk: bool,
    },
    /// The reply will come. The future must not block; the server drops it at its deadline.
    Later(LaterReply),
    /// The same, of use only to a client that keeps its connection open in both directions: the future is dropped when the
    /// client closes its half, by which browsers say that they have left. A scheduler that gives each connection a thread
    /// notices it when the reply is there.
    WhileOpen(LaterReply),
    /// Nothing is to be said before something happens: the connection rests until then.
    Hold(Hold),
    /// Run this where it may block.
    Work(Arc<dyn Work>),
}

/// A handler that may block, with the page it writes.
pub trait Work: Send + Sync {
    /// Answers `request` into `out`, on whatever thread the scheduler chose. A long reply may be drained while it is
    /// written; that waits for a peer that reads slowly.
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done;

    /// Appends the whole reply to a request in whose `run` it panicked; the connection closes behind it, as `request`
    /// says. Where it appends nothing the peer gets a line of text.
    fn failed(&self, _request: &Incoming<'_>, _clock: &Clock, _out: &mut Vec<u8>) {}

    /// Its name, for the log.
    fn name(&self) -> &'static str;
}
