//! Scans: iteration over the rows that a plan may find, with a record of the part that was read.

use std::ops::ControlFlow;

use super::plan::{Bounds, QueryPlan};
use super::{ReadRow, Select};
use crate::id::RowId;
use crate::key::Key;
use crate::reads::Read;
use crate::state::{IndexRange, RowRange, TableState, Values, id_of};
use crate::value::Value;

/// A row that satisfies all conditions.
pub(super) struct Candidate<'v, 's, T> {
    pub(super) id: RowId,
    pub(super) values: &'v [Value<'s>],
    read: ReadRow<'s, T>,
    /// The row, if a filter needed it.
    row: Option<T>,
}

enum ScanCursor<'s> {
    Rows(RowRange<'s>),
    Index(IndexRange<'s>),
}

impl<T> Candidate<'_, '_, T> {
    /// Encodes the key of this column into a buffer. Without a column, the key is empty.
    pub(super) fn key(&self, column: Option<usize>, key: &mut Key) {
        key.clear();
        if let Some(column) = column {
            key.push(self.values[column]);
        }
    }

    pub(super) fn into_row(self) -> T {
        self.row.unwrap_or_else(|| (self.read)(self.id, self.values))
    }
}

impl<'s, T> Select<'s, T> {
    /// Calls `visit` for each row within the bounds that satisfies all conditions, until it breaks.
    /// Records the part of the bounds that was read, and returns the number of rows examined.
    pub(super) fn scan(
        &self,
        plan: &QueryPlan,
        bounds: Bounds,
        is_backward: bool,
        visit: &mut dyn FnMut(Candidate<'_, 's, T>) -> ControlFlow<()>,
    ) -> usize {
        let (examined, read) = self.scan_unrecorded(plan, bounds, is_backward, visit);
        self.snapshot.note(read);
        examined
    }

    /// Scans as [`scan`](Self::scan) does. The caller records the read.
    pub(super) fn scan_unrecorded(
        &self,
        plan: &QueryPlan,
        mut bounds: Bounds,
        is_backward: bool,
        visit: &mut dyn FnMut(Candidate<'_, 's, T>) -> ControlFlow<()>,
    ) -> (usize, Read) {
        let (snapshot, definition) = (self.snapshot, self.definition());
        let (table, read) = (self.table, self.read);
        let mut cursor = ScanCursor::new(&snapshot.state.tables[table], &bounds);
        let (mut values, mut key, mut examined) = (Values::new(), Key::default(), 0);
        while let Some((entry, row)) = cursor.next(is_backward) {
            examined += 1;
            let id = id_of(entry);
            // An index entry always has its row.
            let Some(row) = row.or_else(|| snapshot.row(table, id)) else { continue };
            let values =
                definition.read(row, &mut values).expect("each row is checked before it enters");
            let is_match = plan.residual.iter().all(|condition| {
                let condition = &self.conditions[*condition];
                condition.admits(values[condition.column], &mut key)
            });
            if !is_match {
                continue;
            }
            let row = (!self.filters.is_empty()).then(|| read(id, values));
            if row.as_ref().is_some_and(|row| !self.filters.iter().all(|admits| admits(row))) {
                continue;
            }
            if visit(Candidate { id, values, read, row }).is_break() {
                let key = entry.split_last_chunk::<16>().map_or(&[][..], |(key, _)| key);
                bounds = bounds.cut(Key::from_bytes(key), id, is_backward);
                break;
            }
        }
        (examined, read_of(table, bounds))
    }

    /// The number of rows within the bounds, whatever their values.
    pub(super) fn count_entries(&self, bounds: Bounds) -> usize {
        let table = self.table;
        let state = &self.snapshot.state.tables[table];
        let count = match &bounds {
            Bounds::Rows { from: None, until: None } => state.rows.len(),
            bounds => match ScanCursor::new(state, bounds) {
                ScanCursor::Rows(rows) => rows.count(),
                ScanCursor::Index(entries) => entries.count(),
            },
        };
        self.snapshot.note(read_of(table, bounds));
        count
    }
}

/// The read of all rows within the bounds.
fn read_of(table: usize, bounds: Bounds) -> Read {
    match bounds {
        Bounds::Rows { from: None, until: None }
        | Bounds::Index { from: None, until: None, .. } => Read::Table { table },
        Bounds::Rows { from, until: None } => Read::Since { table, id: from.unwrap_or_default() },
        Bounds::Rows { from, until } => Read::Ids { table, from: from.unwrap_or_default(), until },
        Bounds::Index { position: index, from, until } => match (&from, &until) {
            (Some(first), Some(end))
                if first.id.is_none()
                    && end.id.is_none()
                    && first.key.end().as_ref() == Some(&end.key) =>
            {
                Read::Prefix { table, index, key: first.key.clone() }
            }
            _ => Read::Slice { table, index, from, until },
        },
    }
}

impl<'s> ScanCursor<'s> {
    fn new(state: &'s TableState, bounds: &Bounds) -> Self {
        match bounds {
            Bounds::Rows { from, until } => Self::Rows(state.rows.slice(*from, *until)),
            Bounds::Index { position, from, until } => {
                Self::Index(state.indexes[*position].slice(from.as_ref(), until.as_ref()))
            }
        }
    }

    /// The next entry, which ends with its id, and the row if the entry has it.
    fn next(&mut self, is_backward: bool) -> Option<(&'s [u8], Option<&'s [u8]>)> {
        match self {
            Self::Rows(rows) => {
                let next = if is_backward { rows.next_back() } else { rows.next() };
                next.map(|(id, row)| (id, Some(row)))
            }
            Self::Index(entries) => {
                let next = if is_backward { entries.next_back() } else { entries.next() };
                next.map(|(entry, _)| (entry, None))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Edge;

    #[test]
    fn records_exactly_the_part_that_was_read() {
        let id = RowId::from_number;
        let rows = |from, until| read_of(7, Bounds::Rows { from, until });
        assert_eq!(rows(None, None), Read::Table { table: 7 });
        assert_eq!(rows(Some(id(3)), None), Read::Since { table: 7, id: id(3) });
        let ids = |from, until| Read::Ids { table: 7, from: id(from), until: Some(id(until)) };
        assert_eq!(rows(None, Some(id(5))), ids(0, 5));
        assert_eq!(rows(Some(id(3)), Some(id(5))), ids(3, 5));
        let key = |number| Key::of([Value::Integer(number)]);
        let edge = |key: Key, row: Option<u128>| Some(Edge { key, id: row.map(id) });
        let index = |from: Option<Edge>, until: Option<Edge>| {
            let read = Read::Slice { table: 7, index: 2, from: from.clone(), until: until.clone() };
            (read_of(7, Bounds::Index { position: 2, from, until }), read)
        };
        assert_eq!(index(None, None).0, Read::Table { table: 7 });
        let end = || key(3).end().unwrap();
        let prefix = Read::Prefix { table: 7, index: 2, key: key(3) };
        assert_eq!(index(edge(key(3), None), edge(end(), None)).0, prefix);
        // Another end, a place within the key, and one side only.
        for (from, until) in [
            (edge(key(3), None), edge(key(5), None)),
            (edge(key(3), Some(1)), edge(end(), None)),
            (edge(key(3), None), edge(end(), Some(1))),
            (edge(key(3), Some(1)), edge(key(3), Some(4))),
            (edge(key(3), None), None),
            (None, edge(key(3), None)),
        ] {
            let (found, slice) = index(from, until);
            assert_eq!(found, slice);
        }
    }
}
