//! The whole request, and its body, as arguments of a handler.

use std::borrow::Cow;
use std::ops::Deref;

use bine_http::Method;
use bine_server::{ClientAddress, Incoming, Retained};

use crate::arguments::{FromRequest, MOST_BODY, Needs, Rejection, RequestParts};
use crate::text::Text;
use crate::trace::RequestDependency;

/// The whole request, as an argument of a handler.
///
/// It is an independent copy: a handler may keep it across awaits and after the response.
#[derive(Clone, Debug)]
pub struct Request {
    retained: Retained,
    /// The logged-in user.
    user: Option<Text>,
}

impl Request {
    /// The method.
    pub fn method(&self) -> Method {
        self.retained.incoming().head.method()
    }

    /// The decoded path.
    pub fn path(&self) -> Cow<'_, str> {
        self.retained.incoming().head.path()
    }

    /// The requested host and port.
    pub fn host(&self) -> Option<&str> {
        self.retained.incoming().head.authority()
    }

    /// The target as the client sent it: path and query, undecoded.
    pub fn target(&self) -> &str {
        self.retained.incoming().head.target()
    }

    /// The query as the client sent it, without the `?`.
    pub fn query(&self) -> Option<&str> {
        self.retained.incoming().head.query()
    }

    /// The first header field called `name`, if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.retained.incoming().head.field_text(name)
    }

    /// The address of the client.
    pub fn client_address(&self) -> ClientAddress {
        self.retained.incoming().peer
    }

    /// The [logged-in](crate::Session::log_in) user, determined before the handler runs. The
    /// response belongs to that user alone, as if the page took a [`User`](crate::User).
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The time of arrival, in seconds since 1970.
    pub fn arrival(&self) -> u64 {
        self.retained.incoming().arrival
    }
}

impl FromRequest for Request {
    fn from_request(
        request: &mut RequestParts<'_>,
        _name: &'static str,
    ) -> Result<Self, Rejection> {
        let Incoming { head, peer, .. } = request.incoming;
        RequestDependency::Whole.note(|| [head.raw(), format!("{peer:?}").as_bytes()].concat());
        // The user is read now because the handler may ask later, on any thread.
        let user = request.look_at_user();
        Ok(Self { retained: Retained::of(request.incoming), user })
    }
}

/// The whole request body, up to 1 MiB, as an argument of a handler. The server rejects a longer
/// one with 413 before it reads it. A request without a body has an empty one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Body(pub Vec<u8>);

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl FromRequest for Body {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        request.body(name).map(|bytes| Self(bytes.into_owned()))
    }

    fn needs(needs: &mut Needs) {
        needs.body(MOST_BODY);
    }
}
