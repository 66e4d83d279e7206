//! Decides what the pipeline asks of the program it serves: who is asking, and what to answer.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bine_admission::Admission;
use bine_http::{Exchange, Head, HeadIndex};

use crate::address::Peer;
use crate::budget::Reservation;
use crate::clock::Clock;
use crate::hold::Hold;
use crate::spool::Spool;
use crate::stream::Stream;
use crate::wire::Upgrade;

/// A program behind the pipeline, shared by all threads.
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

/// Who asks.
#[derive(Clone, Default)]
pub enum Who {
    /// Nobody of whom anything is known.
    #[default]
    Anonymous,
    /// Somebody of whom the program knows something.
    Known(Arc<dyn Visitor>),
}

/// What a program knows of whoever asks. It is found out once, in [`Responder::admit`], and goes with the request.
pub trait Visitor: Any + Send + Sync {
    /// By what name they are a user, if they are one.
    fn user(&self) -> Option<&str>;
}

/// A user of whom nothing but the name is known.
impl Visitor for String {
    fn user(&self) -> Option<&str> {
        Some(self)
    }
}

impl Who {
    /// A user of this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self::Known(Arc::new(name.into()))
    }

    /// By what name they are a user, if they are one.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::Known(visitor) => visitor.user(),
        }
    }

    /// What is known of them, if it is this.
    pub fn known<V: Visitor>(&self) -> Option<Arc<V>> {
        let Self::Known(visitor) = self else { return None };
        let visitor: Arc<dyn Any + Send + Sync> = Arc::<dyn Visitor>::clone(visitor);
        visitor.downcast().ok()
    }

    /// The same for the access log, which wants no more than the name.
    pub(crate) fn forget(&mut self) {
        *self = self.user().map_or(Self::Anonymous, Self::named);
    }
}

impl fmt::Debug for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Who({})", self.user().unwrap_or("nobody"))
    }
}

/// A request as a handler sees it: views into the thread's read buffer, or into a copy of it.
#[derive(Clone, Copy)]
pub struct Incoming<'a> {
    /// Request line and fields.
    pub head: Head<'a>,
    /// Its content, once [`Answer::Collect`] asked for it.
    pub body: Body<'a>,
    /// Where it came from.
    pub peer: Peer,
    /// Who asks.
    pub who: &'a Who,
    /// When it arrived, in seconds since 1970.
    pub arrival: u64,
    /// Something that [begins](Responder::begins) a session was answered on its connection before.
    pub has_begun: bool,
    /// What the reply must know of the request.
    pub exchange: Exchange,
}

/// The state of a request's content.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// It has none.
    None,
    /// It is still on its way.
    Coming,
    /// It is here, whole.
    Here(&'a [u8]),
    /// It is on disk, whole.
    Filed(&'a Arc<Spool>),
}

/// Where a reply is written.
pub struct Outgoing<'a> {
    /// The reply goes behind what is here already, which are earlier replies of this connection.
    pub buffer: &'a mut Vec<u8>,
    /// Sends what it can of `buffer` now. What is left stays in front.
    pub drain: &'a mut dyn FnMut(&mut Vec<u8>),
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
    /// The reply will come. The future must not block; the pipeline drops it at its deadline.
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

/// A reply in the making.
pub type LaterReply = Pin<Box<dyn Future<Output = Finished>>>;

/// A reply made away from the connection's buffer.
#[derive(Debug, Default)]
pub struct Finished {
    /// The reply, or its head if something follows.
    pub bytes: Vec<u8>,
    /// What follows the head.
    pub follow: Option<Follow>,
    /// The connection must close behind it.
    pub close: bool,
}

impl Finished {
    /// There is no reply, or none yet.
    pub(crate) fn is_nothing(&self) -> bool {
        self.bytes.is_empty() && self.follow.is_none()
    }
}

/// What follows a head that stands in a buffer.
#[derive(Debug)]
pub enum Follow {
    /// A part of a file.
    File(FilePart),
    /// Content that is yet to be written.
    Stream(Stream),
    /// What takes the connection over.
    Upgrade(Upgrade),
    /// Nothing is in the buffer: the whole reply comes when something happens.
    Hold(Hold),
}

/// A part of a file that follows a reply's head.
#[derive(Clone)]
pub struct FilePart {
    /// The file, open for reading; shared, since a cache may keep it.
    pub file: Arc<OwnedFd>,
    /// Where the part begins, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub length: u64,
}

impl fmt::Debug for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilePart({}+{})", self.offset, self.length)
    }
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

/// What came of a [`Work`].
#[derive(Debug, Default)]
pub struct Done {
    /// What follows the head it wrote.
    pub follow: Option<Follow>,
    /// The connection must close behind it.
    pub close: bool,
}

/// A request kept past its turn: its own copy of the head, and the body if it was collected.
#[derive(Clone, Debug)]
pub struct Retained {
    pub(crate) head: Vec<u8>,
    pub(crate) index: HeadIndex,
    pub(crate) body: Vec<u8>,
    /// What of the body went to disk; all of it when the handler runs.
    pub(crate) spool: Option<Arc<Spool>>,
    /// What `body` holds of the server's budget.
    pub(crate) reserved: Reservation,
    pub(crate) has_body: bool,
    pub(crate) peer: Peer,
    pub(crate) who: Who,
    pub(crate) arrival: u64,
    /// The same in microseconds of the access log, which may need it.
    pub(crate) began: u64,
    pub(crate) has_begun: bool,
    pub(crate) exchange: Exchange,
}

impl Retained {
    /// A copy of `request` that owns its bytes.
    pub fn of(request: &Incoming<'_>) -> Self {
        let (body, spool) = match request.body {
            Body::Here(bytes) => (bytes.to_vec(), None),
            Body::Filed(spool) => (Vec::new(), Some(Arc::clone(spool))),
            Body::None | Body::Coming => (Vec::new(), None),
        };
        Self {
            head: request.head.raw().to_vec(),
            index: request.head.index(),
            body,
            spool,
            reserved: Reservation::default(),
            has_body: request.head.framing() != bine_http::Framing::None,
            peer: request.peer,
            who: request.who.clone(),
            arrival: request.arrival,
            began: 0,
            has_begun: request.has_begun,
            exchange: request.exchange,
        }
    }

    /// The same for another request, in the buffers that are here already.
    pub(crate) fn refill(&mut self, request: &Incoming<'_>) {
        // Named one by one, so that no field of the last request can be forgotten.
        let Self {
            head,
            index,
            body,
            spool,
            reserved,
            has_body,
            peer,
            who,
            arrival,
            began,
            has_begun,
            exchange,
        } = self;
        head.clear();
        head.extend_from_slice(request.head.raw());
        *index = request.head.index();
        body.clear();
        *spool = None;
        *reserved = Reservation::default();
        match request.body {
            Body::Here(bytes) => body.extend_from_slice(bytes),
            Body::Filed(filed) => *spool = Some(Arc::clone(filed)),
            Body::None | Body::Coming => {}
        }
        *has_body = request.head.framing() != bine_http::Framing::None;
        *peer = request.peer;
        who.clone_from(request.who);
        *arrival = request.arrival;
        *began = 0;
        *has_begun = request.has_begun;
        *exchange = request.exchange;
    }

    /// Frees the body, which nobody reads any more, and gives back what it held of the budget.
    pub(crate) fn drop_body(&mut self) {
        (self.body, self.spool) = (Vec::new(), None);
        self.reserved = Reservation::default();
    }

    /// The whole body is there.
    pub(crate) fn settle(&mut self) {
        self.reserved.settle();
        if let Some(spool) = &self.spool {
            spool.settle();
        }
    }

    /// Whether others need what its body holds.
    pub(crate) fn is_evicted(&self) -> bool {
        self.reserved.is_evicted() || self.spool.as_ref().is_some_and(|spool| spool.is_evicted())
    }

    /// The request as a handler sees it.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming {
            head: Head::from_parts(&self.head, self.index),
            body: match &self.spool {
                Some(spool) => Body::Filed(spool),
                None if self.has_body => Body::Here(&self.body),
                None => Body::None,
            },
            peer: self.peer,
            who: &self.who,
            arrival: self.arrival,
            has_begun: self.has_begun,
            exchange: self.exchange,
        }
    }
}
