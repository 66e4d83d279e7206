//! Rows as comma-separated values (RFC 4180), written piece by piece from one snapshot.

use std::io::{self, Read};

use super::cell::{shown, text_of};
use super::limiter::Permit;
use crate::store::{Kind, RowId, RowView, Schema, Snapshot, Value};

/// The rows of one table as CSV: all columns except private ones, the oldest row first.
pub(super) struct CsvReader {
    snapshot: Snapshot,
    table: String,
    /// The id from which the next piece begins; `None` after the last row.
    next: Option<RowId>,
    piece: Vec<u8>,
    /// The bytes of the piece that were read.
    read: usize,
    _permit: Permit,
}

/// The bytes after which a piece ends. One row more may follow.
const PIECE: usize = 64 << 10;
/// The first letters by which a spreadsheet takes a text for a formula (OWASP, CSV Injection).
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

impl CsvReader {
    pub(super) fn new(snapshot: Snapshot, table: &str, permit: Permit) -> Self {
        let mut piece = Vec::new();
        if let Some(view) = snapshot.table_named(table) {
            put_head(&mut piece, view.schema());
        }
        let next = Some(RowId::default());
        Self { snapshot, table: table.to_owned(), next, piece, read: 0, _permit: permit }
    }

    /// Writes the next rows.
    fn fill(&mut self) {
        self.piece.clear();
        self.read = 0;
        let Some(from) = self.next.take() else { return };
        let Some(view) = self.snapshot.table_named(&self.table) else { return };
        for row in view.rows(Some(from), None) {
            put_row(&mut self.piece, view.schema(), &row);
            if self.piece.len() >= PIECE {
                self.next = row.id.number().checked_add(1).map(RowId::from_number);
                return;
            }
        }
    }
}

impl Read for CsvReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.len() && self.next.is_some() {
            self.fill();
        }
        let rest = &self.piece[self.read..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.read += count;
        Ok(count)
    }
}

/// Writes the names of the columns.
fn put_head(to: &mut Vec<u8>, schema: &Schema) {
    to.extend_from_slice(b"id");
    for (_, column) in shown(schema) {
        to.push(b',');
        put_text(to, &column.name);
    }
    to.extend_from_slice(b"\r\n");
}

/// Writes a row. Null is an empty cell, and an empty text a pair of quotes.
fn put_row(to: &mut Vec<u8>, schema: &Schema, row: &RowView<'_>) {
    to.extend_from_slice(row.id.to_string().as_bytes());
    for (place, column) in shown(schema) {
        to.push(b',');
        put_value(to, row.values()[place], &column.kind);
    }
    to.extend_from_slice(b"\r\n");
}

fn put_value(to: &mut Vec<u8>, value: Value<'_>, kind: &Kind) {
    let text = text_of(value, kind);
    match value {
        Value::Null => {}
        Value::Text(_) | Value::Enum(_) => put_text(to, &text),
        // The texts of the other types contain no letters that need quotes, and a negative number
        // is no formula.
        _ => to.extend_from_slice(text.as_bytes()),
    }
}

/// Writes a text, in quotes where RFC 4180 section 2 requires them or a reader could trim it. A text
/// that a spreadsheet would take for a formula begins with an apostrophe.
fn put_text(to: &mut Vec<u8>, text: &str) {
    let guard = if text.starts_with(FORMULA) { "'" } else { "" };
    let is_special = |letter: char| matches!(letter, ',' | '"' | '\r' | '\n');
    let needs_quotes = text.is_empty() || text.trim() != text || text.contains(is_special);
    if !needs_quotes {
        to.extend_from_slice(guard.as_bytes());
        to.extend_from_slice(text.as_bytes());
        return;
    }
    to.push(b'"');
    to.extend_from_slice(guard.as_bytes());
    for (place, part) in text.split('"').enumerate() {
        if place > 0 {
            to.extend_from_slice(b"\"\"");
        }
        to.extend_from_slice(part.as_bytes());
    }
    to.push(b'"');
}

#[cfg(test)]
mod unit_tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads records as RFC 4180 defines them. `None` in a field without quotes and letters.
    fn records(text: &str) -> Vec<Vec<Option<String>>> {
        let (mut records, mut letters) = (Vec::new(), text.chars().peekable());
        while letters.peek().is_some() {
            let mut record = Vec::new();
            loop {
                let mut field = String::new();
                let is_quoted = letters.next_if_eq(&'"').is_some();
                if is_quoted {
                    loop {
                        let letter = letters.next().expect("the quote ends");
                        if letter != '"' {
                            field.push(letter);
                        } else if letters.next_if_eq(&'"').is_some() {
                            field.push('"');
                        } else {
                            break;
                        }
                    }
                } else {
                    while let Some(letter) =
                        letters.next_if(|letter| !matches!(letter, ',' | '\r' | '\n' | '"'))
                    {
                        field.push(letter);
                    }
                }
                record.push(Some(field).filter(|field| is_quoted || !field.is_empty()));
                match letters.next() {
                    Some(',') => {}
                    Some('\r') => break assert_eq!(letters.next(), Some('\n')),
                    other => panic!("{other:?} after a field of {text:?}"),
                }
            }
            records.push(record);
        }
        records
    }

    proptest! {
        #[test]
        fn writes_records_that_rfc_4180_reads_back(
            rows in prop::collection::vec(
                prop::collection::vec(prop::option::of("[a,\"\r\n =+@\t'-]{0,6}|\\PC{0,6}"), 1..4), 1..4
            )
        ) {
            let mut written = Vec::new();
            for row in &rows {
                for (place, cell) in row.iter().enumerate() {
                    if place > 0 {
                        written.push(b',');
                    }
                    let value = cell.as_deref().map_or(Value::Null, Value::Text);
                    put_value(&mut written, value, &Kind::Text);
                }
                written.extend_from_slice(b"\r\n");
            }
            let read = records(str::from_utf8(&written).unwrap());
            let guarded = |cell: &Option<String>| cell.as_ref().map(|text| {
                if text.starts_with(FORMULA) { format!("'{text}") } else { text.clone() }
            });
            let expected: Vec<Vec<_>> =
                rows.iter().map(|row| row.iter().map(guarded).collect()).collect();
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn no_text_begins_as_a_formula(text in "[=+@\t\r-][a-z,\"]{0,4}") {
            let mut written = Vec::new();
            put_text(&mut written, &text);
            let written = String::from_utf8(written).unwrap();
            prop_assert!(written.trim_start_matches('"').starts_with('\''), "{}", written);
        }
    }

    #[test]
    fn numbers_are_no_formulas() {
        let mut written = Vec::new();
        put_value(&mut written, Value::Integer(-5), &Kind::Integer { min: -9, max: 9 });
        assert_eq!(written, b"-5");
    }
}
