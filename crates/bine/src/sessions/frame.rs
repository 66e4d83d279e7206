//! Frames: the values of one browser tab, their names in addresses, and their lifetime.
//!
//! A frame's name is part of its page's address, so that reload and Back find it again. The name is
//! sealed for the session, so the server stores no list of names; it inserts a row into the table
//! `frame` when a value is stored.

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use bine_http::{Method, Status};
use bine_log as log;
use bine_macros::Table;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::age;
use super::keys::random;
use super::session_row::time;
use super::visitor_session::VisitorSession;
use crate::arguments::{FromRequest, Needs, Rejection, RequestParts};
use crate::error::Error;
use crate::frame_address::{named, with_name};
use crate::log_limiter::LogLimiter;
use crate::origin::is_path;
use crate::store::{Change, Id, Recorder, Snapshot, Store, Time, Transaction};
use crate::text::shortened;
use crate::visitor_message::VisitorMessage;

/// One tab of a visitor, as an argument of a page: small values that other tabs do not see, such as
/// the forum that the tab shows.
///
/// The address of a page that takes a frame contains `_frame=..`: a request without it is
/// redirected to a new frame (303). Reload and Back find the frame again. The page's
/// [actions](crate::action!) reach it by [`call.frame()`](crate::Call::frame); a link keeps it with
/// [`to`](Self::to). The server deletes the values when the frame's pages were not requested for
/// half an hour, and at a login.
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
    visitor_session: Arc<VisitorSession>,
    key: [u8; 16],
    /// The name in the address.
    name: Arc<str>,
}

/// The frame of a request for a page.
pub(crate) enum RequestedFrame {
    Found(Frame),
    /// The address of the page in a new frame.
    Redirect(String),
    /// The browser accepts no cookies.
    NeedsCookies,
}

/// A stored frame.
#[derive(Clone, Debug, Table)]
#[table(crate = crate, name = "frame")]
pub(super) struct FrameRow {
    id: Id<FrameRow>,
    #[table(unique, private, length = 16..=16)]
    key: Vec<u8>,
    #[table(index)]
    seen: Time,
    /// A JSON object.
    #[table(private)]
    values: String,
}

/// A change of a [`Frame`]: await it, or call `wait()` in a blocking function.
pub type FrameChange =
    Change<Box<dyn FnMut(&mut Transaction) -> Result<(), Error> + Send>, (), Error>;

/// Seconds for which a frame lasts after its pages were last requested.
const LIFETIME: u64 = 30 * 60;
/// Size of all values of a frame, as JSON.
const MAX_BYTES: usize = 4096;
/// Frames that are stored.
const MAX_FRAMES: usize = 100_000;
/// Rows that are removed when one is inserted, at most.
const MAX_REMOVED: usize = 16;
/// The purpose for which frame names are sealed. No action has this name, since names of actions
/// contain no blank.
const PURPOSE: &str = "a frame";
/// Prefix of the name after a redirect without a session: if it comes back without a cookie, the
/// browser accepts none.
const COOKIE_TEST: &str = "0.";

impl Frame {
    fn new(visitor_session: Arc<VisitorSession>) -> Self {
        let key = random();
        let name = visitor_session.seal(PURPOSE, &key).into();
        Self { visitor_session, key, name }
    }

    /// The frame that this address names, if it belongs to this session.
    pub(crate) fn at(visitor_session: &Arc<VisitorSession>, address: &str) -> Option<Self> {
        let name = named(address)?;
        let name = name.strip_prefix(COOKIE_TEST).unwrap_or(name);
        let key = visitor_session.open_seal(PURPOSE, name)?.try_into().ok()?;
        Some(Self { visitor_session: Arc::clone(visitor_session), key, name: name.into() })
    }

    /// The frame of a request for a page, or what the client must do to have one.
    pub(crate) fn of_page(
        visitor_session: &Arc<VisitorSession>,
        target: &str,
        method: Method,
    ) -> RequestedFrame {
        if let Some(frame) = Self::at(visitor_session, target) {
            frame.record_use();
            return RequestedFrame::Found(frame);
        }
        let shown = named(target);
        let frame = Self::new(Arc::clone(visitor_session));
        if !matches!(method, Method::Get | Method::Head) {
            return RequestedFrame::Found(frame);
        }
        let begins = !visitor_session.came_with_session();
        if begins && shown.is_some_and(|name| name.starts_with(COOKIE_TEST)) {
            return RequestedFrame::NeedsCookies;
        }
        let mark = if begins && shown.is_some() { COOKIE_TEST } else { "" };
        RequestedFrame::Redirect(with_name(target, &format!("{mark}{}", frame.name)))
    }

    /// The value under this name as a transaction sees it.
    #[cfg(feature = "script")]
    pub(crate) fn value_in(&self, tables: &Snapshot, name: &str) -> Option<Value> {
        self.row(tables)?.values().remove(name)
    }

    /// The value that was [set](Self::set) under this name, if it has this type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let row = self.row(&self.visitor_session.tables())?;
        // The page renders again in time to renew the frame, but not at once if renewal fails.
        if let Some(trace) = &self.visitor_session.trace {
            let due = row.seen.unix().saturating_add(LIFETIME / 2);
            trace.record_expiry(due.max(self.visitor_session.now.saturating_add(LIFETIME / 8)));
        }
        serde_json::from_value(row.values().remove(name)?).ok()
    }

    /// Stores a small value under this name. All values of a frame together have at most 4096 bytes
    /// as JSON.
    ///
    /// # Errors
    ///
    /// The values would be larger (413), the value cannot be written as JSON (500), or the store
    /// cannot write at the moment.
    pub fn set(&self, name: impl Into<String>, value: impl Serialize) -> FrameChange {
        let (own, name) = (self.clone(), name.into());
        let value = serde_json::to_value(value).map_err(|error| error.to_string());
        self.visitor_session.opened().store.change(Box::new(move |change: &mut Transaction| {
            let value = value.clone().map_err(std::io::Error::other)?;
            own.put(change, &name, value)
        }))
    }

    /// Sets a value as part of a transaction, such as an action's: `frame.set_in(call, "forum",
    /// forum)`.
    ///
    /// # Errors
    ///
    /// The same as for [`set`](Self::set).
    pub fn set_in(
        &self,
        change: &mut Transaction,
        name: &str,
        value: impl Serialize,
    ) -> Result<(), Error> {
        self.put(change, name, serde_json::to_value(value)?)
    }

    /// The address of a page that keeps this frame: a path, with or without a query.
    ///
    /// An address that is not a path of this site, such as `https://..` or `//..`, becomes `/`, and
    /// the log names the call: the frame's name is for this site only.
    #[track_caller]
    pub fn to(&self, address: &str) -> String {
        if !is_path(address) {
            log_wrong_address(address, Location::caller());
        }
        with_name(address, &self.name)
    }

    fn put(&self, change: &mut Transaction, name: &str, value: Value) -> Result<(), Error> {
        let known = change.one(FrameRow::BY_KEY, self.key.to_vec());
        let mut values =
            known.as_ref().filter(|row| self.is_alive(row)).map_or_else(Map::new, FrameRow::values);
        values.insert(name.to_owned(), value);
        let values = serde_json::to_string(&values)?;
        if values.len() > MAX_BYTES {
            let message = VisitorMessage::FrameFull { most: MAX_BYTES };
            return Err(Error::told(Status::CONTENT_TOO_LARGE, message));
        }
        let seen = time(self.visitor_session.now);
        match known {
            Some(row) => change.replace(&FrameRow { seen, values, ..row })?,
            None => {
                self.make_room();
                change.insert(FrameRow {
                    id: Id::unassigned(),
                    key: self.key.to_vec(),
                    seen,
                    values,
                })?;
            }
        }
        Ok(())
    }

    /// Removes expired frames, and the least recently used ones if there are too many. It uses its
    /// own transaction: two frames that begin at once would remove the same rows, and one of the
    /// calls would conflict and run again.
    fn make_room(&self) {
        let store = &self.visitor_session.opened().store;
        let now = store.read().without_tracking();
        let surplus = (now.count::<FrameRow>() + 1).saturating_sub(MAX_FRAMES);
        let oldest =
            now.range(FrameRow::BY_SEEN, ..time(self.visitor_session.now)).take(MAX_REMOVED);
        let removed =
            oldest.enumerate().filter(|(place, row)| *place < surplus || !self.is_alive(row));
        let mut change = begin_unnoted(store);
        for (_, row) in removed {
            // A missing row is no error.
            let _ = change.remove(row.id);
        }
        if change.has_written() {
            // After a conflict, the next new frame retries.
            let _ = store.commit(change);
        }
    }

    /// Records that a page of this frame was requested. The request does not wait for the commit.
    fn record_use(&self) {
        let store = &self.visitor_session.opened().store;
        let Some(row) = self.row(&store.read().without_tracking()) else { return };
        let seen = time(self.visitor_session.now);
        if age(self.visitor_session.now, row.seen.unix()).is_some_and(|age| age >= LIFETIME / 4) {
            let mut change = begin_unnoted(store);
            if change.update(row.id, |row: &mut FrameRow| row.seen = row.seen.max(seen)).is_ok() {
                // After a conflict, a concurrent request has recorded it.
                let _ = store.commit(change);
            }
        }
    }

    fn row(&self, now: &Snapshot) -> Option<FrameRow> {
        now.one(FrameRow::BY_KEY, self.key.to_vec()).filter(|row| self.is_alive(row))
    }

    fn is_alive(&self, row: &FrameRow) -> bool {
        age(self.visitor_session.now, row.seen.unix()).is_some_and(|age| age < LIFETIME)
    }
}

/// Logs a call with an address that has become the home page's.
#[cold]
fn log_wrong_address(address: &str, place: &Location<'_>) {
    static LIMITER: LazyLock<LogLimiter> = LazyLock::new(LogLimiter::new);
    let (address, call) = (shortened(address), place.to_string());
    // By the call, since a visitor may choose the address.
    if LIMITER.pass(&call, Instant::now()).is_some() {
        log::warn(format_args!(
            "{call}: `frame.to({address:?})` is no path of this site, so the link leads to `/`; write a path that starts with one `/`, or the address without `frame.to`"
        ));
    }
}

/// Begins a transaction that the page's render does not record as its own change.
fn begin_unnoted(store: &Store) -> Transaction {
    Recorder::default().scope(|| store.begin())
}

impl FrameRow {
    fn values(&self) -> Map<String, Value> {
        // Only this module writes the column.
        serde_json::from_str(&self.values).unwrap_or_default()
    }
}

impl FromRequest for Frame {
    fn from_request(request: &mut RequestParts<'_>, name: &'static str) -> Result<Self, Rejection> {
        let visitor_session = request.visitor_session(name)?;
        let head = &request.incoming.head;
        match Self::of_page(&visitor_session, head.target(), head.method()) {
            RequestedFrame::Found(frame) => Ok(frame),
            RequestedFrame::Redirect(location) => Err(Rejection::Redirect { location }),
            RequestedFrame::NeedsCookies => {
                Err(Rejection::invalid(name, VisitorMessage::CookiesNeeded {}))
            }
        }
    }

    fn needs(needs: &mut Needs) {
        needs.sessions = true;
    }
}

/// Without the name, which is secret.
impl fmt::Debug for Frame {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Frame").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
