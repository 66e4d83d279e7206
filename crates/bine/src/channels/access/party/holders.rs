//! An index of parties by the subjects whose revocation ends them, and the parties that ended lately.
//!
//! A revocation looks at the parties of its subject, and each thread at those of its holds that belong to a party that has
//! ended, however many others wait.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::super::grant::Session;

#[derive(Default)]
pub(super) struct Holders {
    by_subject: HashMap<Arc<str>, BTreeSet<u32>>,
    /// The parties that ended lately, each with the revocation that ended it, the oldest first.
    ended: VecDeque<(u32, u32)>,
    /// Parties that this revocation or one before it ended may be missing in `ended`.
    forgotten: u32,
}

/// Ended parties that are remembered. A thread that has missed more looks at all its holds.
const MOST_ENDED: usize = 4096;

impl Holders {
    /// Adds the party in a slot.
    pub(super) fn add(&mut self, slot: u32, session: &Session) {
        for (subject, _) in session.subjects() {
            self.by_subject.entry(Arc::clone(subject)).or_default().insert(slot);
        }
    }

    /// Removes the party in a slot, which was added with the same session.
    pub(super) fn remove(&mut self, slot: u32, session: &Session) {
        for (subject, _) in session.subjects() {
            if let Some(slots) = self.by_subject.get_mut(subject) {
                slots.remove(&slot);
                if slots.is_empty() {
                    self.by_subject.remove(subject);
                }
            }
        }
    }

    /// The slots of the parties that end when this subject is revoked.
    pub(super) fn of(&self, subject: &str) -> impl Iterator<Item = u32> + use<'_> {
        self.by_subject.get(subject).into_iter().flatten().copied()
    }

    /// Notes that a revocation ended a party.
    pub(super) fn note_end(&mut self, revocation: u32, party: u32) {
        if self.ended.len() == MOST_ENDED
            && let Some((oldest, _)) = self.ended.pop_front()
        {
            self.forgotten = oldest;
        }
        self.ended.push_back((revocation, party));
    }

    /// The parties that ended after this revocation. `None`: there were more than are remembered.
    pub(super) fn ended_since(&self, revocation: u32) -> Option<Vec<u32>> {
        if revocation < self.forgotten {
            return None;
        }
        let first = self.ended.partition_point(|(number, _)| *number <= revocation);
        Some(self.ended.range(first..).map(|(_, party)| *party).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::grant::{Grant, Issued};
    use super::*;

    fn session(subject: &str) -> Session {
        Session::new(Grant::to(subject), Issued::At(1))
    }

    #[test]
    fn finds_the_parties_of_a_subject_only() {
        let mut holders = Holders::default();
        for slot in 0..1000 {
            holders.add(slot, &session(if slot % 500 == 0 { "ann" } else { "ben" }));
        }
        assert_eq!(holders.of("ann").collect::<Vec<_>>(), [0, 500]);
        holders.remove(0, &session("ann"));
        assert_eq!(holders.of("ann").collect::<Vec<_>>(), [500]);
        holders.remove(500, &session("ann"));
        assert!(!holders.by_subject.contains_key("ann"));
    }

    #[test]
    fn tells_which_parties_ended_since_a_revocation_or_that_it_has_forgotten() {
        let mut holders = Holders::default();
        assert_eq!(holders.ended_since(0), Some(Vec::new()));
        for (at, party) in [(1, 10), (1, 11), (2, 20)] {
            holders.note_end(at, party);
        }
        assert_eq!(holders.ended_since(0), Some(vec![10, 11, 20]));
        assert_eq!(holders.ended_since(1), Some(vec![20]));
        assert_eq!(holders.ended_since(2), Some(Vec::new()));
        (0..MOST_ENDED as u32).for_each(|party| holders.note_end(3, party));
        assert_eq!(holders.ended_since(1), None);
        assert_eq!(holders.ended_since(2).map(|ended| ended.len()), Some(MOST_ENDED));
    }
}
