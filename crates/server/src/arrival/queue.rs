//! The bounded queue in which accepted connections, and connections between two stages, wait for a
//! thread in order of arrival.

use std::collections::VecDeque;
use std::io;
use std::iter::from_fn;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::arrival::{Acceptor, Arrival};
use crate::quota::Shares;
use crate::refusal::NO_THREAD;
use crate::system::event_counter;

/// Maximum number of connections accepted between two checks for expired waits.
const MAX_BATCH: usize = 1024;

/// One address block may use this fraction (1/4) of the queue.
const BLOCK_FRACTION: usize = 4;

/// The queue of waiting connections. Threads without a connection wait on it; threads whose
/// connection is idle poll its descriptor.
pub(crate) struct ArrivalQueue {
    state: Mutex<QueueState>,
    arrived: Condvar,
    /// Event descriptor, readable from when connections outnumber idle threads until the queue is
    /// empty.
    bell: OwnedFd,
    /// Same condition as `bell`, readable without a system call.
    is_pressed: AtomicBool,
    capacity: usize,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<(Instant, Arrival)>,
    /// Number of waiting connections per address block.
    shares: Shares,
    /// Idle threads, which have no connection.
    idle_threads: usize,
    is_signaled: bool,
    is_closed: bool,
    /// Counts the wake-ups of all idle threads, so that a thread detects one since it began to
    /// wait.
    wake_count: u32,
}

/// The next step of an idle thread.
pub(crate) enum NextArrival {
    Serve(Arrival),
    /// The thread must check the settings and wait again.
    CheckSettings,
    /// The thread must end.
    End,
}

impl ArrivalQueue {
    /// Creates a queue for `capacity` connections.
    pub(crate) fn new(capacity: usize) -> io::Result<Self> {
        let bell = event_counter()?;
        Ok(Self {
            state: Mutex::default(),
            arrived: Condvar::new(),
            bell,
            is_pressed: AtomicBool::new(false),
            capacity: capacity.max(1),
        })
    }

    /// Queues the connections that `acceptor` accepts within `wait`, and refuses those beyond the
    /// bound.
    pub(crate) fn fill(&self, acceptor: &mut Acceptor, wait: Option<Duration>) -> io::Result<()> {
        let first = acceptor.accept_within(wait)?;
        let others = from_fn(|| acceptor.accept_now()).take(MAX_BATCH);
        for arrival in first.into_iter().chain(others) {
            if let Err(arrival) = self.enqueue(arrival) {
                arrival.refuse(NO_THREAD.response());
            }
        }
        if acceptor.is_interrupted() || acceptor.take_switch() {
            // Idle threads must react to the stop or the new settings too.
            self.wake_idle_threads();
        }
        Ok(())
    }

    /// Queues `arrival`, or returns it when the queue is full.
    fn enqueue(&self, arrival: Arrival) -> Result<(), Arrival> {
        let state = self.lock();
        let (count, idle_threads) = (state.waiting.len(), state.idle_threads);
        if count >= self.capacity.saturating_add(idle_threads) {
            return Err(arrival);
        }
        // One address block may not fill the queue, unless a thread is free for the connection.
        let block = arrival.peer().block();
        let share = (self.capacity / BLOCK_FRACTION).max(1) as u64;
        if count >= idle_threads && !block.is_local() && state.shares.held(block) >= share {
            return Err(arrival);
        }
        self.push(state, arrival);
        Ok(())
    }

    /// Queues a connection for its next stage without a check of the bound. The calling thread then
    /// takes a waiting connection, so each thread exceeds the bound by at most one.
    pub(crate) fn put_back(&self, arrival: Arrival) {
        self.push(self.lock(), arrival);
    }

    /// Whether connections have outnumbered idle threads since the queue was last empty.
    pub(crate) fn is_pressed(&self) -> bool {
        self.is_pressed.load(Ordering::Relaxed)
    }

    /// Waits for a connection, for new settings, or for the end.
    pub(crate) fn wait_idle(&self) -> NextArrival {
        let mut state = self.lock();
        let wake_count = state.wake_count;
        state.idle_threads += 1;
        let next = loop {
            if let Some(arrival) = self.pop(&mut state) {
                break NextArrival::Serve(arrival);
            }
            if state.is_closed {
                break NextArrival::End;
            }
            if state.wake_count != wake_count {
                break NextArrival::CheckSettings;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        state.idle_threads -= 1;
        next
    }

    /// Takes the oldest connection, for a thread whose idle connection gives way.
    pub(crate) fn take(&self) -> Option<Arrival> {
        self.pop(&mut self.lock())
    }

    /// Refuses the connections that have waited for `limit`. Returns the time until the next one
    /// will have, if any waits.
    pub(crate) fn turn_away(&self, limit: Duration) -> Option<Duration> {
        loop {
            match self.take_late(limit) {
                Ok(late) => late.refuse(NO_THREAD.response()),
                Err(wait) => return wait,
            }
        }
    }

    /// Takes a connection that has waited for `limit`.
    ///
    /// # Errors
    ///
    /// Returns the time until the next connection will have waited for `limit`, if any waits.
    pub(crate) fn take_late(&self, limit: Duration) -> Result<Arrival, Option<Duration>> {
        let mut state = self.lock();
        let waiting = &mut state.waiting;
        let index = waiting.iter().position(|(_, arrival)| arrival.may_be_turned_away());
        let index = index.ok_or(None)?;
        let waited = waiting[index].0.elapsed();
        if waited < limit {
            return Err(Some(limit.saturating_sub(waited)));
        }
        let late = waiting.remove(index).ok_or(None)?;
        state.shares.give_back(late.1.peer().block(), 1);
        self.clear_pressure(&mut state);
        Ok(late.1)
    }

    /// Makes every idle thread check the settings.
    fn wake_idle_threads(&self) {
        let mut state = self.lock();
        state.wake_count = state.wake_count.wrapping_add(1);
        drop(state);
        self.arrived.notify_all();
    }

    /// Closes the queue: threads take the remaining connections and then end.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    /// Returns the number of waiting connections.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    fn pop(&self, state: &mut QueueState) -> Option<Arrival> {
        let (_, arrival) = state.waiting.pop_front()?;
        state.shares.give_back(arrival.peer().block(), 1);
        self.clear_pressure(state);
        Some(arrival)
    }

    fn push(&self, mut state: MutexGuard<'_, QueueState>, arrival: Arrival) {
        state.shares.add(arrival.peer().block(), 1);
        state.waiting.push_back((Instant::now(), arrival));
        if state.waiting.len() > state.idle_threads && !state.is_signaled {
            state.is_signaled = true;
            self.is_pressed.store(true, Ordering::Relaxed);
            // Cannot overflow: `is_signaled` keeps the counter at 1 or below.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// Clears the event descriptor when the queue has become empty.
    fn clear_pressure(&self, state: &mut QueueState) {
        if state.is_signaled && state.waiting.is_empty() {
            state.is_signaled = false;
            self.is_pressed.store(false, Ordering::Relaxed);
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No code panics while it holds this lock, so a poisoned state is still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for ArrivalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::thread;

    use super::*;
    use crate::address::ClientAddress;
    use crate::server::Server;
    use crate::settings::Settings;

    fn server() -> Arc<Server> {
        crate::test_support::server(Settings::default())
    }

    /// A new connection, and the client's end of it.
    fn arrival(server: &Arc<Server>, peer: ClientAddress) -> (Arrival, UnixStream) {
        let (socket, client) = crate::test_support::sockets();
        (crate::arrival::test_support::arrival(server, socket, peer), client)
    }

    fn remote(host: u8, port: u16) -> ClientAddress {
        ClientAddress::tcp(([192, 0, 2, host], port).into())
    }

    /// Whether the queue accepts a connection of `peer`.
    fn accepts(queue: &ArrivalQueue, server: &Arc<Server>, peer: ClientAddress) -> bool {
        queue.enqueue(arrival(server, peer).0).is_ok()
    }

    #[test]
    fn keeps_the_order_of_arrival_and_its_limits() {
        let (server, queue) = (server(), ArrivalQueue::new(8).unwrap());
        assert!(queue.take().is_none() && !queue.is_pressed());
        // An address block may have a quarter of the places.
        let accepted = [1, 2, 3].map(|port| accepts(&queue, &server, remote(1, port)));
        assert_eq!(accepted, [true, true, false]);
        assert!(queue.is_pressed());
        // This machine may have all of them.
        let accepted = [(); 7].map(|()| accepts(&queue, &server, ClientAddress::UNIX));
        assert_eq!(accepted, [true, true, true, true, true, true, false]);
        assert_eq!(queue.len(), 8);
        let ports = [(); 2].map(|()| queue.take().unwrap().peer().port());
        assert_eq!(ports, [1, 2]);
        assert!(accepts(&queue, &server, remote(1, 4)));
        // A connection that a thread has served already is not refused.
        let (served, _client) = arrival(&server, remote(1, 5));
        queue.put_back(served);
        let (served, _client) = arrival(&server, remote(1, 6));
        queue.put_back(served);
        assert_eq!(queue.len(), 9);
        let rest: Vec<_> = from_fn(|| queue.take()).map(|arrival| arrival.peer().port()).collect();
        assert_eq!(rest, [0, 0, 0, 0, 0, 0, 4, 5, 6]);
        assert!(!queue.is_pressed());
        assert_eq!(server.census.filled().0, 0, "each connection is counted until it ends");
    }

    #[test]
    fn is_readable_while_connections_wait() {
        use rustix::event::{PollFd, PollFlags, poll};
        use rustix::time::Timespec;
        let (server, queue) = (server(), ArrivalQueue::new(8).unwrap());
        let is_readable = || {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(&queue, PollFlags::IN)], Some(&now)).unwrap() == 1
        };
        assert!(!is_readable());
        assert!(accepts(&queue, &server, remote(1, 1)) && accepts(&queue, &server, remote(2, 1)));
        assert!(is_readable());
        queue.take();
        assert!(is_readable(), "one still waits");
        queue.take();
        assert!(!is_readable());
        assert!(accepts(&queue, &server, remote(1, 2)) && is_readable());
    }

    /// The bell rings for a connection that no idle thread will take.
    #[test]
    fn is_pressed_when_connections_outnumber_idle_threads() {
        let (server, queue) = (server(), ArrivalQueue::new(8).unwrap());
        queue.lock().idle_threads = 2;
        let pressed = [1, 2, 3].map(|host| {
            assert!(accepts(&queue, &server, remote(host, 1)));
            queue.is_pressed()
        });
        assert_eq!(pressed, [false, false, true]);
        queue.take();
        queue.take();
        assert!(queue.is_pressed(), "until the queue is empty");
        queue.take();
        assert!(!queue.is_pressed());
    }

    #[test]
    fn accepts_a_connection_beyond_its_limits_for_each_idle_thread() {
        let (server, queue) = (server(), ArrivalQueue::new(4).unwrap());
        let accepted = [(); 2].map(|()| accepts(&queue, &server, remote(1, 1)));
        assert_eq!(accepted, [true, false], "a quarter of the places");
        queue.lock().idle_threads = 2;
        let accepted = [(); 2].map(|()| accepts(&queue, &server, remote(1, 2)));
        assert_eq!(accepted, [true, false]);
        let accepted = [3, 4, 5, 6, 7].map(|host| accepts(&queue, &server, remote(host, 1)));
        assert_eq!(accepted, [true, true, true, true, false]);
        assert_eq!(queue.len(), 6);
        // A queue without places has one.
        let queue = ArrivalQueue::new(0).unwrap();
        let accepted = [1, 2].map(|host| accepts(&queue, &server, remote(host, 1)));
        assert_eq!(accepted, [true, false]);
    }

    #[test]
    fn fills_itself_with_pending_connections_and_refuses_the_others() {
        let (server, queue) = (server(), ArrivalQueue::new(2).unwrap());
        let Some(crate::Address::Tcp(address)) = server.addresses().next() else { panic!() };
        let mut acceptor = Acceptor::new(&server);
        queue.fill(&mut acceptor, Some(Duration::ZERO)).unwrap();
        assert_eq!(queue.len(), 0);
        let clients = [(); 3].map(|()| std::net::TcpStream::connect(address).unwrap());
        while queue.len() < 2 || server.census.refused()[2].1 < 1 {
            queue.fill(&mut acceptor, None).unwrap();
        }
        let mut text = String::new();
        let [_first, _second, mut third] = clients;
        std::io::Read::read_to_string(&mut third, &mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 ") && text.contains("All threads"), "{text}");
        // New settings that the acceptor has taken between two waits wake the idle threads.
        let before = queue.lock().wake_count;
        let settings = server.generation().settings.clone();
        server
            .replace((*settings).clone(), Arc::new(crate::test_support::NoContent), None)
            .unwrap();
        assert!(acceptor.accept_now().is_none());
        queue.fill(&mut acceptor, Some(Duration::ZERO)).unwrap();
        assert_eq!(queue.lock().wake_count, before + 1);
        // A stop wakes them, too.
        let before = queue.lock().wake_count;
        server.stop();
        queue.fill(&mut acceptor, None).unwrap();
        assert_eq!(queue.lock().wake_count, before + 1);
    }

    #[test]
    fn gives_up_connections_that_have_waited_too_long() {
        let (server, queue) = (server(), ArrivalQueue::new(8).unwrap());
        assert!(matches!(queue.take_late(Duration::ZERO), Err(None)));
        assert_eq!(queue.turn_away(Duration::ZERO), None);
        let (first, _client) = arrival(&server, remote(1, 1));
        let (second, client) = arrival(&server, remote(1, 2));
        assert!(queue.enqueue(first).is_ok() && queue.enqueue(second).is_ok());
        let hour = Duration::from_hours(1);
        let Err(Some(wait)) = queue.take_late(hour) else {
            panic!("it has not waited for an hour")
        };
        assert!(wait <= hour && wait > hour / 2, "{wait:?}");
        assert_eq!(queue.len(), 2);
        let Ok(late) = queue.take_late(Duration::ZERO) else { panic!("it waits") };
        assert_eq!((late.peer().port(), queue.len(), queue.is_pressed()), (1, 1, true));
        // The block has a place again.
        assert!(accepts(&queue, &server, remote(1, 3)));
        assert_eq!(queue.turn_away(Duration::ZERO), None);
        assert_eq!((queue.len(), queue.is_pressed()), (0, false));
        // The client learns why.
        let mut text = String::new();
        std::io::Read::read_to_string(&mut { client }, &mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
        assert_eq!(server.census.refused()[2], ("scheduler", 2));
    }

    #[test]
    fn wakes_idle_threads_for_a_connection_new_settings_and_the_end() {
        let (server, queue) = (server(), ArrivalQueue::new(1).unwrap());
        let next = |cause: &dyn Fn()| {
            thread::scope(|scope| {
                let waits = scope.spawn(|| match queue.wait_idle() {
                    NextArrival::Serve(arrival) => format!("serve {}", arrival.peer().port()),
                    NextArrival::CheckSettings => "check settings".to_owned(),
                    NextArrival::End => "end".to_owned(),
                });
                while queue.lock().idle_threads == 0 {
                    thread::yield_now();
                }
                cause();
                waits.join().unwrap()
            })
        };
        assert_eq!(next(&|| assert!(accepts(&queue, &server, remote(1, 7)))), "serve 7");
        assert!(!queue.is_pressed(), "a thread was free");
        assert_eq!(next(&|| queue.wake_idle_threads()), "check settings");
        assert_eq!(next(&|| queue.close()), "end");
        assert_eq!(queue.lock().idle_threads, 0);
    }
}
