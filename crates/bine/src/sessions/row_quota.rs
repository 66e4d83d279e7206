//! The quota of session rows for each address block's clients that have not logged in.
//!
//! A client that returns no cookie begins a session with each request, and a row where a page
//! stores a value. When a block exceeds its quota, its own rows are removed: first those that were
//! not used since their creation.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bine_server::AddressBlock;

use super::session_row::SessionRow;
use crate::store::{Id, Time};

/// The rows inserted for each block since the start, in memory.
#[derive(Default)]
pub(super) struct Quota(Mutex<Blocks>);

#[derive(Default)]
struct Blocks {
    /// The rows of each block, the oldest first.
    by_block: HashMap<AddressBlock, VecDeque<TrackedRow>>,
    over: BTreeSet<AddressBlock>,
    total: usize,
}

/// A row inserted since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TrackedRow {
    pub(super) id: Id<SessionRow>,
    /// When the row was last used, as of the last check.
    pub(super) seen: Time,
}

/// The limits on the number of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLimits {
    pub(super) per_block: usize,
    pub(super) total: usize,
}

/// Rows that are checked or removed at once.
const MAX_AT_ONCE: usize = 64;

impl RowLimits {
    /// A proxy on this machine may act for all clients.
    fn of(self, block: AddressBlock) -> usize {
        if block.is_local() { self.per_block.max(self.total / 2) } else { self.per_block }
    }
}

impl Quota {
    /// Records a row inserted for a client of this block.
    pub(super) fn track(&self, block: AddressBlock, made: TrackedRow, most: RowLimits) {
        let blocks = &mut *self.blocks();
        let rows = blocks.by_block.entry(block).or_default();
        rows.push_back(made);
        blocks.total += 1;
        if blocks.total > most.total {
            // The list is as long as the limit of rows: some rows have been removed, and the total
            // limit covers the rest.
            rows.pop_front();
            blocks.total -= 1;
        }
        if rows.len() > most.of(block) {
            blocks.over.insert(block);
        }
    }

    /// Takes rows to remove. `seen` returns when a row was last used; `None`: it was removed, or
    /// has a user.
    pub(super) fn take_excess(
        &self,
        most: RowLimits,
        mut seen: impl FnMut(Id<SessionRow>) -> Option<Time>,
    ) -> Vec<(AddressBlock, TrackedRow)> {
        let blocks = &mut *self.blocks();
        let mut excess = Vec::new();
        let mut spared = 0;
        for _ in 0..MAX_AT_ONCE {
            let Some(block) = blocks.over.first().copied() else { break };
            let rows = blocks.by_block.entry(block).or_default();
            let oldest = if rows.len() > most.of(block) { rows.pop_front() } else { None };
            let Some(oldest) = oldest else {
                blocks.over.remove(&block);
                if rows.is_empty() {
                    blocks.by_block.remove(&block);
                }
                continue;
            };
            match seen(oldest.id) {
                // The row was used: rows after it are removed first, unless all were used.
                Some(seen) if seen > oldest.seen && spared < MAX_AT_ONCE / 2 => {
                    spared += 1;
                    rows.push_back(TrackedRow { seen, ..oldest });
                }
                state => {
                    blocks.total -= 1;
                    if state.is_some() {
                        excess.push((block, oldest));
                    }
                }
            }
        }
        excess
    }

    /// Returns rows whose removal failed.
    pub(super) fn put_back(&self, rows: Vec<(AddressBlock, TrackedRow)>) {
        let blocks = &mut *self.blocks();
        for (block, made) in rows.into_iter().rev() {
            blocks.by_block.entry(block).or_default().push_front(made);
            blocks.over.insert(block);
            blocks.total += 1;
        }
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RowId;

    const MAX: RowLimits = RowLimits { per_block: 3, total: 100 };

    fn made(number: u128) -> TrackedRow {
        TrackedRow { id: Id::of(RowId::from_number(number)), seen: Time(0) }
    }

    fn block(last: u8) -> AddressBlock {
        AddressBlock::of([192, 0, 2, last].into())
    }

    fn ids(rows: &[(AddressBlock, TrackedRow)]) -> Vec<Id<SessionRow>> {
        rows.iter().map(|(_, made)| made.id).collect()
    }

    #[test]
    fn removes_oldest_rows_of_block_over_quota() {
        let quota = Quota::default();
        (0..5).for_each(|number| quota.track(block(1), made(number), MAX));
        (10..13).for_each(|number| quota.track(block(2), made(number), MAX));
        let excess = quota.take_excess(MAX, |_| Some(Time(0)));
        assert_eq!(ids(&excess), [made(0).id, made(1).id]);
        assert!(quota.take_excess(MAX, |_| Some(Time(0))).is_empty());
        quota.put_back(excess);
        assert_eq!(ids(&quota.take_excess(MAX, |_| Some(Time(0)))), [made(0).id, made(1).id]);
    }

    #[test]
    fn spares_used_rows_and_rows_of_users() {
        let quota = Quota::default();
        (0..5).for_each(|number| quota.track(block(1), made(number), MAX));
        // The first row was used, the second has a user.
        let seen = |id| match id {
            id if id == made(0).id => Some(Time(7)),
            id if id == made(1).id => None,
            _ => Some(Time(0)),
        };
        assert_eq!(ids(&quota.take_excess(MAX, seen)), [made(2).id]);
        // If all rows were used, the oldest is removed.
        quota.track(block(1), made(5), MAX);
        let mut now = 100;
        let excess = quota.take_excess(MAX, |_| {
            now += 1;
            Some(Time(now))
        });
        assert_eq!(excess.len(), 1);
    }

    #[test]
    fn tracks_no_more_rows_than_limit() {
        let quota = Quota::default();
        for number in 0..500_u16 {
            quota.track(block((number % 250) as u8), made(u128::from(number)), MAX);
        }
        let blocks = quota.blocks();
        assert!(blocks.total <= MAX.total);
        assert_eq!(blocks.by_block.values().map(VecDeque::len).sum::<usize>(), blocks.total);
    }

    #[test]
    fn gives_local_proxy_larger_row_quota() {
        assert_eq!([MAX.of(AddressBlock::LOCAL), MAX.of(block(1))], [50, 3]);
    }
}
