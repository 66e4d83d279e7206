//! Scheduled work as a subsystem of a program: its method of [`App`], and its start.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::choices::ScheduleChoices;
use super::job::Job;
use super::row;
use super::runner::ScheduleRunner;
use crate::app::App;
use crate::configuration::Configuration;
use crate::prometheus::PrometheusText;
use crate::service::{Callable, check_scheduled};
use crate::store::Options;
use crate::subsystem::{Definition, Outline, Registration, Running, Start, Subsystem};

/// The scheduled work of a program that has not started.
#[derive(Default)]
struct ScheduleSubsystem {
    /// The jobs of the program.
    jobs: Vec<Job>,
    /// The jobs of the configuration.
    configured: Vec<Job>,
    runner: Arc<OnceLock<ScheduleRunner>>,
}

inventory::submit! {
    // It stops before all that its services use.
    Registration { rank: 80, create: || Box::new(ScheduleSubsystem::default()) }
}

impl App {
    /// Runs a service at an interval, from one interval after its first start on. The service takes no
    /// argument from a client; add it by [`service`](Self::service) too, if clients may call it.
    ///
    /// In a cluster one node runs it, and another one takes over if that node ends. A run that a crash
    /// interrupts is repeated after at most a minute, so the work must bear it. A run is never started
    /// before the previous one has ended, and runs that were missed are not repeated. The
    /// configuration key `every` does the same for services of applications in TSX.
    ///
    /// The access rule of the service does not apply: the caller is the program.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use bine::prelude::*;
    ///
    /// #[derive(Table)]
    /// struct Note {
    ///     id: Id<Note>,
    ///     text: Text,
    /// }
    ///
    /// /// Keeps the newest hundred notes.
    /// #[service(who = "anyone")]
    /// fn clean_up(call: &mut Call) -> Result<(), Error> {
    ///     let newest = call.newest::<Note>(100);
    ///     let Some(oldest) = newest.last().map(|note| note.id) else { return Ok(()) };
    ///     let old: Vec<_> = call.all::<Note>().filter(|note| note.id < oldest).collect();
    ///     for note in old {
    ///         call.remove(note.id)?;
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let app = App::new()
    ///     .table::<Note>()
    ///     .service(clean_up)
    ///     .every(Duration::from_secs(600), clean_up);
    /// # drop(app);
    /// ```
    pub fn every<T>(
        mut self,
        interval: Duration,
        service: impl Callable<Arguments = (), Output = T>,
    ) -> Self {
        let path = service.service().path().into();
        self.subsystems.get_mut::<ScheduleSubsystem>().jobs.push(Job { path, interval });
        self
    }
}

impl ScheduleSubsystem {
    fn all_jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().chain(&self.configured)
    }

    fn has_jobs(&self) -> bool {
        self.all_jobs().next().is_some()
    }
}

impl Subsystem for ScheduleSubsystem {
    fn configure(&mut self, configuration: &Configuration) {
        ScheduleChoices(self.configured) = configuration.choice();
    }

    fn needs_store(&self, _outline: &Outline<'_>) -> bool {
        self.has_jobs()
    }

    fn needs_sessions(&self, _outline: &Outline<'_>) -> bool {
        self.has_jobs()
    }

    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        for (at, job) in self.all_jobs().enumerate() {
            if self.all_jobs().take(at).any(|other| other.path == job.path) {
                return Err(format!("{} is scheduled twice: remove one `every`", job.path));
            }
        }
        if self.has_jobs() {
            definition.running.push(Arc::new(RunningSchedule(Arc::clone(&self.runner))));
        }
        Ok(())
    }

    fn declare(&self, options: Options) -> Options {
        if self.has_jobs() { row::declare(options) } else { options }
    }

    fn start(&mut self, start: &Start<'_>) -> Result<(), String> {
        let Some(store) = start.store().filter(|_| self.has_jobs()) else { return Ok(()) };
        for job in self.all_jobs() {
            check_scheduled(start.app, &job.path)?;
        }
        let jobs = self.jobs.drain(..).chain(self.configured.drain(..)).collect();
        let runner = ScheduleRunner::start(jobs, store, start.app)?;
        // A program starts once.
        let _ = self.runner.set(runner);
        Ok(())
    }
}

/// The hooks of scheduled work while the program runs.
struct RunningSchedule(Arc<OnceLock<ScheduleRunner>>);

impl Running for RunningSchedule {
    fn write_metrics(&self, text: &mut PrometheusText) {
        let Some(runner) = self.0.get() else { return };
        let mut runs =
            text.counter("bine_schedule_runs_total", "Runs of scheduled services by this process.");
        for (path, counts) in runner.counts.services() {
            for (outcome, count) in [("done", &counts.done), ("failed", &counts.failed)] {
                let labels = [("service", path), ("outcome", outcome)];
                runs.with(&labels, count.load(Ordering::Relaxed));
            }
        }
    }

    fn unfinished_work(&self) -> Option<String> {
        let running = self.0.get()?.counts.running();
        (!running.is_empty()).then(|| format!("scheduled work ({})", running.join(", ")))
    }

    fn stop(&self) {
        if let Some(runner) = self.0.get() {
            runner.stop();
        }
    }
}
