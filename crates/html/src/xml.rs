//! Decides what becomes of text that XML cannot hold, or would read as other text.

use alloc::vec::Vec;

/// What stands for a character that no document may hold.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Cleans `out` from `start` on, which is the beginning of a character. `in_value`: it stands in the value of an
/// attribute, where white space is read as spaces (XML 1.0, section 3.3.3).
///
/// Characters that XML has none of (section 2.2) are replaced; a carriage return, which would be read as a line feed
/// (section 2.11), is written as a reference, and so is all white space but the space in a value.
pub(crate) fn clean(out: &mut Vec<u8>, start: usize, in_value: bool) {
    let Some(first) = (start..out.len()).find(|&place| instead(&out[place..], in_value).is_some())
    else {
        return;
    };
    let tail = out.split_off(first);
    let mut rest = tail.as_slice();
    while let Some((byte, after)) = rest.split_first() {
        if let Some((written, length)) = instead(rest, in_value) {
            out.extend_from_slice(written);
            rest = &rest[length..];
        } else {
            out.push(*byte);
            rest = after;
        }
    }
}

/// What is written instead of the character at the start of `bytes`, and how long that one is.
fn instead(bytes: &[u8], in_value: bool) -> Option<(&'static [u8], usize)> {
    match bytes {
        [b'\r', ..] => Some((b"&#13;", 1)),
        [b'\n', ..] => in_value.then_some((b"&#10;", 1)),
        [b'\t', ..] => in_value.then_some((b"&#9;", 1)),
        [..=0x1f, ..] => Some((REPLACEMENT, 1)),
        // U+FFFE and U+FFFF.
        [0xef, 0xbf, 0xbe | 0xbf, ..] => Some((REPLACEMENT, 3)),
        _ => None,
    }
}
