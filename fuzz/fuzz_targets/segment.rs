//! Decides that whatever a segment has become, a start refuses it or finds what was written, and a
//! repair makes it open.

#![no_main]

mod store;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| store::check("journal-0000000000000001.log", bytes));
