//! Decides what schedulers share whose stages follow each other on one thread, as in document 000
//! section 2.4: a stage hands over by a plain call.

use std::io;
use std::sync::Arc;

use crate::next::Next;
use crate::scheduling::{Place, Scheduler};
use crate::server::Server;
use crate::workers::Task;

/// A policy that runs each connection in a row: what remains to decide is who accepts and who holds. Each is
/// a [`Scheduler`].
pub trait Row: Send + Sync + 'static {
    /// As [`Scheduler::accept`].
    ///
    /// # Errors
    ///
    /// Threads or descriptors that could not be had.
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()>;

    /// As [`Scheduler::begin_hold`].
    fn begin_hold(&self) -> bool {
        true
    }

    /// As [`Scheduler::end_hold`].
    fn end_hold(&self) {}

    /// As [`Scheduler::load`].
    fn load(&self) -> f32;

    /// As [`Scheduler::status`].
    fn status(&self) -> String;
}

impl<R: Row> Scheduler for R {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        Row::accept(self, server)
    }

    fn stage(&self, _next: Next) -> Place {
        Place::Here
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn begin_hold(&self) -> bool {
        Row::begin_hold(self)
    }

    fn end_hold(&self) {
        Row::end_hold(self);
    }

    fn load(&self) -> f32 {
        Row::load(self)
    }

    fn status(&self) -> String {
        Row::status(self)
    }
}
