//! Decides what a handler's arguments are made of, and what a peer is told when one is wrong.

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
use crate::pattern::Pattern;
use crate::request_session::{RequestSession, look_at_user};
use crate::text::Text;

pub use crate::from_text::FromText;
pub use crate::rejection::Rejection;
pub use form::Form;
pub(crate) use form::fields as form_fields;
pub use json::Json;
pub(crate) use json::is_json;
pub use multipart::check_form;
pub use state::State;
pub use upload::Upload;
pub(crate) use wrapped::texts;
pub use wrapped::{Cookie, Header, Path, Query};

/// The longest body that a handler takes into memory, in bytes, if it does not take it from disk.
pub(crate) const MOST_BODY: u64 = 1 << 20;

/// A type that a handler may take as an argument.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument of a page",
    note = "arguments are `Query<T>`, `Path<T>`, `Header<T>`, `Cookie<T>`, `Form<T>`, `Json<T>`, `State<T>`, \
            `Session`, `Frame`, `User`, `Store`, `Channels`, `Events`, `Here`, `Upload`, `Upgrade`, `Body` and `Request`, or a type with `impl Argument`"
)]
pub trait Argument: Sized {
    /// Takes the argument called `name` out of a request.
    ///
    /// # Errors
    ///
    /// Why the request does not have it.
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection>;

    /// Says what it must have whatever the request is; most need nothing.
    fn needs(_needs: &mut Needs) {}
}

/// A request while its handler's arguments are taken out of it.
pub struct Arguments<'a> {
    pub(crate) incoming: &'a Incoming<'a>,
    pub(crate) pattern: &'a Pattern,
    pub(crate) app: &'a Arc<AppState>,
    /// Its look at its session, once an argument has wanted one, or somebody has seen the user.
    pub(crate) visit: Option<Arc<dyn RequestSession>>,
}

/// What the arguments of a handler need before there is any request.
#[derive(Debug, Default)]
pub struct Needs {
    /// The most bytes of a body that they take.
    pub(crate) body: u64,
    /// They take a longer one from disk, where the handler may wait for that.
    pub(crate) on_disk: bool,
    /// The shared values that the program must have.
    pub(crate) requirements: Vec<Requirement>,
    /// They look at the visitor's session.
    pub(crate) sessions: bool,
    /// They are for who has logged in alone.
    pub(crate) user: bool,
}

/// The pattern of a function that is at no path of its own.
static NO_PATH: LazyLock<Pattern> = LazyLock::new(|| Pattern::new("/").expect("it is a path"));

impl<'a> Arguments<'a> {
    /// The arguments of a function that is at no path of its own.
    pub(crate) fn of(app: &'a Arc<AppState>, incoming: &'a Incoming<'a>) -> Self {
        Self { incoming, pattern: &NO_PATH, app, visit: None }
    }

    /// The user who has logged in, for an argument that has the whole request and takes no session.
    pub(crate) fn look_at_user(&mut self) -> Option<Text> {
        let user = look_at_user(self.app.sessions.as_ref(), self.incoming).map(Text::from);
        if self.visit.is_none() {
            let sessions = self.app.sessions.as_ref();
            self.visit = sessions.and_then(|own| own.seen_session_of(self.incoming));
        }
        user
    }

    /// The whole body, for the argument called `name`.
    pub(crate) fn body(&self, name: &'static str) -> Result<Cow<'a, [u8]>, Rejection> {
        match self.incoming.body {
            server::Body::None => Ok(Cow::Borrowed(b"")),
            // The route knows how much all its arguments take.
            server::Body::Coming => Err(Rejection::NeedsBody { limit: MOST_BODY }),
            server::Body::Here(bytes) => Ok(Cow::Borrowed(bytes)),
            // Another argument takes it from disk.
            server::Body::Filed(spool) if spool.length() > MOST_BODY => {
                Err(Rejection::bad(name, "is in a body of more than a megabyte"))
            }
            server::Body::Filed(spool) => {
                let mut bytes = vec![0; spool.length() as usize];
                let read = multipart::read_exactly(spool, &mut bytes, 0);
                read.map_err(|error| {
                    Rejection::bad(name, format!("could not be read again: {error}"))
                })?;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}

impl Needs {
    /// A body of up to `limit` bytes, collected before the handler runs.
    pub fn body(&mut self, limit: u64) {
        self.body = self.body.max(limit);
    }

    /// A shared value of this type. `complaint` is the end of a sentence that begins with the handler's name.
    pub(crate) fn require<T: 'static>(&mut self, complaint: impl Into<Cow<'static, str>>) {
        self.requirements.push(Requirement::of::<T>(complaint));
    }
}

#[cfg(test)]
mod tests;
