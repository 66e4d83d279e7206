//! Target: request paths. No accepted path leaves the root or has a second meaning.

#![no_main]

use bine_http::{Event, Limits, RequestParser};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let request = [b"GET /", bytes, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
    let mut machine = RequestParser::new();
    let Event::Head(head) = machine.receive(&request, &Limits::default()).event else {
        return;
    };
    let path = head.path();
    assert!(path.starts_with('/'));
    assert!(!path.contains(|letter: char| letter.is_control() || letter == '\\'));
    assert!(path.split('/').all(|segment| segment != "." && segment != ".."));
    // Each slash of the path was a slash in the request.
    let sent = head.target().split('?').next().unwrap_or_default();
    assert!(path.matches('/').count() <= sent.matches('/').count());
    if let Some(plain) = head.plain_path() {
        assert_eq!(plain, sent);
        assert!(!plain.contains('%'));
    }
});
