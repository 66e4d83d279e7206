//! The row that is kept of a session.

use bine_macros::Table;
use serde_json::{Map, Value};

use super::badge::Badge;
use crate::store::{Id, Snapshot, Time};
use crate::text::Text;

/// A session of which something is kept: a value, or who it is.
#[derive(Clone, Debug, Table)]
#[table(crate = crate, name = "session", index(is_known, seen))]
pub(super) struct Row {
    pub(super) id: Id<Row>,
    /// The cookie's.
    #[table(unique, private, length = 16..=16)]
    pub(super) key: Vec<u8>,
    /// Who has logged in.
    #[table(index, private, length = 1..=200)]
    pub(super) user: Option<Text>,
    /// Whether somebody has.
    pub(super) is_known: bool,
    pub(super) seed: u16,
    pub(super) made: Time,
    pub(super) seen: Time,
    /// An object of JSON.
    #[table(private)]
    pub(super) values: String,
}

impl Row {
    pub(super) fn new(badge: &Badge) -> Self {
        Self {
            id: Id::new(),
            key: badge.id.to_vec(),
            user: None,
            is_known: false,
            seed: badge.seed,
            made: time(badge.made),
            seen: time(badge.seen),
            values: "{}".to_owned(),
        }
    }

    /// The row of the cookie with this id.
    pub(super) fn find(now: &Snapshot, key: &[u8; 16]) -> Option<Self> {
        now.one(Self::BY_KEY, key.to_vec())
    }

    /// The sessions of this user, the oldest first.
    pub(super) fn of_user(now: &Snapshot, user: &Text) -> Vec<Self> {
        now.find(Self::BY_USER, Some(user.clone())).collect()
    }

    /// What the program has put there.
    pub(super) fn values(&self) -> Map<String, Value> {
        // What was written here is an object.
        serde_json::from_str(&self.values).unwrap_or_default()
    }

    /// The badge that names it, as it looks at `now`.
    pub(super) fn badge(&self, now: u64) -> Option<Badge> {
        let id = self.key.as_slice().try_into().ok()?;
        let (seed, made) = (self.seed, self.made.unix());
        Some(Badge { id, is_kept: true, seed, made, seen: now })
    }
}

/// So many seconds since 1970.
pub(super) fn time(seconds: u64) -> Time {
    Time(i64::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX))
}
