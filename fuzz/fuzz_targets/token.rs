//! Decides that whatever is shown as a token is refused with a reason, unless it was signed and says what it must.

#![no_main]

use bine::__private::check_token;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_token(bytes);
});
