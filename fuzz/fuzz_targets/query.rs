//! Decides that whatever a QUERY of channels says is understood within its bounds, and the same when it is said again.

#![no_main]

use bine::__private::check_query;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_query(bytes);
});
