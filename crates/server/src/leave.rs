//! Leaving: a server that is going to stop serves on for a while, so that load balancers learn of it
//! before it refuses connections.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bine_log as log;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::lifecycle::State;
use crate::server::Server;

// Not next to `Server`, which starts no thread.
impl Server {
    /// Asks the server to leave: for `timeouts.leave` it serves all clients, reports that it leaves,
    /// and announces `Connection: close` in each reply. Then it [stops](Self::stop). Does not wait
    /// for that. A second call ends the server at once.
    pub fn leave(self: &Arc<Self>) {
        let wait = self.leave_time();
        if wait.is_zero() || self.is_stopping() {
            self.run_leave_hook();
            self.stop();
        } else if !self.begin_leave() {
            while self.state() != State::Over {
                self.stop();
            }
        } else if let Err(error) = self.drain_after(wait) {
            log::warn(format_args!(
                "no thread waits for load balancers, so the stop begins: {error}"
            ));
            self.drain();
        }
    }

    /// The longest time from the request to leave until all connections are closed.
    pub(crate) fn time_to_stop(&self) -> Duration {
        self.leave_time().saturating_add(self.generation().settings.timeouts.drain)
    }

    fn leave_time(&self) -> Duration {
        self.generation().settings.timeouts.leave.unwrap_or_default()
    }

    /// Starts a thread that begins the drain after this time.
    fn drain_after(self: &Arc<Self>, wait: Duration) -> io::Result<()> {
        let server = Arc::clone(self);
        log::notice(format_args!(
            "the server leaves: it serves for {wait:?}, so that load balancers stop sending, and then stops"
        ));
        let body = move || {
            let begun = Instant::now();
            while server.state() == State::Serving {
                let left = wait.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    break;
                }
                // A time that the system cannot represent is longer than any process runs.
                let left = Timespec::try_from(left).ok();
                // The bell rings if the server stops earlier. A signal may interrupt the call.
                let _ = poll(&mut [PollFd::new(&server.stop_bell(), PollFlags::IN)], left.as_ref());
            }
            server.drain();
        };
        thread::Builder::new().name("bine leave".to_owned()).spawn(body).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Settings, Timeouts};
    use crate::test_support::server;

    fn server_that_leaves_for(leave: Option<Duration>) -> Arc<Server> {
        let timeouts = Timeouts { leave, ..Timeouts::default() };
        server(Settings { timeouts, ..Settings::default() })
    }

    #[test]
    fn serves_after_the_first_request_to_leave_and_ends_at_the_second() {
        let server = server_that_leaves_for(Some(Duration::from_hours(1)));
        assert!(!server.is_leaving());
        server.leave();
        assert!(server.is_leaving() && !server.is_stopping());
        server.leave();
        assert_eq!(server.state(), State::Over);
    }

    #[test]
    fn stops_when_the_time_to_leave_is_over() {
        let server = server_that_leaves_for(Some(Duration::from_millis(1)));
        let mut states = server.subscribe_state();
        server.leave();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let drained = async {
            let limit = Duration::from_mins(1);
            tokio::time::timeout(limit, states.wait_for(|state| *state == State::Draining)).await
        };
        assert!(matches!(runtime.block_on(drained), Ok(Ok(_))));
    }

    #[test]
    fn stops_at_once_without_a_time_to_leave() {
        for leave in [None, Some(Duration::ZERO)] {
            let server = server_that_leaves_for(leave);
            server.leave();
            assert_eq!(server.state(), State::Draining);
        }
    }

    #[test]
    fn runs_the_leave_hook_once() {
        for leave in [None, Some(Duration::from_hours(1))] {
            let server = server_that_leaves_for(leave);
            let (sender, calls) = std::sync::mpsc::channel();
            server.set_leave_hook(Box::new(move || sender.send(()).unwrap()));
            server.leave();
            server.leave();
            assert_eq!(calls.try_iter().count(), 1);
        }
    }
}
