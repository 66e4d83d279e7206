//! In development, a thread looks for changed files, so that open pages show a change at once.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::application::Application;
use super::new_applications::NewApplications;
use super::start::StartScript;

/// The time between two looks at the files.
const INTERVAL: Duration = Duration::from_millis(300);

/// Looks for changed files until it is stopped.
pub(super) struct Watcher {
    state: Arc<WatcherState>,
}

#[derive(Default)]
struct WatcherState {
    is_stopped: Mutex<bool>,
    stopped: Condvar,
}

impl Watcher {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system cannot create a thread.
    pub(super) fn start(
        applications: Vec<Arc<Application>>,
        new: Option<Arc<NewApplications>>,
        start: Option<Arc<StartScript>>,
    ) -> Result<Self, String> {
        let state = Arc::<WatcherState>::default();
        let own = Arc::clone(&state);
        let thread = thread::Builder::new().name("bine scripts".to_owned()).spawn(move || {
            while !own.waits() {
                if let Some(start) = &start {
                    start.check_files();
                }
                for app in &applications {
                    app.check_files(true);
                }
                if let Some(new) = &new {
                    new.report();
                }
            }
        });
        thread
            .map_err(|error| format!("cannot start the thread that looks for changes: {error}"))?;
        Ok(Self { state })
    }

    /// Ends the thread, after the look at the files that it is at.
    pub(super) fn stop(&self) {
        *self.state.is_stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.stopped.notify_all();
    }
}

impl WatcherState {
    /// Waits for an interval. Returns whether the watcher was stopped.
    fn waits(&self) -> bool {
        let is_stopped = self.is_stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.stopped.wait_timeout_while(is_stopped, INTERVAL, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
