//! `POST /_bine/reload`: administrators reload the configuration of the server.

use std::rc::Rc;
use std::sync::Arc;

use bine_http::{Method, Status};
use bine_log as log;
use bine_server::{Answer, Clock, Done, Incoming, Outgoing, Retained, Work};

use super::engine::RightsEngine;
use super::who::ANONYMOUS;
use crate::app_state::AppState;
use crate::audit;
use crate::error::Error;
use crate::methods::Methods;
use crate::origin::may_be_foreign;
use crate::request_session::look_at_user;
use crate::respond::{RequestSummary, Response, ResponseWriter, write_panic_response};
use crate::store::Transaction;
use crate::subsystem::{Mount, MountedHandler};
use crate::text::Text;

/// The handler of the path. A rule for administrators protects it.
struct ReloadEndpoint(Arc<RightsEngine>);

/// One reload.
struct ReloadRequest {
    engine: Arc<RightsEngine>,
    app: Arc<AppState>,
    actor: Text,
}

/// The mount of the handler.
pub(super) fn mount(engine: &Arc<RightsEngine>) -> Mount {
    Mount {
        name: "reload",
        path: "/_bine/reload",
        has_descendants: false,
        is_gated: false,
        handler: Arc::new(ReloadEndpoint(Arc::clone(engine))),
    }
}

impl MountedHandler for ReloadEndpoint {
    fn respond(
        &self,
        _path: &str,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let response = if request.head.method() != Method::Post {
            Response::allowing(request.head.method(), Methods::POST)
        } else if may_be_foreign(&request.head) {
            let message = "Only a page of this site may reload the configuration.";
            Response::error(Status::FORBIDDEN, message)
        } else {
            let user = look_at_user(app.sessions.as_ref(), request);
            let actor = user.unwrap_or(ANONYMOUS).into();
            let (engine, app) = (Arc::clone(&self.0), Arc::clone(app));
            return Answer::Work(Arc::new(ReloadRequest { engine, app, actor }));
        };
        response.answer(RequestSummary::by(request), clock, &app.templates, out)
    }
}

impl ReloadRequest {
    /// Reloads as `bine reload` does.
    fn reload(&self) -> Response {
        let Some(shared) = self.engine.shared() else {
            return Response::status(Status::SERVICE_UNAVAILABLE);
        };
        let Some(reload) = shared.reload.get() else {
            let message = "This program has no configuration to reload.";
            return Response::error(Status::CONFLICT, message);
        };
        let outcome = reload();
        let detail = match &outcome {
            Ok(notes) => notes.clone(),
            Err(reason) => format!("nothing has changed: {reason}"),
        };
        self.record(&detail);
        match outcome {
            Ok(notes) if notes.is_empty() => Response::text("reloaded\n"),
            Ok(notes) => Response::text(format!("reloaded\n{notes}")),
            Err(reason) => Response::text(format!("{reason}; nothing has changed\n"))
                .with_status(Status::UNPROCESSABLE_CONTENT),
        }
    }

    /// Records the reload in the audit log.
    fn record(&self, detail: &str) {
        let Some(store) = self.engine.store() else { return };
        let entry = store.change(|change: &mut Transaction| {
            audit::record(change, &self.actor, "reload", "configuration", detail)?;
            Ok::<(), Error>(())
        });
        if let Err(error) = entry.wait() {
            let causes: Vec<_> = error.chain().collect();
            log::error(format_args!("audit log: {}", causes.join(": ")));
        }
    }
}

impl Work for ReloadRequest {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let request = request.incoming();
        let asked = RequestSummary::by(&request);
        let response = self.reload().with_header("Cache-Control", "no-store");
        ResponseWriter::new(out, asked, clock, usize::MAX, &self.app.templates).finish(response)
    }

    fn failed(&self, request: &Incoming<'_>, clock: &Clock, out: &mut Vec<u8>) {
        write_panic_response(RequestSummary::by(request), clock, &self.app.templates, out);
    }

    fn name(&self) -> &'static str {
        "reload"
    }
}
