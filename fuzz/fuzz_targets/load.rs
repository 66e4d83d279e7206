//! Decides that whatever lines are loaded they are refused, or dumped and loaded again as the same.

#![no_main]

mod archive;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(lines) = archive::load(bytes) {
        assert_eq!(archive::load(&lines), Some(lines));
    }
});
