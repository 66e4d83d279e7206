//! Target: responses of an origin. A response is rejected, or every split gives the same head, the
//! same content and the same rest.

#![no_main]

use bine_http::{Limits, ResponseEvent, ResponseParser};
use libfuzzer_sys::fuzz_target;

/// What the bytes mean: statuses and field names, the content, whether the response is complete, and
/// the number of bytes that belong to it. `None`: they are rejected.
fn meaning(bytes: &[u8], piece: usize, is_to_head: bool) -> Option<(Vec<String>, Vec<u8>, bool, usize)> {
    let (mut parser, limits) = (ResponseParser::new(is_to_head), Limits::default());
    let (mut heads, mut content) = (Vec::new(), Vec::new());
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = bytes.len().min(end + piece.max(1));
        loop {
            let step = parser.receive(&bytes[start..end], &limits);
            start += step.consumed;
            match step.event {
                ResponseEvent::More => break,
                ResponseEvent::Interim(head) | ResponseEvent::Head(head) => {
                    let names: Vec<_> = head.fields().map(|(name, _)| name).collect();
                    heads.push(format!("{} {:?} {names:?}", head.status().code(), head.framing()));
                }
                ResponseEvent::Body(piece) => content.extend_from_slice(piece),
                ResponseEvent::End => return Some((heads, content, true, start)),
                ResponseEvent::Fault(_) => return None,
            }
        }
    }
    let is_complete = parser.finish().is_ok();
    Some((heads, content, is_complete, if is_complete { start } else { 0 }))
}

fuzz_target!(|response: (u8, &[u8])| {
    let (piece, bytes) = response;
    let is_to_head = piece % 5 == 0;
    let whole = meaning(bytes, bytes.len(), is_to_head);
    assert_eq!(meaning(bytes, piece.into(), is_to_head), whole);
    if let Some((_, content, _, consumed)) = whole {
        assert!(content.len() <= bytes.len() && consumed <= bytes.len());
    }
});
