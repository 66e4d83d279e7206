//! Tests that docs/formats/rows.md and docs/formats/lines.md match the code.

use std::sync::Arc;

use super::*;
use crate::archive::Archive;
use crate::disk::SimulatedFolder;
use crate::journal::{FileJournal, Journal, Options};

const ROWS_DOCUMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/rows.md"));
const LINES_DOCUMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/lines.md"));

/// The document's code blocks with this language mark.
fn blocks<'d>(document: &'d str, mark: &str) -> Vec<&'d str> {
    let mark = format!("```{mark}\n");
    let blocks = document.split(&*mark).skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

/// The records in the document. Each line holds bytes, two spaces, and their meaning.
fn records() -> Vec<Vec<u8>> {
    let byte = |digits| u8::from_str_radix(digits, 16).expect("two digits are a byte");
    let bytes = |line: &'static str| {
        line.split("  ").next().unwrap_or_default().split_whitespace().map(byte)
    };
    let blocks = blocks(ROWS_DOCUMENT, "text").into_iter();
    let mut records: Vec<Vec<u8>> =
        blocks.map(|block| block.lines().flat_map(bytes).collect()).collect();
    // The document abbreviates the tables of one record to those of the first.
    let tables = records[0][1..].to_vec();
    let taken = records.iter_mut().filter(|record| record[0] == TAKEN);
    taken.for_each(|record| record.extend_from_slice(&tables));
    records
}

fn dumped(disk: &SimulatedFolder) -> String {
    let archive = Archive::open(Arc::new(disk.clone()), None, &mut |_, _| {}).unwrap();
    let mut lines = Vec::new();
    archive.dump(&[], &mut lines).unwrap();
    String::from_utf8(lines).unwrap()
}

#[test]
fn writes_the_documented_records() {
    let records = records();
    assert_eq!(records.len(), 6);
    for bytes in records {
        let written = match read(&bytes).expect("the document shows a whole record") {
            Record::Rows(writes) => rows(&writes, &[0, 1]),
            Record::Tables(described) => tables(&described),
            Record::Staged(writes) => staged(&writes, &[0, 1]),
            Record::Taken(first, described) => taken(first, &described),
        };
        assert_eq!(written, bytes);
    }
}

#[test]
fn dumps_the_documented_records_as_the_documented_lines() {
    let disk = SimulatedFolder::new(1, 1 << 28);
    let opened = FileJournal::open(Arc::new(disk.clone()), Options::default(), &mut |_| Ok(()));
    let mut journal = opened.unwrap().journal;
    for record in records() {
        journal.append(&record).unwrap();
    }
    journal.write(true).unwrap();
    drop(journal);
    assert_eq!([dumped(&disk)], *blocks(ROWS_DOCUMENT, "json"));
}

#[test]
fn loads_and_dumps_the_documented_lines() {
    for document in [ROWS_DOCUMENT, LINES_DOCUMENT] {
        let [lines] = blocks(document, "json")[..] else { panic!("there is one example") };
        let disk = SimulatedFolder::new(1, 1 << 28);
        let mut archive = Archive::open(Arc::new(disk.clone()), None, &mut |_, _| {}).unwrap();
        archive.load(&mut lines.as_bytes()).unwrap();
        archive.close().unwrap();
        assert_eq!(dumped(&disk), lines);
    }
}
