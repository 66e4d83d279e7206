//! Per-thread counters of requests, responses and connections, which cost a request a few plain
//! stores.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The counters of one thread. Only that thread writes, so no instruction is locked. Any thread may
/// read, and sees values that may be a moment old.
///
/// The alignment keeps tallies in separate cache lines. It is 128 bytes because the prefetcher
/// loads lines in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    pub(crate) requests: Counter,
    /// Responses by the first digit of their status, from 1 on.
    replies: [Counter; 5],
    pub(crate) received: Counter,
    pub(crate) sent: Counter,
    pub(crate) turns: Counter,
    /// The value of `turns` when the loop last began to wait in its own epoll.
    rested_at: Counter,
    pub(crate) accepted: Counter,
    closed: [Counter; Ending::ALL.len()],
    /// Responses with the statuses in `MARKED`, one counter each.
    marked: [Counter; MARKED.len()],
    /// The number of the loop that owns this tally, plus one; 0 when the owner is no loop.
    as_loop: AtomicU32,
    /// The kernel's id of the thread.
    thread: AtomicU32,
}

/// Statuses that indicate overload: request timeout, service unavailable, gateway timeout.
pub(crate) const MARKED: [u16; 3] = [408, 503, 504];

/// A counter that one thread writes.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        // A load and a store are enough: only one thread writes.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Panics of handlers in the whole process. It is global, because the code that catches a panic may
/// have no tally.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts a panic of a handler.
#[cold]
pub(crate) fn count_panic() {
    PANICS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of panics.
pub(crate) fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// The reason why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The wait for the next request timed out.
    Idle,
    /// A different operation timed out.
    Timeout,
    /// The server closed the connection to free its resources for other connections.
    Load,
    /// The client closed the connection.
    Peer,
    /// The client or the program requested a close after the response.
    Reply,
    /// A fault of the client, the program or the server.
    Fault,
    /// The server shut down.
    Drain,
    /// The connection was upgraded to a different protocol.
    Upgrade,
}

impl Ending {
    /// All variants with their names, in the order of their discriminants.
    pub(crate) const ALL: [(Self, &'static str); 8] = [
        (Self::Idle, "idle"),
        (Self::Timeout, "timeout"),
        (Self::Load, "load"),
        (Self::Peer, "peer"),
        (Self::Reply, "reply"),
        (Self::Fault, "error"),
        (Self::Drain, "drain"),
        (Self::Upgrade, "upgrade"),
    ];
}

impl Tally {
    /// Counts the response that begins with these bytes.
    #[inline]
    pub(crate) fn replied(&self, reply: &[u8]) {
        // `HTTP/1.1 200 OK`
        if let Some(&[hundreds, tens, ones]) = reply.get(9..12) {
            let figure = |letter: u8| u16::from(letter.wrapping_sub(b'0'));
            self.replied_with(figure(hundreds) * 100 + figure(tens) * 10 + figure(ones));
        }
    }

    /// Counts a response with this status.
    #[inline]
    pub(crate) fn replied_with(&self, status: u16) {
        let Some(class) = (status / 100).checked_sub(1) else { return };
        let Some(counter) = self.replies.get(usize::from(class)) else { return };
        counter.add(1);
        if class >= 3 {
            self.mark(status);
        }
    }

    #[cold]
    fn mark(&self, status: u16) {
        if let Some(index) = MARKED.iter().position(|marked| *marked == status) {
            self.marked[index].add(1);
        }
    }

    pub(crate) fn closed(&self, ending: Ending) {
        self.closed[ending as usize].add(1);
    }

    /// Records that the calling thread runs the loop with this number and owns this tally.
    pub(crate) fn assign_loop(&self, number: usize) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        self.thread.store(thread, Ordering::Relaxed);
        self.as_loop.store(number as u32 + 1, Ordering::Relaxed);
    }

    /// Records that the loop begins to wait, without a time limit, for the next event.
    #[inline]
    pub(crate) fn note_rest(&self) {
        self.rested_at.0.store(self.turns.read(), Ordering::Relaxed);
    }

    /// Returns the loop's progress, for the watchdog.
    fn progress(&self) -> LoopProgress {
        // The order matters: a loop that turns between the two readings must not appear to rest.
        let rested_at = self.rested_at.read();
        let turns = self.turns.read();
        LoopProgress { turns, is_resting: rested_at == turns }
    }

    /// Returns the number and thread id of the loop that owns this tally.
    pub(crate) fn of_loop(&self) -> Option<(usize, u32)> {
        let number = self.as_loop.load(Ordering::Relaxed).checked_sub(1)?;
        Some((number as usize, self.thread.load(Ordering::Relaxed)))
    }
}

/// The progress of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LoopProgress {
    pub(crate) turns: u64,
    /// Whether the loop waits in its own epoll.
    pub(crate) is_resting: bool,
}

/// The tallies of all threads of a server, including threads that have ended.
#[derive(Default)]
pub(crate) struct Tallies(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    every: Vec<Arc<Tally>>,
    /// Tallies of threads that have ended. The next thread reuses one; without reuse, each
    /// connection's thread would add one.
    spare: Vec<Arc<Tally>>,
}

impl Tallies {
    /// Lends a tally to the calling thread.
    pub(crate) fn lease(self: &Arc<Self>) -> TallyLease {
        let mut all = self.lock();
        let tally = all.spare.pop().unwrap_or_else(|| {
            let tally = Arc::new(Tally::default());
            all.every.push(Arc::clone(&tally));
            tally
        });
        drop(all);
        TallyLease { tally, to: Some(Arc::clone(self)) }
    }

    /// Returns the sum of all tallies.
    pub(crate) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        for tally in &self.lock().every {
            sum.add(tally);
        }
        sum
    }

    /// Returns number, thread id and progress of each running loop.
    pub(crate) fn loops(&self) -> Vec<(usize, u32, LoopProgress)> {
        let all = self.lock();
        let running = all.every.iter().filter_map(|tally| {
            let (number, thread) = tally.of_loop()?;
            Some((number, thread, tally.progress()))
        });
        running.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tally on loan to one thread, returned on drop.
pub(crate) struct TallyLease {
    tally: Arc<Tally>,
    /// `None` when the tally belongs to no server, so that its counts are lost.
    to: Option<Arc<Tallies>>,
}

impl TallyLease {
    /// Creates a tally that belongs to no server.
    pub(crate) fn unregistered() -> Self {
        Self { tally: Arc::default(), to: None }
    }
}

impl Deref for TallyLease {
    type Target = Tally;

    #[inline]
    fn deref(&self) -> &Tally {
        &self.tally
    }
}

impl Drop for TallyLease {
    fn drop(&mut self) {
        if let Some(to) = &self.to {
            self.tally.as_loop.store(0, Ordering::Relaxed);
            to.lock().spare.push(Arc::clone(&self.tally));
        }
    }
}

/// The sum of some tallies.
#[derive(Default)]
pub(crate) struct Sum {
    pub(crate) requests: u64,
    pub(crate) replies: [u64; 5],
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) accepted: u64,
    pub(crate) closed: [u64; Ending::ALL.len()],
    pub(crate) marked: [u64; MARKED.len()],
    /// Number, thread id and turns of each loop.
    pub(crate) loops: Vec<(usize, u32, u64)>,
}

impl Sum {
    fn add(&mut self, tally: &Tally) {
        let all = |sums: &mut [u64], counters: &[Counter]| {
            sums.iter_mut().zip(counters).for_each(|(sum, counter)| *sum += counter.read());
        };
        // Effects are read before their causes; otherwise the sum could contain responses without
        // requests.
        all(&mut self.marked, &tally.marked);
        all(&mut self.replies, &tally.replies);
        all(&mut self.closed, &tally.closed);
        self.requests += tally.requests.read();
        self.accepted += tally.accepted.read();
        self.received += tally.received.read();
        self.sent += tally.sent.read();
        let turns = tally.turns.read();
        self.loops.extend(tally.of_loop().map(|(number, thread)| (number, thread, turns)));
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn keeps_the_counts_of_ended_threads() {
        let tallies = Arc::new(Tallies::default());
        for round in 1..=100 {
            let shared = Arc::clone(&tallies);
            thread::spawn(move || shared.lease().requests.add(3)).join().unwrap();
            assert_eq!(tallies.sum().requests, 3 * round);
        }
        assert_eq!(tallies.lock().every.len(), 1, "a thread goes on where another has ended");
    }

    #[test]
    fn counts_responses_by_class_and_some_by_status() {
        let tallies = Arc::new(Tallies::default());
        let tally = tallies.lease();
        for status in [100, 204, 200, 301, 404, 413, 503, 504, 504, 600, 99] {
            tally.replied(format!("HTTP/1.1 {status:03} X\r\n").as_bytes());
        }
        tally.replied(b"HTTP/1.1 20");
        let sum = tallies.sum();
        assert_eq!(sum.replies, [1, 2, 1, 2, 3]);
        let marked = |status| {
            let index = MARKED.iter().position(|marked| *marked == status).unwrap();
            sum.marked[index]
        };
        assert_eq!([503, 504].map(marked), [1, 2]);
    }

    #[test]
    fn gives_concurrent_threads_separate_tallies() {
        let tallies = Arc::new(Tallies::default());
        let count = || {
            let tally = tallies.lease();
            (0..10_000).for_each(|_| tally.sent.add(2));
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
        assert_eq!(tallies.sum().sent, 80_000);
    }

    #[test]
    fn reports_a_loop_as_resting_until_its_next_turn() {
        let tallies = Arc::new(Tallies::default());
        let tally = tallies.lease();
        tally.assign_loop(3);
        let progress = || tallies.loops().first().map(|&(number, _, progress)| (number, progress));
        let at = |turns, is_resting| Some((3, LoopProgress { turns, is_resting }));
        tally.turns.add(1);
        assert_eq!(progress(), at(1, false));
        tally.note_rest();
        assert_eq!(progress(), at(1, true));
        tally.turns.add(1);
        assert_eq!(progress(), at(2, false));
        drop(tally);
        assert_eq!(progress(), None, "a loop that has ended is not watched");
    }

    #[test]
    fn counts_responses_by_status() {
        let tallies = Arc::new(Tallies::default());
        let tally = tallies.lease();
        for status in [101, 200, 200, 303, 404, 408, 500, 503, 503, 504] {
            tally.replied(format!("HTTP/1.1 {status} Words\r\n").as_bytes());
        }
        for nothing in ["", "HTTP/1.1 ", "HTTP/1.1 000 Words", "HTTP/1.1 x"] {
            tally.replied(nothing.as_bytes());
        }
        let sum = tallies.sum();
        assert_eq!((sum.replies, sum.marked), ([1, 2, 1, 2, 4], [1, 2, 1]));
    }

    #[test]
    fn lists_endings_in_order_of_their_discriminants() {
        for (number, (ending, _)) in Ending::ALL.iter().enumerate() {
            assert_eq!(*ending as usize, number);
        }
    }
}
