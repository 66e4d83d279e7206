//! Target: tickets of admission. Only the ticket that the server has issued is valid.

#![no_main]

use bine::__private::check_ticket;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_ticket(&String::from_utf8_lossy(bytes));
});
