//! What the web core needs of the sessions of visitors: two traits, which the module `sessions` implements.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use bine_server::Incoming;

use crate::text::Text;
use crate::trace::RequestDependency;

/// The session of one request that a handler, a filter or the page itself has looked at.
pub(crate) trait RequestSession: Any + Send + Sync {
    /// Header fields that the response must have: no shared cache may keep it, and the browser may get a cookie.
    fn response_fields(&self) -> Vec<(&'static str, Cow<'static, str>)>;

    /// The user who has logged in. Records the dependency.
    fn look_at_user(&self) -> Option<Text>;

    /// A number for the login of the session, if it has one. Regions of a live page are marked with it.
    fn login_number(&self) -> Option<u64>;

    /// Encrypts `content` for this session and this purpose.
    fn seal(&self, purpose: &str, content: &[u8]) -> String;

    /// Decrypts what [`seal`](Self::seal) made for this session and this purpose.
    fn open_seal(&self, purpose: &str, sealed: &str) -> Option<Vec<u8>>;

    /// Begins a session, if there is none. Nothing of it is recorded as a dependency.
    fn begin(&self);
}

/// Finds the sessions of requests.
pub(crate) trait SessionProvider: Send + Sync {
    /// The session of a request, for a function that runs for it. `None`: sessions are not open yet.
    fn session_of(&self, request: &Incoming<'_>) -> Option<Arc<dyn RequestSession>>;

    /// The same of a request whose user was looked at already, without its session.
    fn seen_session_of(&self, request: &Incoming<'_>) -> Option<Arc<dyn RequestSession>>;

    /// The user who has logged in. Records the dependency.
    fn look_at_user<'r>(&self, request: &Incoming<'r>) -> Option<&'r str>;
}

/// The user of a request to a program that may have no sessions. Records the dependency.
pub(crate) fn look_at_user<'r>(
    sessions: Option<&Arc<dyn SessionProvider>>,
    request: &Incoming<'r>,
) -> Option<&'r str> {
    match sessions {
        Some(sessions) => sessions.look_at_user(request),
        None => note_user(request),
    }
}

/// The user whom the program's own step knows, or nobody. Records the dependency.
pub(crate) fn note_user<'r>(request: &Incoming<'r>) -> Option<&'r str> {
    let user = request.who.user();
    RequestDependency::User.note(|| user.unwrap_or_default().as_bytes().to_vec());
    user
}
