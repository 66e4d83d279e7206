//! Decides what a record of the journal holds of the tables: the rows that one commit wrote, or what tables consist of.
//!
//! docs/formats/rows.md tells every byte.

use crate::bytes::{Bytes, put_bytes, put_number};
use crate::id::RowId;
use crate::schema::Stored;

/// What a record says.
#[derive(Debug)]
pub(crate) enum Record<'r> {
    /// Rows that were put or removed.
    Rows(Vec<Written<'r>>),
    /// What all tables consist of from here on.
    Tables(Vec<Stored>),
}

/// One row that was put or, without a row, removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Written<'r> {
    /// Its place in the last [`Record::Tables`].
    pub(crate) table: usize,
    pub(crate) id: RowId,
    pub(crate) row: Option<&'r [u8]>,
}

const ROWS: u8 = 1;
const TABLES: u8 = 2;
const PUT: u8 = 1;
const REMOVED: u8 = 0;

/// The record of a commit.
pub(crate) fn rows<'w>(writes: impl IntoIterator<Item = Written<'w>>) -> Vec<u8> {
    let mut record = vec![ROWS];
    for write in writes {
        put_number(&mut record, write.table as u128);
        match write.row {
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

/// The record that says what tables consist of.
pub(crate) fn tables(tables: &[Stored]) -> Vec<u8> {
    let mut record = vec![TABLES];
    put_number(&mut record, tables.len() as u128);
    for table in tables {
        table.write(&mut record);
    }
    record
}

/// `None`: these bytes are no record.
pub(crate) fn read(record: &[u8]) -> Option<Record<'_>> {
    let mut rest = Bytes(record);
    match rest.byte()? {
        ROWS => {
            let mut writes = Vec::new();
            while !rest.is_empty() {
                let table = rest.count()?;
                let is_put = rest.byte()?;
                let id = RowId::from_number(u128::from_be_bytes(rest.array()?));
                let row = match is_put {
                    PUT => Some(rest.bytes()?),
                    REMOVED => None,
                    _ => return None,
                };
                writes.push(Written { table, id, row });
            }
            Some(Record::Rows(writes))
        }
        TABLES => {
            let count = rest.count()?;
            let mut tables = Vec::new();
            for _ in 0..count {
                tables.push(Stored::read(&mut rest)?);
            }
            rest.is_empty().then_some(Record::Tables(tables))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn write() -> impl Strategy<Value = (usize, u128, Option<Vec<u8>>)> {
        let row = prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
        (0_usize..300, any::<u128>(), row)
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(writes in prop::collection::vec(write(), 0..20)) {
            let written = writes.iter().map(|(table, number, row)| Written {
                table: *table,
                id: RowId::from_number(*number),
                row: row.as_deref(),
            });
            let record = rows(written.clone());
            let Some(Record::Rows(read)) = read(&record) else { panic!("no record of rows") };
            prop_assert_eq!(read, written.collect::<Vec<_>>());
        }

        #[test]
        fn whatever_bytes_are_read_as_a_record_there_is_no_panic(kind in 0_u8..4, bytes: Vec<u8>) {
            let _ = read(&[&[kind], &bytes[..]].concat());
        }
    }
}
