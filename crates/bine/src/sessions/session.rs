//! Decides what a page can ask of its visitor's session, and change in it.

use std::fmt;
use std::sync::Arc;

use bine_http::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::badge::Badge;
use super::keys::random;
use super::name::name_of;
use super::row::{Row, time};
use super::saving::{Noted, Saving};
use super::visit::{Next, Visit};
use crate::arguments::{Argument, Arguments, Needs, Rejection};
use crate::error::Error;
use crate::store::{Id, RowId, Snapshot, Time, Transaction};
use crate::text::Text;
use crate::user_name::UserName;

/// The session of the visitor who asks, as an argument of a page.
///
/// One who has none begins one: a cookie, and nothing on the server until something is to be kept. A page that takes
/// `Option<Session>` looks without beginning one. What a page answers is for this visitor alone, so its reply says
/// `Cache-Control: private, no-cache` unless the page says otherwise, and `Vary: Cookie`. A reply that is held
/// ([`Channels::hold`](crate::channels::Channels::hold)) sets no cookie.
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
pub struct Session(Arc<Visit>);

/// A session of a user, as [`Session::all`] lists them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Open {
    /// By this it is [revoked](Session::revoke); whoever knows it can do nothing else with it.
    pub id: RowId,
    /// When it began.
    pub made: Time,
    /// When it was last used, to the hour.
    pub seen: Time,
    /// It is the one that asks.
    pub is_this: bool,
}

/// All values of a session, as JSON.
const MOST_BYTES: usize = 4096;
/// Sessions of one user; who begins one more loses the oldest.
const MOST_OF_USER: usize = 100;

impl Session {
    /// The one of this request, which begins if there is none.
    pub(crate) fn of(visit: Arc<Visit>) -> Self {
        visit.begin();
        Self(visit)
    }

    /// What this visitor is called: two words like `Quiet Heron`, the same at each visit, before and after a login.
    /// Others may have the same name.
    pub fn name(&self) -> Text {
        name_of(self.0.look_at_session(|badge, _| badge.seed))
    }

    /// Who has [logged in](Session::log_in), as was said then.
    pub fn user(&self) -> Option<Text> {
        self.0.look_at_user()
    }

    /// When it began, or was logged in.
    pub fn made(&self) -> Time {
        time(self.badge().made)
    }

    /// The value that was [set](Session::set) under this name, if it is one of this type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let value = self.0.look_at_session(|_, row| row?.values().remove(name))?;
        serde_json::from_value(value).ok()
    }

    /// Keeps a small value under this name: all of a session have 4096 bytes as JSON.
    ///
    /// # Errors
    ///
    /// They would have more (413), the value is nothing that JSON can say (500), the session was ended meanwhile (409),
    /// or nothing can be kept at the moment.
    pub fn set(&self, name: impl Into<String>, value: impl Serialize) -> Saving<()> {
        let (name, value) = (name.into(), serde_json::to_value(value));
        let value = value.map_err(|error| error.to_string());
        self.amend(move |values| {
            let value =
                value.clone().map_err(|reason| Error::from(std::io::Error::other(reason)))?;
            values.insert(name.clone(), value);
            Ok(())
        })
    }

    /// Forgets the value under this name, if there is one.
    ///
    /// # Errors
    ///
    /// As [`Session::set`].
    pub fn remove(&self, name: impl Into<String>) -> Saving<()> {
        let name = name.into();
        self.amend(move |values| {
            values.remove(&name);
            Ok(())
        })
    }

    /// From here on it is the session of this user: a [`UserName`], or an id of a row. Whether the visitor is that
    /// user must have been found out before.
    ///
    /// The session gets another cookie, and the one before is worth nothing any more: whoever may have put it there is
    /// not logged in. Values stay, unless they are those of another user.
    ///
    /// # Errors
    ///
    /// The user is no [`UserName`] (422), or nothing can be kept at the moment.
    pub fn log_in(&self, user: impl fmt::Display) -> Saving<()> {
        let visit = Arc::clone(&self.0);
        let (old, now) = (self.badge(), visit.now);
        let name = UserName::parse(&user.to_string());
        let badge = Badge { id: random(), is_kept: true, seed: old.seed, made: now, seen: now };
        let noted = Noted::new(Arc::clone(&visit), old.id);
        let saving = self.change(move |change| {
            let user = match &name {
                Ok(name) => Text::from(name.as_str()),
                Err(bad) => {
                    return Err(Error::status(Status::UNPROCESSABLE_CONTENT, bad.to_string()));
                }
            };
            let store = &visit.opened().store;
            let mut row = Row::new(&badge);
            if let Some(before) = Row::find(change, &old.id) {
                change.remove(before.id)?;
                if before.user.as_ref().is_none_or(|other| *other == user) {
                    row.values = before.values;
                }
            }
            // Two who log in at one time need not agree on this.
            let mut others = Row::of_user(&store.read().without_tracking(), &user);
            others.retain(|other| other.key != old.id);
            let surplus = (others.len() + 1).saturating_sub(MOST_OF_USER);
            for other in &others[..surplus] {
                change.remove(other.id)?;
            }
            (row.user, row.is_known) = (Some(user.clone()), true);
            row.id = change.insert(row.clone())?;
            Ok((Next::New(row), ()))
        });
        saving.ending(noted)
    }

    /// Ends it: what was kept is gone, and nobody is logged in by its cookie any more, which the browser forgets. Who comes
    /// again is a new visitor.
    ///
    /// Of a session in which nobody has logged in, and nothing was kept, the server knows nothing: a copy of its cookie, if
    /// there is one, goes on being the session of a visitor with that name.
    ///
    /// # Errors
    ///
    /// Nothing can be changed at the moment.
    pub fn log_out(&self) -> Saving<()> {
        let old = self.badge();
        self.change(move |change| {
            if let Some(row) = Row::find(change, &old.id) {
                change.remove(row.id)?;
            }
            Ok((Next::Over, ()))
        })
    }

    /// All sessions of the user who has logged in, the one that began first at the front; none for anybody else.
    pub fn all(&self) -> Vec<Open> {
        let (visit, own) = (&self.0, self.badge().id);
        let Some(user) = self.user() else { return Vec::new() };
        let opened = visit.opened();
        let mut rows = Row::of_user(&visit.tables(), &user);
        // What has ended by itself lies there until others come.
        rows.retain(|row| opened.is_fresh(visit.now, row.made.unix(), row.seen.unix()));
        rows.into_iter()
            .map(|Row { id, key, made, seen, .. }| Open {
                id: id.row(),
                made,
                seen,
                is_this: key == own,
            })
            .collect()
    }

    /// Ends one of [all](Session::all) sessions of this user; false: there is no such session, or it is not this user's.
    ///
    /// # Errors
    ///
    /// This session was ended meanwhile (409), or nothing can be changed at the moment.
    pub fn revoke(&self, id: RowId) -> Saving<bool> {
        let own = self.badge().id;
        self.change(move |change| {
            let known = known(change, &own)?;
            // Of strangers nobody is the same as another.
            let is_theirs =
                |row: &Row| row.id == known.id || (known.user.is_some() && row.user == known.user);
            let other = change.get(Id::<Row>::of(id)).filter(is_theirs);
            let Some(other) = other else { return Ok((Next::Same, false)) };
            change.remove(other.id)?;
            Ok((if other.id == known.id { Next::Over } else { Next::Same }, true))
        })
    }

    /// Ends all other sessions of this user, and says how many there were: for "log me out everywhere else".
    ///
    /// # Errors
    ///
    /// As [`Session::revoke`].
    pub fn revoke_others(&self) -> Saving<usize> {
        let own = self.badge().id;
        self.change(move |change| {
            let known = known(change, &own)?;
            let Some(user) = &known.user else { return Ok((Next::Same, 0)) };
            let mut others = Row::of_user(change, user);
            others.retain(|other| other.id != known.id);
            for other in &others {
                change.remove(other.id)?;
            }
            Ok((Next::Same, others.len()))
        })
    }

    /// Ends all sessions of any user, and says how many there were: for a password that was forgotten, or an account that
    /// is closed. Whether the visitor may do that must have been found out before.
    ///
    /// # Errors
    ///
    /// Nothing can be changed at the moment.
    pub fn revoke_all_of(&self, user: impl fmt::Display) -> Saving<usize> {
        let own = self.badge().id;
        let user = Text::from(user.to_string());
        self.change(move |change| {
            let rows = Row::of_user(change, &user);
            for row in &rows {
                change.remove(row.id)?;
            }
            let is_over = rows.iter().any(|row| row.key == own);
            Ok((if is_over { Next::Over } else { Next::Same }, rows.len()))
        })
    }

    /// Changes the values, in the row that there is or is made.
    fn amend(
        &self,
        mut edit: impl FnMut(&mut Map<String, Value>) -> Result<(), Error> + Send + 'static,
    ) -> Saving<()> {
        let (visit, badge) = (Arc::clone(&self.0), self.badge());
        self.change(move |change| {
            let known = Row::find(change, &badge.id);
            if known.is_none() && (badge.is_kept || visit.has_ended(&badge)) {
                return Err(over());
            }
            let mut row = known.unwrap_or_else(|| Row::new(&badge));
            let mut values = row.values();
            edit(&mut values)?;
            row.values = serde_json::to_string(&values)?;
            if row.values.len() > MOST_BYTES {
                let words = format!("a session holds {MOST_BYTES} bytes of values, not more");
                return Err(Error::status(Status::CONTENT_TOO_LARGE, words));
            }
            if row.id == Id::new() {
                row.id = change.insert(row.clone())?;
            } else {
                change.replace(&row)?;
            }
            Ok((Next::Kept(row), ()))
        })
    }

    pub(super) fn badge(&self) -> Badge {
        self.0.look_at_session(|badge, _| *badge)
    }

    fn change<T>(
        &self,
        action: impl FnMut(&mut Transaction) -> Result<(Next, T), Error> + Send + 'static,
    ) -> Saving<T> {
        Saving::new(Arc::clone(&self.0), Box::new(action))
    }
}

/// The row of whoever does something that only a session can do that is still there.
fn known(now: &Snapshot, key: &[u8; 16]) -> Result<Row, Error> {
    Row::find(now, key).ok_or_else(over)
}

fn over() -> Error {
    Error::status(Status::CONFLICT, "this session was ended in another place; load the page again")
}

impl Argument for Session {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        request.visit(name).map(Self::of)
    }

    fn needs(needs: &mut Needs) {
        needs.sessions = true;
    }
}

/// The session of a visitor who has one. None is begun.
impl Argument for Option<Session> {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let visit = request.visit(name)?;
        Ok(visit.look_for_session().then_some(Session(visit)))
    }

    fn needs(needs: &mut Needs) {
        needs.sessions = true;
    }
}

/// Without what is secret.
impl fmt::Debug for Session {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Session")
            .field("name", &self.name())
            .field("user", &self.user())
            .finish_non_exhaustive()
    }
}
