//! Decides how bytes are searched: many at a time, without unsafe code.

use crate::line;

/// Position of the first line feed.
pub(crate) fn find_line_feed(bytes: &[u8]) -> Option<usize> {
    position(bytes, |byte| byte == b'\n')
}

/// Position of the first control, DEL and tab included.
#[inline]
pub(crate) fn find_control(bytes: &[u8]) -> Option<usize> {
    position(bytes, line::is_control)
}

/// How many bytes of a token stand in front.
#[inline]
pub(crate) fn token_length(bytes: &[u8]) -> usize {
    prefix_length(bytes, |byte| IS_TOKEN[usize::from(byte)])
}

/// How many bytes of a kind stand in front: four at a time, for a kind that is looked up in a table.
#[inline]
pub(crate) fn prefix_length(bytes: &[u8], is_kind: impl Fn(u8) -> bool) -> usize {
    let (fours, rest) = bytes.as_chunks::<4>();
    for (number, four) in fours.iter().enumerate() {
        // Counted without a branch: where a run ends cannot be predicted.
        let mut lasts = true;
        let mut length = 0;
        for &byte in four {
            lasts &= is_kind(byte);
            length += usize::from(lasts);
        }
        if !lasts {
            return number * 4 + length;
        }
    }
    let end = rest.iter().position(|&byte| !is_kind(byte)).unwrap_or(rest.len());
    fours.len() * 4 + end
}

/// Position of the first byte looked for: sixteen at a time, for a kind that is found by comparing.
///
/// The compiler makes vector instructions of a block, which over a browser's head took a fifth fewer of them
/// than words of eight bytes.
#[inline]
fn position(bytes: &[u8], is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let (blocks, rest) = bytes.as_chunks::<16>();
    for (number, block) in blocks.iter().enumerate() {
        let marks = block.map(|byte| if is_wanted(byte) { 0xff } else { 0 });
        if marks.iter().fold(0, |any, mark| any | mark) != 0 {
            let place = u128::from_le_bytes(marks).trailing_zeros() / 8;
            return Some(number * 16 + place as usize);
        }
    }
    let place = rest.iter().position(|&byte| is_wanted(byte))?;
    Some(blocks.len() * 16 + place)
}

/// The bytes that a token may have (RFC 9110 section 5.6.2).
const IS_TOKEN: [bool; 256] = {
    let mut is_token = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        is_token[byte] = line::is_token_byte(byte as u8);
        byte += 1;
    }
    is_token
};

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::{find_control, find_line_feed, token_length};
    use crate::line;

    /// Each byte at each place among others, before a second of its kind.
    #[track_caller]
    fn check(filler: u8, scan: fn(&[u8]) -> Option<usize>, is_wanted: fn(u8) -> bool) {
        for length in 0..40 {
            for place in 0..length {
                for byte in 0..=255 {
                    let mut bytes = vec![filler; length];
                    bytes[length - 1] = b'\n';
                    bytes[place] = byte;
                    let naive = bytes.iter().position(|&byte| is_wanted(byte));
                    assert_eq!(scan(&bytes), naive, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn a_line_feed_is_found_wherever_it_stands() {
        check(b'\x0b', find_line_feed, |byte| byte == b'\n');
    }

    #[test]
    fn a_control_is_found_wherever_it_stands() {
        for filler in [b' ', b'~', 0x80, 0xff] {
            check(filler, find_control, line::is_control);
        }
    }

    #[test]
    fn a_token_ends_at_the_first_byte_of_another_kind() {
        let ends = |bytes: &[u8]| Some(token_length(bytes)).filter(|&length| length < bytes.len());
        check(b'a', ends, |byte| !line::is_token(&[byte]));
    }
}
