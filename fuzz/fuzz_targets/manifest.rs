//! Target: the manifest of a backup with any content. A restore rejects it, or the restored journal
//! opens and has the written records.

#![no_main]

#[allow(dead_code, reason = "two targets use the rest")]
mod store;

use bine_store::Time;
use bine_store::disk::SimulatedFolder;
use bine_store::journal::{BackupOptions, Error, StoredFile, Until, backup, check_backup, restore};
use libfuzzer_sys::fuzz_target;

const MANIFEST: &str = "backup";

// The lowest bit of the first byte selects whether the remaining bytes are the manifest or changes of
// the written manifest. Without the second bit, the checksum is corrected.
fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let folder = written();
    let mut content = folder.content(MANIFEST).expect("it was written");
    let end = "end 00000000\n".len();
    content.truncate(content.len() - end);
    if kind & 1 == 0 {
        content = rest.to_vec();
    } else {
        for change in rest.chunks_exact(3) {
            let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % content.len();
            content[place] = change[2];
        }
    }
    if kind & 2 == 0 {
        let check = crc32c::crc32c(&content);
        content.extend_from_slice(format!("end {check:08x}\n").as_bytes());
    }
    folder.put(MANIFEST, &content);
    let _ = check_backup(&folder);
    for until in [Until::End, Until::Change(3), Until::Time(Time(5))] {
        let target = SimulatedFolder::new(1, 1 << 20);
        if let Ok(restored) = restore(&folder, &target, until) {
            let opened = store::open(&target).expect("a restored journal opens");
            assert_eq!(opened.last, restored.last);
            assert!(opened.warnings.is_empty());
        }
    }
    // The next run completes the backup or rejects it.
    if backup(&store::written(), &folder, &options()).is_ok() {
        let target = SimulatedFolder::new(1, 1 << 20);
        let restored = restore(&folder, &target, Until::End);
        match restored {
            Ok(_) => assert_eq!(store::open(&target).expect("a restored journal opens").last, 5),
            // A run does not read the earlier copies again.
            Err(Error::Damaged(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
});

/// A backup of the store that all targets use.
fn written() -> SimulatedFolder {
    let folder = SimulatedFolder::new(2, 1 << 20);
    backup(&store::written(), &folder, &options()).expect("the disk is well");
    folder
}

fn options() -> BackupOptions<'static> {
    static FILES: std::sync::LazyLock<[StoredFile; 1]> = std::sync::LazyLock::new(|| {
        [StoredFile { name: "acme/a.example.pem".to_owned(), bytes: vec![7; 9] }]
    });
    BackupOptions { clock: &|| Time(5), files: &*FILES, link: None, keep: None }
}
