//! Decides what is kept of a session, and which sessions go when there are too many: the idle ones, strangers first.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Waker};

use bine_macros::Table;
use serde_json::{Map, Value};

use super::badge::Badge;
use super::quota::{Most, Quota};
use crate::store::{By, Id, Pending, Snapshot, Store, Time};
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

/// Rows that are removed at one time, at most.
const MOST_AT_ONCE: usize = 256;
/// Of these so many because they were idle, at most: looking for them costs little, and they do no harm.
const MOST_IDLE: usize = 16;

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

/// Removes rows of sessions, a few at a time and one time after the other, whenever rows are made.
#[derive(Default)]
pub(super) struct Sweep(Mutex<Option<Pending>>);

impl Sweep {
    /// Removes sessions that nobody has used since `idle`, and the longest unused of more than `most`: strangers' before
    /// those of users; and those of addresses that have more than their share. Does not wait for that, and costs what
    /// looking for one row costs for each.
    pub(super) fn run(&self, store: &Store, most: Most, idle: Time, quota: &Quota) {
        // Somebody is at it.
        let Ok(mut under_way) = self.0.try_lock() else { return };
        if under_way.as_mut().is_some_and(is_pending) {
            return;
        }
        *under_way = None;
        let now = store.read().without_notes();
        let mut going = going(&now, most.in_all, idle);
        let strangers = |id| now.get(id).filter(|row: &Row| !row.is_known).map(|row| row.seen);
        let overdue = quota.take_overdue(most, strangers);
        going.extend(overdue.iter().map(|(_, made)| made.id));
        if going.is_empty() {
            return;
        }
        let mut change = store.begin();
        for id in going {
            // Nobody names a session, and one that is gone already is no mistake.
            let _ = change.remove(id);
        }
        // If somebody has used one of them meanwhile, it is for the next time to find others.
        *under_way = store.commit(change).ok();
        if under_way.is_none() {
            quota.put_back(overdue);
        }
        // It is written when it was asked for once, and otherwise with whatever comes behind it.
        let _ = under_way.as_mut().is_some_and(is_pending);
    }
}

fn is_pending(removal: &mut Pending) -> bool {
    Pin::new(removal).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

fn going(now: &Snapshot, most: usize, idle: Time) -> Vec<Id<Row>> {
    const BY: By<Row, (bool, Time)> = Row::BY_IS_KNOWN_SEEN;
    let surplus = now.count::<Row>().saturating_sub(most).min(MOST_AT_ONCE);
    let longest_unused = [false, true].into_iter().flat_map(|is_known| now.find(BY, (is_known,)));
    let mut going: Vec<Id<Row>> = longest_unused.take(surplus).map(|row| row.id).collect();
    for is_known in [false, true] {
        let idle = now.range(BY, (is_known, Time(i64::MIN))..(is_known, idle)).take(MOST_IDLE);
        going.extend(idle.map(|row| row.id));
    }
    going.sort_unstable();
    going.dedup();
    going
}
