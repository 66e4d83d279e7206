//! Target: modules of TSX. The compiler never panics, keeps every line, and its errors point into
//! the source.

#![no_main]

use bine_tsx::{Position, compile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let source = String::from_utf8_lossy(bytes);
    let lines = |text: &str| text.split('\n').count();
    match compile("page.tsx", &source) {
        Ok(module) => {
            assert_eq!(lines(&module.code), lines(&source));
            for (line, text) in (1..).zip(module.code.split('\n')) {
                let columns = text.len() as u32;
                for column in [1, columns / 2 + 1, columns + 1] {
                    let found = module.source_position(Position { line, column });
                    let text = source.split('\n').nth(line as usize - 1).unwrap();
                    assert!(found.line == line && found.column <= text.chars().count() as u32 + 1);
                }
            }
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!((error.line as usize) <= lines(&source));
                assert!(!error.message.contains("a defect"), "{error}");
            }
        }
    }
});
