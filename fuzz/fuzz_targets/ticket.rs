//! Decides that no text is believed as the ticket of an admitted session, but the one that was given out.

#![no_main]

use bine::__private::check_ticket;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_ticket(&String::from_utf8_lossy(bytes));
});
