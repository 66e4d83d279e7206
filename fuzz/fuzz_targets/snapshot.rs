//! Target: a snapshot with any content. A start rejects it or recovers the written rows, and a repair
//! makes it open.

#![no_main]

mod store;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| store::check("snapshot-0000000000000004.bin", bytes));
