//! The contract between a scheduler and the threads that it runs.
//!
//! The trait has the three verbs of Serrano, "Hop, a fast server for the diffuse web" (section 2.4): how connections
//! are accepted, how a job is spawned, and how one stage hands over to the next. A scheduler owns threads; it sees
//! tokens and outcomes of stages, never bytes.

use std::io;
use std::sync::Arc;

use bine_admission::queue::ServiceMetrics;

use crate::mailbox::Ticket;
use crate::metrics::WaitMetrics;
use crate::next::Next;
use crate::server::Server;
use crate::workers::Task;

/// A policy: who runs what.
pub trait Scheduler: Send + Sync + 'static {
    /// Starts the threads that accept connections, and returns when the last of them has ended.
    ///
    /// # Errors
    ///
    /// Threads or descriptors that could not be had.
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()>;

    /// Where the stage that comes next runs.
    fn stage(&self, next: Next) -> Place;

    /// Runs `task` on some other thread, which answers to the task's mailbox.
    ///
    /// # Errors
    ///
    /// The task itself, when it finds no place.
    fn spawn(&self, task: Task) -> Result<(), Task>;

    /// Takes back a task that nobody has begun, because its wait has been long enough.
    fn withdraw(&self, _ticket: &Ticket) -> Option<Task> {
        None
    }

    /// Whether a thread that blocks may be lent to a reply that waits for something to happen. A scheduler whose threads
    /// are few keeps one for everybody else.
    fn begin_hold(&self) -> bool {
        true
    }

    /// A thread so lent is back.
    fn end_hold(&self) {}

    /// A task's peer was answered without it: its thread may be away for long.
    fn on_overdue(&self) {}

    /// A task that was overdue has returned.
    fn on_returned(&self) {}

    /// How busy its threads are, 0 to 1. At 1 an idle connection that has a thread gives way to a newcomer.
    fn load(&self) -> f32;

    /// How it is, in one line for people: what is busy, and what waits.
    fn status(&self) -> String {
        format!("{:.0} % busy", 100.0 * self.load())
    }

    /// Whether tasks wait for longer than they should, so that nobody else had better come.
    fn is_overloaded(&self) -> bool {
        false
    }

    /// How long tasks have waited for a thread, if they do.
    fn waits(&self) -> Option<WaitMetrics> {
        None
    }

    /// What is known of each service whose runs it [spawns](Self::spawn).
    fn metrics(&self) -> Vec<ServiceMetrics> {
        Vec::new()
    }
}

/// Where a stage runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the thread that ran the stage before it.
    Here,
    /// Wherever [`Scheduler::spawn`] puts it.
    Elsewhere,
    /// On the loop that ran the stage before it, together with the same stage of other connections.
    /// A loop asks once, at its start, whether [`Next::Request`] is gathered; elsewhere than on a
    /// loop it is as [`Here`](Self::Here).
    Gathered,
}
