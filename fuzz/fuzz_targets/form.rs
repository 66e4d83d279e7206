//! Target: multipart forms. Every split gives the same fields, and no read passes the end.

#![no_main]

use bine::__private::check_form;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_form("x", bytes);
});
