//! The metrics endpoint as a subsystem of a program.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::choices::MetricsChoices;
use super::{Metrics, MetricsServer, ServerHandle};
use crate::subsystem::{Definition, Registration, Running, Start, Subsystem};

inventory::submit! {
    Registration { rank: 40, create: || Box::new(MetricsSubsystem::default()) }
}

/// The metrics of a program that has not started.
#[derive(Default)]
struct MetricsSubsystem {
    running: Arc<RunningMetrics>,
    /// The server, for the pages of the program.
    handle: ServerHandle,
}

/// The metrics endpoint, if the configuration has an address for it.
#[derive(Default)]
struct RunningMetrics(Mutex<Option<MetricsServer>>);

impl RunningMetrics {
    fn server(&self) -> MutexGuard<'_, Option<MetricsServer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subsystem for MetricsSubsystem {
    fn define(&mut self, definition: &mut Definition) -> Result<(), String> {
        definition.running.push(Arc::clone(&self.running) as _);
        definition.states.add(self.handle.clone());
        Ok(())
    }

    fn bind(&mut self, start: &Start<'_>) -> Result<(), String> {
        self.handle.set(start.server);
        let MetricsChoices { listen } = start.configuration.choice();
        if let Some(listen) = listen {
            let metrics = Arc::new(Metrics::new(start.server, start.shared));
            *self.running.server() = Some(MetricsServer::open(&listen, metrics)?);
        }
        Ok(())
    }

    fn start(&mut self, _start: &Start<'_>) -> Result<(), String> {
        match &mut *self.running.server() {
            Some(server) => server
                .begin()
                .map_err(|error| format!("cannot create the thread for metrics: {error}")),
            None => Ok(()),
        }
    }
}

impl Running for RunningMetrics {
    fn announcement(&self) -> Option<String> {
        Some(format!("metrics at {}", self.server().as_ref()?.url()))
    }

    fn stop(&self) {
        // The endpoint stops when the value is dropped.
        let server = self.server().take();
        drop(server);
    }
}
