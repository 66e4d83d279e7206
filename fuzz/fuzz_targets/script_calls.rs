//! Target: calls of the host's functions by scripts, with any values and in any order. The host
//! survives them, and tables keep their rules.

#![no_main]

use bine::__private::check_script_calls;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_script_calls(bytes));
