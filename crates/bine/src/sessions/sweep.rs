//! The removal of expired sessions, and of the least recently used ones if there are too many.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Waker};

use super::row_quota::{Quota, RowLimits};
use super::session_row::SessionRow;
use crate::store::{Id, IndexOf, Pending, Snapshot, Store, Time};

/// Rows that are removed at once, at most.
const MAX_AT_ONCE: usize = 256;
/// Expired rows that are removed at once, at most: they do no harm, and few keep each sweep cheap.
const MAX_IDLE: usize = 16;

/// Removes rows of sessions in small batches, one batch at a time, whenever rows are inserted.
#[derive(Default)]
pub(super) struct Sweep(Mutex<Option<Pending>>);

impl Sweep {
    /// Removes a batch: sessions unused since `idle`; beyond `most` sessions the longest unused,
    /// first those without a user; and those of addresses beyond their quota. It does not wait for
    /// the commit, and costs one index lookup per row.
    pub(super) fn run(&self, store: &Store, most: RowLimits, idle: Time, quota: &Quota) {
        // A sweep is running.
        let Ok(mut pending) = self.0.try_lock() else { return };
        if pending.as_mut().is_some_and(is_pending) {
            return;
        }
        *pending = None;
        let now = store.read().without_tracking();
        let mut excess = excess(&now, most.total, idle);
        let anonymous =
            |id| now.get(id).filter(|row: &SessionRow| !row.is_known).map(|row| row.seen);
        let excess_rows = quota.take_excess(most, anonymous);
        excess.extend(excess_rows.iter().map(|(_, made)| made.id));
        if excess.is_empty() {
            return;
        }
        let mut change = store.begin();
        for id in excess {
            // No reference points to a session, and a missing row is no error.
            let _ = change.remove(id);
        }
        // After a conflict, the next sweep retries.
        *pending = store.commit(change).ok();
        if pending.is_none() {
            quota.put_back(excess_rows);
        }
        // The store writes a commit once it was polled, otherwise only with the next commit.
        let _ = pending.as_mut().is_some_and(is_pending);
    }
}

fn is_pending(removal: &mut Pending) -> bool {
    Pin::new(removal).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

fn excess(now: &Snapshot, most: usize, idle: Time) -> Vec<Id<SessionRow>> {
    const BY: IndexOf<SessionRow, (bool, Time)> = SessionRow::BY_IS_KNOWN_SEEN;
    let surplus = now.count::<SessionRow>().saturating_sub(most).min(MAX_AT_ONCE);
    let longest_unused = [false, true].into_iter().flat_map(|is_known| now.find(BY, (is_known,)));
    let mut excess: Vec<Id<SessionRow>> = longest_unused.take(surplus).map(|row| row.id).collect();
    for is_known in [false, true] {
        let idle = now.range(BY, (is_known, Time(i64::MIN))..(is_known, idle)).take(MAX_IDLE);
        excess.extend(idle.map(|row| row.id));
    }
    excess.sort_unstable();
    excess.dedup();
    excess
}
