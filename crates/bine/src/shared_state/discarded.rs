//! The shared state of a copy that no node runs.

use super::record::owns;
use crate::store::{Extension, SnapshotBlocks};

/// Ignores all shared state: it belongs to nodes that run.
pub(crate) struct DiscardedState;

impl Extension for DiscardedState {
    fn owns(&self, first: u8) -> bool {
        owns(first)
    }

    fn load_block(&self, _block: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn replay(&self, _sequence: u64, _record: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn finish_load(&self) -> Result<(), String> {
        Ok(())
    }

    fn snapshot(&self) -> SnapshotBlocks {
        Box::new(std::iter::empty())
    }
}
