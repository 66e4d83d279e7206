//! Percent-encoding of names and values in a query.

use std::fmt::Write as _;

/// Percent-encodes a text for a query (RFC 3986 section 2.1).
pub(crate) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _never_fails = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
