//! Decides that a form in parts is read the same however it comes, and never beyond its end.

#![no_main]

use bine::__private::check_form;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_form("x", bytes);
});
