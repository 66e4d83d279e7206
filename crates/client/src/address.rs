//! The address of an origin: parses and displays it.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use rustls::pki_types::ServerName;

/// The address of a server that a proxy sends requests to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum OriginAddress {
    /// A name or an IP address without brackets, and a port.
    Tcp {
        /// In lower case.
        host: String,
        /// Not 0.
        port: u16,
        /// Whether connections use TLS.
        is_tls: bool,
    },
    /// A socket in the file system.
    Unix(PathBuf),
}

/// An address that could not be parsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadOrigin {
    text: String,
    reason: &'static str,
}

impl OriginAddress {
    /// Whether connections use TLS.
    pub const fn is_tls(&self) -> bool {
        matches!(self, Self::Tcp { is_tls: true, .. })
    }

    /// The value of a `Host` field that names this origin (RFC 9110 section 7.2).
    pub fn authority(&self) -> String {
        match self {
            Self::Tcp { host, port, is_tls } => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                if *port == usual_port(*is_tls) { host } else { format!("{host}:{port}") }
            }
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

/// The port that an address without one has.
const fn usual_port(is_tls: bool) -> u16 {
    if is_tls { 443 } else { 80 }
}

impl FromStr for OriginAddress {
    type Err = BadOrigin;

    /// Parses `http://127.0.0.1:9000`, `https://name` or `unix:/path/to/socket`.
    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        let bad = |reason| BadOrigin { text: text.to_owned(), reason };
        if let Some(path) = text.strip_prefix("unix:") {
            let is_absolute = path.starts_with('/') && path.len() > 1;
            let reason = "the path of a socket begins with `/`";
            return if is_absolute { Ok(Self::Unix(path.into())) } else { Err(bad(reason)) };
        }
        let form = "write http://HOST:PORT, https://HOST:PORT or unix:/path/to/socket";
        let (rest, is_tls) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, true),
            (None, None) => return Err(bad(form)),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err(bad("an origin has no path; `strip-prefix` and `path` select paths"));
        }
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or_else(|| bad("its bracket is not closed"))?,
            None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
        };
        let is_v6 = rest.starts_with('[') && host.parse::<Ipv6Addr>().is_ok();
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = !rest.starts_with('[') && !host.is_empty() && host.bytes().all(is_letter);
        if !is_v6 && !is_name {
            return Err(bad("its host is a name or an IP address, without a user"));
        }
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => usual_port(is_tls),
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                let number = digits.parse().ok().filter(|number| *number > 0);
                number.ok_or_else(|| bad("its port is a number from 1 to 65535"))?
            }
            _ => return Err(bad("its port is a number from 1 to 65535")),
        };
        if is_tls && ServerName::try_from(host).is_err() {
            return Err(bad(
                "a certificate cannot be for its host: write a name of DNS or an IP address",
            ));
        }
        Ok(Self::Tcp { host: host.to_ascii_lowercase(), port, is_tls })
    }
}

impl fmt::Display for OriginAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { is_tls, .. } => {
                let scheme = if *is_tls { "https" } else { "http" };
                write!(to, "{scheme}://{}", self.authority())
            }
            Self::Unix(path) => write!(to, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for BadOrigin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "`{}` is no origin: {}", self.text, self.reason)
    }
}

impl std::error::Error for BadOrigin {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let told = match text.parse::<OriginAddress>() {
            Ok(address) => address.to_string(),
            Err(error) => error.to_string().split_once("origin: ").unwrap().1.to_owned(),
        };
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn parses_and_displays_origins() {
        check("http://Other", "http://other");
        check("http://127.0.0.1:9000/", "http://127.0.0.1:9000");
        check("http://[::1]:80", "http://[::1]");
        check("https://Other:443", "https://other");
        check("https://[::1]:80", "https://[::1]:80");
        check("unix:/run/app.sock", "unix:/run/app.sock");
    }

    #[test]
    fn rejects_invalid_origins_with_reason() {
        let form = "write http://HOST:PORT, https://HOST:PORT or unix:/path/to/socket";
        check("other:80", form);
        let name = "a certificate cannot be for its host: write a name of DNS or an IP address";
        check("https://a..b", name);
        check("unix:app", "the path of a socket begins with `/`");
        check("http://a/b", "an origin has no path; `strip-prefix` and `path` select paths");
        check("http://[::1", "its bracket is not closed");
        for text in ["http://", "http://:1", "http://me@a", "http://[a]", "http://a b"] {
            check(text, "its host is a name or an IP address, without a user");
        }
        for text in ["http://a:", "http://a:0", "http://a:65536", "http://a:+1"] {
            check(text, "its port is a number from 1 to 65535");
        }
    }
}
