//! Target: tokens. A token is rejected with a reason, unless its signature and its claims are valid.

#![no_main]

use bine::__private::check_token;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_token(bytes);
});
