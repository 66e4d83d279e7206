//! Target: a synced mark with any content. A start rejects exactly those stores that have lost
//! records that the mark names.

#![no_main]

#[allow(dead_code, reason = "two other targets use the rest")]
mod store;

use bine_store::disk::SimulatedFolder;
use bine_store::journal::{Error, Journal, Opened, Warning};
use libfuzzer_sys::fuzz_target;

const MARK: &str = "synced";
const SEGMENT: &str = "journal-0000000000000001.log";
const SNAPSHOT: &str = "snapshot-0000000000000004.bin";
/// The last record that a mark can name.
const LAST: u64 = u64::MAX / 2 - 1;

// The first byte selects the change of the mark and of the rest of the store. The other bytes are the
// mark itself, or changes of the written mark, whose checksum is then corrected.
fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let folder = store::written();
    let mut content = folder.content(MARK).expect("it was written");
    let own = field(&content, 8);
    if kind & 1 == 0 {
        content = rest.to_vec();
    } else {
        for change in rest.chunks_exact(2) {
            content[usize::from(change[0]) % 28] = change[1];
        }
        seal(&mut content);
    }
    folder.put(MARK, &content);
    let mut last = 5;
    if kind & 2 != 0 {
        // The disk loses the last group and returns zeros, as for space that was never written.
        let segment = folder.content(SEGMENT).expect("it was written");
        let mut places = (32..segment.len() - 40).step_by(8);
        let group = places.rfind(|at| field(&segment, *at) == own).expect("it has groups");
        folder.zero_tail(SEGMENT, group as u64);
        last = 4;
    }
    if kind & 4 != 0 {
        // In this case the start reads the journal from its first record.
        folder.put(SNAPSHOT, b"");
    }
    let opened = store::open(&folder);
    match (read(&content), opened) {
        (Mark::OfVersion(version), Err(Error::Version { file, found })) => {
            assert_eq!((file.as_str(), found), (MARK, version));
        }
        (Mark::Good { store, sequence }, Err(Error::Damaged(_))) => {
            assert!(
                store == own && (last + 1..=LAST).contains(&sequence),
                "nothing that it names is missing"
            );
            store::check_repair(&folder);
        }
        (mark, Ok(opened)) => {
            let names = match mark {
                Mark::Good { store, sequence } if store == own => Some(sequence),
                _ => None,
            };
            let is_missing = names.is_some_and(|sequence| (last + 1..=LAST).contains(&sequence));
            assert!(!is_missing && !matches!(mark, Mark::OfVersion(_)), "the start took {mark:?}");
            let is_used = names.is_some_and(|sequence| sequence <= LAST);
            let warns = |warning: &Warning| matches!(warning, Warning::Mark { .. });
            assert_eq!(opened.warnings.iter().any(warns), !is_used && mark != Mark::Nothing);
            assert_eq!(opened.last, last);
            check_next(&folder, opened, own);
        }
        (mark, Err(error)) => panic!("{mark:?}: {error}"),
    }
    check_alone(&content);
});

/// Checks that the next commit writes a valid mark.
fn check_next(folder: &SimulatedFolder, opened: Opened, own: u64) {
    let (mut journal, next) = (opened.journal, opened.last + 1);
    journal.append(&store::record(next)).expect("there is room");
    journal.write(true).expect("the disk is well");
    drop(journal);
    let content = folder.content(MARK).expect("a commit writes it");
    assert_eq!(read(&content), Mark::Good { store: own, sequence: next });
    assert_eq!(store::open(folder).expect("it is whole").last, next);
}

/// Checks a folder with only a mark: either all records are lost, or none existed.
fn check_alone(content: &[u8]) {
    let folder = SimulatedFolder::new(1, 1 << 20);
    folder.put(MARK, content);
    let is_lost = matches!(read(content), Mark::Good { sequence: 1..=LAST, .. });
    match store::open(&folder) {
        Ok(opened) => assert!(!is_lost && opened.last == 0),
        Err(Error::Damaged(_)) => assert!(is_lost),
        Err(Error::Version { .. }) => assert!(matches!(read(content), Mark::OfVersion(_))),
        Err(error) => panic!("{error}"),
    }
}

/// Reads 32 bytes as docs/formats/journal.md defines them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    Nothing,
    Unusable,
    OfVersion(u32),
    Good { store: u64, sequence: u64 },
}

fn read(content: &[u8]) -> Mark {
    if content.len() <= 32 && content.iter().all(|byte| *byte == 0) {
        return Mark::Nothing;
    }
    let mut sealed = content.to_vec();
    if content.len() != 32 {
        return Mark::Unusable;
    }
    seal(&mut sealed);
    let version = field(content, 24) as u32;
    match () {
        () if sealed != content => Mark::Unusable,
        () if version != 1 => Mark::OfVersion(version),
        () if &content[..8] != b"BINE-SYN" => Mark::Unusable,
        () => Mark::Good { store: field(content, 8), sequence: field(content, 16) },
    }
}

/// Corrects the checksum of a mark.
fn seal(content: &mut [u8]) {
    let begun = crc32c::crc32c(&content[8..16]);
    let check = crc32c::crc32c_append(begun, &content[..28]);
    content[28..32].copy_from_slice(&check.to_le_bytes());
}

fn field(content: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&content[at..at + 8]);
    u64::from_le_bytes(field)
}
