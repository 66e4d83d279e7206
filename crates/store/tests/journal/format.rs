//! Tests that docs/formats/journal.md matches the code.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bine_store::Time;
use bine_store::disk::{File, Folder, Lock, SimulatedFolder};
use bine_store::journal::{FileJournal, Journal, Options, RecoveryEvent};

const DOCUMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/journal.md"));
const STORE: u64 = 0x0123_4567_89ab_cdef;
const SEGMENT: &str = "journal-0000000000000001.log";
const MARK: &str = "synced";
const TIMES: &str = "times-0000000000000001.bin";
const SNAPSHOT: &str = "snapshot-0000000000000002.bin";
/// 2026-11-21T09:30:00Z.
const BEGIN: i64 = 1_795_253_400_000_000;

#[test]
fn writes_the_documented_example() {
    let folder = Numbered(SimulatedFolder::new(1, 1 << 20));
    folder.0.set_time(Time(BEGIN));
    let options = Options { segment: 4096 };
    let opened = FileJournal::open(Arc::new(folder.clone()), options, &mut |_| Ok(()));
    let mut journal = opened.expect("nothing fails").journal;
    journal.append(b"hello").expect("there is room");
    journal.append(b"").expect("there is room");
    journal.write(true).expect("nothing fails");
    let mut writer = journal.snapshot(2).expect("nothing fails");
    writer.block(b"state").expect("nothing fails");
    writer.finish().expect("nothing fails");
    folder.0.set_time(Time(BEGIN + 7_500_000));
    journal.append(b"bine").expect("there is room");
    journal.write(true).expect("nothing fails");
    journal.close().expect("nothing fails");
    let examples = examples();
    for (name, example) in [SEGMENT, MARK, TIMES, SNAPSHOT].into_iter().zip(&examples) {
        let written = folder.0.content(name).expect("it was written");
        assert!(written == *example, "{name} is\n{}", shown(&written));
    }
}

#[test]
fn reads_the_documented_example() {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let [segment, mark, times, snapshot] = &examples()[..] else {
        panic!("there are four examples")
    };
    folder.put(SEGMENT, segment);
    let mut found = Vec::new();
    let mut open = |folder: &SimulatedFolder| {
        let folder = Arc::new(folder.clone());
        FileJournal::open(folder, Options::default(), &mut |loaded| {
            match loaded {
                RecoveryEvent::Block(block) => found.push((0, block.to_vec())),
                RecoveryEvent::Record(sequence, record) => found.push((sequence, record.to_vec())),
                RecoveryEvent::Lost(_) | RecoveryEvent::Progress { .. } => {}
            }
            Ok(())
        })
        .map(|opened| opened.last)
    };
    // First without a mark, as an earlier version wrote the journal, then with it.
    assert_eq!(open(&folder).expect("the document shows a whole segment"), 3);
    folder.put(MARK, mark);
    folder.put(TIMES, times);
    folder.put(SNAPSHOT, snapshot);
    assert_eq!(open(&folder).expect("the document shows a whole snapshot"), 3);
    let expected: [(u64, &[u8]); 5] =
        [(1, b"hello"), (2, b""), (3, b"bine"), (0, b"state"), (3, b"bine")];
    assert!(found.iter().map(|(sequence, bytes)| (*sequence, &bytes[..])).eq(expected));
}

#[test]
fn documented_tables_decode_the_documented_example() {
    let tables = tables();
    let [head, group, record, synced, entry, block, end] = &tables[..] else {
        panic!("{tables:?}")
    };
    let [segment, mark, times, snapshot] = &examples()[..] else {
        panic!("there are four examples")
    };
    assert_eq!(synced.bytes(mark, "magic"), b"BINE-SYN");
    let fields = ["store", "number", "version"].map(|name| synced.number(mark, name));
    assert_eq!(fields, [STORE, 3, 1]);
    assert_eq!(synced.number(mark, "check"), check(&[&mark[..28]]));
    for (bytes, magic, number) in
        [(segment, b"BINE-LOG", 1), (times, b"BINE-TIM", 1), (snapshot, b"BINE-SNP", 2)]
    {
        assert_eq!(head.bytes(bytes, "magic"), magic);
        let fields = ["store", "number", "version"].map(|name| head.number(bytes, name));
        assert_eq!(fields, [STORE, number, 1]);
        assert_eq!(head.number(bytes, "check"), check(&[&bytes[..28]]));
    }
    let mut previous = 0;
    let mut entries = Vec::new();
    for bytes in times[32..].chunks(24) {
        assert_eq!(entry.number(bytes, "previous"), previous);
        previous = entry.number(bytes, "check");
        assert_eq!(previous, check(&[&1_u64.to_le_bytes(), &bytes[..20]]));
        entries.push(["record", "time"].map(|name| entry.number(bytes, name)));
    }
    let [begin, later] = [BEGIN, BEGIN + 7_500_000].map(i64::unsigned_abs);
    assert_eq!(entries, [[1, begin], [3, later], [4, later]]);
    // Follow the groups by the document's tables alone.
    let mut rest = &segment[32..];
    let mut previous = head.number(segment, "check");
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let fields = ["store", "previous"].map(|name| group.number(rest, name));
        assert_eq!(fields, [STORE, previous]);
        previous = group.number(rest, "mark");
        assert_eq!(previous, check(&[&rest[..36]]));
        let (mut body, behind) = rest[40..].split_at(group.number(rest, "length") as usize);
        assert_eq!(group.number(rest, "body"), check(&[body]));
        let mut records = Vec::new();
        while !body.is_empty() {
            let [length, number] = ["length", "number"].map(|name| record.number(body, name));
            let end = 16 + length as usize;
            assert_eq!(record.number(body, "check"), check(&[&body[..4], &body[8..end]]));
            records.push((number, String::from_utf8_lossy(&body[16..end]).into_owned()));
            let (filler, behind) = body[end..].split_at(8 - end % 8);
            assert!(filler.iter().all(|byte| *byte == 0xFF));
            body = behind;
        }
        groups.push(["first", "durable"].map(|name| group.number(rest, name)));
        println!("{:?} {records:?}", groups.last());
        rest = behind;
    }
    assert_eq!(groups, [[1, 0], [3, 2], [4, 3]]);
    let number = 2_u64.to_le_bytes();
    let length = block.number(&snapshot[32..], "length") as usize;
    let state = &snapshot[40..40 + length];
    let parts = [&number[..], &0_u64.to_le_bytes(), &snapshot[32..36], state];
    assert_eq!((state, block.number(&snapshot[32..], "check")), (&b"state"[..], check(&parts)));
    let last = &snapshot[40 + length..];
    assert_eq!(["zero", "blocks", "bytes"].map(|name| end.number(last, name)), [0, 1, 5]);
    assert_eq!(end.number(last, "check"), check(&[&number, &last[..4], &last[8..]]));
    assert_eq!(last.len(), 24);
}

/// The fields of a table: the offset and length of each in bytes.
#[derive(Debug, Default)]
struct Table(BTreeMap<String, (usize, usize)>);

impl Table {
    fn bytes<'b>(&self, bytes: &'b [u8], field: &str) -> &'b [u8] {
        let (at, length) = self.0[field];
        &bytes[at..at + length]
    }

    fn number(&self, bytes: &[u8], field: &str) -> u64 {
        self.bytes(bytes, field).iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
    }
}

/// The tables of fields, in the document's order, without fields of variable length.
fn tables() -> Vec<Table> {
    let mut tables = Vec::new();
    for line in DOCUMENT.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if line.starts_with("| offset ") {
            tables.push(Table::default());
        }
        let [_, offset, bytes, field, ..] = cells[..] else { continue };
        let (Ok(offset), Ok(bytes)) = (offset.parse(), bytes.parse()) else { continue };
        let table = tables.last_mut().expect("a row belongs to a table");
        table.0.insert(field.to_owned(), (offset, bytes));
    }
    tables
}

/// The bytes that the document shows.
fn examples() -> Vec<Vec<u8>> {
    let blocks = DOCUMENT.split("```text\n").skip(1);
    let words =
        blocks.map(|block| block.split("```").next().unwrap_or_default().split_whitespace());
    let byte = |digits: &str| u8::from_str_radix(digits, 16).expect("two digits are a byte");
    words.map(|words| words.map(byte).collect()).collect()
}

fn shown(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<String> = digits.chunks(16).map(|line| line.join(" ")).collect();
    lines.join("\n")
}

/// The checksum as the document defines it, bit by bit, independent of the crate's implementation.
fn check(parts: &[&[u8]]) -> u64 {
    let store = STORE.to_le_bytes();
    let bytes = store.iter().chain(parts.iter().copied().flatten());
    let check = bytes.fold(u32::MAX, |check, byte| {
        (0..8).fold(check ^ u32::from(*byte), |check, _| {
            if check & 1 == 1 { check >> 1 ^ 0x82F6_3B78 } else { check >> 1 }
        })
    });
    u64::from(!check)
}

/// A simulated folder whose store has the document's number.
#[derive(Clone)]
struct Numbered(SimulatedFolder);

impl Folder for Numbered {
    fn name(&self) -> String {
        self.0.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.0.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.0.create(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn Lock>> {
        self.0.lock(name)
    }

    fn now(&self) -> Time {
        self.0.now()
    }

    fn random_number(&self) -> io::Result<u64> {
        Ok(STORE)
    }
}
