//! Target: arguments of services. They are rejected with a reason, or have the same value each time.

#![no_main]

use bine::__private::check_call;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|call: (u8, &[u8])| {
    check_call(call.0, call.1);
});
