//! Target: cursors. An accepted text is the text that the cursor writes.

#![no_main]

use bine_push::Cursor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    match text.parse::<Cursor>() {
        Ok(cursor) => {
            assert_eq!(cursor.to_string(), text);
            assert_eq!(&cursor.text(), bytes);
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
});
