//! Decides that no text is opened in the place of a sealed one, but the one that was given out.

#![no_main]

use bine::__private::check_sealed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_sealed(&String::from_utf8_lossy(bytes));
});
