//! Decides that no text is believed as a session's cookie, but the one that was given out.

#![no_main]

use bine::__private::check_session;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_session(&String::from_utf8_lossy(bytes));
});
