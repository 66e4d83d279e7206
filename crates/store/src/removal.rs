//! Removal of a row with the rows that refer to it.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Error;
use crate::id::RowId;
use crate::key::Key;
use crate::reads::Read;
use crate::schema::OnRemove;
use crate::snapshot::Snapshot;
use crate::state::{Values, Write};
use crate::value::Value;

/// Everything that the removal of one row changes. It is determined before the first write, so that
/// a rejected removal has no effect.
#[derive(Default)]
pub(crate) struct Removal {
    /// The rows to remove: table, id.
    rows: BTreeSet<(usize, RowId)>,
    /// The references that become null, by row: columns.
    references: BTreeMap<(usize, RowId), Vec<usize>>,
    /// Where to find the rows that reject the removal unless it removes them too.
    rejecting: Vec<(usize, usize, Key)>,
}

/// The rows that one removal changes. The record has at least 18 bytes for each row, so that more
/// rows would exceed the limit of a transaction, 64 MB.
const MAX_ROWS: usize = 3 << 20;
/// The bytes of rewritten rows. The record would exceed the limit of a transaction.
const MAX_BYTES: usize = 64 << 20;

impl Removal {
    /// Follows the references to a row, and to each row that is removed with it. Records the reads.
    pub(crate) fn of(snapshot: &Snapshot, table: usize, id: RowId) -> Result<Self, Error> {
        let mut removal = Self::default();
        removal.rows.insert((table, id));
        // Each row enters the list once, so cycles of references end.
        let mut left = vec![(table, id)];
        while let Some((table, id)) = left.pop() {
            for referrer in &snapshot.definitions[table].referrers {
                let mut key = Key::default();
                key.push(Value::Id(id));
                let read =
                    Read::Prefix { table: referrer.table, index: referrer.index, key: key.clone() };
                snapshot.note(read);
                if referrer.on_remove == OnRemove::Reject {
                    removal.rejecting.push((referrer.table, referrer.index, key));
                    continue;
                }
                for own in snapshot.ids(referrer.table, referrer.index, &key) {
                    let row = (referrer.table, own);
                    if referrer.on_remove == OnRemove::SetNone {
                        removal.references.entry(row).or_default().push(referrer.column);
                    } else if removal.rows.insert(row) {
                        left.push(row);
                    }
                    if removal.len() + removal.rejecting.len() > MAX_ROWS {
                        return Err(Error::TooLarge);
                    }
                }
            }
        }
        removal.references.retain(|row, _| !removal.rows.contains(row));
        for (table, index, key) in &removal.rejecting {
            let is_left = |own: RowId| !removal.rows.contains(&(*table, own));
            if snapshot.ids(*table, *index, key).any(is_left) {
                let by = snapshot.definitions[*table].schema.name.clone();
                return Err(Error::StillReferenced { by });
            }
        }
        Ok(removal)
    }

    /// The writes, rewritten rows first.
    pub(crate) fn into_writes(self, snapshot: &Snapshot) -> Result<Vec<Write>, Error> {
        let mut writes = Vec::with_capacity(self.len());
        let mut bytes = 0;
        for ((table, id), columns) in self.references {
            // The whole row is written again, so it must not change meanwhile.
            snapshot.note(Read::Row { table, id });
            // An index entry always has its row.
            let Some(row) = snapshot.row(table, id) else { continue };
            let definition = &snapshot.definitions[table];
            let mut values = Values::new();
            definition.read(row, &mut values).expect("each row is checked before it enters");
            for column in columns {
                values[column] = Value::Null;
            }
            let row = definition.layout.write_over(&values, Some(row));
            bytes += row.len();
            if bytes > MAX_BYTES {
                return Err(Error::TooLarge);
            }
            writes.push(Write { table, id, row: Some(row) });
        }
        let removed = self.rows.into_iter().map(|(table, id)| Write { table, id, row: None });
        writes.extend(removed);
        Ok(writes)
    }

    fn len(&self) -> usize {
        self.rows.len() + self.references.len()
    }
}
