//! Proxies in front of the server. The server believes the fields in which a trusted proxy names the
//! client, or the header of its connection, and ignores those of other clients.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use bine_http::{Head, ProxyHeader};

use crate::address::ClientAddress;

/// The trusted proxies, and the fields in which they name the client.
///
/// A request of a proxy has the address, the scheme and the host that the proxy reports, everywhere
/// in the server. All connections of trusted proxies together count as clients on this machine,
/// since one proxy opens connections for many clients.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TrustedProxies {
    networks: Vec<Network>,
    has_unix: bool,
    /// The fields of the proxies.
    pub fields: ProxyFields,
}

/// The fields in which proxies name the client. The server believes one kind only: a proxy that
/// sets the fields of one kind often passes on those of the second kind from the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProxyFields {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// A network of IP addresses, as an address and the number of its leading bits that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Network {
    /// An IPv4 address is stored in its mapped form (RFC 4291, section 2.5.5.2).
    bits: u128,
    prefix: u32,
}

/// A value that is no proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadProxy(String);

/// The maximum number of proxies between a client and the server.
const MAX_HOPS: usize = 16;

/// What the proxies report of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Report<'b> {
    /// The address of the client. `None` leaves that of the connection.
    client: Option<SocketAddr>,
    is_secure: Option<bool>,
    host: Option<&'b [u8]>,
}

/// The last elements of a list, from its end. Earlier elements are dropped.
struct LastElements<'b> {
    elements: [&'b [u8]; MAX_HOPS],
    length: usize,
}

impl TrustedProxies {
    /// Trusts a proxy too: an IP address, a network such as `10.0.0.0/8`, or `unix` for the clients
    /// of Unix sockets.
    ///
    /// # Errors
    ///
    /// `text` is no such value.
    pub fn add(&mut self, text: &str) -> Result<(), BadProxy> {
        match text {
            "unix" => self.has_unix = true,
            _ => self.networks.push(text.parse()?),
        }
        Ok(())
    }

    /// Whether there is no trusted proxy.
    pub const fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.has_unix
    }

    /// Whether the client of a connection is a proxy.
    pub(crate) fn contain(&self, client: ClientAddress) -> bool {
        client.ip().map_or(self.has_unix, |ip| self.contain_ip(ip))
    }

    fn contain_ip(&self, ip: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(ip))
    }

    /// The client of a connection that the proxy `sender` has begun with this header.
    ///
    /// The connection belongs to one client, who may have sent the fields of requests. The server
    /// believes these only if the client itself is a proxy.
    pub(crate) fn client_of(&self, sender: ClientAddress, header: &ProxyHeader) -> ClientAddress {
        let sender = sender.with_preface(false).with_trust(false);
        // As in a field, a loopback address is not believed.
        let client = header.client.filter(|client| !is_of_this_machine(client.ip()));
        let client = client.map(ClientAddress::tcp);
        let client = client.map(|client| client.with_trust(self.contain(client)));
        // A proxy forwards the bytes of TLS up to this server unchanged.
        let reported = header.is_secure.filter(|_| !sender.is_secure());
        let client = client.unwrap_or(sender).with_security(sender.is_secure());
        client.with_reported_security(reported)
    }

    /// The request and its client as the proxies report them. A request that no proxy sent stays as
    /// it is.
    pub(crate) fn resolve<'b>(
        &self,
        head: Head<'b>,
        peer: ClientAddress,
    ) -> (Head<'b>, ClientAddress) {
        if !peer.is_proxy() {
            return (head, peer);
        }
        // The connection counts as one of this machine. A request that names no client does not: otherwise
        // all visitors of such a proxy would escape the quotas of one address.
        let peer = peer.with_trust(false);
        // A reload may have ended the trust while the connection stays open.
        if !self.contain(peer) {
            return (head, peer);
        }
        let report = match self.fields {
            ProxyFields::XForwarded => self.x_forwarded(&head),
            ProxyFields::Forwarded => self.forwarded(&head),
        };
        let client = report.client.map_or(peer, ClientAddress::tcp).with_security(peer.is_secure());
        let client = client.with_reported_security(report.is_secure);
        let named = report.host.and_then(|host| head.with_authority(host));
        (named.unwrap_or(head), client)
    }

    /// Reads the fields that are conventional. Each proxy appends the address of its own client to
    /// `X-Forwarded-For`, so the elements are believed from the end, up to the first address that is
    /// no proxy. The scheme and the host are those of the same proxy if it has appended them, too;
    /// otherwise those of the last proxy that did.
    fn x_forwarded<'b>(&self, head: &Head<'b>) -> Report<'b> {
        let mut report = Report::default();
        let mut hop = 0;
        let addresses = LastElements::of(head, "x-forwarded-for");
        for (at, element) in addresses.reversed().enumerate() {
            let Some(client) = address(element) else { break };
            (hop, report.client) = (at, Some(client));
            if !self.contain_ip(client.ip()) {
                break;
            }
        }
        let schemes = LastElements::of(head, "x-forwarded-proto");
        report.is_secure = schemes.at_hop(hop).and_then(is_secure);
        report.host = LastElements::of(head, "x-forwarded-host").at_hop(hop);
        report
    }

    /// Reads the field of RFC 7239, section 4, from its end up to the first client that is no proxy
    /// or has no address.
    fn forwarded<'b>(&self, head: &Head<'b>) -> Report<'b> {
        let mut report = Report::default();
        for element in LastElements::of(head, "forwarded").reversed() {
            let Some(hop) = Report::of_element(element) else { break };
            report.is_secure = hop.is_secure.or(report.is_secure);
            report.host = hop.host.or(report.host);
            let Some(client) = hop.client else { break };
            report.client = Some(client);
            if !self.contain_ip(client.ip()) {
                break;
            }
        }
        report
    }
}

impl<'b> Report<'b> {
    /// Reads an element of `Forwarded`; `None` if it is malformed.
    fn of_element(element: &'b [u8]) -> Option<Self> {
        let mut report = Self::default();
        for pair in split(element, b';') {
            let pair = pair?.trim_ascii();
            if pair.is_empty() {
                continue;
            }
            let equals = pair.iter().position(|&byte| byte == b'=')?;
            let (name, value) = (&pair[..equals], unquoted(&pair[equals + 1..])?);
            if name.eq_ignore_ascii_case(b"for") {
                report.client = address(value);
            } else if name.eq_ignore_ascii_case(b"proto") {
                report.is_secure = is_secure(value);
            } else if name.eq_ignore_ascii_case(b"host") {
                report.host = Some(value);
            }
        }
        Some(report)
    }
}

impl<'b> LastElements<'b> {
    /// The elements of all fields with this name, in the order sent. A field with an unpaired quote
    /// counts as one element.
    fn of(head: &Head<'b>, name: &str) -> Self {
        let mut last = Self { elements: [&[]; MAX_HOPS], length: 0 };
        let fields = head.fields().filter(|(found, _)| found.eq_ignore_ascii_case(name));
        for (_, value) in fields {
            for element in split(value, b',') {
                last.push(element.unwrap_or(value).trim_ascii());
            }
        }
        last
    }

    fn push(&mut self, element: &'b [u8]) {
        if self.length == MAX_HOPS {
            self.elements.rotate_left(1);
            self.length -= 1;
        }
        self.elements[self.length] = element;
        self.length += 1;
    }

    fn reversed(&self) -> impl Iterator<Item = &'b [u8]> {
        self.elements[..self.length].iter().rev().copied()
    }

    /// The element of the proxy that is `hop` proxies away, or of the farthest one.
    fn at_hop(&self, hop: usize) -> Option<&'b [u8]> {
        let last = self.length.checked_sub(1)?;
        Some(self.elements[last - hop.min(last)])
    }
}

/// Splits a value at each separator outside of quoted strings. An unpaired quote ends the iteration
/// with `None`.
fn split(value: &[u8], separator: u8) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let mut is_quoted = false;
        for (at, &byte) in text.iter().enumerate() {
            if byte == b'"' {
                is_quoted = !is_quoted;
            } else if byte == separator && !is_quoted {
                rest = Some(&text[at + 1..]);
                return Some(Some(&text[..at]));
            }
        }
        Some((!is_quoted).then_some(text))
    })
}

/// The content of a token or a quoted string. No value in use needs an escaped character.
fn unquoted(value: &[u8]) -> Option<&[u8]> {
    let text = match value {
        [b'"', text @ .., b'"'] => text,
        _ => value,
    };
    (!text.contains(&b'"') && !text.contains(&b'\\')).then_some(text)
}

/// The address of a client: an IP address with or without a port. `None` for a hidden one (RFC 7239
/// section 6), and for a loopback address: only the kernel can tell that a client is on this
/// machine, which has rights of its own.
fn address(element: &[u8]) -> Option<SocketAddr> {
    let text = str::from_utf8(element).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let ip = bare.parse().map(|ip| SocketAddr::new(ip, 0));
    let address = ip.or_else(|_| text.parse()).ok()?;
    (!is_of_this_machine(address.ip())).then_some(address)
}

/// Whether no other machine has this address.
fn is_of_this_machine(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || ip.is_unspecified()
}

fn is_secure(scheme: &[u8]) -> Option<bool> {
    let is = |name: &[u8]| scheme.eq_ignore_ascii_case(name);
    match () {
        () if is(b"https") || is(b"wss") => Some(true),
        () if is(b"http") || is(b"ws") => Some(false),
        () => None,
    }
}

impl Network {
    fn contains(self, ip: IpAddr) -> bool {
        (bits(ip) ^ self.bits) & self.mask() == 0
    }

    /// The bits that count. A network has at least one.
    fn mask(self) -> u128 {
        u128::MAX << (128 - self.prefix)
    }
}

/// The bits of an address; those of an IPv4 address in its mapped form.
fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().into(),
        IpAddr::V6(ip) => ip.into(),
    }
}

impl FromStr for Network {
    type Err = BadProxy;

    fn from_str(text: &str) -> Result<Self, BadProxy> {
        let bad = |problem: &str| BadProxy(format!("`{text}` {problem}"));
        let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
        let Ok(ip) = address.parse::<IpAddr>() else {
            return Err(bad(
                "is no proxy: write an IP address, a network like 10.0.0.0/8, or unix",
            ));
        };
        // The mapped form has 96 bits before those of IPv4.
        let offset = if ip.is_ipv4() { 96 } else { 0 };
        let prefix = match (text.contains('/'), prefix.parse::<u32>()) {
            (false, _) => 128,
            (true, Ok(0)) => return Err(bad("would trust every client")),
            (true, Ok(prefix)) if prefix <= 128 - offset => prefix + offset,
            (true, _) => {
                return Err(bad(&format!("needs a prefix of 1 to {} bits", 128 - offset)));
            }
        };
        let mut network = Self { bits: bits(ip), prefix };
        let first = network.bits & network.mask();
        if first != network.bits {
            network.bits = first;
            return Err(bad(&format!("is inside a network: write `{network}`")));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Ipv6Addr::from(self.bits).to_canonical() {
            IpAddr::V4(ip) => write!(f, "{ip}/{}", self.prefix - 96),
            IpAddr::V6(ip) => write!(f, "{ip}/{}", self.prefix),
        }
    }
}

impl FromStr for ProxyFields {
    type Err = BadProxy;

    fn from_str(text: &str) -> Result<Self, BadProxy> {
        match text {
            "x-forwarded" => Ok(Self::XForwarded),
            "forwarded" => Ok(Self::Forwarded),
            _ => Err(BadProxy(format!("`{text}` is unknown: write x-forwarded or forwarded"))),
        }
    }
}

impl fmt::Display for BadProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadProxy {}

#[cfg(test)]
mod tests;
