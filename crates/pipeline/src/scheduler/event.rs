//! Decides that everything runs on the event loops: the null policy, which the others are measured
//! against.
//!
//! ```text
//! loop: accept -> request -> response -> reply -> ...
//! ```

use std::io;
use std::sync::Arc;

use crate::event_loop::EventLoop;
use crate::scheduler::{Place, Scheduler, run_threads};
use crate::server::Server;
use crate::stages::Next;
use crate::workers::Task;

/// Event loops alone.
pub struct Event;

impl Scheduler for Event {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let shared = Arc::clone(server);
        run_threads(server, "loop", server.loops.len(), move |index| {
            EventLoop::run(Arc::clone(&shared), Arc::clone(&self) as Arc<dyn Scheduler>, index)
        })
    }

    fn stage(&self, _next: Next) -> Place {
        Place::Here
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn load(&self) -> f32 {
        0.0
    }
}
