//! Target: signed links of accounts. Only the link that the server has issued is valid.

#![no_main]

use bine::__private::check_link;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_link(&String::from_utf8_lossy(bytes));
});
