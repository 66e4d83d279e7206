//! The quota of session rows for each address block's clients that have not logged in.
//!
//! A client that returns no cookie begins a session with each request, and a row where a page
//! stores a value. When a block exceeds its quota, its own rows are removed: first those that were
//! not used since they were made.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bine_server::AddressBlock;

use super::row::Row;
use crate::store::{Id, Time};

/// The rows that were made for each block since the start, in memory.
#[derive(Default)]
pub(super) struct Quota(Mutex<Blocks>);

#[derive(Default)]
struct Blocks {
    /// The rows of each block, the oldest first.
    own: HashMap<AddressBlock, VecDeque<Made>>,
    over: BTreeSet<AddressBlock>,
    total: usize,
}

/// A row that was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Made {
    pub(super) id: Id<Row>,
    /// When the row was last used, as of the last check.
    pub(super) seen: Time,
}

/// The limits on the number of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) of_block: usize,
    pub(super) in_all: usize,
}

/// Rows that are checked or removed at once.
const MOST_AT_ONCE: usize = 64;

impl Most {
    /// A proxy on this machine may act for all clients.
    fn of(self, block: AddressBlock) -> usize {
        if block.is_local() { self.of_block.max(self.in_all / 2) } else { self.of_block }
    }
}

impl Quota {
    /// Records a row that was made for a client of this block.
    pub(super) fn note(&self, block: AddressBlock, made: Made, most: Most) {
        let blocks = &mut *self.blocks();
        let own = blocks.own.entry(block).or_default();
        own.push_back(made);
        blocks.total += 1;
        if blocks.total > most.in_all {
            // The list is as long as the limit of rows: some of its rows are gone, and the total
            // limit covers the rest.
            own.pop_front();
            blocks.total -= 1;
        }
        if own.len() > most.of(block) {
            blocks.over.insert(block);
        }
    }

    /// Takes rows to remove. `seen` returns when a row was last used; `None`: it is gone, or has a
    /// user.
    pub(super) fn take_overdue(
        &self,
        most: Most,
        mut seen: impl FnMut(Id<Row>) -> Option<Time>,
    ) -> Vec<(AddressBlock, Made)> {
        let blocks = &mut *self.blocks();
        let mut going = Vec::new();
        let mut spared = 0;
        for _ in 0..MOST_AT_ONCE {
            let Some(block) = blocks.over.first().copied() else { break };
            let own = blocks.own.entry(block).or_default();
            let oldest = if own.len() > most.of(block) { own.pop_front() } else { None };
            let Some(oldest) = oldest else {
                blocks.over.remove(&block);
                if own.is_empty() {
                    blocks.own.remove(&block);
                }
                continue;
            };
            match seen(oldest.id) {
                // The row was used: rows after it are removed first, unless all were used.
                Some(seen) if seen > oldest.seen && spared < MOST_AT_ONCE / 2 => {
                    spared += 1;
                    own.push_back(Made { seen, ..oldest });
                }
                state => {
                    blocks.total -= 1;
                    if state.is_some() {
                        going.push((block, oldest));
                    }
                }
            }
        }
        going
    }

    /// Returns rows whose removal failed.
    pub(super) fn put_back(&self, rows: Vec<(AddressBlock, Made)>) {
        let blocks = &mut *self.blocks();
        for (block, made) in rows.into_iter().rev() {
            blocks.own.entry(block).or_default().push_front(made);
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

    const MOST: Most = Most { of_block: 3, in_all: 100 };

    fn made(number: u128) -> Made {
        Made { id: Id::of(RowId::from_number(number)), seen: Time(0) }
    }

    fn block(last: u8) -> AddressBlock {
        AddressBlock::of([192, 0, 2, last].into())
    }

    fn ids(rows: &[(AddressBlock, Made)]) -> Vec<Id<Row>> {
        rows.iter().map(|(_, made)| made.id).collect()
    }

    #[test]
    fn removes_the_oldest_rows_of_the_block_that_has_too_many() {
        let quota = Quota::default();
        (0..5).for_each(|number| quota.note(block(1), made(number), MOST));
        (10..13).for_each(|number| quota.note(block(2), made(number), MOST));
        let going = quota.take_overdue(MOST, |_| Some(Time(0)));
        assert_eq!(ids(&going), [made(0).id, made(1).id]);
        assert!(quota.take_overdue(MOST, |_| Some(Time(0))).is_empty());
        quota.put_back(going);
        assert_eq!(ids(&quota.take_overdue(MOST, |_| Some(Time(0)))), [made(0).id, made(1).id]);
    }

    #[test]
    fn spares_rows_that_were_used_and_never_removes_those_of_users() {
        let quota = Quota::default();
        (0..5).for_each(|number| quota.note(block(1), made(number), MOST));
        // The first row was used, the second has a user.
        let seen = |id| match id {
            id if id == made(0).id => Some(Time(7)),
            id if id == made(1).id => None,
            _ => Some(Time(0)),
        };
        assert_eq!(ids(&quota.take_overdue(MOST, seen)), [made(2).id]);
        // If all rows were used, the oldest is removed.
        quota.note(block(1), made(5), MOST);
        let mut now = 100;
        let going = quota.take_overdue(MOST, |_| {
            now += 1;
            Some(Time(now))
        });
        assert_eq!(going.len(), 1);
    }

    #[test]
    fn remembers_no_more_rows_than_there_may_be() {
        let quota = Quota::default();
        for number in 0..500_u16 {
            quota.note(block((number % 250) as u8), made(u128::from(number)), MOST);
        }
        let blocks = quota.blocks();
        assert!(blocks.total <= MOST.in_all);
        assert_eq!(blocks.own.values().map(VecDeque::len).sum::<usize>(), blocks.total);
    }

    #[test]
    fn gives_this_machine_more_rows() {
        assert_eq!([MOST.of(AddressBlock::LOCAL), MOST.of(block(1))], [50, 3]);
    }
}
