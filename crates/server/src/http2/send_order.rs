//! Which stream of a connection sends next.
//!
//! `h2` sends what it is given in the order in which it is given. So a stream gives it a piece only
//! when the connection has taken most of the earlier ones, and more urgent streams come first (RFC
//! 9218, section 10). This also limits the bytes that one connection holds.
//!
//! A response of known length is expected to have its next piece soon, so less urgent ones wait
//! until it is complete, or until its client must give it room. A stream of events may rest for long,
//! and nobody waits for it.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

/// The bytes that streams hand over before the connection must send them. They are fewer than a
/// stream holds, so that an urgent stream with a long response always has the next piece.
const WINDOW: usize = 32 * 1024;
/// The urgency of a request without a priority (RFC 9218, section 4.1).
const USUAL_URGENCY: u8 = 3;

/// The priority of a response (RFC 9218, section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Priority {
    /// 0 to 7; 0 is the most urgent.
    urgency: u8,
    /// Whether the client uses a part of the response before it is complete.
    is_incremental: bool,
}

impl Priority {
    /// Reads the field `Priority`. What is not understood is ignored (RFC 9218, section 4).
    pub(super) fn parse(field: Option<&[u8]>) -> Self {
        let mut priority = Self { urgency: USUAL_URGENCY, is_incremental: false };
        let text = field.and_then(|field| std::str::from_utf8(field).ok()).unwrap_or_default();
        for member in text.split(',').map(str::trim) {
            match member.split(';').next().unwrap_or_default() {
                "i" | "i=?1" => priority.is_incremental = true,
                "i=?0" => priority.is_incremental = false,
                other => {
                    let urgency = other.strip_prefix("u=").and_then(|urgency| urgency.parse().ok());
                    if let Some(urgency @ 0..=7) = urgency {
                        priority.urgency = urgency;
                    }
                }
            }
        }
        priority
    }
}

/// The order of all streams of a connection that have content to send.
#[derive(Default)]
pub(super) struct SendOrder {
    /// The bytes that were handed over since the connection has sent all earlier ones.
    handed_over: Cell<usize>,
    waiting: RefCell<Vec<Waiting>>,
    /// The number of claims by urgency.
    claims: [Cell<u32>; 8],
    /// The number of pieces that incremental responses have sent, for turns among them.
    pieces: Cell<u64>,
}

struct Waiting {
    rank: Rank,
    waker: Waker,
}

/// Smaller is earlier. Responses that are not incremental follow each other by the numbers of their
/// streams; incremental ones take turns (RFC 9218, section 10).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rank {
    urgency: u8,
    piece: u64,
    stream: u32,
}

/// The place of one stream in the order.
pub(super) struct Place<'o> {
    order: &'o SendOrder,
    rank: Rank,
}

impl SendOrder {
    /// A place for stream number `stream`, which wants to send a piece.
    pub(super) fn place(&self, stream: u32, priority: Priority) -> Place<'_> {
        let piece = if priority.is_incremental { self.pieces.get() + 1 } else { 0 };
        self.pieces.set(self.pieces.get() + u64::from(priority.is_incremental));
        Place { order: self, rank: Rank { urgency: priority.urgency, piece, stream } }
    }

    /// Lets less urgent responses wait until the claim is dropped.
    pub(super) fn claim(&self, priority: Priority) -> UrgentClaim<'_> {
        let count = &self.claims[usize::from(priority.urgency)];
        count.set(count.get() + 1);
        UrgentClaim { order: self, urgency: priority.urgency }
    }

    /// The connection has sent all bytes: the next streams hand over theirs.
    pub(super) fn open(&self) {
        self.handed_over.set(0);
        self.wake();
    }

    fn wake(&self) {
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.is_empty() {
            waiting.sort_unstable_by_key(|each| each.rank);
            // They run in this order. Those that find no room wait again.
            waiting.drain(..).for_each(|each| each.waker.wake());
        }
    }
}

impl Place<'_> {
    /// Ready when the stream may hand over a piece of `length` bytes.
    pub(super) fn poll(&self, task: &Context<'_>, length: usize) -> Poll<()> {
        let handed_over = self.order.handed_over.get();
        let claims = &self.order.claims[..usize::from(self.rank.urgency)];
        if handed_over < WINDOW && claims.iter().all(|count| count.get() == 0) {
            self.order.handed_over.set(handed_over + length);
            return Poll::Ready(());
        }
        let mut waiting = self.order.waiting.borrow_mut();
        match waiting.iter_mut().find(|each| each.rank == self.rank) {
            Some(each) => each.waker.clone_from(task.waker()),
            None => waiting.push(Waiting { rank: self.rank, waker: task.waker().clone() }),
        }
        Poll::Pending
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.order.waiting.borrow_mut().retain(|each| each.rank != self.rank);
    }
}

/// A response that will have its next piece soon.
pub(super) struct UrgentClaim<'o> {
    order: &'o SendOrder,
    urgency: u8,
}

impl Drop for UrgentClaim<'_> {
    fn drop(&mut self) {
        let count = &self.order.claims[usize::from(self.urgency)];
        count.set(count.get() - 1);
        if count.get() == 0 && self.order.handed_over.get() < WINDOW {
            self.order.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::task::Wake;

    use super::*;

    #[track_caller]
    fn check(field: &str, urgency: u8, is_incremental: bool) {
        let expected = Priority { urgency, is_incremental };
        assert_eq!(Priority::parse(Some(field.as_bytes())), expected, "{field}");
    }

    #[test]
    fn reads_a_priority() {
        assert_eq!(Priority::parse(None), Priority { urgency: 3, is_incremental: false });
        check("", 3, false);
        check("u=0", 0, false);
        check("u=5, i", 5, true);
        check("i,u=7", 7, true);
        check("i=?0, u=1", 1, false);
        check("u=1;x=2, i;y", 1, true);
        check("u=8", 3, false);
        check("u=-1, u=x, z=4, \u{e9}", 3, false);
    }

    struct Name(&'static str, Arc<Mutex<Vec<&'static str>>>);

    impl Wake for Name {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    #[test]
    fn wakes_urgent_streams_first_and_incremental_ones_in_turn() {
        let order = SendOrder::default();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let priority = |urgency, is_incremental| Priority { urgency, is_incremental };
        let idle = std::task::Waker::noop();
        let first = order.place(1, priority(3, false));
        assert_eq!(first.poll(&Context::from_waker(idle), WINDOW), Poll::Ready(()));
        let places = [
            ("late", order.place(11, priority(5, false))),
            ("image b", order.place(9, priority(3, true))),
            ("image a", order.place(7, priority(3, true))),
            ("script", order.place(5, priority(3, false))),
            ("style", order.place(13, priority(1, false))),
        ];
        for (name, place) in &places {
            let waker = Arc::new(Name(name, Arc::clone(&woken))).into();
            assert_eq!(place.poll(&Context::from_waker(&waker), 1), Poll::Pending);
        }
        order.open();
        assert_eq!(*woken.lock().unwrap(), ["style", "script", "image b", "image a", "late"]);
    }

    #[test]
    fn lets_less_urgent_streams_wait_for_a_claim() {
        let order = SendOrder::default();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let waker = Arc::new(Name("late", Arc::clone(&woken))).into();
        let task = Context::from_waker(&waker);
        let priority = |urgency| Priority { urgency, is_incremental: false };
        let claim = order.claim(priority(3));
        let late = order.place(1, priority(4));
        assert_eq!(late.poll(&task, 1), Poll::Pending);
        assert_eq!(order.place(3, priority(3)).poll(&task, 1), Poll::Ready(()));
        assert_eq!(order.place(5, priority(0)).poll(&task, 1), Poll::Ready(()));
        drop(claim);
        assert_eq!(*woken.lock().unwrap(), ["late"]);
        assert_eq!(late.poll(&task, 1), Poll::Ready(()));
    }

    #[test]
    fn forgets_a_stream_that_has_ended() {
        let order = SendOrder::default();
        let idle = std::task::Waker::noop();
        let task = Context::from_waker(idle);
        let usual = Priority::parse(None);
        assert_eq!(order.place(1, usual).poll(&task, WINDOW), Poll::Ready(()));
        let place = order.place(3, usual);
        assert_eq!(place.poll(&task, 1), Poll::Pending);
        assert_eq!(place.poll(&task, 1), Poll::Pending);
        assert_eq!(order.waiting.borrow().len(), 1);
        drop(place);
        assert!(order.waiting.borrow().is_empty());
    }
}
