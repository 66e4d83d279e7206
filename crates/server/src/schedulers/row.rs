//! The common part of schedulers that run all stages of a connection on one thread, where each
//! stage calls the next directly (Serrano, "Hop", 2009, section 2.4).

use std::io;
use std::sync::Arc;

use crate::next::Next;
use crate::scheduling::{Placement, Scheduler};
use crate::server::Server;
use crate::workers::Task;

/// A scheduling policy that runs each connection on one thread. An implementation decides only
/// which threads accept and which serve connections. Every `SingleThreadScheduler` is a
/// [`Scheduler`].
pub trait SingleThreadScheduler: Send + Sync + 'static {
    /// Same contract as [`Scheduler::accept`].
    ///
    /// # Errors
    ///
    /// Fails when threads or file descriptors are not available.
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()>;

    /// Same contract as [`Scheduler::begin_hold`].
    fn begin_hold(&self) -> bool {
        true
    }

    /// Same contract as [`Scheduler::end_hold`].
    fn end_hold(&self) {}

    /// Same contract as [`Scheduler::load`].
    fn load(&self) -> f32;

    /// Same contract as [`Scheduler::status`].
    fn status(&self) -> String;
}

impl<R: SingleThreadScheduler> Scheduler for R {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        SingleThreadScheduler::accept(self, server)
    }

    fn stage(&self, _next: Next) -> Placement {
        Placement::SameThread
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn begin_hold(&self) -> bool {
        SingleThreadScheduler::begin_hold(self)
    }

    fn end_hold(&self) {
        SingleThreadScheduler::end_hold(self);
    }

    fn load(&self) -> f32 {
        SingleThreadScheduler::load(self)
    }

    fn status(&self) -> String {
        SingleThreadScheduler::status(self)
    }
}
