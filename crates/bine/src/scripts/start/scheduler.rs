//! The scheduler of a start script, as the server knows schedulers: event loops, and workers whose
//! tasks a [`Dispatcher`] starts.

use std::io;
use std::sync::Arc;

use bine_server::scheduler::{
    Next, Placement, ResponseKind, Scheduler, Server, Task, Ticket, serve_loops,
};

use super::dispatcher::{Dispatcher, WaitingJob};
use super::events::RequestFacts;

/// The scheduler of a start script.
pub(in crate::scripts) struct ScriptScheduler(pub(in crate::scripts) Arc<Dispatcher>);

impl Scheduler for ScriptScheduler {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        self.0.start()?;
        let own = Arc::clone(&self.0);
        let outcome = serve_loops(server, &(self as Arc<dyn Scheduler>));
        own.stop();
        outcome
    }

    fn stage(&self, next: Next) -> Placement {
        match next {
            Next::Response(ResponseKind::Dynamic) => Placement::Spawn,
            _ => Placement::SameThread,
        }
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        let handler = task.handler();
        let Some(facts) = task.request().map(|request| RequestFacts::of(&request, handler)) else {
            return self.0.run_short(task);
        };
        match self.0.enqueue(facts, WaitingJob::Task(task)) {
            Err(WaitingJob::Task(task)) => Err(task),
            Ok(_) | Err(WaitingJob::Page(_)) => Ok(()),
        }
    }

    fn withdraw(&self, ticket: &Ticket) -> Option<Task> {
        self.0.withdraw(ticket)
    }

    fn on_overdue(&self) {
        self.0.on_overdue();
    }

    fn on_returned(&self) {
        self.0.on_returned();
    }

    fn load(&self) -> f32 {
        self.0.load()
    }

    fn status(&self) -> String {
        self.0.status()
    }
}
