//! Decides that whatever a service is called with is refused with words, or is taken the same again and again.

#![no_main]

use bine::__private::check_call;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|call: (u8, &[u8])| {
    check_call(call.0, call.1);
});
