//! Requests as handlers see them, borrowed from the receive buffer or retained beyond their turn.

use std::sync::Arc;

use bine_http::{Exchange, Head, HeadIndex};

use crate::address::Peer;
use crate::handler::spool::Spool;
use crate::handler::visitor::Who;
use crate::limits::Reservation;

/// A request as a handler sees it: views into the thread's read buffer, or into a copy of it.
#[derive(Clone, Copy)]
pub struct Incoming<'a> {
    /// Request line and fields.
    pub head: Head<'a>,
    /// Its content, once [`Answer::Collect`](crate::Answer::Collect) asked for it.
    pub body: Body<'a>,
    /// Where it came from.
    pub peer: Peer,
    /// Who asks.
    pub who: &'a Who,
    /// When it arrived, in seconds since 1970.
    pub arrival: u64,
    /// Something that [begins](crate::Responder::begins) a session was answered on its connection before.
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

/// Requests kept past their turn, used again so that handing one to a worker allocates nothing.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "they travel to workers and back, as one pointer")]
pub(crate) struct RetainedPool(Vec<Box<Retained>>);

impl RetainedPool {
    pub(crate) fn take(&mut self, request: &Incoming<'_>, began: u64) -> Box<Retained> {
        let mut kept = match self.0.pop() {
            Some(mut kept) => {
                kept.refill(request);
                kept
            }
            None => Box::new(Retained::of(request)),
        };
        kept.began = began;
        kept
    }

    pub(crate) fn put(&mut self, mut request: Box<Retained>) {
        (request.spool, request.who) = (None, Who::Anonymous);
        request.reserved = Reservation::default();
        if self.0.len() < 256 && request.head.capacity() + request.body.capacity() < 32 * 1024 {
            self.0.push(request);
        }
    }
}
