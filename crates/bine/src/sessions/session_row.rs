//! The stored row of a session.

use bine_macros::Table;
use serde_json::{Map, Value};

use super::cookie::SessionCookie;
use crate::store::{Id, Snapshot, Time};
use crate::text::Text;

/// A session with a stored value or a user.
#[derive(Clone, Debug, Table)]
#[table(crate = crate, name = "session", index(is_known, seen))]
pub(super) struct SessionRow {
    pub(super) id: Id<SessionRow>,
    /// The id in the cookie.
    #[table(unique, private, length = 16..=16)]
    pub(super) key: Vec<u8>,
    /// The logged-in user.
    #[table(index, private, length = 1..=200)]
    pub(super) user: Option<Text>,
    /// Whether it has a user.
    pub(super) is_known: bool,
    pub(super) seed: u16,
    pub(super) made: Time,
    pub(super) seen: Time,
    /// Whether it ends with the browser, or after [a day](super::BRIEF_IDLE) without use.
    #[table(default = false)]
    pub(super) is_brief: bool,
    /// A JSON object.
    #[table(private)]
    pub(super) values: String,
}

impl SessionRow {
    pub(super) fn new(cookie: &SessionCookie) -> Self {
        Self {
            id: Id::unassigned(),
            key: cookie.id.to_vec(),
            user: None,
            is_known: false,
            seed: cookie.seed,
            made: time(cookie.made),
            seen: time(cookie.seen),
            is_brief: false,
            values: "{}".to_owned(),
        }
    }

    /// The row with the id of this cookie.
    pub(super) fn find(now: &Snapshot, key: &[u8; 16]) -> Option<Self> {
        now.one(Self::BY_KEY, key.to_vec())
    }

    /// The sessions of this user, the oldest first.
    pub(super) fn of_user(now: &Snapshot, user: &Text) -> Vec<Self> {
        now.find(Self::BY_USER, Some(user.clone())).collect()
    }

    /// The values that the program has stored.
    pub(super) fn values(&self) -> Map<String, Value> {
        // Only this crate writes the column.
        serde_json::from_str(&self.values).unwrap_or_default()
    }

    /// The cookie of this row, written at `now`.
    pub(super) fn cookie(&self, now: u64) -> Option<SessionCookie> {
        let id = self.key.as_slice().try_into().ok()?;
        let (seed, made) = (self.seed, self.made.unix());
        Some(SessionCookie { id, is_kept: true, seed, made, seen: now })
    }
}

/// The time at this many seconds since 1970.
pub(super) fn time(seconds: u64) -> Time {
    Time(i64::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX))
}
