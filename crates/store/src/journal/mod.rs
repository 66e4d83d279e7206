//! Decides how what was acknowledged outlives the machine.

use std::sync::Arc;

/// Counts records, from 1 on.
pub type Sequence = u64;

/// Why records were not written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalError {
    /// There is no room. The group was taken back; the next may fit.
    Full,
    /// The disk has failed, and nothing more is written.
    Broken(Arc<str>),
}

/// Keeps records in their order.
pub trait Journal: Send {
    /// Adds a record to the group under way, and says which number it will have. Nothing is written yet.
    fn append(&mut self, record: &[u8]) -> Sequence;

    /// Writes the group, and if `durably` has it outlive the machine: all of it, or nothing.
    ///
    /// # Errors
    ///
    /// Nothing of the group was written.
    fn write(&mut self, durably: bool) -> Result<Sequence, JournalError>;

    /// Has what was written outlive the machine.
    ///
    /// # Errors
    ///
    /// What was written since the last time may be lost.
    fn sync(&mut self) -> Result<(), JournalError>;
}

/// Keeps nothing: for tables that end with the program.
#[derive(Debug, Default)]
pub struct Forgetful(Sequence);

impl Journal for Forgetful {
    fn append(&mut self, _: &[u8]) -> Sequence {
        self.0 += 1;
        self.0
    }

    fn write(&mut self, _: bool) -> Result<Sequence, JournalError> {
        Ok(self.0)
    }

    fn sync(&mut self) -> Result<(), JournalError> {
        Ok(())
    }
}
