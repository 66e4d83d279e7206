//! The reads of a transaction, in terms that all nodes share: stored tables and stored columns.
//!
//! Nodes may run programs with different indexes. Whether a change touches a read therefore follows
//! from the rows before and after it, not from the indexes of a node: all nodes reach the same
//! verdict.

use std::ops::Bound;

use crate::bytes::{ByteReader, put_bytes, put_number};
use crate::id::RowId;
use crate::key::Key;
use crate::reads::{Read, ReadSet};
use crate::row::{Row, RowReader};
use crate::schema::StoredTable;
use crate::state::{Catalog, Edge, entry};
use crate::value::Value;

/// One read of a stored table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Access {
    /// The position of the table in the catalog of stored tables.
    pub(crate) table: usize,
    part: Part,
}

/// A row that a record changed, as bytes before and after.
#[derive(Clone, Debug)]
pub(crate) struct ChangedRow {
    /// The position of the table in the catalog of stored tables.
    pub(crate) table: usize,
    pub(crate) id: RowId,
    pub(crate) before: Option<Row>,
    pub(crate) after: Option<Row>,
}

/// The part of a table that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Whole,
    Row(RowId),
    /// Rows whose id is not below the first one and is below the second one.
    Ids(RowId, Option<RowId>),
    /// Rows whose values in these columns begin with a key.
    Prefix(Columns, Box<[u8]>),
    /// Rows whose values in these columns are within bounds.
    Keys(Columns, Bound<Box<[u8]>>, Bound<Box<[u8]>>),
    /// Rows whose values in these columns, and id, are not below the first bytes and are below the
    /// second ones.
    Entries(Columns, Option<Box<[u8]>>, Option<Box<[u8]>>),
}

/// Positions among the stored columns of a table.
type Columns = Box<[usize]>;

const WHOLE: u8 = 0;
const ROW: u8 = 1;
const IDS: u8 = 2;
const PREFIX: u8 = 3;
const KEYS: u8 = 4;
const ENTRIES: u8 = 5;
const UNBOUNDED: u8 = 0;
const INCLUDED: u8 = 1;
const EXCLUDED: u8 = 2;
/// Longer read sets are coarsened to whole tables, so that a message is not mostly reads.
const MAX_LENGTH: usize = 64 << 10;

/// Encodes a read set.
pub(crate) fn write(reads: &ReadSet, catalog: &Catalog) -> Vec<u8> {
    let mut to = Vec::new();
    for read in reads.reads() {
        write_read(read, catalog, &mut to);
        if to.len() > MAX_LENGTH {
            let mut coarse = reads.clone();
            coarse.condense();
            to.clear();
            coarse.reads().iter().for_each(|read| write_read(read, catalog, &mut to));
            break;
        }
    }
    to
}

fn write_read(read: &Read, catalog: &Catalog, to: &mut Vec<u8>) {
    let table = read.table();
    put_number(to, catalog.positions[table] as u128);
    match read {
        Read::Table { .. } => to.push(WHOLE),
        Read::Row { id, .. } => {
            to.push(ROW);
            to.extend_from_slice(&id.bytes());
        }
        Read::Since { id, .. } => put_ids(to, *id, None),
        Read::Ids { from, until, .. } => put_ids(to, *from, *until),
        Read::Prefix { index, key, .. } => {
            to.push(PREFIX);
            put_columns(to, catalog, table, *index);
            put_bytes(to, key.bytes());
        }
        Read::Range { index, from, until, .. } => {
            to.push(KEYS);
            put_columns(to, catalog, table, *index);
            put_bound(to, from);
            put_bound(to, until);
        }
        Read::Slice { index, from, until, .. } => {
            to.push(ENTRIES);
            put_columns(to, catalog, table, *index);
            put_edge(to, from.as_ref());
            put_edge(to, until.as_ref());
        }
    }
}

fn put_ids(to: &mut Vec<u8>, from: RowId, until: Option<RowId>) {
    to.push(IDS);
    to.extend_from_slice(&from.bytes());
    to.push(u8::from(until.is_some()));
    to.extend(until.into_iter().flat_map(RowId::bytes));
}

/// Appends the stored columns of an index.
fn put_columns(to: &mut Vec<u8>, catalog: &Catalog, table: usize, index: usize) {
    let definition = &catalog[table];
    let columns = &definition.schema.indexes[index].columns;
    put_number(to, columns.len() as u128);
    for column in columns {
        put_number(to, definition.layout.stored_position(*column) as u128);
    }
}

fn put_bound(to: &mut Vec<u8>, bound: &Bound<Key>) {
    let (kind, key) = match bound {
        Bound::Unbounded => (UNBOUNDED, None),
        Bound::Included(key) => (INCLUDED, Some(key)),
        Bound::Excluded(key) => (EXCLUDED, Some(key)),
    };
    to.push(kind);
    if let Some(key) = key {
        put_bytes(to, key.bytes());
    }
}

fn put_edge(to: &mut Vec<u8>, edge: Option<&Edge>) {
    to.push(u8::from(edge.is_some()));
    if let Some(edge) = edge {
        match edge.id {
            Some(id) => put_bytes(to, &entry(&edge.key, id)),
            None => put_bytes(to, edge.key.bytes()),
        }
    }
}

/// Decodes a read set; `None` if the bytes are invalid.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<Access>> {
    let mut rest = ByteReader(bytes);
    let mut accesses = Vec::new();
    while !rest.is_empty() {
        let table = rest.count()?;
        let part = match rest.byte()? {
            WHOLE => Part::Whole,
            ROW => Part::Row(read_id(&mut rest)?),
            IDS => {
                let from = read_id(&mut rest)?;
                let until = if rest.byte()? == 0 { None } else { Some(read_id(&mut rest)?) };
                Part::Ids(from, until)
            }
            PREFIX => Part::Prefix(read_columns(&mut rest)?, rest.bytes()?.into()),
            KEYS => {
                Part::Keys(read_columns(&mut rest)?, read_bound(&mut rest)?, read_bound(&mut rest)?)
            }
            ENTRIES => {
                let columns = read_columns(&mut rest)?;
                let mut edges = [None, None];
                for edge in &mut edges {
                    if rest.byte()? != 0 {
                        *edge = Some(rest.bytes()?.into());
                    }
                }
                let [from, until] = edges;
                Part::Entries(columns, from, until)
            }
            _ => return None,
        };
        accesses.push(Access { table, part });
    }
    Some(accesses)
}

fn read_id(rest: &mut ByteReader<'_>) -> Option<RowId> {
    rest.array().map(|bytes| RowId::from_number(u128::from_be_bytes(bytes)))
}

fn read_columns(rest: &mut ByteReader<'_>) -> Option<Columns> {
    let count = rest.count()?;
    let mut columns = Vec::new();
    for _ in 0..count {
        columns.push(rest.count()?);
    }
    Some(columns.into())
}

fn read_bound(rest: &mut ByteReader<'_>) -> Option<Bound<Box<[u8]>>> {
    Some(match rest.byte()? {
        UNBOUNDED => Bound::Unbounded,
        INCLUDED => Bound::Included(rest.bytes()?.into()),
        EXCLUDED => Bound::Excluded(rest.bytes()?.into()),
        _ => return None,
    })
}

impl Access {
    /// Whether the change of a row of the same table touches the read.
    pub(crate) fn is_touched_by(&self, row: &ChangedRow, table: &StoredTable) -> bool {
        match &self.part {
            Part::Whole => true,
            Part::Row(id) => row.id == *id,
            Part::Ids(from, until) => row.id >= *from && until.is_none_or(|until| row.id < until),
            Part::Prefix(columns, prefix) => {
                has_key(row, table, columns, |key| key.bytes().starts_with(prefix))
            }
            Part::Keys(columns, from, until) => has_key(row, table, columns, |key| {
                let key = key.bytes();
                let is_above = match from {
                    Bound::Unbounded => true,
                    Bound::Included(from) => key >= &**from,
                    Bound::Excluded(from) => key > &**from,
                };
                is_above
                    && match until {
                        Bound::Unbounded => true,
                        Bound::Included(until) => key <= &**until,
                        Bound::Excluded(until) => key < &**until,
                    }
            }),
            Part::Entries(columns, from, until) => has_key(row, table, columns, |key| {
                let entry = entry(key, row.id);
                from.as_ref().is_none_or(|from| *entry >= **from)
                    && until.as_ref().is_none_or(|until| *entry < **until)
            }),
        }
    }
}

/// Whether the row had or has a key in these columns that `is_read` accepts. A row or column that
/// cannot be decoded counts as one, on all nodes alike.
fn has_key(
    row: &ChangedRow,
    table: &StoredTable,
    columns: &[usize],
    is_read: impl Fn(&Key) -> bool,
) -> bool {
    [&row.before, &row.after]
        .into_iter()
        .flatten()
        .any(|bytes| key_of(bytes, table, columns).is_none_or(|key| is_read(&key)))
}

/// The key of a row in these stored columns.
fn key_of(row: &[u8], table: &StoredTable, columns: &[usize]) -> Option<Key> {
    let mut reader = RowReader::new(row)?;
    let written = reader.columns();
    let mut values: Vec<Value<'_>> = Vec::with_capacity(table.columns.len());
    for (number, column) in table.columns.iter().enumerate() {
        values.push(if number < written {
            reader.next(&column.kind)?
        } else {
            column.default.value()
        });
    }
    let mut key = Key::default();
    for column in columns {
        key.push(*values.get(*column)?);
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decodes_any_bytes_as_reads_without_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }
}
