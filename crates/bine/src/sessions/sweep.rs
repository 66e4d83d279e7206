//! The removal of expired sessions, and of the least recently used ones if there are too many.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Waker};

use super::quota::{Most, Quota};
use super::row::Row;
use crate::store::{By, Id, Pending, Snapshot, Store, Time};

/// Rows that are removed at once, at most.
const MOST_AT_ONCE: usize = 256;
/// Expired rows that are removed at once, at most: they do no harm, and few keep each sweep cheap.
const MOST_IDLE: usize = 16;

/// Removes rows of sessions in small batches, one batch at a time, whenever rows are inserted.
#[derive(Default)]
pub(super) struct Sweep(Mutex<Option<Pending>>);

impl Sweep {
    /// Removes a batch: sessions unused since `idle`; beyond `most` sessions the longest unused,
    /// first those without a user; and those of addresses beyond their quota. It does not wait for
    /// the commit, and costs one index lookup per row.
    pub(super) fn run(&self, store: &Store, most: Most, idle: Time, quota: &Quota) {
        // Another thread runs a sweep.
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
            // No reference points to a session, and the row may be gone already.
            let _ = change.remove(id);
        }
        // After a conflict, the next sweep removes others.
        *under_way = store.commit(change).ok();
        if under_way.is_none() {
            quota.put_back(overdue);
        }
        // The store writes a commit once it was polled, otherwise only with the next commit.
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
