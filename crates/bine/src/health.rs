//! Health checks: whether the program is ready, and the paths where a load balancer asks.

use std::sync::{Arc, OnceLock, Weak};

use bine_http::Status;
use bine_server::{Incoming, Server};

use crate::respond::Response;
use crate::staleness::Staleness;
use crate::tables::Tables;

/// The name in the access log. No function of a program can have it.
pub(crate) const NAME: &str = "health-check";

/// Whether the path is one of the health checks.
pub(crate) fn is_asked_at(path: &str) -> bool {
    matches!(path, "/health" | "/ready")
}

/// How the program's own pages treat health checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HealthChoices {
    /// Whether health checks are answered at paths without a page.
    pub(crate) is_told: bool,
    /// Whether health checks appear in the access log.
    pub(crate) is_logged: bool,
}

/// The health of a program.
pub(crate) struct Health {
    server: OnceLock<Weak<Server>>,
    staleness: Arc<Staleness>,
}

impl Health {
    pub(crate) fn new(staleness: Arc<Staleness>) -> Self {
        Self { server: OnceLock::new(), staleness }
    }

    /// Starts reporting the state of this server.
    pub(crate) fn watch(&self, server: Weak<Server>) {
        // The program starts only once.
        let _ = self.server.set(server);
    }

    /// The reason not to send new clients here, if there is one.
    pub(crate) fn reason(&self, tables: &Tables) -> Option<&'static str> {
        let server = self.server.get().and_then(Weak::upgrade);
        match server {
            None => Some("it has not begun or is at its end"),
            Some(server) if server.is_stopping() => Some("it stops"),
            Some(server) if server.is_leaving() => Some("it leaves"),
            // Other nodes may have the changes that this one lacks.
            Some(_) if self.staleness.is_stale() => {
                Some("this node is cut off from the others: its data may be old")
            }
            Some(_) if tables.opened().is_some_and(|store| store.stats().is_read_only) => {
                Some("tables cannot be changed; the error log says why")
            }
            Some(_) => None,
        }
    }

    /// The reason why writes fail while reads work, if there is one.
    fn limit(tables: &Tables) -> Option<&'static str> {
        let is_full = tables.opened().is_some_and(|store| store.stats().is_full);
        is_full.then_some("the disk is full")
    }

    /// The status and text for a health check at this path, or `None` for any other path.
    pub(crate) fn check(&self, path: &str, tables: &Tables) -> Option<(Status, String)> {
        match path {
            "/health" => Some((Status::OK, "alive\n".to_owned())),
            "/ready" => Some(match self.reason(tables) {
                // Reads work, and no other server has these tables: a load balancer should keep
                // sending clients here.
                None => match Self::limit(tables) {
                    None => (Status::OK, "ready\n".to_owned()),
                    Some(limit) => (Status::OK, format!("read-only: {limit}\n")),
                },
                Some(reason) => (Status::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
            }),
            _ => None,
        }
    }

    /// The response among the program's own pages, at a path that has no page.
    pub(crate) fn answer(
        &self,
        path: &str,
        request: &Incoming<'_>,
        tables: &Tables,
    ) -> Option<Response> {
        if !matches!(request.head.method(), bine_http::Method::Get | bine_http::Method::Head) {
            return None;
        }
        let (status, text) = self.check(path, tables)?;
        let response = Response::text(text).with_status(status);
        Some(response.with_header("Cache-Control", "no-store"))
    }
}
