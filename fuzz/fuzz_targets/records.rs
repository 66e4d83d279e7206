//! Target: records and snapshots of tables. A start rejects them, or the tables survive a dump and a
//! load.

#![no_main]

mod archive;

use std::sync::Arc;

use bine_store::journal::{FileJournal, Journal};
use libfuzzer_sys::fuzz_target;

// The first byte selects whether the first record is in a snapshot. A length precedes each record.
fuzz_target!(|bytes: &[u8]| {
    let Some((kind, mut rest)) = bytes.split_first() else { return };
    let folder = archive::folder();
    let opened = FileJournal::open(Arc::new(folder.clone()), archive::SEGMENT, &mut |_| Ok(()));
    let mut journal = opened.expect("it is empty").journal;
    let mut is_image = kind % 2 == 1;
    while let [low, high, behind @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(behind.len());
        let (record, next) = behind.split_at(length);
        rest = next;
        if is_image && !record.is_empty() {
            journal.append(&NO_TABLES).expect("there is room");
            journal.write(true).expect("the disk is well");
            let mut image = journal.snapshot(1).expect("the disk is well");
            image.block(record).expect("there is room");
            image.finish().expect("the disk is well");
        } else {
            journal.append(record).expect("there is room");
        }
        is_image = false;
    }
    if journal.write(true).is_err() {
        return;
    }
    drop(journal);
    let Ok(archive) = archive::open(&folder) else { return };
    let Some(lines) = archive::dump(&archive) else { return };
    // A load may reject tables that no program writes: two of one name, a number out of range.
    if let Some(again) = archive::load(&lines) {
        assert_eq!(String::from_utf8(again), String::from_utf8(lines));
    }
});

const NO_TABLES: [u8; 2] = [2, 0];
