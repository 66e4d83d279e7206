//! The `hybrid` scheduler (Carrera et al., "A Hybrid Web Server Architecture for e-Commerce
//! Applications", 2005): event loops own the connections, and a small pool of workers runs each
//! request that may block.
//!
//! ```text
//! loop:    accept -> request -> response(static) -> reply -> ...
//!                          \-> response(dynamic)      ^
//! workers:                     handler, page writer --'  (one letter each way)
//! ```

use std::io;
use std::sync::Arc;

use bine_admission::PoolSizer;

use crate::mailbox::Ticket;
use crate::metrics::WaitMetrics;
use crate::next::{Next, ResponseKind};
use crate::schedulers::threads::serve_loops;
use crate::scheduling::{Placement, Scheduler};
use crate::server::Server;
use crate::workers::{Task, Workers};
use bine_admission::queue::ServiceMetrics;

/// The `hybrid` scheduler: event loops and a pool of worker threads.
pub struct Hybrid {
    workers: Workers,
}

impl Hybrid {
    /// Creates the scheduler with a fixed number of `workers` and room for `queue` waiting
    /// requests.
    pub fn new(workers: usize, queue: usize) -> Self {
        Self { workers: Workers::new(PoolSizer::new(workers, workers, 1), queue) }
    }

    /// Creates the scheduler with a pool of `least` to `most` workers, which grows while requests
    /// wait and cores are idle.
    pub fn growing(least: usize, most: usize, queue: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { workers: Workers::new(PoolSizer::new(least, most, cores), queue) }
    }
}

impl Scheduler for Hybrid {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let scheduler: Arc<dyn Scheduler> = Arc::<Self>::clone(&self);
        let outcome = serve_loops(server, &scheduler);
        self.workers.stop();
        outcome
    }

    fn stage(&self, next: Next) -> Placement {
        match next {
            Next::Response(ResponseKind::Dynamic) => Placement::Spawn,
            _ => Placement::SameThread,
        }
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        self.workers.spawn(task)
    }

    fn withdraw(&self, ticket: &Ticket) -> Option<Task> {
        self.workers.withdraw(ticket)
    }

    fn on_overdue(&self) {
        self.workers.replace();
    }

    fn on_returned(&self) {
        self.workers.on_returned();
    }

    fn load(&self) -> f32 {
        self.workers.load()
    }

    fn status(&self) -> String {
        self.workers.status()
    }

    fn is_overloaded(&self) -> bool {
        self.workers.is_overloaded()
    }

    fn waits(&self) -> Option<WaitMetrics> {
        Some(self.workers.waits())
    }

    fn metrics(&self) -> Vec<ServiceMetrics> {
        self.workers.metrics()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::time::{Duration, Instant};

    use bine_admission::Admission;

    use super::*;
    use crate::handler::{Done, Outgoing, Retained, Work};
    use crate::mailbox::{Mailbox, Ticket};
    use crate::slab::Token;
    use crate::test_support::request;
    use crate::time::Clock;
    use crate::workers::Job;

    #[test]
    fn reports_the_waits_and_the_load_of_its_workers() {
        let scheduler = Hybrid::new(2, 4);
        assert_eq!(scheduler.waits(), Some(WaitMetrics::default()));
        assert!(scheduler.load().abs() < f32::EPSILON && !scheduler.is_overloaded());
        assert_eq!(scheduler.status(), "0 of 2 workers are busy, 0 requests wait");
        assert!(scheduler.metrics().is_empty(), "no service has run");
        let (sender, ended) = channel();
        let ticket =
            Ticket { token: Token::default(), reply_to: Arc::new(Mailbox::new().unwrap()) };
        let job = Job::Answer {
            work: Arc::new(Signal(sender)),
            request: request("/"),
            bytes: Vec::new(),
        };
        let (since, admission) = (Instant::now(), Arc::new(Admission::off()));
        let task = Task { job, ticket, patience: Duration::from_mins(1), since, admission };
        assert!(scheduler.spawn(task).is_ok());
        ended.recv().unwrap();
        assert_eq!(scheduler.waits().unwrap().classes.iter().sum::<u64>(), 1);
        assert_eq!(scheduler.metrics()[0].name, "signal");
    }

    /// A handler that reports that it runs.
    struct Signal(Sender<()>);

    impl Work for Signal {
        fn run(&self, _request: &Retained, _clock: &Clock, _out: &mut Outgoing<'_>) -> Done {
            self.0.send(()).unwrap();
            Done::default()
        }

        fn name(&self) -> &'static str {
            "signal"
        }
    }
}
