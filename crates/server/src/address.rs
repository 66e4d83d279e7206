//! The addresses of both ends of a connection: where the server listens, and the client's address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use rustix::net::SocketAddrAny;

/// An address to listen on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// An IP address and port; port 0 asks the kernel for a free one.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
    /// A listening descriptor inherited from the service manager.
    Inherited(i32),
}

/// An address that could not be parsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadAddress(String);

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not an address; write HOST:PORT (127.0.0.1:8080, [::1]:8080, :8080 for all), \
             localhost:PORT or unix:/path/to/socket",
            self.0
        )
    }
}

impl std::error::Error for BadAddress {}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(bad()) } else { Ok(Self::Unix(path.into())) };
        }
        if let Ok(socket) = text.parse() {
            return Ok(Self::Tcp(socket));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let port = port.parse().map_err(|_| bad())?;
        let host = match host {
            "" | "*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            "localhost" => IpAddr::from([127, 0, 0, 1]),
            _ => return Err(bad()),
        };
        Ok(Self::Tcp(SocketAddr::new(host, port)))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(socket) => write!(f, "http://{socket}/"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Inherited(descriptor) => write!(f, "inherited descriptor {descriptor}"),
        }
    }
}

/// The address of a client, in 20 bytes, since every open connection stores one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientAddress {
    /// An IPv4 address is stored in its mapped form (RFC 4291, section 2.5.5.2).
    octets: [u8; 16],
    port: u16,
    /// A set of the bits below.
    flags: u8,
}

impl ClientAddress {
    /// A client on this machine that is connected through a Unix socket.
    pub const UNIX: Self = Self { octets: [0; 16], port: 0, flags: Self::IS_UNIX };

    const IS_UNIX: u8 = 1;
    const IS_SECURE: u8 = 2;
    const IS_PROXY: u8 = 4;
    const AWAITS_PREFACE: u8 = 8;
    const IS_REPORTED_PLAIN: u8 = 16;

    /// A client at `address`.
    pub fn tcp(address: SocketAddr) -> Self {
        let octets = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        Self { octets, port: address.port(), flags: 0 }
    }

    pub(crate) fn from_kernel(address: Option<SocketAddrAny>) -> Self {
        match address.and_then(|any| SocketAddr::try_from(any).ok()) {
            Some(address) => Self::tcp(address),
            None => Self::UNIX,
        }
    }

    /// The same client, connected to an address with TLS.
    #[must_use]
    pub const fn secured(self) -> Self {
        self.with_security(true)
    }

    /// The same client, connected with TLS or without.
    #[must_use]
    pub const fn with_security(self, is_secure: bool) -> Self {
        let flags = if is_secure { Self::IS_SECURE } else { 0 };
        Self { flags: self.flags & !Self::IS_SECURE | flags, ..self }
    }

    /// Whether the client is connected to an address with TLS, of this server or of a [trusted
    /// proxy](crate::TrustedProxies).
    pub const fn is_secure(&self) -> bool {
        self.flags & Self::IS_SECURE != 0
    }

    /// The same client, with the scheme that a proxy reports. `None` leaves the scheme.
    #[must_use]
    pub(crate) const fn with_reported_security(self, is_secure: Option<bool>) -> Self {
        let flags = self.flags & !Self::IS_REPORTED_PLAIN;
        match is_secure {
            None => Self { flags, ..self },
            Some(true) => Self { flags: flags | Self::IS_SECURE, ..self },
            Some(false) => {
                let flags = flags & !Self::IS_SECURE | Self::IS_REPORTED_PLAIN;
                Self { flags, ..self }
            }
        }
    }

    /// Whether a [trusted proxy](crate::TrustedProxies) reports that the client is connected to it
    /// without TLS. False if the proxy does not report the scheme.
    pub const fn is_reported_plain(&self) -> bool {
        self.flags & Self::IS_REPORTED_PLAIN != 0
    }

    /// The same client as a trusted proxy, or as any other client.
    #[must_use]
    pub(crate) const fn with_trust(self, is_proxy: bool) -> Self {
        let flags = if is_proxy { Self::IS_PROXY } else { 0 };
        Self { flags: self.flags & !Self::IS_PROXY | flags, ..self }
    }

    /// Whether the client is a [trusted proxy](crate::TrustedProxies).
    pub(crate) const fn is_proxy(&self) -> bool {
        self.flags & Self::IS_PROXY != 0
    }

    /// The same client, which has to send the header of the PROXY protocol first, or not.
    #[must_use]
    pub(crate) const fn with_preface(self, awaits_preface: bool) -> Self {
        let flags = if awaits_preface { Self::AWAITS_PREFACE } else { 0 };
        Self { flags: self.flags & !Self::AWAITS_PREFACE | flags, ..self }
    }

    /// Whether the connection begins with a header of the PROXY protocol that the server has not
    /// received yet. Until then this is the address of a proxy.
    pub(crate) const fn awaits_preface(&self) -> bool {
        self.flags & Self::AWAITS_PREFACE != 0
    }

    /// The IP address, `None` for a Unix socket. IPv4 through an IPv6 socket is returned as IPv4.
    pub fn ip(&self) -> Option<IpAddr> {
        (self.flags & Self::IS_UNIX == 0)
            .then(|| IpAddr::V6(Ipv6Addr::from(self.octets)).to_canonical())
    }

    /// The port, 0 for a Unix socket.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The IP address and port, `None` for a Unix socket.
    pub fn socket_address(&self) -> Option<SocketAddr> {
        self.ip().map(|ip| SocketAddr::new(ip, self.port))
    }

    /// Whether the client is on this machine: a loopback address or a Unix socket.
    pub fn is_local(&self) -> bool {
        self.ip().is_none_or(|ip| ip.is_loopback())
    }

    /// The block of addresses against which this client's quotas count. The connections of
    /// trusted proxies count as those of this machine.
    pub fn block(&self) -> AddressBlock {
        match self.ip().filter(|_| !self.is_proxy()) {
            Some(ip) => AddressBlock::of(ip),
            None => AddressBlock::UNIX,
        }
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip() {
            Some(ip) => write!(f, "{ip}"),
            None => f.write_str("unix"),
        }
    }
}

/// The block of addresses that one party is assumed to control: a single IPv4 address, or an IPv6
/// /64, which a provider assigns to one link (RFC 6177, RFC 7421). All clients on this machine are
/// one block, whether they use a loopback address or a Unix socket.
///
/// Every quota per client counts by this type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AddressBlock(u64);

impl AddressBlock {
    /// Clients on this machine.
    pub const LOCAL: Self = Self(1);
    /// A Unix socket is local.
    const UNIX: Self = Self::LOCAL;

    /// The block that contains `ip`.
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            ip if ip.is_loopback() => Self::LOCAL,
            // ::/64 contains the mapped addresses and no address of a host, so its numbers are
            // free.
            IpAddr::V4(ip) => Self((1 << 32) + u64::from(u32::from(ip))),
            IpAddr::V6(ip) => Self((u128::from(ip) >> 64) as u64),
        }
    }

    /// Whether the clients are on this machine.
    pub const fn is_local(self) -> bool {
        self.0 == Self::LOCAL.0
    }

    /// Whether the [site](Self::site) contains other blocks too, as an IPv6 /48 does.
    pub const fn has_neighbors(self) -> bool {
        self.0 >> 33 != 0
    }

    /// The /48 that contains an IPv6 block, which a provider may assign to one customer. Quotas per
    /// site are looser than quotas per block. An IPv4 address is its own site.
    pub const fn site(self) -> AddressSite {
        match self.0 >> 33 {
            0 => AddressSite(self.0),
            _ => AddressSite(self.0 >> 16 << 16),
        }
    }
}

impl fmt::Display for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_local() {
            return f.write_str("local");
        }
        match self.0 >> 33 {
            0 => write!(f, "{}", Ipv4Addr::from(self.0 as u32)),
            _ => write!(f, "{}/64", Ipv6Addr::from(u128::from(self.0) << 64)),
        }
    }
}

/// A group of [`AddressBlock`]s that may belong to one customer: an IPv6 /48 (RFC 6177).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AddressSite(u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<Address>() {
            Ok(address) => address.to_string(),
            Err(_) => "refused".to_owned(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn parses_addresses() {
        check("127.0.0.1:8080", "http://127.0.0.1:8080/");
        check("[::1]:80", "http://[::1]:80/");
        check(":8080", "http://[::]:8080/");
        check("*:8080", "http://[::]:8080/");
        check("localhost:0", "http://127.0.0.1:0/");
        check("unix:/run/bine.sock", "unix:/run/bine.sock");
        for wrong in ["", "8080", "host:80", "127.0.0.1", "127.0.0.1:99999", "unix:", "1.2.3:4"] {
            check(wrong, "refused");
        }
    }

    #[test]
    fn treats_a_mapped_address_as_ipv4() {
        let peer = ClientAddress::tcp("[::ffff:127.0.0.1]:9".parse().unwrap());
        assert_eq!(
            (peer.to_string().as_str(), peer.port(), peer.is_local()),
            ("127.0.0.1", 9, true)
        );
        assert!(!ClientAddress::tcp("192.0.2.1:9".parse().unwrap()).is_local());
        assert!(ClientAddress::UNIX.is_local());
        assert_eq!(size_of::<ClientAddress>(), 20);
    }

    #[test]
    fn counts_ipv6_by_64_and_48_and_ipv4_by_address() {
        let block = |text: &str| ClientAddress::tcp(text.parse().unwrap()).block();
        assert_eq!(block("[2001:db8:1:2::1]:9"), block("[2001:db8:1:2:ffff::]:8"));
        assert_ne!(block("[2001:db8:1:2::1]:9"), block("[2001:db8:1:3::1]:9"));
        assert_eq!(block("[2001:db8:1:2::1]:9").site(), block("[2001:db8:1:ff::1]:9").site());
        assert_ne!(block("[2001:db8:1:2::1]:9").site(), block("[2001:db8:2:2::1]:9").site());
        assert_ne!(block("192.0.2.1:9"), block("192.0.2.2:9"));
        assert_ne!(block("192.0.2.1:9").site(), block("192.0.2.2:9").site());
        assert_eq!(block("192.0.2.1:9"), block("[::ffff:192.0.2.1]:7"));
        // 0.0.0.1 and ::1 have equal bits; only ::1 is this machine.
        assert!(!block("0.0.0.1:9").is_local());
        for local in ["127.0.0.1:1", "127.9.9.9:2", "[::1]:3", "[::ffff:127.0.0.1]:4"] {
            assert_eq!(block(local), AddressBlock::LOCAL, "{local}");
        }
        assert_eq!(ClientAddress::UNIX.block(), AddressBlock::LOCAL);
    }

    #[test]
    fn displays_blocks() {
        let name = |text: &str| ClientAddress::tcp(text.parse().unwrap()).block().to_string();
        assert_eq!(name("192.0.2.1:9"), "192.0.2.1");
        assert_eq!(name("[2001:db8:1:2::1]:9"), "2001:db8:1:2::/64");
        assert_eq!(name("[::1]:9"), "local");
    }
}
