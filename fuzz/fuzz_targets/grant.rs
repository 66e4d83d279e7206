//! Decides that no name of a user and no name of a channel becomes a pattern, and that all who take such names take the
//! same.

#![no_main]

use bine::__private::check_grant;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_grant(bytes);
});
