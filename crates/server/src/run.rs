//! Runs a server: its scheduler and its watchdog, until it is told to stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::metrics::SchedulerMetrics;
use crate::schedulers;
use crate::scheduling::Scheduler;
use crate::server::Server;
use crate::watchdog::Watchdog;

// Here and not beside `Server`, which knows no scheduler.
impl Server {
    /// Serves until [`stop`](Self::stop), with the scheduler that the settings name.
    ///
    /// # Errors
    ///
    /// Threads or descriptors that could not be had.
    pub fn run(self: &Arc<Self>) -> io::Result<()> {
        let name = self.generation().settings.scheduler.clone();
        let scheduler = schedulers::by_name(&self.generation().settings)?;
        self.run_named(name, scheduler)
    }

    /// Serves until [`stop`](Self::stop), with a scheduler of the program's own.
    ///
    /// # Errors
    ///
    /// Threads or descriptors that could not be had.
    pub fn run_with(self: &Arc<Self>, scheduler: Arc<dyn Scheduler>) -> io::Result<()> {
        self.run_named("own".to_owned(), scheduler)
    }

    fn run_named(self: &Arc<Self>, name: String, scheduler: Arc<dyn Scheduler>) -> io::Result<()> {
        // A server runs once.
        let shown = Arc::clone(&scheduler);
        let _ = self.scheduler.set(Box::new(move || SchedulerMetrics {
            name: name.clone(),
            load: shown.load(),
            status: shown.status(),
            waits: shown.waits(),
            services: shown.metrics(),
        }));
        let watchdog = Watchdog::start(self)?;
        let outcome = scheduler.accept(self);
        drop(watchdog);
        self.remove_socket_files();
        self.finish_log();
        if self.stalls.replaces.load(Ordering::Relaxed) {
            // A loop that turned again at the last moment changes nothing: a success would not be started again.
            let message = "the process is replaced, because a loop was stuck";
            return outcome.and(Err(io::Error::other(message)));
        }
        outcome
    }
}
