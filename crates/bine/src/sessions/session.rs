//! The `Session` argument: reads and changes the session of the visitor.

use std::fmt;
use std::sync::Arc;

use bine_http::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::cookie::SessionCookie;
use super::generated_name::name_of;
use super::keys::random;
#[cfg(feature = "script")]
use super::session_change::SessionTransaction;
use super::session_change::{ReplacedMark, SessionChange};
use super::session_row::{SessionRow, time};
use super::visitor_session::{NextState, VisitorSession};
use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::error::Error;
use crate::store::{Id, RowId, Snapshot, Time, Transaction};
use crate::text::Text;
use crate::user_name::UserName;
use crate::visitor_message::VisitorMessage;

/// The session of the visitor, as an argument of a page.
///
/// A visitor without a session begins one: a cookie, and no row until a value is stored. A page
/// that takes `Option<Session>` does not begin one. The response is for this visitor alone: the
/// server adds `Vary: Cookie` and, unless the page overrides it, `Cache-Control: private,
/// no-cache`. A response of [`Channels::respond`](crate::channels::Channels::respond) sets no cookie.
///
/// ```
/// use bine::prelude::*;
///
/// #[page("/")]
/// async fn home(session: Session) -> impl Page {
///     let visits = session.get("visits").unwrap_or(0);
///     html!(<p>Welcome {session.name()}: visit {visits}.</p>)
/// }
///
/// #[page(POST "/count")]
/// async fn count(session: Session) -> Result<Response, Error> {
///     let visits: u32 = session.get("visits").unwrap_or(0);
///     session.set("visits", visits + 1).await?;
///     Ok(Response::see_other("/"))
/// }
/// ```
#[derive(Clone)]
pub struct Session(Arc<VisitorSession>);

/// A session of a user, as [`Session::all`] lists them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionInfo {
    /// The id for [`Session::revoke`]. It gives no access to the session.
    pub id: RowId,
    /// When the session began.
    pub created: Time,
    /// When it was last used, with a precision of an hour.
    pub last_used: Time,
    /// Whether it is the session of this request.
    pub is_current: bool,
}

/// Size of all values of a session, as JSON.
const MAX_BYTES: usize = 4096;
/// Sessions of one user; a further login removes the oldest.
const MAX_OF_USER: usize = 100;

impl Session {
    /// The session of this request. The call begins one if necessary.
    pub(crate) fn of(visitor_session: Arc<VisitorSession>) -> Self {
        visitor_session.begin();
        Self(visitor_session)
    }

    /// The session of this request, if there is one. The call never begins one.
    pub(crate) fn existing(visitor_session: Arc<VisitorSession>) -> Option<Self> {
        visitor_session.look_for_session().then_some(Self(visitor_session))
    }

    /// Begins the changes of a transaction that its caller commits.
    #[cfg(feature = "script")]
    pub(crate) fn begin_transaction(&self) -> SessionTransaction {
        SessionTransaction::new(Arc::clone(&self.0))
    }

    /// The value under this name as a transaction sees it.
    #[cfg(feature = "script")]
    pub(crate) fn value_in(&self, tables: &Snapshot, name: &str) -> Option<Value> {
        SessionRow::find(tables, &self.cookie().id)?.values().remove(name)
    }

    /// The generated name of this visitor: two words like `Quiet Heron`, the same at each visit,
    /// before and after a login. Several visitors may have the same name.
    pub fn name(&self) -> Text {
        name_of(self.0.look_at_session(|cookie, _| cookie.seed))
    }

    /// The user name that was passed to [`log_in`](Session::log_in).
    pub fn user(&self) -> Option<Text> {
        self.0.look_at_user()
    }

    /// When the session began, or when the user logged in.
    pub fn created(&self) -> Time {
        time(self.cookie().made)
    }

    /// The value that was [set](Session::set) under this name, if it has this type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let value = self.0.look_at_session(|_, row| row?.values().remove(name))?;
        serde_json::from_value(value).ok()
    }

    /// Stores a small value under this name. All values of a session together have at most 4096
    /// bytes as JSON.
    ///
    /// # Errors
    ///
    /// The values would be larger (413), the value cannot be written as JSON (500), the session was
    /// ended meanwhile (409), or the store cannot write at the moment.
    pub fn set(&self, name: impl Into<String>, value: impl Serialize) -> SessionChange<()> {
        let (name, value) = (name.into(), serde_json::to_value(value));
        let value = value.map_err(|error| error.to_string());
        self.amend(move |values| {
            let value =
                value.clone().map_err(|reason| Error::from(std::io::Error::other(reason)))?;
            values.insert(name.clone(), value);
            Ok(())
        })
    }

    /// Removes the value under this name, if there is one.
    ///
    /// # Errors
    ///
    /// The same as for [`Session::set`].
    pub fn remove(&self, name: impl Into<String>) -> SessionChange<()> {
        let name = name.into();
        self.amend(move |values| {
            values.remove(&name);
            Ok(())
        })
    }

    /// Logs this user in: a [`UserName`], or the id of a row. The program must have verified the
    /// user before.
    ///
    /// The session gets a new cookie, and the old cookie is no longer valid: an attacker who
    /// planted it is not logged in. Values stay, unless they belong to a different user.
    ///
    /// # Errors
    ///
    /// The name is not a valid [`UserName`] (422), the request has an API token, which has no session
    /// cookie (403), or the store cannot write at the moment.
    pub fn log_in(&self, user: impl fmt::Display) -> SessionChange<()> {
        self.log_in_for(&user.to_string(), false)
    }

    /// Whether the request has a credential such as an API token instead of a cookie.
    pub(crate) fn is_by_credential(&self) -> bool {
        self.0.credential().is_some()
    }

    /// Logs this user in until the browser ends, or for a day without use: for a user who does not
    /// want to be remembered on this device. Browsers that restore their tabs after a restart may
    /// restore the cookie too. Otherwise like [`log_in`](Self::log_in).
    ///
    /// # Errors
    ///
    /// The same as for [`log_in`](Self::log_in).
    pub fn log_in_briefly(&self, user: impl fmt::Display) -> SessionChange<()> {
        self.log_in_for(&user.to_string(), true)
    }

    fn log_in_for(&self, user: &str, is_brief: bool) -> SessionChange<()> {
        let visitor_session = Arc::clone(&self.0);
        let (old, now) = (self.cookie(), visitor_session.now);
        let name = UserName::parse(user);
        let cookie =
            SessionCookie { id: random(), is_kept: true, seed: old.seed, made: now, seen: now };
        let mark = ReplacedMark::new(Arc::clone(&visitor_session), old.id);
        let saving = self.change(move |change| {
            if visitor_session.credential().is_some() {
                return Err(Error::told(Status::FORBIDDEN, VisitorMessage::LogInByToken {}));
            }
            let user = match &name {
                Ok(name) => Text::from(name.as_str()),
                Err(bad) => {
                    let message = VisitorMessage::UserName { reason: bad.to_string() };
                    return Err(Error::told(Status::UNPROCESSABLE_CONTENT, message));
                }
            };
            let store = &visitor_session.opened().store;
            let mut row = SessionRow::new(&cookie);
            if let Some(before) = SessionRow::find(change, &old.id) {
                change.remove(before.id)?;
                if before.user.as_ref().is_none_or(|other| *other == user) {
                    row.values = before.values;
                }
            }
            // Two concurrent logins may see different counts.
            let mut others = SessionRow::of_user(&store.read().without_tracking(), &user);
            others.retain(|other| other.key != old.id);
            let surplus = (others.len() + 1).saturating_sub(MAX_OF_USER);
            for other in &others[..surplus] {
                change.remove(other.id)?;
            }
            (row.user, row.is_known, row.is_brief) = (Some(user.clone()), true, is_brief);
            row.id = change.insert(row.clone())?;
            Ok((NextState::Replaced(row), ()))
        });
        saving.ending(mark)
    }

    /// Ends the session: deletes its values and its cookie, and copies of the cookie are logged out
    /// too. At the next request the visitor is a new one.
    ///
    /// The server has no record of a session without a user and without values: a copy of its
    /// cookie, if there is one, continues as a session of a visitor with that name.
    ///
    /// # Errors
    ///
    /// The store cannot write at the moment.
    pub fn log_out(&self) -> SessionChange<()> {
        let old = self.cookie();
        self.change(move |change| {
            if let Some(row) = SessionRow::find(change, &old.id) {
                change.remove(row.id)?;
            }
            Ok((NextState::Ended, ()))
        })
    }

    /// All sessions of the logged-in user, the oldest first. The list is empty without a
    /// login.
    pub fn all(&self) -> Vec<SessionInfo> {
        let (visitor_session, own) = (&self.0, self.cookie().id);
        let Some(user) = self.user() else { return Vec::new() };
        let opened = visitor_session.opened();
        let mut rows = SessionRow::of_user(&visitor_session.tables(), &user);
        // Expired rows stay until the next sweep.
        rows.retain(|row| opened.is_row_fresh(visitor_session.now, row));
        rows.into_iter()
            .map(|SessionRow { id, key, made, seen, .. }| SessionInfo {
                id: id.row(),
                created: made,
                last_used: seen,
                is_current: key == own,
            })
            .collect()
    }

    /// Ends one of [all](Session::all) sessions of this user. Returns false if this user has no
    /// such session.
    ///
    /// # Errors
    ///
    /// This session was ended meanwhile (409), or the store cannot write at the moment.
    pub fn revoke(&self, id: RowId) -> SessionChange<bool> {
        let own = self.cookie().id;
        self.change(move |change| {
            let known = known(change, &own)?;
            // Visitors without a login are never the same user.
            let is_theirs = |row: &SessionRow| {
                row.id == known.id || (known.user.is_some() && row.user == known.user)
            };
            let other = change.get(Id::<SessionRow>::of(id)).filter(is_theirs);
            let Some(other) = other else { return Ok((NextState::Unchanged, false)) };
            change.remove(other.id)?;
            Ok((if other.id == known.id { NextState::Ended } else { NextState::Unchanged }, true))
        })
    }

    /// Ends all other sessions of this user and returns their number: for "log me out everywhere
    /// else".
    ///
    /// # Errors
    ///
    /// The same as for [`Session::revoke`].
    pub fn revoke_others(&self) -> SessionChange<usize> {
        let own = self.cookie().id;
        self.change(move |change| {
            let known = known(change, &own)?;
            let Some(user) = &known.user else { return Ok((NextState::Unchanged, 0)) };
            let mut others = SessionRow::of_user(change, user);
            others.retain(|other| other.id != known.id);
            for other in &others {
                change.remove(other.id)?;
            }
            Ok((NextState::Unchanged, others.len()))
        })
    }

    /// Ends all sessions of a user and returns their number: after a forgotten password, or for a
    /// closed account. The program must have checked the visitor's permission before.
    ///
    /// # Errors
    ///
    /// The store cannot write at the moment.
    pub fn revoke_user(&self, user: impl fmt::Display) -> SessionChange<usize> {
        let own = self.cookie().id;
        let user = Text::from(user.to_string());
        self.change(move |change| {
            let rows = SessionRow::of_user(change, &user);
            for row in &rows {
                change.remove(row.id)?;
            }
            let is_over = rows.iter().any(|row| row.key == own);
            Ok((if is_over { NextState::Ended } else { NextState::Unchanged }, rows.len()))
        })
    }

    /// The id of its row, as in [`all`](Self::all); `None`: no value and no user is stored.
    pub(crate) fn row_id(&self) -> Option<RowId> {
        self.0.look_at_session(|_, row| Some(row?.id.row()))
    }

    /// Changes the values in the session's row, and inserts the row if necessary.
    fn amend(
        &self,
        mut edit: impl FnMut(&mut Map<String, Value>) -> Result<(), Error> + Send + 'static,
    ) -> SessionChange<()> {
        let (visitor_session, cookie) = (Arc::clone(&self.0), self.cookie());
        self.change(move |change| {
            let known = SessionRow::find(change, &cookie.id);
            if known.is_none() && (cookie.is_kept || visitor_session.was_replaced(&cookie)) {
                return Err(over());
            }
            let mut row = known.unwrap_or_else(|| SessionRow::new(&cookie));
            let mut values = row.values();
            edit(&mut values)?;
            row.values = serde_json::to_string(&values)?;
            if row.values.len() > MAX_BYTES {
                let message = VisitorMessage::SessionFull { most: MAX_BYTES };
                return Err(Error::told(Status::CONTENT_TOO_LARGE, message));
            }
            if row.id == Id::unassigned() {
                row.id = change.insert(row.clone())?;
            } else {
                change.replace(&row)?;
            }
            Ok((NextState::Stored(row), ()))
        })
    }

    pub(super) fn cookie(&self) -> SessionCookie {
        self.0.look_at_session(|cookie, _| *cookie)
    }

    fn change<T>(
        &self,
        action: impl FnMut(&mut Transaction) -> Result<(NextState, T), Error> + Send + 'static,
    ) -> SessionChange<T> {
        SessionChange::new(Arc::clone(&self.0), Box::new(action))
    }
}

/// The row of a session that must still exist for this operation.
fn known(now: &Snapshot, key: &[u8; 16]) -> Result<SessionRow, Error> {
    SessionRow::find(now, key).ok_or_else(over)
}

fn over() -> Error {
    Error::told(Status::CONFLICT, VisitorMessage::SessionEnded {})
}

impl FromRequest for Session {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        request.visitor_session(name).map(Self::of)
    }

    fn needs(needs: &mut Needs) {
        needs.sessions = true;
    }
}

/// The visitor's existing session. It never begins one.
impl FromRequest for Option<Session> {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let visitor_session = request.visitor_session(name)?;
        Ok(Session::existing(visitor_session))
    }

    fn needs(needs: &mut Needs) {
        needs.sessions = true;
    }
}

/// Without secrets.
impl fmt::Debug for Session {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Session")
            .field("name", &self.name())
            .field("user", &self.user())
            .finish_non_exhaustive()
    }
}
