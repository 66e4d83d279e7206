//! Target: the times of a segment with any content. A start and a backup work as without them, and a
//! restore to a point in time opens.

#![no_main]

#[allow(dead_code, reason = "other targets use the rest")]
mod store;

use bine_store::Time;
use bine_store::disk::SimulatedFolder;
use bine_store::journal::{BackupOptions, Error, Until, backup, restore};
use libfuzzer_sys::fuzz_target;

const TIMES: &str = "times-0000000000000001.bin";
const HEAD: usize = 32;
const ENTRY: usize = 24;

// The first byte selects whether the remaining bytes are the file, or entries after the written head
// whose checksums are then corrected.
fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let folder = store::written();
    let head = folder.content(TIMES).expect("it was written")[..HEAD].to_vec();
    let mut content = if kind & 1 == 0 { rest.to_vec() } else { [&head, rest].concat() };
    if kind & 2 != 0 && content.len() >= HEAD {
        for entry in content[HEAD..].chunks_exact_mut(ENTRY) {
            let begun = crc32c::crc32c(&head[8..16]);
            let check = crc32c::crc32c_append(begun, &head[16..24]);
            let check = crc32c::crc32c_append(check, &entry[..20]);
            entry[20..].copy_from_slice(&check.to_le_bytes());
        }
    }
    folder.put(TIMES, &content);
    assert_eq!(store::open(&folder).expect("a start does not need the times").last, 5);
    let copy = SimulatedFolder::new(2, 1 << 20);
    let options = BackupOptions { clock: &|| Time(5), files: &[], link: None, keep: None };
    let copied = backup(&folder, &copy, &options).expect("a backup does not need the times");
    assert_eq!(copied.last, 5);
    for until in [Until::End, Until::Time(Time(i64::MIN)), Until::Time(Time(0)), Until::Time(Time(i64::MAX))] {
        let target = SimulatedFolder::new(1, 1 << 20);
        match restore(&copy, &target, until) {
            Ok(restored) => {
                assert!((1..=5).contains(&restored.last));
                assert!(until != Until::End || restored.last == 5);
                let opened = store::open(&target).expect("a restored journal opens");
                assert_eq!(opened.last, restored.last);
            }
            Err(Error::Refused(_)) => assert!(until != Until::End),
            Err(error) => panic!("{error}"),
        }
    }
});
