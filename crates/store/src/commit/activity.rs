//! The work of a store at one moment.

use super::Committer;
use crate::stats::Activity;

impl Committer {
    /// The work in progress. Never waits for the journal.
    pub(crate) fn activity(&self) -> Activity {
        let waiting = self.head().staged.len();
        let is_writing = self.try_journal().is_none();
        if !is_writing {
            // A leader may have found the lock taken meanwhile.
            self.wake_next_leader();
        }
        Activity { waiting, is_writing, is_checkpointing: self.checkpointer.is_running() }
    }
}
