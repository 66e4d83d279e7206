//! Target: a segment with any content. A start rejects it or recovers the written records, and a
//! repair makes it open.

#![no_main]

mod store;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| store::check("journal-0000000000000001.log", bytes));
