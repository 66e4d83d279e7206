//! Decides what a handler can ask of the whole request, and how it takes a body.

use std::borrow::Cow;
use std::ops::Deref;

use bine_http::Method;
use bine_server::{Incoming, Peer, Retained};

use crate::arguments::{Argument, Arguments, MOST_BODY, Needs, Rejection};
use crate::text::Text;
use crate::trace::RequestDependency;

/// The whole request, as an argument of a handler.
///
/// It is a copy of its own, so it may be kept across awaits and past the reply.
#[derive(Clone, Debug)]
pub struct Request {
    retained: Retained,
    /// Who has logged in.
    user: Option<Text>,
}

impl Request {
    /// Its method.
    pub fn method(&self) -> Method {
        self.retained.incoming().head.method()
    }

    /// The path, decoded.
    pub fn path(&self) -> Cow<'_, str> {
        self.retained.incoming().head.path()
    }

    /// The host and port that the peer wants.
    pub fn host(&self) -> Option<&str> {
        self.retained.incoming().head.authority()
    }

    /// The target as the peer sent it: path and query, undecoded.
    pub fn target(&self) -> &str {
        self.retained.incoming().head.target()
    }

    /// The query as the peer sent it, without the `?`.
    pub fn query(&self) -> Option<&str> {
        self.retained.incoming().head.query()
    }

    /// The first field called `name`, if it is UTF-8.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.retained.incoming().head.field_text(name)
    }

    /// Where it came from.
    pub fn peer(&self) -> Peer {
        self.retained.incoming().peer
    }

    /// Who has [logged in](crate::Session::log_in), settled before the handler is run. What is answered to a user is for
    /// that user alone, as if the page took a [`User`](crate::User).
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// When it arrived, in seconds since 1970.
    pub fn arrival(&self) -> u64 {
        self.retained.incoming().arrival
    }
}

impl Argument for Request {
    fn take(request: &mut Arguments<'_>, _name: &'static str) -> Result<Self, Rejection> {
        let Incoming { head, peer, .. } = request.incoming;
        RequestDependency::Whole.note(|| [head.raw(), format!("{peer:?}").as_bytes()].concat());
        // Now, since nobody knows when and on which thread it is asked for.
        let user = request.look_at_user();
        Ok(Self { retained: Retained::of(request.incoming), user })
    }
}

/// The request's whole body, up to a megabyte, as an argument of a handler. A longer one is
/// answered 413 before it is read. A request without a body has an empty one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Body(pub Vec<u8>);

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Argument for Body {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        request.body(name).map(|bytes| Self(bytes.into_owned()))
    }

    fn needs(needs: &mut Needs) {
        needs.body(MOST_BODY);
    }
}
