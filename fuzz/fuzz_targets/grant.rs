//! Target: names of users and channels. No name becomes a pattern, and every parser accepts the same
//! names.

#![no_main]

use bine::__private::check_grant;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_grant(bytes);
});
