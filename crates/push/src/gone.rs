//! Decides how long the names of gone channels are remembered, so that a hole is told if one comes back.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::bytes::{Bytes, put_bytes, put_number};
use crate::cursor::Sequence;

/// The names of gone channels, as many as the limit; of all others together one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gone {
    names: BTreeMap<Arc<str>, (Sequence, u64)>,
    /// The same in the order in which they went.
    by_turn: BTreeMap<u64, Arc<str>>,
    turn: u64,
    /// The last message of any name that is forgotten. A name that is not known may have been one of those.
    forgotten: Sequence,
}

impl Gone {
    /// Remembers a name with its last message.
    pub(crate) fn remember(&mut self, name: Arc<str>, last: Sequence, most: usize) {
        if last == Sequence::START {
            return;
        }
        self.turn += 1;
        self.by_turn.insert(self.turn, name.clone());
        self.names.insert(name, (last, self.turn));
        if self.names.len() > most
            && let Some((_, oldest)) = self.by_turn.pop_first()
            && let Some((last, _)) = self.names.remove(&oldest)
        {
            self.forgotten = self.forgotten.max(last);
        }
    }

    /// The last message under a name that may have been one of those.
    pub(crate) fn last(&self, name: &str) -> Sequence {
        self.names.get(name).map_or(self.forgotten, |known| known.0)
    }

    /// Lets go of a name that comes back.
    pub(crate) fn forget(&mut self, name: &str) {
        if let Some((_, turn)) = self.names.remove(name) {
            self.by_turn.remove(&turn);
        }
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        put_number(to, self.forgotten.number());
        put_number(to, self.by_turn.len() as u64);
        for name in self.by_turn.values() {
            put_bytes(to, name.as_bytes());
            let last = self.names.get(name).map_or(Sequence::START, |known| known.0);
            put_number(to, last.number());
        }
    }

    pub(crate) fn read(from: &mut Bytes<'_>) -> Option<Self> {
        let mut gone = Self { forgotten: Sequence::from_number(from.number()?), ..Self::default() };
        from.many(|from| {
            let name = Arc::from(from.text()?);
            gone.remember(name, Sequence::from_number(from.number()?), usize::MAX);
            Some(())
        })?;
        Some(gone)
    }
}
