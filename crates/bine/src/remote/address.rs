//! The address of a remote server: parses and displays it.

use std::fmt;
use std::net::Ipv6Addr;

/// The address of a server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Address {
    pub(super) is_tls: bool,
    /// A name or an IP address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// The prefix of every path: empty, or with a leading slash.
    pub(super) base: String,
}

impl Address {
    /// Parses `https://name`, with a port or a path if they are not the default.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let bad = |what: &str| format!("`{text}` is no address of a server: {what}");
        let split = text.split_once("://").ok_or_else(|| bad("it begins with https:// or http://"));
        let (scheme, rest) = split?;
        let is_tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(bad("it begins with https:// or http://")),
        };
        let (authority, base) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or_else(|| bad("its bracket is not closed"))?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let is_v6 = authority.starts_with('[') && host.parse::<Ipv6Addr>().is_ok();
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if !is_v6 && (host.is_empty() || authority.starts_with('[') || !host.bytes().all(is_letter))
        {
            return Err(bad("its host is a name or an address, without a user"));
        }
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => 80 + 363 * u16::from(is_tls),
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| bad("its port is a number to 65535"))?
            }
            _ => return Err(bad("its port is a number to 65535")),
        };
        if !is_path(base) || base.contains('?') {
            return Err(bad("its path has neither spaces nor `?` nor `#`"));
        }
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self { is_tls, host: host.to_ascii_lowercase(), port, base })
    }

    /// The value of the `Host` field (RFC 9110 section 7.2).
    pub(super) fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.is_tls { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }
}

/// For messages.
impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(to, "{scheme}://{}{}", self.authority(), self.base)
    }
}

/// Whether it is valid in a request line, with or without a query.
pub(super) fn is_path(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        let told = match Address::parse(text) {
            Ok(address) => format!("{} {} {address}", address.host, address.port),
            Err(error) => error.split_once("a server: ").unwrap().1.to_owned(),
        };
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn parses_addresses_with_optional_port_and_path() {
        check("https://Other", "other 443 https://other");
        check("http://other:80/", "other 80 http://other");
        check("https://10.0.0.2:8443/deep/", "10.0.0.2 8443 https://10.0.0.2:8443/deep");
        check("http://[::1]:8080", "::1 8080 http://[::1]:8080");
    }

    #[test]
    fn rejects_invalid_addresses_with_reason() {
        let scheme = "it begins with https:// or http://";
        check("other:8443", scheme);
        check("ftp://other", scheme);
        let host = "its host is a name or an address, without a user";
        for text in ["https://", "https://:1", "https://me@other", "http://[other]", "http://a b"] {
            check(text, host);
        }
        check("http://[::1", "its bracket is not closed");
        for text in ["http://a:", "http://a:x", "http://a:65536", "http://[::1]x", "http://a:+1"] {
            check(text, "its port is a number to 65535");
        }
        for text in ["http://a/?b", "http://a/#b", "http://a/b c", "http://a/\r\nHost: b"] {
            check(text, "its path has neither spaces nor `?` nor `#`");
        }
    }

    proptest! {
        #[test]
        fn displayed_address_parses_to_same_address(text in "https?://[a-z\\[\\]:.@?#/0-9 ]{0,12}") {
            if let Ok(address) = Address::parse(&text) {
                prop_assert_eq!(Address::parse(&address.to_string()), Ok(address));
            }
        }
    }
}
