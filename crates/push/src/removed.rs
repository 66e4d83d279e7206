//! Decides how long the names of gone channels are remembered, so that a hole is told if one comes back.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::codec::{Decoder, put_bytes, put_number};
use crate::cursor::Sequence;

/// The names of gone channels, as many as the limit; of all others together one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemovedNames {
    names: BTreeMap<Arc<str>, (Sequence, u64)>,
    /// The same in the order in which they went.
    by_index: BTreeMap<u64, Arc<str>>,
    next_index: u64,
    /// The last message of any name that is forgotten. A name that is not known may have been one of those.
    last_forgotten: Sequence,
}

impl RemovedNames {
    /// Remembers a name with its last message.
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

    /// The last message under a name that may have been one of those.
    pub(crate) fn last(&self, name: &str) -> Sequence {
        self.names.get(name).map_or(self.last_forgotten, |known| known.0)
    }

    /// Lets go of a name that comes back.
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
