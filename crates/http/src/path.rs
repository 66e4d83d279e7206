//! Decodes the path of a request: percent-encoding and dot segments, exactly once.
//!
//! The module rejects any path that a file system or a router could read differently after
//! decoding.

use alloc::string::String;
use core::str;

use crate::fault::PeerFault;

/// Rejects a path that is unsafe to decode. The caller has checked that it consists of target bytes
/// and begins with `/`.
///
/// Returns whether the path is literal: without percent-encoding and dot segments.
#[cold]
pub(crate) fn check(path: &[u8]) -> Result<bool, PeerFault> {
    let mut is_plain = true;
    let mut depth = 0u32;
    for segment in path[1..].split(|&byte| byte == b'/') {
        let mut rest = segment;
        while let Some(decoded) = next_char(&mut rest)? {
            match decoded {
                '/' | '\\' => return Err(PeerFault::PathSeparator),
                decoded if decoded.is_control() => return Err(PeerFault::PathControl),
                _ => {}
            }
        }
        is_plain &= !segment.contains(&b'%');
        match dot_count(segment) {
            1 => is_plain = false,
            2 => {
                is_plain = false;
                depth = depth.checked_sub(1).ok_or(PeerFault::PathAboveRoot)?;
            }
            _ => depth += 1,
        }
    }
    Ok(is_plain)
}

/// Decodes a path that [`check`] accepted and removes its dot segments (RFC 3986 section 5.2.4).
pub(crate) fn decode(path: &str) -> String {
    let mut decoded = String::with_capacity(path.len());
    let mut segments = path.as_bytes()[1..].split(|&byte| byte == b'/').peekable();
    while let Some(mut segment) = segments.next() {
        match dot_count(segment) {
            0 => {
                decoded.push('/');
                // `check` accepted every character, so the loop stops only at the end of the
                // segment.
                while let Ok(Some(decoded_char)) = next_char(&mut segment) {
                    decoded.push(decoded_char);
                }
                continue;
            }
            2 => decoded.truncate(decoded.rfind('/').unwrap_or(0)),
            _ => {}
        }
        // A dot segment at the end resolves to a directory, so the slash stays.
        if segments.peek().is_none() {
            decoded.push('/');
        }
    }
    decoded
}

/// Returns 1 for `.` and 2 for `..`, also percent-encoded, and 0 for any other segment.
fn dot_count(segment: &[u8]) -> usize {
    let mut rest = segment;
    let mut dots = 0;
    while !rest.is_empty() {
        rest = match rest {
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return 0,
        };
        dots += 1;
    }
    if dots <= 2 { dots } else { 0 }
}

/// Removes one decoded character from the front.
///
/// A target is ASCII, so a character outside ASCII can only be a run of two to four triplets.
fn next_char(rest: &mut &[u8]) -> Result<Option<char>, PeerFault> {
    let Some(first) = next_byte(rest)? else {
        return Ok(None);
    };
    let length = match first {
        0..0x80 => return Ok(Some(char::from(first))),
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Err(PeerFault::PathText),
    };
    let mut encoded = [first; 4];
    for place in &mut encoded[1..length] {
        *place = next_byte(rest)?.ok_or(PeerFault::PathText)?;
    }
    let text = str::from_utf8(&encoded[..length]).map_err(|_| PeerFault::PathText)?;
    Ok(text.chars().next())
}

/// Removes one byte or one percent-encoded triplet from the front.
fn next_byte(rest: &mut &[u8]) -> Result<Option<u8>, PeerFault> {
    let (byte, after) = match *rest {
        [] => return Ok(None),
        [b'%', high, low, after @ ..] => match (hex_digit(*high), hex_digit(*low)) {
            (Some(high), Some(low)) => (high << 4 | low, after),
            _ => return Err(PeerFault::PathPercent),
        },
        [b'%', ..] => return Err(PeerFault::PathPercent),
        [byte, after @ ..] => (*byte, after),
    };
    *rest = after;
    Ok(Some(byte))
}

/// Returns the value of a hexadecimal digit.
pub(crate) const fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::{check, decode};

    fn means(path: &str, expected: &str) {
        let actual = match check(path.as_bytes()) {
            Ok(true) => path.to_string(),
            Ok(false) => decode(path),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(actual, expected, "{path}");
    }

    #[test]
    fn literal_path_needs_no_decoding() {
        for path in ["/", "/a", "/a/b.c", "//", "/a//b", "/...", "/.a", "/a..", "/..a/b"] {
            assert_eq!(check(path.as_bytes()), Ok(true), "{path}");
        }
    }

    #[test]
    fn removes_dot_segments() {
        means("/a/../b", "/b");
        means("/a/..", "/");
        means("/a/.", "/a/");
        means("/a/./b", "/a/b");
        means("/.", "/");
        means("/a/b/../../c/", "/c/");
        means("/a//..", "/a/");
        means("/a/b/..", "/a/");
    }

    #[test]
    fn treats_encoded_dots_as_dots() {
        means("/a/%2e%2E/b", "/b");
        means("/a/.%2e/b", "/b");
        means("/%2e/a", "/a");
        means("/%2e%2e%2e", "/...");
        means("/%2e%2e", "path climbs above the root");
    }

    #[test]
    fn rejects_paths_above_the_root() {
        means("/..", "path climbs above the root");
        means("/a/../..", "path climbs above the root");
        means("/a/../../b/c", "path climbs above the root");
        means("/./..", "path climbs above the root");
    }

    #[test]
    fn decodes_exactly_once() {
        means("/%252e%252e/a", "/%2e%2e/a");
        means("/%2525", "/%25");
        means("/a%20b+c", "/a b+c");
        means("/%3f%23", "/?#");
    }

    #[test]
    fn requires_utf8_after_decoding() {
        means("/%C3%A4%e2%82%ac", "/\u{e4}\u{20ac}");
        means("/%f0%9f%90%9d", "/\u{1f41d}");
        means("/%c0%af", "path is not UTF-8");
        means("/%e0%80%af", "path is not UTF-8");
        means("/%ed%a0%80", "path is not UTF-8");
        means("/%80", "path is not UTF-8");
        means("/%c3", "path is not UTF-8");
        means("/%c3/%a4", "path is not UTF-8");
        means("/%f5%80%80%80", "path is not UTF-8");
        means("/%c3a", "path is not UTF-8");
    }

    #[test]
    fn rejects_encoded_separators_and_controls() {
        means("/a%2fb", "encoded slash or backslash in path");
        means("/a%2Fb", "encoded slash or backslash in path");
        means("/a%5cb", "encoded slash or backslash in path");
        means("/%00", "encoded control character in path");
        means("/%0d%0a", "encoded control character in path");
        means("/%7f", "encoded control character in path");
        means("/%c2%85", "encoded control character in path");
    }

    #[test]
    fn rejects_incomplete_triplets() {
        means("/%", "malformed percent-encoding in path");
        means("/%2", "malformed percent-encoding in path");
        means("/%zz", "malformed percent-encoding in path");
        means("/%2/a", "malformed percent-encoding in path");
        means("/%+2", "malformed percent-encoding in path");
    }
}
