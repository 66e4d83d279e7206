//! The interface between request handling and rights: who may use a path, and who is in a group.

use std::borrow::Cow;
use std::sync::Arc;

use bine_http::Status;
use bine_server::Incoming;

use crate::request_session::SessionProvider;
use crate::respond::Response;
use crate::visitor_message::VisitorMessage;

/// Decides which clients may use which paths. One subsystem may provide it.
pub(crate) trait AccessGuard: Send + Sync {
    /// Decides about a request for the decoded path `path`. The program calls it after the filters
    /// and before it opens a file or runs a handler. Records what the decision depended on.
    fn check(
        &self,
        path: &str,
        request: &Incoming<'_>,
        sessions: Option<&Arc<dyn SessionProvider>>,
    ) -> AccessDecision;

    /// Whether this user is a member of this group. Records the dependency.
    fn is_member(&self, user: &str, group: &str) -> bool;

    /// Names paths that remain open to everyone unless a rule names exactly this path, such as the
    /// page where users log in. The program calls it once at the start.
    fn keep_open(&self, paths: Vec<Cow<'static, str>>);
}

/// The decision about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessDecision {
    Allow,
    /// The client has not logged in, and a login may help.
    RequireLogin,
    Deny,
}

impl AccessDecision {
    /// The response to a request that is not allowed.
    pub(crate) fn refusal(self) -> Option<Response> {
        match self {
            Self::Allow => None,
            Self::RequireLogin => {
                Some(Response::told(Status::UNAUTHORIZED, VisitorMessage::LogInToSee {}))
            }
            Self::Deny => Some(Response::told(Status::FORBIDDEN, VisitorMessage::NoRight {})),
        }
    }
}
