//! The `User` argument: the logged-in user.

use std::fmt;
use std::ops::Deref;

use bine_html::{Attribute, AttributeValue, Render, Writer};
use serde::{Serialize, Serializer};

use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::templates::LayoutUser;
use crate::text::Text;

/// The [logged-in](crate::Session::log_in) user, as an argument of a page. It dereferences
/// to `&str`.
///
/// Without a login the server responds with 401 and does not run the page; a page that takes
/// `Option<User>` always runs. A page that reads no other property of the visitor is the same in
/// all sessions of one user.
///
/// ```
/// use bine::prelude::*;
///
/// #[page("/account")]
/// async fn account(user: User) -> impl Page {
///     html!(<h1>The account of {user}</h1>)
/// }
///
/// #[page("/")]
/// async fn home(user: Option<User>) -> impl Page {
///     html!(<p>{match user {
///         Some(user) => { Hello {user} }
///         None => { <a href="/login">Log in</a> }
///     }}</p>)
/// }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct User(pub Text);

impl FromRequest for User {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let user = request.visitor_session(name)?.look_at_user();
        user.map(Self).ok_or(Rejection::NeedsUser)
    }

    fn needs(needs: &mut Needs) {
        needs.sessions = true;
        needs.user = true;
    }
}

/// The logged-in user, if any.
impl FromRequest for Option<User> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        Ok(request.visitor_session(name)?.look_at_user().map(User))
    }

    fn needs(needs: &mut Needs) {
        needs.sessions = true;
    }
}

impl LayoutUser for User {
    fn named(name: Text) -> Self {
        Self(name)
    }
}

impl Deref for User {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for User {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

impl Serialize for User {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Render for User {
    fn render(&self, writer: &mut Writer<'_>) {
        self.0.render(writer);
    }
}

impl AttributeValue for User {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.0.write_attribute(attribute, writer);
    }
}
