//! Decides that whatever comes as JSON of a call is refused, or is a value that stays the same when written and read.

#![no_main]

use bine::__private::check_wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_wire(bytes);
});
