//! Target: the JSON of a call. It is rejected, or its value survives a round trip.

#![no_main]

use bine::__private::check_wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_wire(bytes);
});
