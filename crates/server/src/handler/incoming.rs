//! Requests as handlers see them, borrowed from the receive buffer or retained beyond their turn.

use std::sync::Arc;

use bine_http::{Exchange, Head, HeadIndex};

use crate::address::ClientAddress;
use crate::handler::identity::Identity;
use crate::handler::spool::Spool;
use crate::limits::Reservation;

/// A request as a handler sees it: views into the read buffer of the thread, or into a copy of it.
#[derive(Clone, Copy)]
pub struct Incoming<'a> {
    /// Request line and fields.
    pub head: Head<'a>,
    /// The content, after [`Answer::Collect`](crate::Answer::Collect) has asked for it.
    pub body: Body<'a>,
    /// The address of the client.
    pub peer: ClientAddress,
    /// The client's identity.
    pub identity: &'a Identity,
    /// When it arrived, in seconds since 1970.
    pub arrival: u64,
    /// Whether an earlier answer on the same connection [began](crate::Responder::begins) a
    /// session.
    pub has_begun: bool,
    /// The properties of the request on which the reply depends.
    pub exchange: Exchange,
}

/// The state of a request's content.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// The request has no content.
    None,
    /// Not received completely.
    Pending,
    /// Received completely; in memory.
    InMemory(&'a [u8]),
    /// Received completely; on disk.
    OnDisk(&'a Arc<Spool>),
}

/// A request that outlives its turn: its own copy of the head, and the body if it was collected.
#[derive(Clone, Debug)]
pub struct Retained {
    pub(crate) head: Vec<u8>,
    pub(crate) index: HeadIndex,
    pub(crate) body: Vec<u8>,
    /// The part of the body that is on disk; the whole body when the handler runs.
    pub(crate) spool: Option<Arc<Spool>>,
    /// The bytes that `body` holds of the server's budget.
    pub(crate) reserved: Reservation,
    pub(crate) has_body: bool,
    pub(crate) peer: ClientAddress,
    pub(crate) identity: Identity,
    pub(crate) arrival: u64,
    /// The time of arrival in microseconds, for the access log.
    pub(crate) began: u64,
    pub(crate) has_begun: bool,
    pub(crate) exchange: Exchange,
}

impl Retained {
    /// A copy of `request` that owns its bytes.
    pub fn of(request: &Incoming<'_>) -> Self {
        let (body, spool) = match request.body {
            Body::InMemory(bytes) => (bytes.to_vec(), None),
            Body::OnDisk(spool) => (Vec::new(), Some(Arc::clone(spool))),
            Body::None | Body::Pending => (Vec::new(), None),
        };
        Self {
            head: request.head.raw().to_vec(),
            index: request.head.index(),
            body,
            spool,
            reserved: Reservation::default(),
            has_body: request.head.framing() != bine_http::Framing::None,
            peer: request.peer,
            identity: request.identity.clone(),
            arrival: request.arrival,
            began: 0,
            has_begun: request.has_begun,
            exchange: request.exchange,
        }
    }

    /// Like [`of`](Self::of), but reuses the buffers of this value.
    pub(crate) fn refill(&mut self, request: &Incoming<'_>) {
        // The pattern names each field, so that the compiler reports one that this function
        // forgets.
        let Self {
            head,
            index,
            body,
            spool,
            reserved,
            has_body,
            peer,
            identity,
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
            Body::InMemory(bytes) => body.extend_from_slice(bytes),
            Body::OnDisk(filed) => *spool = Some(Arc::clone(filed)),
            Body::None | Body::Pending => {}
        }
        *has_body = request.head.framing() != bine_http::Framing::None;
        *peer = request.peer;
        identity.clone_from(request.identity);
        *arrival = request.arrival;
        *began = 0;
        *has_begun = request.has_begun;
        *exchange = request.exchange;
    }

    /// The number of bytes of the body that were received.
    pub(crate) fn body_length(&self) -> u64 {
        self.body.len() as u64 + self.spool.as_ref().map_or(0, |spool| spool.length())
    }

    /// Frees the body when it is no longer needed, and returns its bytes to the budget.
    pub(crate) fn drop_body(&mut self) {
        (self.body, self.spool) = (Vec::new(), None);
        self.reserved = Reservation::default();
    }

    /// Records that the whole body has been received.
    pub(crate) fn settle(&mut self) {
        self.reserved.settle();
        if let Some(spool) = &self.spool {
            spool.settle();
        }
    }

    /// Whether the budget has revoked the body's reservation.
    pub(crate) fn is_evicted(&self) -> bool {
        self.reserved.is_evicted() || self.spool.as_ref().is_some_and(|spool| spool.is_evicted())
    }

    /// The request as a handler sees it.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming {
            head: Head::from_parts(&self.head, self.index),
            body: match &self.spool {
                Some(spool) => Body::OnDisk(spool),
                None if self.has_body => Body::InMemory(&self.body),
                None => Body::None,
            },
            peer: self.peer,
            identity: &self.identity,
            arrival: self.arrival,
            has_begun: self.has_begun,
            exchange: self.exchange,
        }
    }
}

/// A pool of retained requests, so that handing a request to a worker does not allocate.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "requests move to workers and back as one pointer")]
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
        (request.spool, request.identity) = (None, Identity::Anonymous);
        request.reserved = Reservation::default();
        if self.0.len() < 256 && request.head.capacity() + request.body.capacity() < 32 * 1024 {
            self.0.push(request);
        }
    }
}

#[cfg(test)]
mod tests {
    use bine_log::test_support::ScratchFolder;

    use super::*;
    use crate::test_support::{request, with_request};

    const POST: &str = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";

    fn spool(folder: &ScratchFolder, content: &[u8]) -> Arc<Spool> {
        let spool = Spool::new(&folder.path(""));
        spool.append(content).unwrap();
        Arc::new(spool)
    }

    #[test]
    fn counts_the_bytes_of_a_body_in_memory_and_on_disk() {
        let folder = ScratchFolder::new();
        let mut request = with_request(POST, Body::InMemory(b"abc"), Retained::of);
        assert_eq!(request.body_length(), 3);
        request.spool = Some(spool(&folder, b"12345"));
        assert_eq!(request.body_length(), 8);
        request.drop_body();
        assert_eq!((request.body_length(), request.spool.is_none()), (0, true));
    }

    /// A copy has the same body as its request, and a reused value has nothing of its earlier one.
    #[test]
    fn copies_the_body_of_a_request() {
        let folder = ScratchFolder::new();
        let stored = spool(&folder, b"12345");
        let shown = |request: &Retained| match request.incoming().body {
            Body::None => "none".to_owned(),
            Body::Pending => "pending".to_owned(),
            Body::InMemory(bytes) => format!("memory {}", bytes.len()),
            Body::OnDisk(spool) => format!("disk {}", spool.length()),
        };
        let get = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut reused = with_request(POST, Body::InMemory(b"earlier"), Retained::of);
        for (head, body, expected) in [
            (get, Body::None, "none"),
            (POST, Body::OnDisk(&stored), "disk 5"),
            // Not collected yet: empty so far.
            (POST, Body::Pending, "memory 0"),
            (POST, Body::InMemory(b"abc"), "memory 3"),
            (get, Body::None, "none"),
        ] {
            assert_eq!(shown(&with_request(head, body, Retained::of)), expected);
            with_request(head, body, |request| reused.refill(request));
            assert_eq!(shown(&reused), expected, "reused");
            assert_eq!(reused.head, head.as_bytes());
        }
    }

    #[test]
    fn settles_the_parts_of_a_body_in_memory_and_on_disk() {
        let budgets = crate::limits::Budgets::default();
        let owner = crate::quota::Owner::default();
        let claim = || crate::limits::Claim { block: ClientAddress::UNIX.block(), owner: &owner };
        let mut request = request("/");
        request.reserved.reach(1 << 20, &budgets.bodies, claim()).unwrap();
        assert!(request.reserved.is_evictable() && !request.is_evicted());
        request.settle();
        assert!(!request.reserved.is_evictable());
        let spool = Spool::new(std::path::Path::new("unused"));
        spool.reach(1 << 20, &budgets.uploads, claim()).unwrap();
        let spool = Arc::new(spool);
        request.spool = Some(Arc::clone(&spool));
        request.settle();
        assert!(!request.is_evicted());
        spool.revoke();
        assert!(request.is_evicted(), "its part on disk");
        request.spool = None;
        assert!(!request.is_evicted());
        request.reserved.revoke();
        assert!(request.is_evicted(), "its part in memory");
        request.drop_body();
        assert_eq!(budgets.metrics()[0].held, 0);
    }

    #[test]
    fn reuses_small_requests_and_forgets_their_bodies() {
        let folder = ScratchFolder::new();
        let take = |pool: &mut RetainedPool| {
            let get = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
            with_request(get, Body::None, |request| pool.take(request, 7))
        };
        let mut pool = RetainedPool::default();
        let mut first = request("/first");
        first.spool = Some(spool(&folder, b"12345"));
        first.identity = Identity::named("ann");
        let place = std::ptr::from_ref(&*first).addr();
        pool.put(first);
        assert!(pool.0[0].spool.is_none(), "the file is closed at once");
        let next = take(&mut pool);
        assert_eq!((std::ptr::from_ref(&*next).addr(), next.began), (place, 7));
        assert_eq!(next.incoming().head.path(), "/next");
        assert!(matches!(next.identity, Identity::Anonymous) && next.spool.is_none());
        assert_eq!(take(&mut pool).began, 7, "an empty pool creates one");
    }

    #[test]
    fn keeps_at_most_256_requests_of_less_than_32_kib() {
        let sized = |head: usize, body: usize| {
            let mut request = request("/");
            (request.head, request.body) = (Vec::with_capacity(head), Vec::with_capacity(body));
            request
        };
        let mut pool = RetainedPool::default();
        pool.put(sized(16 * 1024, 16 * 1024));
        assert_eq!(pool.0.len(), 0);
        pool.put(sized(16 * 1024, 16 * 1024 - 1));
        assert_eq!(pool.0.len(), 1);
        (0..300).for_each(|_| pool.put(sized(64, 0)));
        assert_eq!(pool.0.len(), 256);
    }
}
