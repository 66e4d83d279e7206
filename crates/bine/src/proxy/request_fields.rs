//! Which fields of a client's request reach the origin.

/// Fields of one connection (RFC 9110 section 7.6.1), those that this server writes itself, and
/// `Proxy`, which CGI programs take for the variable `HTTP_PROXY`.
const NEVER: [&str; 18] = [
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "max-forwards",
    "proxy",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-real-ip",
    "x-request-id",
    "via",
];

/// Whether the field is passed on. `listed`: the values of all `Connection` fields.
pub(super) fn is_passed(name: &str, listed: &[&[u8]]) -> bool {
    let name = name.as_bytes();
    let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
    let is_listed =
        |value: &&[u8]| value.split(|byte| *byte == b',').any(|option| is(option.trim_ascii()));
    // Some programs read `_` in a name as `-`, and so a field that was removed here.
    !name.contains(&b'_')
        && !NEVER.iter().any(|never| is(never.as_bytes()))
        && !name.get(..12).is_some_and(|start| start.eq_ignore_ascii_case(b"x-forwarded-"))
        && !listed.iter().any(is_listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_only_end_to_end_fields() {
        let listed: [&[u8]; 2] = [b"close, X-Hop", b"keep-alive"];
        let passed = |name| is_passed(name, &listed);
        for name in ["Accept", "cookie", "X-Forwarded", "Range"] {
            assert!(passed(name), "{name}");
        }
        for name in [
            "Connection",
            "Transfer-Encoding",
            "TE",
            "x-hop",
            "X-FORWARDED-FOR",
            "X-Forwarded-Anything",
            "X_Forwarded_For",
            "Content_Length",
            "Proxy",
            "close",
        ] {
            assert!(!passed(name), "{name}");
        }
    }
}
