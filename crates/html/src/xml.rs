//! Replacement of characters that XML does not allow or would read differently.

use alloc::vec::Vec;

/// Replaces a character that no XML document may contain.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Cleans `out` from `start` on, which is a character boundary. `in_value`: the bytes belong to the
/// value of an attribute, where XML reads white space as spaces (XML 1.0, section 3.3.3).
///
/// Characters that XML does not allow (section 2.2) are replaced. A carriage return, which XML
/// would read as a line feed (section 2.11), becomes a character reference, and in a value so do
/// tabs and line feeds.
pub(crate) fn clean(out: &mut Vec<u8>, start: usize, in_value: bool) {
    let Some(first) =
        (start..out.len()).find(|&place| replacement(&out[place..], in_value).is_some())
    else {
        return;
    };
    let tail = out.split_off(first);
    let mut rest = tail.as_slice();
    while let Some((byte, after)) = rest.split_first() {
        if let Some((written, length)) = replacement(rest, in_value) {
            out.extend_from_slice(written);
            rest = &rest[length..];
        } else {
            out.push(*byte);
            rest = after;
        }
    }
}

/// The replacement of the character at the start of `bytes`, and that character's length.
fn replacement(bytes: &[u8], in_value: bool) -> Option<(&'static [u8], usize)> {
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
