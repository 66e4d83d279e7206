//! Target: the `Authorization` field, and the paths of an API token.

#![no_main]

use bine::__private::check_credential;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (field, path) = text.split_once('\n').unwrap_or((&text, "/"));
    check_credential(field, path);
});
