//! Validation of the host and port in Host fields and absolute-form targets.

use core::net::Ipv6Addr;
use core::str;

use crate::scan;

/// Returns whether the text is a `uri-host [ ":" port ]` (RFC 9110 section 7.2).
///
/// The rule is narrower than RFC 3986: a name consists of letters, digits, `-`, `.`, `_` and `~`.
/// No host in use needs percent-encoding or sub-delimiters, and other software could read a comma
/// as a list separator.
#[inline]
pub(crate) fn is_valid(authority: &[u8]) -> bool {
    match authority.split_at(scan::prefix_length(authority, |byte| IS_NAME[usize::from(byte)])) {
        ([], [b'[', bracketed @ ..]) => is_bracketed_address(bracketed),
        ([], _) => false,
        (_, rest) => is_port_or_end(rest),
    }
}

/// Returns whether the text after an opening bracket is an IPv6 address with its closing bracket
/// and an optional port.
#[cold]
fn is_bracketed_address(bracketed: &[u8]) -> bool {
    let Some(end) = bracketed.iter().position(|&byte| byte == b']') else {
        return false;
    };
    let address = str::from_utf8(&bracketed[..end]).unwrap_or_default();
    address.parse::<Ipv6Addr>().is_ok() && is_port_or_end(&bracketed[end + 1..])
}

/// Returns whether the text is empty or a port after a colon. RFC 3986 section 3.2.3 allows an
/// empty port.
#[inline]
fn is_port_or_end(rest: &[u8]) -> bool {
    let port = match rest {
        [] => return true,
        [b':', port @ ..] => port,
        _ => return false,
    };
    let value = |port: &[u8]| {
        port.iter().fold(0u32, |value, digit| (value * 10 + u32::from(digit - b'0')).min(1 << 16))
    };
    // A number of four digits is always a valid port.
    port.iter().all(u8::is_ascii_digit) && (port.len() <= 4 || value(port) < 1 << 16)
}

/// The bytes that are allowed in a host name.
const IS_NAME: [bool; 256] = {
    let mut is_name = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        is_name[byte] =
            (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'-' | b'.' | b'_' | b'~');
        byte += 1;
    }
    is_name
};

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn accepts_names_and_addresses_with_optional_port() {
        for host in [
            "a",
            "a.example",
            "a-b_c~d",
            "a:80",
            "a:",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:80",
            "[::ffff:1.2.3.4]",
            "a:65535",
            "a:00080",
            "xn--bcher-kva.example.",
        ] {
            assert!(is_valid(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn rejects_malformed_hosts() {
        for host in [
            "",
            ":80",
            "a b",
            "a,b",
            "u@a",
            "u:p@a",
            "a/b",
            "a?b",
            "a#b",
            "a:x",
            "a:80:80",
            "a:-1",
            "a:+1",
            "a:65536",
            "a:99999999999999999999",
            "[::1",
            "[]",
            "[::1]x",
            "[::1%25lo]",
            "[v1.a]",
            "::1",
            "a%41",
            "a\\b",
            "<a>",
            "\u{e4}",
            "[1.2.3.4]",
        ] {
            assert!(!is_valid(host.as_bytes()), "{host}");
        }
    }
}
