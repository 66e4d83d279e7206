//! Keeps the modules of a start script out of the files that the server sends.

use std::rc::Rc;
use std::sync::Arc;

use bine_http::Status;
use bine_server::{Answer, Clock, Incoming, Outgoing};

use super::script::StartScript;
use crate::app_state::AppState;
use crate::respond::{RequestSummary, Response};
use crate::subsystem::{Mount, MountedHandler};
use crate::visitor_message::VisitorMessage;

/// The handler of the paths of these modules.
pub(in crate::scripts) fn mount(script: &Arc<StartScript>) -> Mount {
    Mount {
        name: "start.ts",
        path: "",
        has_descendants: true,
        is_gated: false,
        handler: Arc::new(HiddenFiles(Arc::clone(script))),
    }
}

struct HiddenFiles(Arc<StartScript>);

impl MountedHandler for HiddenFiles {
    fn accepts(&self, path: &str, _request: &Incoming<'_>) -> bool {
        // Most paths end here.
        let ending = path.rsplit_once('.').map(|(_, ending)| ending);
        if !matches!(ending, Some("ts" | "tsx")) {
            return false;
        }
        // The file server may read a path without its empty segments.
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        self.0.has_file(&segments.join("/"))
    }

    fn respond(
        &self,
        _path: &str,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let response = Response::told(Status::NOT_FOUND, VisitorMessage::NothingHere {});
        response.answer(RequestSummary::by(request), clock, &app.templates, out)
    }
}
