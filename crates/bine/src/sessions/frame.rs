//! Frames: what a program knows of one tab of a visitor's. Decides how a tab is told from the others of its session, and
//! what is kept of it, for how long.
//!
//! A frame is named in the address of its page, so reload and Back find it again. The name is sealed for the session,
//! so nothing need be kept to know it; a row of the table `frame` is made when something is.

use std::fmt;
use std::sync::Arc;

use bine_http::{Method, Status};
use bine_macros::Table;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::age;
use super::keys::random;
use super::row::time;
use super::visit::Visit;
use crate::arguments::{Argument, Arguments, Needs, Rejection};
use crate::error::Error;
use crate::frame_address::{named, with_name};
use crate::store::{Change, Id, Recorder, Snapshot, Store, Time, Transaction};

/// One tab of a visitor's, as an argument of a page: small values that another tab does not see, as which forum it shows.
///
/// A page that takes it has `_frame=..` in its address: whoever comes without is sent on to a frame of their own (303).
/// Reload and Back find it again, and so do the [actions](crate::action!) of the page, by
/// [`call.frame()`](crate::Call::frame); a link keeps it by [`to`](Self::to). Its values are forgotten when its pages were
/// not looked at for half an hour, and at a login.
///
/// ```
/// use bine::prelude::*;
///
/// #[page("/")]
/// async fn forums(frame: Frame) -> impl Page {
///     let forum: Text = frame.get("forum").unwrap_or("hops".into());
///     let other = if &*forum == "hops" { "malt" } else { "hops" };
///     html! {
///         <h1>{forum}</h1>
///         <form method="post" action={action!([other: Text = other.into()] |call| {
///             let frame = call.frame()?;
///             frame.set_in(call, "forum", other)
///         })}>
///             <button>{other}</button>
///         </form>
///     }
/// }
/// # let _ = App::new().sessions(bine::Sessions::new()).page(forums);
/// ```
#[derive(Clone)]
pub struct Frame {
    visit: Arc<Visit>,
    key: [u8; 16],
    /// As the address has it.
    name: Arc<str>,
}

/// A frame of which something is kept.
#[derive(Clone, Debug, Table)]
#[table(crate = crate, name = "frame")]
pub(super) struct Row {
    id: Id<Row>,
    #[table(unique, private, length = 16..=16)]
    key: Vec<u8>,
    #[table(index)]
    seen: Time,
    /// An object of JSON.
    #[table(private)]
    values: String,
}

/// A change of a [`Frame`] to be made: awaited, or in a function that may block waited for by `wait()`.
pub type Keeping = Change<Box<dyn FnMut(&mut Transaction) -> Result<(), Error> + Send>, (), Error>;

/// Seconds for which nobody need look at a frame's pages.
const LEASE: u64 = 30 * 60;
/// All values of a frame, as JSON.
const MOST_BYTES: usize = 4096;
/// Frames of which something is kept.
const MOST: usize = 100_000;
/// Rows that go when one is made, at most.
const MOST_GOING: usize = 16;
/// What a frame's name is sealed for. No action is called so, since none has a blank in its name.
const PURPOSE: &str = "a frame";
/// Before the name, where somebody came with a frame and without a session: their browser may keep no cookies.
const AGAIN: &str = "0.";

impl Frame {
    fn new(visit: Arc<Visit>) -> Self {
        let key = random();
        let name = visit.seal(PURPOSE, &key).into();
        Self { visit, key, name }
    }

    /// The one that is named in this address, if it is one of this session.
    pub(crate) fn at(visit: &Arc<Visit>, address: &str) -> Option<Self> {
        let name = named(address)?;
        let name = name.strip_prefix(AGAIN).unwrap_or(name);
        let key = visit.open_seal(PURPOSE, name)?.try_into().ok()?;
        Some(Self { visit: Arc::clone(visit), key, name: name.into() })
    }

    /// The value that was [set](Self::set) under this name, if it is one of this type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let row = self.row(&self.visit.tables())?;
        // Whoever follows it looks at it: it is made again in time to say so, and not at once if that cannot be noted.
        if let Some(trace) = &self.visit.trace {
            let due = row.seen.unix().saturating_add(LEASE / 2);
            trace.record_expiry(due.max(self.visit.now.saturating_add(LEASE / 8)));
        }
        serde_json::from_value(row.values().remove(name)?).ok()
    }

    /// Keeps a small value under this name: all of a frame have 4096 bytes as JSON.
    ///
    /// # Errors
    ///
    /// They would have more (413), the value is nothing that JSON can say (500), or nothing can be kept at the moment.
    pub fn set(&self, name: impl Into<String>, value: impl Serialize) -> Keeping {
        let (own, name) = (self.clone(), name.into());
        let value = serde_json::to_value(value).map_err(|error| error.to_string());
        self.visit.opened().store.change(Box::new(move |change: &mut Transaction| {
            let value = value.clone().map_err(std::io::Error::other)?;
            own.put(change, &name, value)
        }))
    }

    /// The same as a part of a transaction, as that of an action: `frame.set_in(call, "forum", forum)`.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn set_in(
        &self,
        change: &mut Transaction,
        name: &str,
        value: impl Serialize,
    ) -> Result<(), Error> {
        self.put(change, name, serde_json::to_value(value)?)
    }

    /// The address of another page that is to have this frame: a path, perhaps with a query.
    pub fn to(&self, address: &str) -> String {
        with_name(address, &self.name)
    }

    fn put(&self, change: &mut Transaction, name: &str, value: Value) -> Result<(), Error> {
        let known = change.one(Row::BY_KEY, self.key.to_vec());
        let mut values =
            known.as_ref().filter(|row| self.lasts(row)).map_or_else(Map::new, Row::values);
        values.insert(name.to_owned(), value);
        let values = serde_json::to_string(&values)?;
        if values.len() > MOST_BYTES {
            let words = format!("a frame holds {MOST_BYTES} bytes of values, not more");
            return Err(Error::status(Status::CONTENT_TOO_LARGE, words));
        }
        let seen = time(self.visit.now);
        match known {
            Some(row) => change.replace(&Row { seen, values, ..row })?,
            None => {
                self.make_room();
                change.insert(Row { id: Id::new(), key: self.key.to_vec(), seen, values })?;
            }
        }
        Ok(())
    }

    /// Those that were looked at least go, if their time is over or there are too many. By a commit of its own: two frames
    /// that begin at once would both remove the same ones, and one of the calls would be run again for nothing.
    fn make_room(&self) {
        let store = &self.visit.opened().store;
        let now = store.read().without_tracking();
        let surplus = (now.count::<Row>() + 1).saturating_sub(MOST);
        let oldest = now.range(Row::BY_SEEN, ..time(self.visit.now)).take(MOST_GOING);
        let going = oldest.enumerate().filter(|(place, row)| *place < surplus || !self.lasts(row));
        let mut change = begin_unnoted(store);
        for (_, row) in going {
            // One that is gone already is no mistake.
            let _ = change.remove(row.id);
        }
        if change.has_written() {
            // If somebody has removed one of them meanwhile, or looked at it, it is for the next frame to find others.
            let _ = store.commit(change);
        }
    }

    /// A page of it is looked at. Nobody waits until that is noted.
    fn attend(&self) {
        let store = &self.visit.opened().store;
        let Some(row) = self.row(&store.read().without_tracking()) else { return };
        let seen = time(self.visit.now);
        if age(self.visit.now, row.seen.unix()).is_some_and(|age| age >= LEASE / 4) {
            let mut change = begin_unnoted(store);
            if change.update(row.id, |row: &mut Row| row.seen = row.seen.max(seen)).is_ok() {
                // Whoever was first has noted the same.
                let _ = store.commit(change);
            }
        }
    }

    fn row(&self, now: &Snapshot) -> Option<Row> {
        now.one(Row::BY_KEY, self.key.to_vec()).filter(|row| self.lasts(row))
    }

    fn lasts(&self, row: &Row) -> bool {
        age(self.visit.now, row.seen.unix()).is_some_and(|age| age < LEASE)
    }
}

/// A change of which the run of a page that is followed is not told: that page has changed nothing that it shows.
fn begin_unnoted(store: &Store) -> Transaction {
    Recorder::default().scope(|| store.begin())
}

impl Row {
    fn values(&self) -> Map<String, Value> {
        // What was written here is an object.
        serde_json::from_str(&self.values).unwrap_or_default()
    }
}

impl Argument for Frame {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let visit = request.visit(name)?;
        let head = &request.incoming.head;
        if let Some(frame) = Self::at(&visit, head.target()) {
            frame.attend();
            return Ok(frame);
        }
        let shown = named(head.target());
        let frame = Self::new(Arc::clone(&visit));
        if !matches!(head.method(), Method::Get | Method::Head) {
            return Ok(frame);
        }
        let begins = !visit.came_with_session();
        if begins && shown.is_some_and(|name| name.starts_with(AGAIN)) {
            let reason =
                "is kept with a cookie: allow this site to set one, and load the page again";
            return Err(Rejection::bad(name, reason));
        }
        let mark = if begins && shown.is_some() { AGAIN } else { "" };
        let location = with_name(head.target(), &format!("{mark}{}", frame.name));
        Err(Rejection::Elsewhere { location })
    }

    fn needs(needs: &mut Needs) {
        needs.sessions = true;
    }
}

/// Without its name.
impl fmt::Debug for Frame {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Frame").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
