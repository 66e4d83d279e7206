//! Extraction of a handler's arguments from a request.

mod form;
mod json;
mod multipart;
mod state;
mod upload;
mod wrapped;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use bine_server::{self as server, Incoming};

use crate::app_state::{AppState, Requirement};
use crate::pattern::PathPattern;
use crate::request_session::{RequestSession, look_at_user};
use crate::text::Text;
use crate::visitor_message::VisitorMessage;

pub use crate::from_text::FromText;
pub use crate::rejection::Rejection;
pub use form::Form;
pub(crate) use form::fields as form_fields;
#[cfg(feature = "script")]
pub(crate) use form::fields_and_files as form_with_files;
pub(crate) use form::text_fields;
pub use json::Json;
pub(crate) use json::is_json;
pub use multipart::check_form;
pub use state::State;
#[cfg(feature = "script")]
pub(crate) use upload::MAX_UPLOAD;
pub use upload::Upload;
pub(crate) use wrapped::texts;
pub use wrapped::{Cookie, Header, Path, Query};

/// The longest body that a handler takes in memory, in bytes. Handlers that read from disk accept
/// more.
pub(crate) const MOST_BODY: u64 = 1 << 20;

/// A type that a handler may take as an argument.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument of a page",
    note = "arguments are `Query<T>`, `Path<T>`, `Header<T>`, `Cookie<T>`, `Form<T>`, `Json<T>`, `State<T>`, \
            `Session`, `Frame`, `User`, `Store`, `Channels`, `Events`, `Presence`, `Upload`, `Upgrade`, `Body` and `Request`, or a type with `impl FromRequest`"
)]
pub trait FromRequest: Sized {
    /// Extracts the argument called `name` from a request.
    ///
    /// # Errors
    ///
    /// Returns the reason why the request does not have it.
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection>;

    /// Declares the requirements that do not depend on the request. Most types need not.
    fn needs(_needs: &mut Needs) {}
}

/// A request whose arguments are being extracted.
pub struct RequestParts<'a> {
    pub(crate) incoming: &'a Incoming<'a>,
    pub(crate) pattern: &'a PathPattern,
    pub(crate) app: &'a Arc<AppState>,
    /// The session of the request, once an argument or a filter has read it.
    pub(crate) visitor_session: Option<Arc<dyn RequestSession>>,
}

/// The requirements of a handler's arguments, known before any request.
#[derive(Debug, Default)]
pub struct Needs {
    /// The longest body that they accept, in bytes.
    pub(crate) body: u64,
    /// Whether longer bodies are stored on disk, for a handler that may block.
    pub(crate) on_disk: bool,
    /// Shared values that the program must have.
    pub(crate) requirements: Vec<Requirement>,
    /// Whether they read the client's session.
    pub(crate) sessions: bool,
    /// Whether they require a logged-in user.
    pub(crate) user: bool,
    /// Whether they read the fields of a form.
    pub(crate) form: bool,
}

/// The pattern of a function without its own path.
static NO_PATH: LazyLock<PathPattern> =
    LazyLock::new(|| PathPattern::new("/").expect("it is a path"));

impl<'a> RequestParts<'a> {
    /// The arguments of a function without its own path.
    pub(crate) fn of(app: &'a Arc<AppState>, incoming: &'a Incoming<'a>) -> Self {
        Self { incoming, pattern: &NO_PATH, app, visitor_session: None }
    }

    /// The logged-in user, for an argument that has the whole request but no session.
    pub(crate) fn look_at_user(&mut self) -> Option<Text> {
        let user = look_at_user(self.app.sessions.as_ref(), self.incoming).map(Text::from);
        if self.visitor_session.is_none() {
            let sessions = self.app.sessions.as_ref();
            self.visitor_session = sessions.and_then(|own| own.seen_session_of(self.incoming));
        }
        user
    }

    /// The whole body, for the argument called `name`.
    pub(crate) fn body(&self, name: &'static str) -> Result<Cow<'a, [u8]>, Rejection> {
        match self.incoming.body {
            server::Body::None => Ok(Cow::Borrowed(b"")),
            // The route adds up the limits of all arguments.
            server::Body::Pending => Err(Rejection::NeedsBody { limit: MOST_BODY }),
            server::Body::InMemory(bytes) => Ok(Cow::Borrowed(bytes)),
            // A different argument reads this body from disk.
            server::Body::OnDisk(spool) if spool.length() > MOST_BODY => {
                Err(Rejection::invalid(name, VisitorMessage::BodyTooLong {}))
            }
            server::Body::OnDisk(spool) => {
                let mut bytes = vec![0; spool.length() as usize];
                let read = multipart::read_exactly(spool, &mut bytes, 0);
                read.map_err(|error| {
                    Rejection::invalid(
                        name,
                        VisitorMessage::Unreadable { reason: error.to_string() },
                    )
                })?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

impl Needs {
    /// Requests a body of at most `limit` bytes, collected before the handler runs.
    pub fn body(&mut self, limit: u64) {
        self.body = self.body.max(limit);
    }

    /// Requires a shared value of this type. `complaint` completes a sentence that begins with the
    /// handler's name.
    pub(crate) fn require<T: 'static>(&mut self, complaint: impl Into<Cow<'static, str>>) {
        self.requirements.push(Requirement::of::<T>(complaint));
    }
}

#[cfg(test)]
mod tests;
