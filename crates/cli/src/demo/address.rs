//! The address at which a visitor sees this server, for the commands that the demo shows.

use std::borrow::Cow;

use bine::Request;

/// The addresses in the texts, which represent this server.
const WRITTEN: [&str; 2] = ["127.0.0.1:8080", "localhost:8080"];

/// The address that a visitor used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Visited {
    /// `http` or `https`.
    scheme: &'static str,
    /// Host and port, escaped for HTML.
    authority: Option<String>,
}

impl Visited {
    /// Reads the address from a request.
    pub(crate) fn by(request: &Request) -> Self {
        Self::at(request.client_address().is_secure(), request.host())
    }

    fn at(is_secure: bool, authority: Option<&str>) -> Self {
        let authority = authority.filter(|authority| {
            // Other characters cannot occur in a host and port, and HTML must not interpret them.
            !authority.is_empty()
                && authority.chars().all(|char| {
                    char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | ':' | '[' | ']')
                })
        });
        let scheme = if is_secure { "https" } else { "http" };
        Self { scheme, authority: authority.map(str::to_owned) }
    }

    /// Replaces the addresses that the guide uses, in text or HTML: a URL becomes the one of the
    /// visitor, and an address to listen at gets the visitor's port.
    pub(crate) fn replace_in<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(authority) = &self.authority else { return text.into() };
        let port = authority.rsplit_once(':').map(|(_, port)| port);
        let port = port.filter(|port| !port.is_empty() && !port.ends_with(']'));
        let (mut replaced, mut rest) = (String::new(), text);
        while let Some((at, written)) = find_first(rest) {
            let (before, after) = rest.split_at(at);
            rest = &after[written.len()..];
            match before.strip_suffix("http://") {
                Some(before) => {
                    replaced.extend([before, self.scheme, "://", authority]);
                }
                None => {
                    let own_port = port.unwrap_or("8080");
                    let host = written.split(':').next().unwrap_or_default();
                    replaced.extend([before, host, ":", own_port]);
                }
            }
        }
        if replaced.is_empty() {
            return text.into();
        }
        replaced.push_str(rest);
        replaced.into()
    }
}

fn find_first(text: &str) -> Option<(usize, &'static str)> {
    WRITTEN.iter().filter_map(|written| Some((text.find(written)?, *written))).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(is_secure: bool, authority: Option<&str>, text: &str, replaced: &str) {
        assert_eq!(Visited::at(is_secure, authority).replace_in(text), replaced);
    }

    #[test]
    fn replaces_urls_by_the_address_of_the_visitor() {
        let text = "curl http://127.0.0.1:8080/a and http://localhost:8080";
        check(false, Some("[::1]:41"), text, "curl http://[::1]:41/a and http://[::1]:41");
        check(
            true,
            Some("example.org"),
            text,
            "curl https://example.org/a and https://example.org",
        );
        check(false, Some("localhost:8080"), "none", "none");
    }

    #[test]
    fn replaces_only_the_port_of_an_address_to_listen_at() {
        let text = "--listen 127.0.0.1:8080 --metrics 127.0.0.1:9100";
        check(false, Some("a:41"), text, "--listen 127.0.0.1:41 --metrics 127.0.0.1:9100");
        check(true, Some("example.org"), text, text);
        check(false, Some("[::1]"), text, text);
    }

    #[test]
    fn keeps_text_without_a_usable_host() {
        let text = "http://127.0.0.1:8080/";
        for authority in [None, Some(""), Some("<b>:1")] {
            check(false, authority, text, text);
        }
    }
}
