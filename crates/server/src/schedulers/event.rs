//! The `event` scheduler: every stage runs on the event loops. It serves as the baseline for
//! measurements of the other schedulers.
//!
//! ```text
//! loop: accept -> request -> response -> reply -> ...
//! ```

use std::io;
use std::sync::Arc;

use crate::next::Next;
use crate::schedulers::threads::serve_loops;
use crate::scheduling::{Placement, Scheduler};
use crate::server::Server;
use crate::workers::Task;

/// The `event` scheduler: event loops and no other threads.
pub struct Event;

impl Scheduler for Event {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        serve_loops(server, &(self as Arc<dyn Scheduler>))
    }

    fn stage(&self, _next: Next) -> Placement {
        Placement::SameThread
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn load(&self) -> f32 {
        0.0
    }

    fn status(&self) -> String {
        "event loops alone: nothing waits for a thread".to_owned()
    }
}
