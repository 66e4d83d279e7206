//! Target: QUERY requests for channels. The parser keeps its limits, and a repeated request has the same
//! meaning.

#![no_main]

use bine::__private::check_query;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check_query(bytes);
});
