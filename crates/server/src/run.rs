//! Running a server: its scheduler and its watchdog, until it is stopped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::metrics::SchedulerMetrics;
use crate::schedulers;
use crate::scheduling::Scheduler;
use crate::server::Server;
use crate::stop_report::report_background_work;
use crate::watchdog::Watchdog;

// Not next to `Server`, whose module knows no scheduler.
impl Server {
    /// Serves with the scheduler of the settings until [`stop`](Self::stop).
    ///
    /// # Errors
    ///
    /// Returns the system's error when a thread or descriptor is not available.
    pub fn run(self: &Arc<Self>) -> io::Result<()> {
        let name = self.generation().settings.scheduler.clone();
        let scheduler = schedulers::by_name(&self.generation().settings)?;
        self.run_named(name, scheduler)
    }

    /// Serves with the program's own scheduler until [`stop`](Self::stop).
    ///
    /// # Errors
    ///
    /// Returns the system's error when a thread or descriptor is not available.
    pub fn run_with(self: &Arc<Self>, scheduler: Arc<dyn Scheduler>) -> io::Result<()> {
        self.run_named("own".to_owned(), scheduler)
    }

    fn run_named(self: &Arc<Self>, name: String, scheduler: Arc<dyn Scheduler>) -> io::Result<()> {
        // A server runs once, so the cell is empty.
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
        if self.is_drain_over.load(Ordering::Acquire) {
            report_background_work(self);
        }
        self.remove_socket_files();
        self.finish_log();
        if self.stalls.replaces.load(Ordering::Relaxed) {
            // Even if the loop has continued at the last moment: after a success the supervisor
            // would not start a new process.
            let message = "an event loop was stuck; the supervisor starts a new process";
            return outcome.and(Err(io::Error::other(message)));
        }
        outcome
    }
}
