//! The metrics endpoint as a subsystem of a program.

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bine_http::{Method, Status};
use bine_server::{Answer, Clock, Incoming, Outgoing};

use super::choices::MetricsChoices;
use super::{Metrics, MetricsServer, ServerHandle};
use crate::app_state::AppState;
use crate::prometheus::MEDIA_TYPE;
use crate::respond::{RequestSummary, Response};
use crate::subsystem::{
    Definition, Mount, MountedHandler, Registration, Running, Start, Subsystem,
};

inventory::submit! {
    Registration { rank: 40, create: || Box::new(MetricsSubsystem::default()) }
}

/// The metrics of a program that has not started.
#[derive(Default)]
struct MetricsSubsystem {
    running: Arc<RunningMetrics>,
    /// The server, for the pages of the program.
    handle: ServerHandle,
    page: Arc<MetricsPage>,
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
        if definition.guard.is_some() {
            definition.mounts.push(Mount {
                name: "metrics",
                path: "/_bine/metrics",
                has_descendants: false,
                is_gated: false,
                handler: Arc::clone(&self.page) as _,
            });
        }
        Ok(())
    }

    fn bind(&mut self, start: &Start<'_>) -> Result<(), String> {
        self.handle.set(start.server);
        // The program starts once, so the cell is empty.
        let _ = self.page.0.set(Metrics::new(start.server, start.shared));
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

/// The metrics at the program's own address, in a program with rights: a rule for administrators
/// protects the path.
#[derive(Default)]
struct MetricsPage(OnceLock<Metrics>);

impl MountedHandler for MetricsPage {
    fn respond(
        &self,
        _path: &str,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let method = request.head.method();
        let response = match self.0.get() {
            _ if !matches!(method, Method::Get | Method::Head) => {
                Response::allowing(method, crate::methods::Methods::GET)
            }
            Some(metrics) => Response::text(metrics.text())
                .with_header("Content-Type", MEDIA_TYPE)
                .with_header("Cache-Control", "no-store"),
            None => Response::status(Status::SERVICE_UNAVAILABLE),
        };
        response.answer(RequestSummary::by(request), clock, &app.templates, out)
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
