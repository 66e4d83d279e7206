//! Tests of dump, load and compaction.

use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::disk::{Fault, SimulatedFolder};
use crate::schema::{Constant, StoredColumn};
use crate::state::Write;
use crate::time::Time;
use crate::value::{Field, Kind};

const LINES: &str = r#"{"bine":"tables","version":1}
{"table":"user","columns":[{"name":"name","kind":"text"},{"name":"age","kind":"whole","least":0,"most":255,"optional":true}]}
{"table":"message","columns":[{"name":"author","kind":"reference","to":"user"},{"name":"mood","kind":"word","words":["grave","gay"],"default":"gay"}]}
{"table":"user","id":"00000000-0000-7000-8000-000000000001","row":{"name":"anna","age":null}}
{"table":"user","id":"00000000-0000-7000-8000-000000000002","row":{"name":"ben","age":7}}
{"table":"message","id":"00000000-0000-7000-8000-000000000003","row":{"author":"00000000-0000-7000-8000-000000000002","mood":"gay"}}
{"end":true}
"#;

fn disk() -> SimulatedFolder {
    SimulatedFolder::new(1, 1 << 30)
}

fn open(disk: &SimulatedFolder) -> Archive {
    try_open(disk).unwrap()
}

/// Opens with short segments, which are quick to create.
fn try_open(disk: &SimulatedFolder) -> Result<Archive, String> {
    let options = journal::Options { segment: 4096 };
    Archive::open_with(Arc::new(disk.clone()), options, None, &mut |_, _| {})
}

fn dumped(archive: &Archive) -> String {
    let mut lines = Vec::new();
    archive.dump(&[], &mut lines).unwrap();
    String::from_utf8(lines).unwrap()
}

fn load(disk: &SimulatedFolder, lines: &str) -> Result<LoadSummary, String> {
    let mut archive = open(disk);
    let loaded = archive.load(&mut lines.as_bytes()).map_err(|error| error.to_string())?;
    archive.close().unwrap();
    Ok(loaded)
}

#[test]
fn dump_survives_a_load() {
    let disk = disk();
    let loaded = load(&disk, LINES).unwrap();
    assert_eq!(loaded, LoadSummary { tables: 2, rows: 3, removed: 0, dangling: 0 });
    let archive = open(&disk);
    assert_eq!((archive.count(), dumped(&archive)), (3, LINES.to_owned()));
    let mut users = Vec::new();
    assert_eq!(archive.dump(&["user".to_owned()], &mut users).unwrap(), 2);
    let users = String::from_utf8(users).unwrap();
    assert!(users.contains("anna") && !users.contains("message"), "{users}");
    let error = archive.dump(&["usr".to_owned()], &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "there is no table `usr`; there are `user`, `message`");
}

#[test]
fn loads_handwritten_lines() {
    let lines = r#"
        { "version": 1, "bine": "tables" }

        {"columns": [{"kind": "text", "name": "a"}, {"name": "b", "kind": "whole", "most": 9, "least": "-9", "default": 4}], "table": "t"}
        {"id": "00000000-0000-7000-8000-00000000000A", "row": {"b": "3", "a": "\u0061\ud83d\ude00"}, "table": "t"}
        {"id": "00000000-0000-7000-8000-000000000001", "row": {"a": ""}, "table": "t"}
        {"end": true}"#;
    let disk = disk();
    load(&disk, lines).unwrap();
    let dump = dumped(&open(&disk));
    let rows: Vec<&str> =
        dump.lines().skip(2).map(|line| line.rsplit('{').next().unwrap()).collect();
    assert_eq!(rows, [r#""a":"","b":4}}"#, "\"a\":\"a\u{1f600}\",\"b\":3}}", r#""end":true}"#]);
}

#[test]
fn load_merges_with_existing_rows() {
    let disk = disk();
    load(&disk, LINES).unwrap();
    let more = r#"{"bine":"tables","version":1}
{"table":"note","columns":[]}
{"table":"user","columns":[{"name":"name","kind":"text"},{"name":"age","kind":"whole","least":0,"most":7}]}
{"table":"user","id":"00000000-0000-7000-8000-000000000001","row":{"name":"anne","age":200}}
{"table":"user","id":"00000000-0000-7000-8000-000000000002","row":null}
{"table":"user","id":"00000000-0000-7000-8000-000000000004","row":{"name":"carl"}}
{"end":true}
"#;
    let loaded = load(&disk, more).unwrap();
    assert_eq!(loaded, LoadSummary { tables: 2, rows: 2, removed: 1, dangling: 1 });
    let dump = dumped(&open(&disk));
    assert_eq!(dump.matches("\"table\":\"note\"").count(), 1);
    assert!(dump.contains("\"most\":255,\"optional\":true"), "{dump}");
    let names: Vec<&str> = dump.split("\"name\":\"").skip(1).map(|rest| &rest[..4]).collect();
    assert_eq!(names, ["name", "age\"", "auth", "mood", "anne", "carl"]);
}

#[test]
fn load_redefines_a_table_without_rows() {
    let disk = disk();
    load(&disk, "{\"bine\":\"tables\",\"version\":1}\n{\"table\":\"user\",\"columns\":[{\"name\":\"x\",\"kind\":\"bool\"}]}\n{\"end\":true}")
        .unwrap();
    load(&disk, LINES).unwrap();
    assert_eq!(dumped(&open(&disk)), LINES);
}

/// A replacement in the lines, and the beginning of the error that it causes.
const MISTAKES: [(&str, &str, &str); 32] = [
    ("{\"bine\":\"tables\",\"version\":1}\n", "", "line 1, column 1: the first line must be"),
    ("\"bine\":\"tables\"", "\"bine\":\"files\"", "line 1, column 1: the first line must be"),
    (
        "{\"bine\":\"tables\",\"version\":1}\n",
        "{\"bine\":\"tables\",\"version\":1}\n{\"bine\":\"tables\",\"version\":1}\n",
        "line 2, column 1: the first line is repeated",
    ),
    ("\"version\":1", "\"version\":2", "line 1, column 28: version 2 is not known"),
    ("{\"end\":true}\n", "", "line 7, column 1: it ends early: the last line must be"),
    ("{\"end\":true}\n", "{\"end\":true}\n{\"end\":true}", "line 8, column 1: no line may follow"),
    ("{\"end\":true}\n", "{\"end\":1}\n", "line 7, column 8: must be true or false"),
    (
        "{\"table\":\"message\",\"columns\"",
        "{\"table\":\"user\",\"columns\"",
        "line 3, column 10: the table `user` is described twice",
    ),
    ("\"kind\":\"text\"", "\"kind\":\"txt\"", "line 2, column 50: the kind of a column is `bool`"),
    (
        "\"kind\":\"text\"",
        "\"kind\":\"text\",\"to\":\"a\"",
        "line 2, column 28: `name` is `text`, which has no `to`",
    ),
    ("\"kind\":\"text\"", "\"knd\":\"text\"", "line 2, column 43: a column has `name`, `kind`"),
    (",\"least\":0", "", "line 2, column 58: `age` has no `least`"),
    ("\"name\":\"age\"", "\"name\":\"name\"", "line 2, column 58: `name` is already a column"),
    (
        "\"optional\":true",
        "\"optional\":true,\"optional\":true",
        "line 2, column 124: this key is repeated",
    ),
    (
        "[\"grave\",\"gay\"]",
        "[\"gay\",\"gay\"]",
        "line 3, column 124: `gay` is already one of the words",
    ),
    (
        "\"default\":\"gay\"",
        "\"default\":\"gray\"",
        "line 3, column 143: `default` must be one of grave, gay",
    ),
    (
        "{\"table\":\"user\",\"id\"",
        "{\"table\":\"usr\",\"id\"",
        "line 4, column 10: the columns of `usr` must be in",
    ),
    ("000000000001", "00000000000", "line 4, column 22: an id is 32 hexadecimal digits"),
    (
        "00000000-0000-7000-8000-000000000001",
        "00000000-0000-0000-0000-000000000000",
        "line 4, column 22: an id is not zero",
    ),
    (
        "000000000002\",\"row",
        "000000000001\",\"row",
        "line 5, column 22: the row 00000000-0000-7000-8000-000000000001 of `user` is in an earlier line",
    ),
    ("\"anna\"", "7", "line 4, column 75: `name` must be text"),
    ("\"anna\"", "null", "line 4, column 75: `name` must be text"),
    ("\"anna\"", "\"\u{e9}\\x\"", "line 4, column 77: no such escape"),
    ("\"name\":\"anna\",", "", "line 4, column 67: `name` is missing"),
    ("\"age\":null", "\"agee\":null", "line 4, column 82: there is no column `agee`"),
    ("\"age\":7", "\"age\":256", "line 5, column 87: `age` must be a whole number from 0 to 255"),
    ("\"age\":7", "\"age\":7,\"age\":7", "line 5, column 89: this key is repeated"),
    ("\"age\":7}", "\"age\":7", "line 5, column 89: expected `,` or `}`"),
    ("{\"name\":\"ben\",\"age\":7}", "null", "line 5, column 67: the row to remove does not exist"),
    ("{\"name\":\"ben\",\"age\":7}", "[]", "line 5, column 67: expected an object"),
    (
        "{\"name\":\"ben\",\"age\":7}}",
        "{\"name\":\"ben\",\"age\":7},\"end\":true}",
        "line 5, column 1: a line has `table` and `columns`",
    ),
    (
        "\"mood\":\"gay\"",
        "\"mood\":\"gray\"",
        "line 6, column 126: `mood` must be one of grave, gay",
    ),
];

#[test]
fn rejects_invalid_lines_with_their_position() {
    let disk = disk();
    for (is, becomes, expected) in MISTAKES {
        let lines = LINES.replacen(is, becomes, 1);
        let error = load(&disk, &lines).unwrap_err();
        assert!(error.starts_with(expected), "{becomes}: {error}");
    }
    let mut archive = open(&disk);
    let error = archive.load(&mut &b"{\"a\xff\"}"[..]).unwrap_err().to_string();
    assert_eq!(error, "line 1, column 4: this is not UTF-8");
    let longest = [&vec![b' '; MAX_LINE_LENGTH - 1][..], b"\n{}"].concat();
    let error = archive.load(&mut &longest[..]).unwrap_err().to_string();
    assert!(error.starts_with("line 2, column 1: the first line must be"), "{error}");
    let long = [LINES.as_bytes(), &vec![b' '; MAX_LINE_LENGTH + 1]].concat();
    let error = archive.load(&mut &long[..]).unwrap_err().to_string();
    assert_eq!(error, "line 8, column 1: a line has at most 64 MB");
    assert_eq!((archive.count(), dumped(&archive)), (0, [HEADER_LINE, END_LINE].concat()));
}

#[test]
fn rejects_tables_that_do_not_fit_existing_rows() {
    let disk = disk();
    load(&disk, LINES).unwrap();
    for (is, becomes, expected) in [
        (
            "\"kind\":\"text\"",
            "\"kind\":\"bytes\"",
            "the column `user.name` is text here, and not bytes",
        ),
        (
            "\"most\":255",
            "\"most\":256",
            "the column `user.age` is a whole number from 0 to 255 here",
        ),
        (
            "\"kind\":\"text\"",
            "\"kind\":\"text\",\"optional\":true",
            "the column `user.name` is not optional here",
        ),
        (
            "\"name\":\"name\"",
            "\"name\":\"nam\"",
            "`user` has a column `name` here, without a default",
        ),
        (
            "{\"name\":\"name\"",
            "{\"name\":\"x\",\"kind\":\"bool\"},{\"name\":\"name\"",
            "`user` has no column `x` here",
        ),
    ] {
        let error = load(&disk, &LINES.replacen(is, becomes, 1)).unwrap_err();
        assert!(error.starts_with(&format!("line 2, column 27: {expected}")), "{error}");
    }
    assert_eq!(dumped(&open(&disk)), LINES);
}

/// Lines that need several records and several writes.
fn many() -> String {
    let name = "x".repeat(100_000);
    let line = |number: usize| {
        let id = format!("00000000-0000-7000-8000-{number:012}");
        format!(
            "{{\"table\":\"user\",\"id\":\"{id}\",\"row\":{{\"name\":\"{name}\",\"age\":1}}}}\n"
        )
    };
    let more: String = (10..22).map(line).collect();
    LINES.replace(END_LINE, &more) + END_LINE
}

#[test]
fn interrupted_load_is_atomic() {
    let lines = many();
    let whole = disk();
    load(&whole, LINES).unwrap();
    let before = whole.operations();
    load(&whole, &lines).unwrap();
    let (mut is_whole, mut is_none) = (false, false);
    for operation in before..=whole.operations() {
        let disk = disk();
        load(&disk, LINES).unwrap();
        disk.fail(operation, Fault::Death);
        if let Ok(mut archive) = try_open(&disk) {
            let _ = archive.load(&mut lines.as_bytes());
        }
        disk.lose_power();
        disk.revive();
        let count = open(&disk).count();
        (is_whole, is_none) = (is_whole || count == 15, is_none || count == 3);
        assert!(count == 15 || count == 3, "operation {operation}: {count}");
        // Staged rows without effect stay without effect, whatever is written later.
        let again = LINES.replace("anna", "anne");
        load(&disk, &again).unwrap();
        assert_eq!(open(&disk).count(), count);
    }
    assert!(is_whole && is_none);
}

#[test]
fn compacts_only_if_the_folder_shrinks() {
    let disk = disk();
    for _ in 0..50 {
        load(&disk, LINES).unwrap();
    }
    let compacted = open(&disk).compact().unwrap();
    assert!(compacted.after * 4 < compacted.before, "{compacted:?}");
    let names = disk.list().unwrap();
    assert_eq!(names.iter().filter(|name| name.starts_with("snapshot-")).count(), 2);
    assert_eq!(names.iter().filter(|name| name.starts_with("journal-")).count(), 1);
    let again = open(&disk).compact().unwrap();
    assert_eq!((again.before, again.after), (compacted.after, compacted.after));
    assert_eq!(disk.list().unwrap(), names);
    assert_eq!(dumped(&open(&disk)), LINES);
    // Two independent ways lead to the current state.
    let newest = names.iter().filter(|name| name.starts_with("snapshot-")).max().unwrap();
    let mut bytes = disk.content(newest).unwrap();
    bytes[50] ^= 1;
    disk.put(newest, &bytes);
    let archive = open(&disk);
    assert_eq!((archive.warnings().len(), dumped(&archive)), (1, LINES.to_owned()));
}

/// Two snapshots of a folder with little to remove need more space than the folder.
#[test]
fn keeps_a_folder_that_two_snapshots_would_enlarge() {
    let disk = disk();
    load(&disk, &rows_of(&[10_000; 10])).unwrap();
    load(&disk, &rows_of(&[10_000; 3])).unwrap();
    let names = disk.list().unwrap();
    let compacted = open(&disk).compact().unwrap();
    assert!((130_000..140_000).contains(&compacted.before), "{compacted:?}");
    assert_eq!(compacted.after, compacted.before);
    assert_eq!(disk.list().unwrap(), names);
    load(&disk, &rows_of(&[10_000; 10])).unwrap();
    let compacted = open(&disk).compact().unwrap();
    assert!(compacted.after < compacted.before, "{compacted:?}");
    // A gain of less than an eighth.
    let disk = self::disk();
    for rows in [6, 6, 1] {
        load(&disk, &rows_of(&vec![10_000; rows])).unwrap();
    }
    let compacted = open(&disk).compact().unwrap();
    assert!((130_000..134_000).contains(&compacted.before), "{compacted:?}");
    assert_eq!(compacted.after, compacted.before);
}

/// An extension with some blocks of a hundred bytes.
struct Blocks(usize);

impl Extension for Blocks {
    fn load_block(&self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn replay(&self, _: u64, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn finish_load(&self) -> Result<(), String> {
        Ok(())
    }

    fn snapshot(&self) -> SnapshotBlocks {
        Box::new((0..self.0).map(|number| vec![number as u8; 100]))
    }
}

/// Compaction compares this size with that of the folder. An estimate far below makes it rewrite a
/// folder that it cannot reduce, one far above makes it keep a folder that it can.
#[test]
fn estimates_size_of_snapshot() {
    for (lines, blocks) in [(LINES, 0), (LINES, 20), (&many(), 0), (&many(), 20)] {
        let disk = disk();
        load(&disk, lines).unwrap();
        let options = journal::Options { segment: 4096 };
        let extension: Arc<dyn Extension> = Arc::new(Blocks(blocks));
        let folder = Arc::new(disk.clone());
        let mut archive =
            Archive::open_with(folder, options, Some(extension), &mut |_, _| {}).unwrap();
        let estimated = archive.snapshot_bytes();
        archive.write_snapshot(archive.last).unwrap();
        let names = disk.list().unwrap();
        let name = names.iter().find(|name| name.starts_with("snapshot-")).unwrap();
        let written = disk.content(name).unwrap().len() as u64;
        assert!(estimated.abs_diff(written) <= written / 10, "{estimated}, but {written} written");
    }
}

/// Symptom: a folder with a channel's message could not be dumped. Cause: only the program knows
/// its channels.
#[test]
fn archive_keeps_records_of_an_unknown_extension() {
    let disk = disk();
    load(&disk, LINES).unwrap();
    let mut journal = open(&disk).journal;
    let kept = crate::extension::with_marker(b"a message");
    journal.append(&kept).unwrap();
    journal.write(true).unwrap();
    drop(journal);
    load(&disk, &LINES.replace("anna", "anne")).unwrap();
    let archive = open(&disk);
    assert_eq!(archive.warnings(), [Warning::Extension]);
    assert_eq!(dumped(&archive), LINES.replace("anna", "anne"));
    let refused = archive.compact().unwrap_err().to_string();
    assert!(refused.starts_with("only the program that wrote the channels"), "{refused}");
    let mut found = Vec::new();
    let mut receive = |loaded: journal::RecoveryEvent<'_>| {
        if let journal::RecoveryEvent::Record(_, record) = loaded {
            found.push(record.to_vec());
        }
        Ok(())
    };
    let options = journal::Options::default();
    FileJournal::open(Arc::new(disk.clone()), options, &mut receive).unwrap();
    assert!(found.contains(&kept));
}

/// Records the data that an archive gives to an extension, and fails as its content demands.
#[derive(Default)]
struct Recorded {
    calls: Mutex<Vec<String>>,
    is_incomplete: bool,
}

impl Recorded {
    fn note(&self, what: &str, bytes: &[u8]) -> Result<(), String> {
        let text = format!("{what} {}", String::from_utf8_lossy(bytes));
        self.calls.lock().unwrap().push(text);
        if bytes == b"invalid" { Err("not mine".to_owned()) } else { Ok(()) }
    }
}

impl Extension for Recorded {
    fn load_block(&self, block: &[u8]) -> Result<(), String> {
        self.note("block", block)
    }

    fn replay(&self, sequence: u64, record: &[u8]) -> Result<(), String> {
        self.note(&format!("record {sequence}"), record)
    }

    fn finish_load(&self) -> Result<(), String> {
        if self.is_incomplete { Err("a block is missing".to_owned()) } else { Ok(()) }
    }

    fn snapshot(&self) -> SnapshotBlocks {
        Box::new([b"kept".to_vec()].into_iter())
    }
}

#[test]
fn gives_blocks_and_records_to_their_extension() {
    let open_with = |disk: &SimulatedFolder, extension: &Arc<Recorded>| {
        let extension: Arc<dyn Extension> = Arc::<Recorded>::clone(extension);
        let options = journal::Options { segment: 4096 };
        Archive::open_with(Arc::new(disk.clone()), options, Some(extension), &mut |_, _| {})
    };
    let append = |disk: &SimulatedFolder, record: &[u8]| {
        let mut journal = open(disk).journal;
        journal.append(&crate::extension::with_marker(record)).unwrap();
        journal.write(true).unwrap();
    };
    let disk = disk();
    load(&disk, LINES).unwrap();
    append(&disk, b"one");
    let recorded = Arc::new(Recorded::default());
    let mut archive = open_with(&disk, &recorded).unwrap();
    let last = archive.last;
    assert_eq!(archive.warnings(), []);
    assert_eq!(*recorded.calls.lock().unwrap(), [format!("record {last} one")]);
    archive.write_snapshot(last).unwrap();
    drop(archive);
    append(&disk, b"two");
    let recorded = Arc::new(Recorded::default());
    drop(open_with(&disk, &recorded).unwrap());
    let calls = ["block kept".to_owned(), format!("record {} two", last + 1)];
    assert_eq!(*recorded.calls.lock().unwrap(), calls);
    // A folder with blocks only needs the extension too.
    assert_eq!(open(&disk).warnings(), [Warning::Extension]);
    let incomplete = Arc::new(Recorded { is_incomplete: true, ..Recorded::default() });
    let refused = open_with(&disk, &incomplete).map(|_| ()).unwrap_err();
    assert_eq!(refused, "a block is missing");
    append(&disk, b"invalid");
    let refused = open_with(&disk, &Arc::default()).map(|_| ()).unwrap_err();
    assert!(refused.contains("not mine"), "{refused}");
}

#[test]
fn compacts_an_empty_folder_to_nothing() {
    let disk = disk();
    assert_eq!(open(&disk).compact().unwrap(), CompactSummary { before: 0, after: 0 });
}

/// Lines of a table with rows of these lengths.
fn rows_of(lengths: &[usize]) -> String {
    let line = |(number, length): (usize, &usize)| {
        let (id, text) =
            (format!("00000000-0000-7000-8000-{:012}", number + 1), "x".repeat(*length));
        format!("{{\"table\":\"t\",\"id\":\"{id}\",\"row\":{{\"text\":\"{text}\"}}}}\n")
    };
    let table = "{\"table\":\"t\",\"columns\":[{\"name\":\"text\",\"kind\":\"text\"}]}\n";
    let rows: String = lengths.iter().enumerate().map(line).collect();
    [HEADER_LINE, table, &rows, END_LINE].concat()
}

/// The bytes of a row besides its text of about this length.
fn own_length(length: usize) -> usize {
    let mut row = crate::row::RowWriter::new(1);
    row.put(Value::Text(&"x".repeat(length)));
    row.finish().len() - length
}

/// The number of records and of groups that a load writes.
fn written(lengths: &[usize]) -> (u64, usize) {
    let disk = disk();
    load(&disk, &rows_of(lengths)).unwrap();
    let archive = open(&disk);
    assert_eq!(archive.count(), lengths.len());
    // Each group that is longer than a segment has its own segment.
    let names = disk.list().unwrap();
    (archive.last, names.iter().filter(|name| name.starts_with("journal-")).count())
}

#[test]
fn writes_a_load_in_records_and_groups_of_limited_length() {
    const BLOCK: usize = 256 << 10;
    // A record counts 24 bytes more for a row.
    let half = BLOCK / 2 - own_length(BLOCK / 2) - 24;
    // One record makes the rows effective.
    assert_eq!(written(&[]), (1, 1));
    assert_eq!(written(&[10, 10]), (2, 1));
    assert_eq!(written(&[half; 2]), (2, 1));
    assert_eq!(written(&[half; 4]), (3, 1));
    assert_eq!(written(&[half - 1; 3]), (2, 1));
    assert_eq!(written(&[half - 1; 4]), (3, 1));
    assert_eq!(written(&[half; 6]), (4, 1));
    // A group ends with the record that makes it longer than a megabyte.
    assert_eq!(written(&[300_000; 3]), (4, 1));
    assert_eq!(written(&[300_000; 4]), (5, 2));
    assert_eq!(written(&[300_000; 7]), (8, 2));
    assert_eq!(written(&[300_000; 8]), (9, 3));
}

#[test]
fn accepts_rows_and_lines_up_to_their_limits() {
    let disk = disk();
    let most = crate::checkpoint::MAX_ROW_LENGTH - own_length(8_000_000);
    assert_eq!(load(&disk, &rows_of(&[most])).unwrap().rows, 1);
    let error = load(&disk, &rows_of(&[most + 1])).unwrap_err();
    assert_eq!(error, "line 3, column 64: a row has at most 8 MB");
    let error = load(&disk, &LINES.replace(END_LINE, "{\"end\":false}\n")).unwrap_err();
    assert!(error.starts_with("line 7, column 1: a line has `table` and `columns`"), "{error}");
}

#[test]
fn accepts_as_many_words_as_a_row_can_number() {
    let load_words = |count: usize| {
        let words: Vec<String> = (0..count).map(|number| format!("\"{number}\"")).collect();
        let words = format!("[{}]", words.join(","));
        load(&disk(), &LINES.replace("[\"grave\",\"gay\"],\"default\":\"gay\"", &words))
    };
    let error = load_words(1 << 16).unwrap_err();
    // The row in the lines has another word.
    assert!(error.starts_with("line 6, column 126: `mood` must be one of"), "{error:.100}");
    let definitions = "the definitions of all tables exceed 8 MB";
    let long = format!("[\"{}\"]", "x".repeat(crate::checkpoint::MAX_ROW_LENGTH));
    let tables = LINES.split_inclusive('\n').take(3).collect::<String>() + END_LINE;
    let with = |words: &str| tables.replace("[\"grave\",\"gay\"],\"default\":\"gay\"", words);
    let error = load(&disk(), &with(&long)).unwrap_err();
    assert_eq!(error, format!("line 4, column 1: {definitions}"));
    assert_eq!(load(&disk(), &with("[\"x\"]")).unwrap().tables, 2);
    let error = load_words((1 << 16) + 1).unwrap_err();
    assert!(error.ends_with("a column has at most 65536 words"), "{error}");
}

#[test]
fn counts_rows_that_refer_to_missing_ones() {
    let dangling = |lines: &str| {
        let disk = disk();
        load(&disk, lines).unwrap().dangling
    };
    assert_eq!(dangling(LINES), 0);
    let author = "\"author\":\"00000000-0000-7000-8000-000000000002\"";
    let missing = "\"author\":\"00000000-0000-7000-8000-000000000009\"";
    assert_eq!(dangling(&LINES.replace(author, missing)), 1);
    // A table that does not exist has no rows.
    assert_eq!(dangling(&LINES.replace("\"to\":\"user\"", "\"to\":\"usr\"")), 1);
    // A row counts once, and no reference dangles if the column is null.
    let optional = LINES
        .replace("\"to\":\"user\"}", "\"to\":\"user\",\"optional\":true}")
        .replace(author, "\"author\":null");
    assert_eq!(dangling(&optional), 0);
    let two = LINES
        .replace(
            "\"to\":\"user\"}",
            "\"to\":\"user\"},{\"name\":\"to\",\"kind\":\"reference\",\"to\":\"message\"}",
        )
        .replace(author, &format!("{missing},{}", missing.replace("author", "to")));
    assert_eq!(dangling(&two), 1);
}

#[test]
fn existing_columns_may_lack_in_the_lines_if_they_have_a_value() {
    let table =
        |columns: &str| format!("{HEADER_LINE}{{\"table\":\"t\",\"columns\":[{columns}]}}\n");
    let text = "{\"name\":\"a\",\"kind\":\"text\"}";
    let id = "00000000-0000-7000-8000-000000000001";
    let row = |id: &str| {
        format!("{{\"table\":\"t\",\"id\":\"{id}\",\"row\":{{\"a\":\"x\"}}}}\n{END_LINE}")
    };
    for (more, is_accepted) in [
        ("{\"name\":\"b\",\"kind\":\"bool\",\"optional\":true}", true),
        ("{\"name\":\"b\",\"kind\":\"bool\",\"default\":true}", true),
        ("{\"name\":\"b\",\"kind\":\"bool\"}", false),
    ] {
        let disk = disk();
        let own = row(id).replace("\"a\":\"x\"", "\"a\":\"x\",\"b\":true");
        load(&disk, &(table(&format!("{text},{more}")) + &own)).unwrap();
        let other = table(text) + &row("00000000-0000-7000-8000-000000000002");
        match load(&disk, &other) {
            Ok(loaded) => assert!(is_accepted && loaded.rows == 1, "{more}"),
            Err(error) => {
                assert!(!is_accepted, "{error}");
                let expected = "line 2, column 24: `t` has a column `b` here, without a default";
                assert_eq!(error, expected);
            }
        }
    }
}

#[test]
fn dump_explains_why_it_failed() {
    let none = DumpError::NoSuchTable { name: "t".to_owned(), known: Vec::new() };
    assert_eq!(none.to_string(), "there is no table `t`; the folder has no tables");
    let row = DumpError::Unreadable { table: "t".to_owned(), id: Some(RowId::from_number(1)) };
    let id = "00000000-0000-0000-0000-000000000001";
    assert_eq!(row.to_string(), format!("the row {id} of `t` cannot be decoded"));
    let definition = DumpError::Unreadable { table: "t".to_owned(), id: None };
    assert_eq!(definition.to_string(), "the definition of `t` cannot be decoded");
    let write = DumpError::Write(io::ErrorKind::BrokenPipe.into());
    assert_eq!(write.to_string(), "cannot write: broken pipe");
    let has_source = |error: &DumpError| std::error::Error::source(error).is_some();
    assert!(has_source(&write) && !has_source(&none) && !has_source(&row));
    let read = LoadError::Read(io::ErrorKind::BrokenPipe.into());
    assert_eq!(read.to_string(), "cannot read: broken pipe");
    let journal = LoadError::Journal(journal::Error::Refused("closed".to_owned()));
    assert_eq!(journal.to_string(), "closed");
    let line = LoadError::Line { line: 1, column: 2, what: "wrong".to_owned() };
    let has_source = |error: &LoadError| std::error::Error::source(error).is_some();
    assert!(has_source(&read) && has_source(&journal) && !has_source(&line));
}

/// A writer that counts its calls.
#[derive(Default)]
struct Calls {
    bytes: Vec<u8>,
    writes: usize,
    flushes: usize,
}

impl io::Write for Calls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        self.writes += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushes += 1;
        Ok(())
    }
}

#[test]
fn dumps_in_pieces_and_flushes_once() {
    let disk = disk();
    load(&disk, &rows_of(&[40_000; 7])).unwrap();
    let mut to = Calls::default();
    assert_eq!(open(&disk).dump(&[], &mut to).unwrap(), 7);
    // Two rows each are longer than a piece; the last one is written with the end.
    assert_eq!((to.writes, to.flushes), (4, 1));
    assert_eq!(String::from_utf8(to.bytes).unwrap(), dumped(&open(&disk)));
}

/// A column type.
fn kind() -> impl Strategy<Value = Kind> {
    let words = prop::collection::btree_set("[a-z\"\u{e9}]{0,4}", 1..5);
    prop_oneof![
        Just(Kind::Bool),
        Just(u8::kind()),
        Just(i64::kind()),
        Just(u64::kind()),
        Just(Kind::Float),
        Just(Kind::Text),
        Just(Kind::Bytes),
        Just(Kind::Time),
        words.prop_map(|words| Kind::Enum(
            words.into_iter().map(Into::into).collect::<Vec<_>>().into()
        )),
        any::<String>().prop_map(|name| Kind::Reference(name.into())),
    ]
}

#[derive(Clone, Debug)]
enum OwnedValue {
    Plain(Value<'static>),
    Text(String),
    Bytes(Vec<u8>),
}

fn value_of(kind: &Kind) -> BoxedStrategy<OwnedValue> {
    let plain = OwnedValue::Plain;
    match kind {
        Kind::Bool => any::<bool>().prop_map(move |value| plain(Value::Bool(value))).boxed(),
        Kind::Integer { min, max } => {
            (*min..=*max).prop_map(move |number| plain(Value::Integer(number))).boxed()
        }
        Kind::Float => {
            any::<u64>().prop_map(move |bits| plain(Value::Float(f64::from_bits(bits)))).boxed()
        }
        Kind::Text => any::<String>().prop_map(OwnedValue::Text).boxed(),
        Kind::Bytes => {
            prop::collection::vec(any::<u8>(), 0..20).prop_map(OwnedValue::Bytes).boxed()
        }
        Kind::Time => any::<i64>().prop_map(move |moment| plain(Value::Time(Time(moment)))).boxed(),
        Kind::Enum(words) => {
            (0..words.len() as u16).prop_map(move |position| plain(Value::Enum(position))).boxed()
        }
        Kind::Reference(_) => (1..u128::MAX)
            .prop_map(move |number| plain(Value::Id(RowId::from_number(number))))
            .boxed(),
    }
}

impl OwnedValue {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }

    fn constant(self) -> Constant {
        match self {
            Self::Plain(Value::Bool(value)) => Constant::Bool(value),
            Self::Plain(Value::Integer(number)) => Constant::Integer(number),
            Self::Plain(Value::Float(number)) => Constant::Float(number),
            Self::Plain(Value::Time(moment)) => Constant::Time(moment),
            Self::Plain(Value::Enum(position)) => Constant::Enum(position),
            Self::Text(text) => Constant::Text(text.into()),
            Self::Plain(_) | Self::Bytes(_) => Constant::Null,
        }
    }
}

/// Columns; a new one may have a default.
fn columns() -> impl Strategy<Value = Vec<StoredColumn>> {
    let column = kind().prop_flat_map(|kind| {
        (value_of(&kind), any::<bool>(), any::<bool>(), 0..4_u8).prop_map(
            move |(default, is_optional, has_default, dropped)| StoredColumn {
                name: "".into(),
                kind: kind.clone(),
                is_optional,
                default: if has_default { default.constant() } else { Constant::Null },
                is_dropped: dropped == 0,
            },
        )
    });
    let names = prop::collection::btree_set(".{0,3}", 6);
    (prop::collection::vec(column, 0..6), names).prop_map(|(mut columns, names)| {
        for (column, name) in columns.iter_mut().zip(names) {
            column.name = name.into();
        }
        columns
    })
}

/// A table and its rows, some written before the last columns were added.
fn table() -> impl Strategy<Value = (Vec<StoredColumn>, Vec<(u128, Vec<OwnedValue>)>)> {
    columns().prop_flat_map(|columns| {
        let values: Vec<_> = columns
            .iter()
            .map(|column| {
                let null = u32::from(column.is_optional);
                prop_oneof![
                    null => Just(OwnedValue::Plain(Value::Null)),
                    3 => value_of(&column.kind),
                ]
            })
            .collect();
        // An older row must have each column without a default.
        let needed = columns.iter().rposition(|column| {
            column.default == Constant::Null && !column.is_optional && !column.is_dropped
        });
        let count = needed.map_or(0, |last| last + 1)..=columns.len();
        let row = (1..u128::MAX, values, count).prop_map(|(id, mut values, count)| {
            values.truncate(count);
            (id, values)
        });
        (Just(columns), prop::collection::vec(row, 0..8))
    })
}

proptest! {
    #[test]
    fn round_trips_dumps(tables in prop::collection::vec(table(), 0..4)) {
        let disk = disk();
        let mut journal = open(&disk).journal;
        let mut stored = Vec::new();
        let mut writes = Vec::new();
        for (position, (columns, rows)) in tables.into_iter().enumerate() {
            for (id, values) in rows {
                let mut row = crate::row::RowWriter::new(values.len());
                for (value, column) in values.iter().zip(&columns) {
                    row.put(if column.is_dropped { Value::Null } else { value.value() });
                }
                writes.push(Write { table: position, id: RowId::from_number(id), row: Some(row.finish()) });
            }
            stored.push(StoredTable { name: format!("\"{position}").into(), columns });
        }
        let positions: Vec<usize> = (0..stored.len()).collect();
        journal.append(&record::tables(&stored)).unwrap();
        journal.append(&record::rows(&writes, &positions)).unwrap();
        journal.write(true).unwrap();
        drop(journal);
        let first = open(&disk);
        let lines = dumped(&first);

        let other = SimulatedFolder::new(2, 1 << 30);
        load(&other, &lines).unwrap();
        let second = open(&other);
        prop_assert_eq!(format!("{:?}", &second.stored), format!("{:?}", &first.stored));
        prop_assert_eq!(dumped(&second), lines);
    }

    #[test]
    fn loads_any_lines_without_panic(
        is in 0_usize..LINES.len(), length in 0_usize..9, becomes in "[\\[\\]{},:\"\\\\a-z0-9-]{0,4}"
    ) {
        let mut lines = LINES.to_owned();
        lines.replace_range(is..(is + length).min(LINES.len()), &becomes);
        let disk = disk();
        if load(&disk, &lines).is_ok() {
            let lines = dumped(&open(&disk));
            prop_assert_eq!(load(&SimulatedFolder::new(2, 1 << 30), &lines).map(drop), Ok(()));
        }
    }
}
