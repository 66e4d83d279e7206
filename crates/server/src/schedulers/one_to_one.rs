//! The `one-to-one` scheduler (Serrano, "Hop", 2009, section 2.4, figure 3): starts a new thread
//! for each connection.
//!
//! ```text
//! acceptor:                   accept, start a thread -> accept ...
//! a thread a connection:      request -> response -> reply -> request -> ... -> end
//! ```
//!
//! The kernel limits the number of threads. When all threads have a connection, a new connection
//! takes the thread of an idle one. Without an idle connection, the server answers the new one with
//! 503.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use bine_log as log;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::arrival::{Acceptor, Arrival};
use crate::conversation::Conversations;
use crate::lifecycle::State;
use crate::refusal::NO_THREAD;
use crate::schedulers::row::SingleThreadScheduler;
use crate::schedulers::threads::{await_end_of_drain, start};
use crate::server::Server;
use crate::system::event_counter;

/// Time that a new connection waits at full load for the thread of an idle connection. Slightly
/// longer than such a thread needs to notice the full load.
const FREE_THREAD_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
/// Shortest time between two log lines about refusals. Each line gives their number.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The `one-to-one` scheduler: an acceptor, and a thread for each connection.
pub struct OneToOne {
    /// Configured maximum number of threads.
    configured: usize,
    /// Current maximum: lower than `configured` after the kernel has refused a thread.
    most: AtomicUsize,
    threads: AtomicUsize,
    refused: AtomicU64,
    /// Event descriptor, readable after a thread has ended.
    freed: OwnedFd,
}

impl OneToOne {
    /// Creates the scheduler with at most `most` connection threads at one time.
    ///
    /// # Errors
    ///
    /// Fails when the process has no free file descriptor.
    pub fn new(most: usize) -> io::Result<Self> {
        let configured = most.max(1);
        Ok(Self {
            configured,
            most: AtomicUsize::new(configured),
            threads: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            freed: event_counter()?,
        })
    }

    fn admit(
        self: &Arc<Self>,
        server: &Arc<Server>,
        result_sender: &Sender<io::Result<()>>,
    ) -> io::Result<()> {
        let mut acceptor = Acceptor::new(server);
        let mut refusal_log = RefusalLog { last: None, reported: 0 };
        while server.state() == State::Serving {
            if self.is_full() {
                acceptor.wait_for_pending(self.freed.as_fd());
                if !self.await_end(server) && self.is_full() {
                    // No thread has given up an idle connection.
                    while let Some(arrival) = acceptor.accept_now() {
                        self.turn_away(arrival);
                    }
                    refusal_log.report(self);
                }
            } else if let Some(arrival) = acceptor.accept()?
                && let Err(arrival) = self.start_thread(server, result_sender, arrival)
            {
                self.turn_away(arrival);
                refusal_log.report(self);
            }
        }
        Ok(())
    }

    /// Starts a thread for `arrival`, or returns `arrival` when the kernel refuses a thread.
    fn start_thread(
        self: &Arc<Self>,
        server: &Arc<Server>,
        result_sender: &Sender<io::Result<()>>,
        arrival: Arrival,
    ) -> Result<(), Arrival> {
        let count = self.threads.fetch_add(1, Ordering::AcqRel);
        let (scheduler, server, result_sender) =
            (Arc::clone(self), Arc::clone(server), result_sender.clone());
        // Shared, so that this function still owns the connection when no thread starts.
        let handover = Arc::new(Mutex::new(Some(arrival)));
        let shared = Arc::clone(&handover);
        let started = Builder::new().name("bine connection".to_owned()).spawn(move || {
            let guard = ThreadGuard(scheduler);
            let scheduler = &*guard.0;
            let mut next = take(&shared);
            let mut conversations = Conversations::new(&server, scheduler);
            while let Some(arrival) = next {
                conversations.hold(arrival);
                next = conversations.take_newcomer();
            }
            drop(conversations);
            drop(guard);
            // Drop the server before `result_sender` reports the end of this thread.
            drop(server);
            drop(result_sender);
        });
        if started.is_ok() {
            return Ok(());
        }
        self.on_end();
        self.most.store(count.max(1), Ordering::Relaxed);
        take(&handover).map_or(Ok(()), Err)
    }

    fn on_end(&self) {
        let left = self.threads.fetch_sub(1, Ordering::AcqRel) - 1;
        if left <= self.most.load(Ordering::Relaxed) / 2 {
            // After half of the threads have ended, the kernel may allow more again.
            self.most.store(self.configured, Ordering::Relaxed);
        }
        // The write fails only when the counter is full, and then the descriptor is readable.
        let _ = rustix::io::write(&self.freed, &1u64.to_ne_bytes());
    }

    /// Waits up to [`FREE_THREAD_WAIT`] for a thread to end and returns whether one did.
    fn await_end(&self, server: &Server) -> bool {
        let bell = server.stop_bell();
        let mut wanted =
            [PollFd::new(&bell, PollFlags::IN), PollFd::new(&self.freed, PollFlags::IN)];
        // The result is not needed: the read below shows whether a thread has ended.
        let _ = poll(&mut wanted, Some(&FREE_THREAD_WAIT));
        rustix::io::read(&self.freed, &mut [0; 8]).is_ok()
    }

    fn turn_away(&self, arrival: Arrival) {
        arrival.refuse(NO_THREAD.response());
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    fn is_full(&self) -> bool {
        self.threads.load(Ordering::Acquire) >= self.most.load(Ordering::Relaxed)
    }
}

/// Reports the end of a thread when dropped, also on panic.
struct ThreadGuard(Arc<OneToOne>);

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        self.0.on_end();
    }
}

fn take(handover: &Mutex<Option<Arrival>>) -> Option<Arrival> {
    handover.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Rate limit for log lines about refusals.
struct RefusalLog {
    last: Option<Instant>,
    reported: u64,
}

impl RefusalLog {
    fn report(&mut self, scheduler: &OneToOne) {
        let refused = scheduler.refused.load(Ordering::Relaxed);
        if let Some(new) = self.due(refused, Instant::now()) {
            let most = scheduler.most.load(Ordering::Relaxed);
            log::warn(format_args!(
                "rejected {new} connections: each of the {most} threads serves one already; \
                 raise the limit of threads (`ulimit -u`) or use the scheduler `hybrid`"
            ));
        }
    }

    /// The number of refusals since the last line, if a line is due. `refused` is the number of all
    /// refusals.
    fn due(&mut self, refused: u64, now: Instant) -> Option<u64> {
        let is_late = self.last.is_none_or(|last| now.duration_since(last) >= LOG_INTERVAL);
        if refused == self.reported || !is_late {
            return None;
        }
        let new = refused - self.reported;
        *self = Self { last: Some(now), reported: refused };
        Some(new)
    }
}

impl SingleThreadScheduler for OneToOne {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let (end, ends): (_, Receiver<_>) = channel();
        let (shared, result_sender) = (Arc::clone(server), end.clone());
        let name = "bine acceptor".to_owned();
        if let Err(error) = start(server, name, &end, move || self.admit(&shared, &result_sender)) {
            server.stop();
            return Err(error);
        }
        drop(end);
        await_end_of_drain(server, &ends)
    }

    fn load(&self) -> f32 {
        let (threads, most) =
            (self.threads.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed));
        (threads as f32 / most as f32).min(1.0)
    }

    fn status(&self) -> String {
        let (threads, most, refused) = (
            self.threads.load(Ordering::Relaxed),
            self.most.load(Ordering::Relaxed),
            self.refused.load(Ordering::Relaxed),
        );
        format!("{threads} of at most {most} connections have a thread, {refused} were rejected")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_refusals_once_per_interval() {
        let mut log = RefusalLog { last: None, reported: 0 };
        let begin = Instant::now();
        assert_eq!(log.due(0, begin), None);
        assert_eq!(log.due(2, begin), Some(2));
        assert_eq!(log.due(7, begin + LOG_INTERVAL / 2), None);
        assert_eq!(log.due(8, begin + LOG_INTERVAL), Some(6));
        assert_eq!(log.due(8, begin + 3 * LOG_INTERVAL), None);
    }

    #[test]
    fn reports_how_many_connections_were_refused_and_the_limit() {
        let scheduler = OneToOne::new(8).unwrap();
        let mut refusals = RefusalLog { last: None, reported: 0 };
        let capture = log::test_support::capture();
        refusals.report(&scheduler);
        scheduler.refused.store(3, Ordering::Relaxed);
        refusals.report(&scheduler);
        let lines = capture.end();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("rejected 3 connections: each of the 8 threads"), "{lines:?}");
    }

    #[test]
    fn counts_a_thread_until_it_ends() {
        let scheduler = Arc::new(OneToOne::new(4).unwrap());
        scheduler.threads.store(3, Ordering::Relaxed);
        scheduler.most.store(2, Ordering::Relaxed);
        drop(ThreadGuard(Arc::clone(&scheduler)));
        assert_eq!(scheduler.threads.load(Ordering::Relaxed), 2);
        // More than half of the threads still run.
        assert_eq!(scheduler.most.load(Ordering::Relaxed), 2);
        assert!(scheduler.is_full());
        assert!(rustix::io::read(&scheduler.freed, &mut [0; 8]).is_ok(), "it wakes the acceptor");
        assert!((SingleThreadScheduler::load(&*scheduler) - 1.0).abs() < f32::EPSILON);
        drop(ThreadGuard(Arc::clone(&scheduler)));
        assert_eq!(scheduler.most.load(Ordering::Relaxed), 4);
        assert!((SingleThreadScheduler::load(&*scheduler) - 0.25).abs() < f32::EPSILON);
        let status = SingleThreadScheduler::status(&*scheduler);
        assert_eq!(status, "1 of at most 4 connections have a thread, 0 were rejected");
    }

    #[test]
    fn rejects_and_counts_connections_without_a_thread() {
        let server = crate::test_support::server(crate::settings::Settings::default());
        let scheduler = OneToOne::new(1).unwrap();
        let (socket, client) = crate::test_support::sockets();
        let peer = crate::ClientAddress::UNIX;
        scheduler.turn_away(crate::arrival::test_support::arrival(&server, socket, peer));
        assert!(crate::test_support::received(client).contains("All threads serve a connection"));
        assert_eq!(scheduler.refused.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn raises_the_thread_limit_again_after_the_threads_have_ended() {
        let scheduler = OneToOne::new(8).unwrap();
        scheduler.most.store(1, Ordering::Relaxed);
        scheduler.threads.store(1, Ordering::Relaxed);
        assert!(scheduler.is_full());
        scheduler.on_end();
        assert_eq!(scheduler.most.load(Ordering::Relaxed), 8);
    }
}
