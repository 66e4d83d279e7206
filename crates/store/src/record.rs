//! Journal records of tables: the rows that a commit wrote, and the definitions of all tables.
//!
//! docs/formats/rows.md describes each byte.

use std::sync::Arc;

use crate::bytes::{ByteReader, put_bytes, put_number};
use crate::id::RowId;
use crate::schema::StoredTable;
use crate::state::Write;

/// A decoded record.
#[derive(Debug)]
pub(crate) enum Record {
    /// Rows that a commit wrote or removed. A table is identified by its position in the last
    /// [`Record::Tables`].
    Rows(Vec<Write>),
    /// The definitions of all tables from here on.
    Tables(Vec<StoredTable>),
    /// Rows that take effect only by a later [`Record::Taken`].
    Staged(Vec<Write>),
    /// Makes all staged records from that sequence on effective, with these table definitions.
    Taken(u64, Vec<StoredTable>),
}

const ROWS: u8 = 1;
const TABLES: u8 = 2;
const STAGED: u8 = 3;
const TAKEN: u8 = 4;
const PUT: u8 = 1;
const REMOVED: u8 = 0;

/// Encodes the record of a commit. `positions` maps the program's tables to the stored ones.
pub(crate) fn rows(writes: &[Write], positions: &[usize]) -> Vec<u8> {
    put_writes(ROWS, writes, positions)
}

/// Encodes rows that take effect by a later [`taken`] record.
pub(crate) fn staged(writes: &[Write], positions: &[usize]) -> Vec<u8> {
    put_writes(STAGED, writes, positions)
}

fn put_writes(kind: u8, writes: &[Write], positions: &[usize]) -> Vec<u8> {
    // The bytes of a write before its row are fewer than 32.
    let room = |write: &Write| 32 + write.row.as_ref().map_or(0, |row| row.len());
    let mut record = Vec::with_capacity(1 + writes.iter().map(room).sum::<usize>());
    record.push(kind);
    for write in writes {
        put_number(&mut record, positions[write.table] as u128);
        match &write.row {
            Some(row) => {
                record.push(PUT);
                record.extend_from_slice(&write.id.number().to_be_bytes());
                put_bytes(&mut record, row);
            }
            None => {
                record.push(REMOVED);
                record.extend_from_slice(&write.id.number().to_be_bytes());
            }
        }
    }
    record
}

/// Encodes the record of table definitions.
pub(crate) fn tables(tables: &[StoredTable]) -> Vec<u8> {
    put_tables(vec![TABLES], tables)
}

/// Encodes the record that makes everything staged from the record `first` on effective.
pub(crate) fn taken(first: u64, tables: &[StoredTable]) -> Vec<u8> {
    let mut record = vec![TAKEN];
    put_number(&mut record, u128::from(first));
    put_tables(record, tables)
}

fn put_tables(mut record: Vec<u8>, tables: &[StoredTable]) -> Vec<u8> {
    put_number(&mut record, tables.len() as u128);
    for table in tables {
        table.write(&mut record);
    }
    record
}

/// Decodes a record; `None` if the bytes are invalid.
pub(crate) fn read(record: &[u8]) -> Option<Record> {
    let mut rest = ByteReader(record);
    match rest.byte()? {
        ROWS => read_writes(rest).map(Record::Rows),
        TABLES => read_tables(rest).map(Record::Tables),
        STAGED => read_writes(rest).map(Record::Staged),
        TAKEN => {
            let first = u64::try_from(rest.number()?).ok()?;
            read_tables(rest).map(|tables| Record::Taken(first, tables))
        }
        _ => None,
    }
}

fn read_writes(mut rest: ByteReader<'_>) -> Option<Vec<Write>> {
    let mut writes = Vec::new();
    while !rest.is_empty() {
        let table = rest.count()?;
        let is_put = rest.byte()?;
        let id = RowId::from_number(u128::from_be_bytes(rest.array()?));
        let row = match is_put {
            PUT => Some(Arc::from(rest.bytes()?)),
            REMOVED => None,
            _ => return None,
        };
        writes.push(Write { table, id, row });
    }
    Some(writes)
}

fn read_tables(mut rest: ByteReader<'_>) -> Option<Vec<StoredTable>> {
    let count = rest.count()?;
    let mut tables = Vec::new();
    for _ in 0..count {
        tables.push(StoredTable::read(&mut rest)?);
    }
    rest.is_empty().then_some(tables)
}

#[cfg(test)]
mod format;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::row::Row;

    fn write() -> impl Strategy<Value = Write> {
        let row = prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
        (0_usize..300, any::<u128>(), row).prop_map(|(table, number, row)| Write {
            table,
            id: RowId::from_number(number),
            row: row.map(Row::from),
        })
    }

    proptest! {
        #[test]
        fn round_trips_records_of_rows(writes in prop::collection::vec(write(), 0..20)) {
            let positions: Vec<usize> = (0..300).map(|position| position * 2).collect();
            let Some(Record::Rows(read)) = read(&rows(&writes, &positions)) else {
                panic!("no record of rows")
            };
            prop_assert_eq!(read.len(), writes.len());
            for (read, written) in read.iter().zip(&writes) {
                prop_assert_eq!((read.table, read.id), (written.table * 2, written.id));
                prop_assert_eq!(&read.row, &written.row);
            }
        }

        #[test]
        fn decodes_any_bytes_as_a_record_without_panic(kind in 0_u8..6, bytes: Vec<u8>) {
            let _ = read(&[&[kind], &bytes[..]].concat());
        }
    }
}
