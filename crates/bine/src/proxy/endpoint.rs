//! The handler of the paths that rules name.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bine_http::{Method, Status};
use bine_server::{Answer, Body, Clock, Incoming, Outgoing, Retained, body_stream};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::active::ActiveRules;
use super::exchange::Exchange;
use crate::app_state::AppState;
use crate::request_summary::RequestSummary;
use crate::respond::Response;
use crate::subsystem::MountedHandler;
use crate::visitor_message::VisitorMessage;

/// Answers requests by those of origins.
pub(super) struct ProxyEndpoint(pub(super) Arc<ActiveRules>);

impl MountedHandler for ProxyEndpoint {
    fn accepts(&self, path: &str, request: &Incoming<'_>) -> bool {
        path.starts_with('/') && self.0.find(path, request).is_some()
    }

    fn respond(
        &self,
        path: &str,
        request: &Incoming<'_>,
        app: &Arc<AppState>,
        clock: &Rc<Clock>,
        out: &mut Outgoing<'_>,
    ) -> Answer {
        let method = request.head.method();
        // TRACE would show the client the fields that this server adds.
        let rule = self.0.find(path, request).filter(|_| method != Method::Trace);
        let Some(rule) = rule else {
            let method = method.as_str().to_owned();
            let response =
                Response::told(Status::METHOD_NOT_ALLOWED, VisitorMessage::Method { method });
            return response.answer(RequestSummary::by(request), clock, &app.templates, out);
        };
        let mut exchange = Exchange {
            rule,
            request: Box::new(Retained::of(request)),
            body: None,
            app: Arc::clone(app),
            clock: Rc::clone(clock),
            id: request_id(),
        };
        if matches!(request.body, Body::Pending) {
            let (source, reader) = body_stream();
            exchange.body = Some(reader);
            return Answer::Receive(Box::pin(exchange.run()), source);
        }
        Answer::Later(Box::pin(exchange.run()))
    }
}

/// A text that names the request in the logs of this server and of the origin: 32 digits.
fn request_id() -> String {
    /// The first half differs for each process.
    static PROCESS: LazyLock<u64> = LazyLock::new(|| {
        let mut bytes = [0; 8];
        // Without randomness the ids of two processes may be equal, which only blurs logs.
        let _ = SystemRandom::new().fill(&mut bytes);
        u64::from_be_bytes(bytes)
    });
    static COUNT: AtomicU64 = AtomicU64::new(1);
    format!("{:016x}{:016x}", *PROCESS, COUNT.fetch_add(1, Ordering::Relaxed))
}
