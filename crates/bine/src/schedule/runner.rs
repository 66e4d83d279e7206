//! The thread that waits for due services and runs them.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bine_log as log;
use serde_json::Map;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use super::job::Job;
use super::row::{CLAIM_TIME, Claim, claim, finish, renew};
use crate::app_state::AppState;
use crate::random_token::random_token;
use crate::service::Caller;
use crate::store::{self, Store};

/// Runs services at their intervals until it is stopped.
pub(super) struct ScheduleRunner {
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pub(super) counts: Arc<ScheduleCounts>,
}

/// Counts of runs for the metrics.
#[derive(Default)]
pub(super) struct ScheduleCounts {
    /// By the address of the service.
    services: BTreeMap<Box<str>, RunCounts>,
}

/// The runs of one service by this process.
#[derive(Default)]
pub(super) struct RunCounts {
    pub(super) done: AtomicU64,
    pub(super) failed: AtomicU64,
    /// 1 during a run.
    pub(super) running: AtomicU64,
}

/// What the tasks of all services share.
struct ScheduleTasks {
    store: Store,
    app: Arc<AppState>,
    /// Identifies this process in the rows.
    holder: String,
    counts: Arc<ScheduleCounts>,
}

/// The longest wait until the row is read again: another node may have finished early.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The wait after a failure of the store.
const RETRY_WAIT: Duration = Duration::from_secs(5);
/// How long a stop waits for services that run.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

impl ScheduleRunner {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system cannot create a thread.
    pub(super) fn start(
        jobs: Vec<Job>,
        store: &Store,
        app: &Arc<AppState>,
    ) -> Result<Self, String> {
        let (stop, stopped) = watch::channel(false);
        let services = jobs.iter().map(|job| ((*job.path).into(), RunCounts::default())).collect();
        let counts = Arc::new(ScheduleCounts { services });
        let (store, app, holder) = (store.clone(), Arc::clone(app), random_token());
        let tasks = Arc::new(ScheduleTasks { store, app, holder, counts: Arc::clone(&counts) });
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("no event loop for scheduled work: {error}"))?;
        let run = move || {
            let local = LocalSet::new();
            for job in jobs {
                local.spawn_local(Arc::clone(&tasks).run(job, stopped.clone()));
            }
            runtime.block_on(local);
        };
        let thread = thread::Builder::new()
            .name("schedule".to_owned())
            .spawn(run)
            .map_err(|error| format!("no thread for scheduled work: {error}"))?;
        Ok(Self { stop, thread: Mutex::new(Some(thread)), counts })
    }

    /// Starts no service any more, and waits for those that run. One that takes too long is repeated
    /// by the next process, or by another node.
    pub(super) fn stop(&self) {
        let _ = self.stop.send(true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        let begun = Instant::now();
        while !thread.is_finished() {
            if begun.elapsed() >= STOP_TIMEOUT {
                log::warn(format_args!(
                    "scheduled work has not ended within {} s: {}",
                    STOP_TIMEOUT.as_secs(),
                    self.counts.running().join(", ")
                ));
                return;
            }
            thread::park_timeout(Duration::from_millis(10));
        }
        if thread.join().is_err() {
            log::error(format_args!("the thread of scheduled work has panicked"));
        }
    }
}

impl ScheduleCounts {
    /// The counts of each service.
    pub(super) fn services(&self) -> impl Iterator<Item = (&str, &RunCounts)> {
        self.services.iter().map(|(path, counts)| (&**path, counts))
    }

    /// The services that run now.
    pub(super) fn running(&self) -> Vec<&str> {
        let is_running = |counts: &RunCounts| counts.running.load(Ordering::Relaxed) > 0;
        self.services().filter(|(_, counts)| is_running(counts)).map(|(path, _)| path).collect()
    }
}

impl ScheduleTasks {
    /// Runs one service until the stop.
    async fn run(self: Arc<Self>, job: Job, mut stopped: watch::Receiver<bool>) {
        while !*stopped.borrow_and_update() {
            let claimed = self.store.change(|change| claim(change, &job, &self.holder, now()));
            let wait = match claimed.await {
                Ok(Claim::Granted) => {
                    self.run_once(&job).await;
                    continue;
                }
                Ok(Claim::Wait(until)) => {
                    Duration::from_millis(until.saturating_sub(now())).min(MAX_WAIT)
                }
                Err(error) => {
                    report(&job, &error);
                    RETRY_WAIT
                }
            };
            // An error means that the time has passed, or that the runner is gone.
            let _ = timeout(wait, stopped.changed()).await;
        }
    }

    /// Runs the service, and renews the claim meanwhile.
    async fn run_once(&self, job: &Job) {
        let Some(counts) = self.counts.services.get(&*job.path) else { return };
        counts.running.store(1, Ordering::Relaxed);
        let mut call = pin!(Caller::of_program(&self.app).call_service_json(&job.path, Map::new()));
        let mut keep = pin!(self.keep(job));
        let outcome = poll_fn(|context| match call.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(outcome),
            Poll::Pending => keep.as_mut().poll(context).map(|never| match never {}),
        });
        let outcome = outcome.await;
        counts.running.store(0, Ordering::Relaxed);
        let counter = match outcome {
            Ok(_) => &counts.done,
            Err(error) => {
                log::error(format_args!("scheduled work failed: {}: {error:?}", job.path));
                &counts.failed
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let finished = self.store.change(|change| finish(change, job, &self.holder, now()));
        if let Err(error) = finished.await {
            // The claim ends by itself; then the work is repeated.
            report(job, &error);
        }
    }

    /// Renews the claim of a service that runs.
    async fn keep(&self, job: &Job) -> std::convert::Infallible {
        loop {
            sleep(Duration::from_millis(CLAIM_TIME / 3)).await;
            let renewed = self.store.change(|change| renew(change, job, &self.holder, now()));
            match renewed.await {
                Ok(true) => {}
                Ok(false) => log::warn(format_args!(
                    "{} runs at another node too: this one could not renew its claim in time",
                    job.path
                )),
                Err(error) => report(job, &error),
            }
        }
    }
}

fn report(job: &Job, error: &store::Error) {
    log::warn(format_args!("the schedule of {} cannot be written: {error}", job.path));
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
