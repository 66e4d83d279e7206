//! Decides whether a program is well, and where that is asked.

use std::sync::{OnceLock, Weak};

use bine_http::Status;
use bine_server::{Incoming, Server};

use crate::respond::Response;
use crate::tables::Tables;

/// Under what name an answer is logged, if at all; no function of a program can be called so.
pub(crate) const NAME: &str = "health-check";

/// Whether somebody who looks after servers asks there, whoever answers.
pub(crate) fn is_asked_at(path: &str) -> bool {
    matches!(path, "/health" | "/ready")
}

/// What becomes of those who ask among a program's pages whether it is well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HealthChoices {
    /// They are answered where no page has the path.
    pub(crate) is_told: bool,
    /// They have lines in the access log.
    pub(crate) is_logged: bool,
}

/// Whether a program is well.
#[derive(Default)]
pub(crate) struct Health(OnceLock<Weak<Server>>);

impl Health {
    /// From here on it is asked of this server.
    pub(crate) fn watch(&self, server: Weak<Server>) {
        // There is one start.
        let _ = self.0.set(server);
    }

    /// Why nobody new should be sent here, if so.
    pub(crate) fn reason(&self, tables: &Tables) -> Option<&'static str> {
        let server = self.0.get().and_then(Weak::upgrade);
        match server {
            None => Some("it has not begun or is at its end"),
            Some(server) if server.is_stopping() => Some("it stops"),
            Some(_) if tables.opened().is_some_and(|store| store.stats().is_read_only) => {
                Some("tables cannot be changed; the error log says why")
            }
            Some(_) => None,
        }
    }

    /// Why changes are refused while everything else is served, if so.
    fn limit(tables: &Tables) -> Option<&'static str> {
        let is_full = tables.opened().is_some_and(|store| store.stats().is_full);
        is_full.then_some("the disk is full")
    }

    /// Status and words for this path; `None`: it asks for something else.
    pub(crate) fn told(&self, path: &str, tables: &Tables) -> Option<(Status, String)> {
        match path {
            "/health" => Some((Status::OK, "alive\n".to_owned())),
            "/ready" => Some(match self.reason(tables) {
                // Reads are served, and no other server has these tables: a balancer goes on sending clients here.
                None => match Self::limit(tables) {
                    None => (Status::OK, "ready\n".to_owned()),
                    Some(limit) => (Status::OK, format!("read-only: {limit}\n")),
                },
                Some(reason) => (Status::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
            }),
            _ => None,
        }
    }

    /// The answer among the program's own pages, where none of them has this path.
    pub(crate) fn answer(
        &self,
        path: &str,
        request: &Incoming<'_>,
        tables: &Tables,
    ) -> Option<Response> {
        if !matches!(request.head.method(), bine_http::Method::Get | bine_http::Method::Head) {
            return None;
        }
        let (status, words) = self.told(path, tables)?;
        let response = Response::text(words).with_status(status);
        Some(response.with_field("Cache-Control", "no-store"))
    }
}
