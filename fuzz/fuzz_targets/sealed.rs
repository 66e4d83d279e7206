//! Target: sealed texts. Only the text that the server has issued can be opened.

#![no_main]

use bine::__private::check_sealed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_sealed(&String::from_utf8_lossy(bytes));
});
