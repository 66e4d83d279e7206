//! Target: records of channels from a journal. They give a hub that survives a round trip.
//!
//! The input is records, each after its length in two bytes. It is also read as the second chunk of a
//! snapshot.

#![no_main]

use bine_push::{Hub, Limits, SnapshotReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut hub = Hub::new(1, Limits::default());
    let mut rest = bytes;
    let mut number = 0;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        number += 1;
        let _ = hub.replay(&behind[..length], number);
        rest = &behind[length..];
    }
    let written: Vec<Vec<u8>> = hub.snapshot().collect();
    let again = restore(&written).expect("a hub's own snapshot");
    assert_eq!(again.snapshot().collect::<Vec<_>>(), written);
    // Forks with the same start of a message share it. Ann is the publisher in the seeds.
    assert!(again.bytes() <= hub.bytes() && again.publisher_bytes("ann") <= hub.publisher_bytes("ann"));
    let _ = restore(&[&written[..1], &[bytes.to_vec()]].concat());
});

fn restore(chunks: &[Vec<u8>]) -> Result<Hub, bine_push::Corrupt> {
    let mut restoring = SnapshotReader::new(Limits::default());
    for chunk in chunks {
        restoring.receive(chunk)?;
    }
    restoring.finish()
}
