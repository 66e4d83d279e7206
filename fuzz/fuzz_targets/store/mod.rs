//! Checks a store with one file of any content.

use std::sync::Arc;

use bine_store::disk::{Folder, SimulatedFolder};
use bine_store::journal::{
    Error, FileJournal, Journal, RecoveryEvent, Opened, Options, check as examine, repair,
};

/// The first byte selects the meaning of the others: the whole file, or changes of the written file,
/// which pass the checksums more often.
pub fn check(file: &str, bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let folder = written();
    let mut content = folder.content(file).expect("it was written");
    if kind % 2 == 0 {
        content = rest.to_vec();
    } else {
        for change in rest.chunks_exact(4) {
            let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % content.len();
            let rest = content.len() - place;
            match change[3] {
                0 => content.truncate(place.max(1)),
                1 => content[place..].rotate_left(usize::from(change[2]) % rest),
                2 => content[place..].fill(0),
                3 if content.len() < LONGEST => content.extend_from_within(place..),
                _ => content[place] = change[2],
            }
        }
    }
    folder.put(file, &content);
    if let Err(Error::Damaged(_)) = open(&folder) {
        check_repair(&folder);
    }
}

/// Checks that a damaged store is reported as damaged, and opens after its repair.
pub fn check_repair(folder: &SimulatedFolder) {
    let shared: Arc<dyn Folder> = Arc::new(folder.clone());
    let report = examine(&shared).expect("the disk is well");
    assert!(!report.is_intact(), "{report}");
    repair(&shared).expect("the disk is well");
    open(folder).expect("it is repaired");
    let report = examine(&shared).expect("the disk is well");
    assert!(report.is_intact(), "{report}");
}

/// Five records, with a snapshot of the first four.
pub fn written() -> SimulatedFolder {
    let folder = SimulatedFolder::new(1, 1 << 20);
    let mut journal = open(&folder).expect("the disk is well").journal;
    for sequence in 1..=5 {
        journal.append(&record(sequence)).expect("there is room");
        if sequence != 2 {
            journal.write(true).expect("the disk is well");
        }
        if sequence == 4 {
            let mut writer = journal.snapshot(4).expect("the disk is well");
            for _ in 0..3 {
                writer.block(&BLOCK).expect("there is room");
            }
            writer.finish().expect("the disk is well");
        }
    }
    drop(journal);
    folder
}

/// The last size of the doubling.
const LONGEST: usize = 1 << 14;
const BLOCK: [u8; 90] = [7; 90];

pub fn record(sequence: u64) -> Vec<u8> {
    vec![sequence as u8; 200 * sequence as usize % 700]
}

/// Opens the store. Each recovered record must equal the written one.
pub fn open(folder: &SimulatedFolder) -> Result<Opened, Error> {
    let shared = Arc::new(folder.clone());
    FileJournal::open(shared, Options { segment: 4096 }, &mut |loaded| {
        match loaded {
            RecoveryEvent::Block(block) => assert_eq!(block, BLOCK),
            RecoveryEvent::Record(sequence, bytes) => assert_eq!(bytes, record(sequence)),
            RecoveryEvent::Lost(_) | RecoveryEvent::Progress { .. } => {}
        }
        Ok(())
    })
}
