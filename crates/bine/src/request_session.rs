//! The interface between request handling and sessions: two traits that the module `sessions`
//! implements.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use bine_http::Head;
use bine_server::{ClientAddress, Identity, Incoming};

use crate::credentials::{CredentialRefusal, CredentialSource};
use crate::text::Text;
use crate::trace::RequestDependency;

/// The session of one request, once a handler, a filter or the page has used it.
pub(crate) trait RequestSession: Any + Send + Sync {
    /// Header fields for the response: it must not enter a shared cache, and the browser may get a
    /// cookie.
    fn response_fields(&self) -> Vec<(&'static str, Cow<'static, str>)>;

    /// The logged-in user. Records the dependency.
    fn look_at_user(&self) -> Option<Text>;

    /// A number for the login of the session, if it has one. Regions of a live page are marked with
    /// it.
    fn login_number(&self) -> Option<u64>;

    /// Encrypts `content` for this session and this purpose.
    fn seal(&self, purpose: &str, content: &[u8]) -> String;

    /// Decrypts the result of [`seal`](Self::seal) for this session and this purpose.
    fn open_seal(&self, purpose: &str, sealed: &str) -> Option<Vec<u8>>;

    /// Starts a session, unless there is one. Records no dependency.
    fn begin(&self);
}

/// Finds the sessions of requests.
pub(crate) trait SessionProvider: Send + Sync {
    /// Identifies the client of a request that arrives. `now` is in seconds since 1970.
    fn identify(&self, head: &Head<'_>, peer: ClientAddress, now: u64) -> Identity;

    /// The session of a request, for a function that runs for it. `None` if the session store is
    /// not open yet.
    fn session_of(&self, request: &Incoming<'_>) -> Option<Arc<dyn RequestSession>>;

    /// The session of a request whose user was already read, without its session.
    fn seen_session_of(&self, request: &Incoming<'_>) -> Option<Arc<dyn RequestSession>>;

    /// Identifies clients by their credentials too. The program calls it once, at the start.
    fn use_credentials(&self, source: Arc<dyn CredentialSource>);

    /// Why a request is refused whose credential is invalid or does not permit it.
    fn refusal(&self, path: &str, request: &Incoming<'_>) -> Option<CredentialRefusal>;

    /// The logged-in user. Records the dependency.
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

/// The user that the program's own middleware identified, if any. Records the dependency.
pub(crate) fn note_user<'r>(request: &Incoming<'r>) -> Option<&'r str> {
    let user = request.identity.user();
    RequestDependency::User.note(|| user.unwrap_or_default().as_bytes().to_vec());
    user
}
