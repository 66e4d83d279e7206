//! The contract between a scheduler and the threads that it runs.
//!
//! The trait has the three operations of Serrano, "Hop, a Fast Server for the Diffuse Web", 2009,
//! section 2.4: accepting connections, spawning a task, and handing over from one stage to the
//! next. A scheduler owns threads. It sees tokens and outcomes of stages, never bytes.

use std::io;
use std::sync::Arc;

use bine_admission::queue::ServiceMetrics;

use crate::mailbox::Ticket;
use crate::metrics::WaitMetrics;
use crate::next::Next;
use crate::server::Server;
use crate::workers::Task;

/// A policy that decides which thread runs which stage.
pub trait Scheduler: Send + Sync + 'static {
    /// Starts the threads that accept connections, and returns when the last thread has ended.
    ///
    /// # Errors
    ///
    /// Returns the system's error when a thread or descriptor is not available.
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()>;

    /// Where the stage `next` runs.
    fn stage(&self, next: Next) -> Placement;

    /// Runs `task` on a different thread, which reports to the mailbox of the task.
    ///
    /// # Errors
    ///
    /// Returns the task if the queue is full.
    fn spawn(&self, task: Task) -> Result<(), Task>;

    /// Takes back a task that is still queued at its deadline.
    fn withdraw(&self, _ticket: &Ticket) -> Option<Task> {
        None
    }

    /// Whether a blocking thread may hold a suspended response. A scheduler with few threads keeps
    /// one for other requests.
    fn begin_hold(&self) -> bool {
        true
    }

    /// A thread no longer holds a suspended response.
    fn end_hold(&self) {}

    /// A task has exceeded its time limit, and its client was answered. Its thread may stay
    /// blocked.
    fn on_overdue(&self) {}

    /// The thread of an overdue task has returned.
    fn on_returned(&self) {}

    /// The load of its threads, from 0 to 1. At 1 an idle connection with a thread closes for a new
    /// one.
    fn load(&self) -> f32;

    /// Its status in one line for operators: the busy threads and the waiting tasks.
    fn status(&self) -> String {
        format!("{:.0} % busy", 100.0 * self.load())
    }

    /// Whether tasks wait too long, so that the server should accept no further connections.
    fn is_overloaded(&self) -> bool {
        false
    }

    /// How long tasks have waited for a thread, if the scheduler has such waits.
    fn waits(&self) -> Option<WaitMetrics> {
        None
    }

    /// Metrics of each service whose requests it [spawns](Self::spawn).
    fn metrics(&self) -> Vec<ServiceMetrics> {
        Vec::new()
    }
}

/// Where a stage runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// On the thread that ran the previous stage.
    SameThread,
    /// On the thread that [`Scheduler::spawn`] selects.
    Spawn,
    /// On the loop that ran the previous stage, together with the same stage of other connections.
    /// A loop asks once, at its start, whether [`Next::Request`] is gathered. Outside of an event
    /// loop this is the same as [`SameThread`](Self::SameThread).
    Batched,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scheduler without an own status.
    struct HalfBusy;

    impl Scheduler for HalfBusy {
        fn accept(self: Arc<Self>, _server: &Arc<Server>) -> io::Result<()> {
            unreachable!("the test serves no connection")
        }

        fn stage(&self, _next: Next) -> Placement {
            Placement::SameThread
        }

        fn spawn(&self, task: Task) -> Result<(), Task> {
            Err(task)
        }

        fn load(&self) -> f32 {
            0.5
        }
    }

    #[test]
    fn describes_a_scheduler_by_its_load() {
        assert_eq!(HalfBusy.status(), "50 % busy");
        assert!(HalfBusy.begin_hold() && !HalfBusy.is_overloaded());
        assert!(HalfBusy.waits().is_none() && HalfBusy.metrics().is_empty());
    }
}
