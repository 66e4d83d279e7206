//! Target: session cookies. Only the cookie that the server has issued is valid.

#![no_main]

use bine::__private::check_session;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_session(&String::from_utf8_lossy(bytes));
});
