//! The removal of sessions when there are too many: idle ones, and those of clients who have not logged in first.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Waker};

use super::quota::{Most, Quota};
use super::row::Row;
use crate::store::{By, Id, Pending, Snapshot, Store, Time};

/// Rows that are removed at one time, at most.
const MOST_AT_ONCE: usize = 256;
/// Of these so many because they were idle, at most: looking for them costs little, and they do no harm.
const MOST_IDLE: usize = 16;

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
        let now = store.read().without_tracking();
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
