//! Target: lines to load. They are rejected, or survive a dump and a load.

#![no_main]

mod archive;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(lines) = archive::load(bytes) {
        assert_eq!(archive::load(&lines), Some(lines));
    }
});
