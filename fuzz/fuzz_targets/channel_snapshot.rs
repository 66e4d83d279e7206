//! Target: snapshots of channels. A snapshot is rejected, or becomes a hub that survives a round trip
//! and counts its memory exactly.
//!
//! The input is chunks, each after its length in two bytes.

#![no_main]

use bine_push::{Hub, Limits, Command, Preparation, SnapshotReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut chunks = Vec::new();
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        chunks.push(behind[..length].to_vec());
        rest = &behind[length..];
    }
    let Ok(mut hub) = restore(&chunks) else { return };
    let written: Vec<Vec<u8>> = hub.snapshot().collect();
    let again = restore(&written).expect("a hub's own snapshot");
    assert_eq!(again.snapshot().collect::<Vec<_>>(), written);
    assert_eq!((again.bytes(), again.len()), (hub.bytes(), hub.len()));
    remove_all(&mut hub);
    if hub.is_empty() {
        assert_eq!(hub.bytes(), 0);
    }
});

/// Removes each channel that has a name.
fn remove_all(hub: &mut Hub) {
    let names: Vec<_> = hub.names_after("").cloned().collect();
    for name in names {
        let number = hub.watermark().sequence.record() + 1;
        if let Ok(Preparation::Record(prepared)) = hub.prepare(Command::Remove(name), 0) {
            let _ = hub.apply(prepared, number);
        }
    }
}

fn restore(chunks: &[Vec<u8>]) -> Result<Hub, bine_push::Corrupt> {
    let mut restoring = SnapshotReader::new(Limits::default());
    for chunk in chunks {
        restoring.receive(chunk)?;
    }
    restoring.finish()
}
