//! The hosts that a server answers for, as protection against DNS rebinding: otherwise a page of a
//! foreign site, whose name suddenly resolves to this server, could read all its content as
//! same-origin.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Once};

use bine_http::Status;
use bine_log as log;
use bine_server::{Address, ClientAddress, Listen};

use crate::languages::VisitorWords;
use crate::respond::Response;
use crate::sites::{HostPattern, without_port};
use crate::visitor_message::VisitorMessage;

/// The value of the key `hosts`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum HostChoice {
    /// The names of the certificates; without certificates, the default for the addresses.
    #[default]
    Auto,
    Any,
    Only(Vec<HostPattern>),
}

/// The hosts that a server answers for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Hosts {
    Any,
    Some {
        names: Vec<HostPattern>,
        /// Whether names without a dot and IP addresses are accepted too: no site on the internet
        /// controls them.
        has_local: bool,
    },
}

/// One thread's view of the hosts.
pub(crate) struct LocalHosts {
    hosts: Arc<Hosts>,
    /// The last accepted host, as it was sent.
    last: Vec<u8>,
}

/// The longest host name (RFC 1035 section 3.1.1), with its port.
const MAX_HOST: usize = 261;

/// The response to a request for an unknown host.
pub(crate) fn misdirected(words: &VisitorWords) -> Response {
    static LOGGED: Once = Once::new();
    LOGGED.call_once(|| {
        log::warn(format_args!(
            "a request for an unknown host was answered 421; add the host to the key `hosts`, or set `any` to accept all"
        ));
    });
    let text = words.say(&VisitorMessage::UnknownHost {}) + "\n";
    Response::text(text).with_status(Status::MISDIRECTED_REQUEST)
}

impl HostChoice {
    /// Adds one value of the key.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), String> {
        match (text, &mut *self) {
            ("auto", Self::Auto) => {}
            ("any", Self::Auto | Self::Any) => *self = Self::Any,
            ("auto" | "any", _) | (_, Self::Any) => {
                return Err("must name hosts, or be `any` or `auto` alone".to_owned());
            }
            (name, Self::Only(hosts)) => hosts.push(HostPattern::parse(name)?),
            (name, Self::Auto) => *self = Self::Only(vec![HostPattern::parse(name)?]),
        }
        Ok(())
    }
}

impl Hosts {
    /// The hosts of a server with these addresses. `certified` are the hosts of the certificates,
    /// `sites` the hosts of the sites.
    pub(crate) fn of(
        choice: &HostChoice,
        certified: Vec<HostPattern>,
        sites: impl IntoIterator<Item = HostPattern>,
        listeners: &[Listen],
    ) -> Self {
        let mut tcp = listeners.iter().filter(|listen| !matches!(listen.address, Address::Unix(_)));
        let is_loopback = |listen: &Listen| matches!(listen.address, Address::Tcp(address) if address.ip().is_loopback());
        let (mut names, has_local) = match choice {
            HostChoice::Any => return Self::Any,
            HostChoice::Only(names) => (names.clone(), false),
            HostChoice::Auto if !certified.is_empty() => (certified, true),
            HostChoice::Auto if listeners.is_empty() || !tcp.all(is_loopback) => return Self::Any,
            HostChoice::Auto => (Vec::new(), true),
        };
        names.extend(sites);
        Self::Some { names, has_local }
    }

    /// The calling thread's view of the hosts.
    pub(crate) fn local(self: &Arc<Self>) -> LocalHosts {
        LocalHosts { hosts: Arc::clone(self), last: Vec::with_capacity(MAX_HOST) }
    }
}

impl LocalHosts {
    /// Whether the server answers a request for `authority`, which is ASCII and may have a port. Requests
    /// without a host and requests on a Unix socket are accepted: no browser sends them for a page
    /// of a foreign site.
    #[inline]
    pub(crate) fn accept(&mut self, authority: Option<&[u8]>, peer: ClientAddress) -> bool {
        let Hosts::Some { names, has_local } = &*self.hosts else { return true };
        let Some(authority) = authority else { return true };
        if authority == self.last {
            return true;
        }
        let Some(ip) = peer.ip() else { return true };
        let Ok(text) = str::from_utf8(authority) else { return false };
        let host = without_port(text);
        let is_named = || names.iter().any(|name| name.fit(host).is_some());
        let is_answered = *has_local && is_local(host) || is_named();
        if !is_answered {
            // A client on this machine may always use a loopback address.
            return ip.to_canonical().is_loopback() && is_loopback(host);
        }
        if authority.len() <= MAX_HOST {
            self.last.clear();
            self.last.extend_from_slice(authority);
        }
        true
    }
}

/// Whether no DNS response decides where `host` leads: an IP address, `localhost` and names below
/// it (RFC 6761), or a name without a dot, which no site on the internet has.
pub(crate) fn is_local(host: &str) -> bool {
    address(host).is_some() || !host.contains('.') || is_localhost(host)
}

/// Whether `host` is this machine: `localhost`, a name below it, or a loopback address.
pub(crate) fn is_loopback(host: &str) -> bool {
    is_localhost(host) || address(host).is_some_and(|address| address.is_loopback())
}

fn is_localhost(host: &str) -> bool {
    let start = host.len().saturating_sub("localhost".len());
    let end = &host.as_bytes()[start..];
    end.eq_ignore_ascii_case(b"localhost") && (start == 0 || host.as_bytes()[start - 1] == b'.')
}

fn address(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    const REMOTE: &str = "192.0.2.7:4000";
    const LOCAL: &str = "127.0.0.1:4000";

    fn patterns(names: &[&str]) -> Vec<HostPattern> {
        names.iter().map(|name| HostPattern::parse(name).unwrap()).collect()
    }

    fn listen(addresses: &[&str]) -> Vec<Listen> {
        let address = |text: &&str| match text.parse::<SocketAddr>() {
            Ok(address) => Address::Tcp(address),
            Err(_) => Address::Unix((*text).into()),
        };
        addresses.iter().map(address).map(Listen::on).collect()
    }

    #[track_caller]
    fn check(hosts: &Arc<Hosts>, peer: &str, accepted: &[&str], refused: &[&str]) {
        let peer = ClientAddress::tcp(peer.parse().unwrap());
        let mut local = hosts.local();
        for _ in 0..2 {
            for host in accepted {
                assert!(local.accept(Some(host.as_bytes()), peer), "{host}");
            }
            for host in refused {
                assert!(!local.accept(Some(host.as_bytes()), peer), "{host}");
            }
        }
        assert!(local.accept(None, peer));
        for host in refused {
            assert!(local.accept(Some(host.as_bytes()), ClientAddress::UNIX), "{host}");
        }
    }

    #[test]
    fn loopback_server_rejects_foreign_host_names() {
        for addresses in [&["127.0.0.1:80"][..], &["[::1]:80", "127.3.2.1:1", "/run/a.sock"]] {
            let sites = patterns(&["shop.example", "*.shop.example"]);
            let hosts = Hosts::of(&HostChoice::Auto, Vec::new(), sites, &listen(addresses));
            check(
                &Arc::new(hosts),
                LOCAL,
                &[
                    "localhost",
                    "LOCALHOST:8080",
                    "app.localhost:1",
                    "127.0.0.1:8080",
                    "127.9.9.9",
                    "[::1]:80",
                    "192.0.2.1",
                    "machine",
                    "shop.example",
                    "a.shop.example:80",
                ],
                &[
                    "evil.example",
                    "evil.example:8080",
                    "localhost.evil.example",
                    "127.0.0.1.evil.example",
                ],
            );
        }
    }

    #[test]
    fn server_without_known_names_accepts_all_hosts() {
        for addresses in [&["0.0.0.0:80"][..], &["127.0.0.1:80", "192.0.2.1:80"], &["[::]:80"]] {
            let hosts = Hosts::of(&HostChoice::Auto, Vec::new(), [], &listen(addresses));
            assert_eq!(hosts, Hosts::Any, "{addresses:?}");
        }
        let any = Hosts::of(&HostChoice::Any, patterns(&["a.example"]), [], &listen(&[LOCAL]));
        assert_eq!(any, Hosts::Any);
    }

    #[test]
    fn server_with_a_certificate_accepts_its_names_and_addresses() {
        let certified = patterns(&["a.example", "*.b.example"]);
        let hosts = Hosts::of(&HostChoice::Auto, certified, [], &listen(&["0.0.0.0:443"]));
        check(
            &Arc::new(hosts),
            REMOTE,
            &["a.example", "A.example.:443", "c.b.example", "192.0.2.1", "[2001:db8::1]:443"],
            &["b.example", "evil.example", "a.example.evil.example"],
        );
    }

    #[test]
    fn configured_hosts_replace_all_but_loopback() {
        let mut choice = HostChoice::Auto;
        choice.add("a.example").unwrap();
        choice.add("*.b.example").unwrap();
        assert!(choice.add("any").is_err());
        let certified = patterns(&["c.example"]);
        let hosts = Hosts::of(&choice, certified, patterns(&["d.example"]), &listen(&[LOCAL]));
        let hosts = Arc::new(hosts);
        let refused = ["c.example", "192.0.2.1", "machine"];
        check(
            &hosts,
            LOCAL,
            &["a.example", "c.b.example", "d.example", "localhost", "127.0.0.1:1"],
            &refused,
        );
        check(
            &hosts,
            REMOTE,
            &["a.example", "c.b.example"],
            &["localhost", "127.0.0.1", "192.0.2.1"],
        );
    }

    #[test]
    fn remembers_the_last_host_without_allocating() {
        let hosts = Hosts::of(&HostChoice::Auto, Vec::new(), [], &listen(&[LOCAL]));
        let mut local = Arc::new(hosts).local();
        let capacity = local.last.capacity();
        let long = "a".repeat(1000);
        for host in ["localhost", "machine:80", &long] {
            assert!(
                local.accept(Some(host.as_bytes()), ClientAddress::tcp(LOCAL.parse().unwrap()))
            );
        }
        assert_eq!((local.last.as_slice(), local.last.capacity()), (&b"machine:80"[..], capacity));
    }
}
