//! An index of client groups by the subjects whose revocation ends them, and the groups that
//! ended recently.
//!
//! The index bounds the work of a revocation: it visits the groups of its subject only, and each
//! thread visits the holds of ended groups only.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::super::grant::ActiveGrant;

#[derive(Default)]
pub(super) struct RevocationIndex {
    by_subject: HashMap<Arc<str>, BTreeSet<u32>>,
    /// The groups that ended recently, each with the revocation that ended it, oldest first.
    ended: VecDeque<(u32, u32)>,
    /// `ended` may lack groups that this or an earlier revocation ended.
    forgotten: u32,
}

/// Remembered groups. A thread that lags further checks all its holds.
const MAX_ENDED: usize = 4096;

impl RevocationIndex {
    /// Adds the group in a slot.
    pub(super) fn add(&mut self, slot: u32, session: &ActiveGrant) {
        for (subject, _) in session.subjects() {
            self.by_subject.entry(Arc::clone(subject)).or_default().insert(slot);
        }
    }

    /// Removes the group in a slot, which was added with the same grant.
    pub(super) fn remove(&mut self, slot: u32, session: &ActiveGrant) {
        for (subject, _) in session.subjects() {
            if let Some(slots) = self.by_subject.get_mut(subject) {
                slots.remove(&slot);
                if slots.is_empty() {
                    self.by_subject.remove(subject);
                }
            }
        }
    }

    /// The slots of the groups that end when this subject is revoked.
    pub(super) fn of(&self, subject: &str) -> impl Iterator<Item = u32> + use<'_> {
        self.by_subject.get(subject).into_iter().flatten().copied()
    }

    /// Records that a revocation ended a group.
    pub(super) fn note_end(&mut self, revocation: u32, group: u32) {
        if self.ended.len() == MAX_ENDED
            && let Some((oldest, _)) = self.ended.pop_front()
        {
            self.forgotten = oldest;
        }
        self.ended.push_back((revocation, group));
    }

    /// The groups that ended after this revocation. `None`: more than are remembered.
    pub(super) fn ended_since(&self, revocation: u32) -> Option<Vec<u32>> {
        if revocation < self.forgotten {
            return None;
        }
        let first = self.ended.partition_point(|(number, _)| *number <= revocation);
        Some(self.ended.range(first..).map(|(_, group)| *group).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::grant::{Grant, Issued};
    use super::*;

    fn session(subject: &str) -> ActiveGrant {
        ActiveGrant::new(Grant::to(subject), Issued::At(1))
    }

    #[test]
    fn finds_the_groups_of_a_subject_only() {
        let mut index = RevocationIndex::default();
        for slot in 0..1000 {
            index.add(slot, &session(if slot % 500 == 0 { "ann" } else { "ben" }));
        }
        assert_eq!(index.of("ann").collect::<Vec<_>>(), [0, 500]);
        index.remove(0, &session("ann"));
        assert_eq!(index.of("ann").collect::<Vec<_>>(), [500]);
        index.remove(500, &session("ann"));
        assert!(!index.by_subject.contains_key("ann"));
    }

    #[test]
    fn reports_groups_ended_since_a_revocation_or_that_some_are_forgotten() {
        let mut index = RevocationIndex::default();
        assert_eq!(index.ended_since(0), Some(Vec::new()));
        for (at, group) in [(1, 10), (1, 11), (2, 20)] {
            index.note_end(at, group);
        }
        assert_eq!(index.ended_since(0), Some(vec![10, 11, 20]));
        assert_eq!(index.ended_since(1), Some(vec![20]));
        assert_eq!(index.ended_since(2), Some(Vec::new()));
        (0..MAX_ENDED as u32).for_each(|group| index.note_end(3, group));
        assert_eq!(index.ended_since(1), None);
        assert_eq!(index.ended_since(2).map(|ended| ended.len()), Some(MAX_ENDED));
    }
}
