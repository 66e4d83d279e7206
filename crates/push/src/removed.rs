//! Remembers the names of removed channels, so that a reader detects a gap if a name is reused.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::codec::{Decoder, put_bytes, put_number};
use crate::cursor::Sequence;

/// The names of removed channels, up to the limit, and one position for all older ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemovedNames {
    names: BTreeMap<Arc<str>, (Sequence, u64)>,
    /// The same names in the order of their removal.
    by_index: BTreeMap<u64, Arc<str>>,
    next_index: u64,
    /// The last message of any forgotten name. An unknown name may be a forgotten one.
    last_forgotten: Sequence,
}

impl RemovedNames {
    /// Adds a name and its last message.
    pub(crate) fn insert(&mut self, name: Arc<str>, last: Sequence, limit: usize) {
        if last == Sequence::START {
            return;
        }
        self.next_index += 1;
        self.by_index.insert(self.next_index, name.clone());
        self.names.insert(name, (last, self.next_index));
        if self.names.len() > limit
            && let Some((_, oldest)) = self.by_index.pop_first()
            && let Some((last, _)) = self.names.remove(&oldest)
        {
            self.last_forgotten = self.last_forgotten.max(last);
        }
    }

    /// Returns the last message that an earlier channel of this name may have had.
    pub(crate) fn last(&self, name: &str) -> Sequence {
        self.names.get(name).map_or(self.last_forgotten, |known| known.0)
    }

    /// Removes a name that is reused.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Some((_, index)) = self.names.remove(name) {
            self.by_index.remove(&index);
        }
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        put_number(to, self.last_forgotten.number());
        put_number(to, self.by_index.len() as u64);
        for name in self.by_index.values() {
            put_bytes(to, name.as_bytes());
            let last = self.names.get(name).map_or(Sequence::START, |known| known.0);
            put_number(to, last.number());
        }
    }

    pub(crate) fn read(from: &mut Decoder<'_>) -> Option<Self> {
        let mut removed =
            Self { last_forgotten: Sequence::from_number(from.number()?), ..Self::default() };
        from.list(|from| {
            let name = Arc::from(from.text()?);
            removed.insert(name, Sequence::from_number(from.number()?), usize::MAX);
            Some(())
        })?;
        Some(removed)
    }
}
