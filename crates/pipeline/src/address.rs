//! Decides how the two ends of a connection are named: where we listen, and who came.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use rustix::net::SocketAddrAny;

/// A place to listen on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// An IP address and port; port 0 asks the kernel for a free one.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
    /// A listening descriptor inherited from the service manager.
    Inherited(i32),
}

/// An address that could not be understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadAddress(String);

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no address; write HOST:PORT (127.0.0.1:8080, [::1]:8080, :8080 for all), \
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

/// Who came: 20 bytes, since every open connection keeps one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// An IPv4 address is kept in its mapped form (RFC 4291 section 2.5.5.2).
    octets: [u8; 16],
    port: u16,
    is_unix: bool,
    is_secure: bool,
}

impl Peer {
    /// A peer on this machine that came through a Unix socket.
    pub const UNIX: Self = Self { octets: [0; 16], port: 0, is_unix: true, is_secure: false };

    /// A peer that came from `address`.
    pub fn tcp(address: SocketAddr) -> Self {
        let octets = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        Self { octets, port: address.port(), is_unix: false, is_secure: false }
    }

    pub(crate) fn from_kernel(address: Option<SocketAddrAny>) -> Self {
        match address.and_then(|any| SocketAddr::try_from(any).ok()) {
            Some(address) => Self::tcp(address),
            None => Self::UNIX,
        }
    }

    /// The same, through an address where TLS is spoken.
    #[must_use]
    pub const fn secured(self) -> Self {
        Self { is_secure: true, ..self }
    }

    /// Whether it came through an address where TLS is spoken.
    pub const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Its IP address, `None` for a Unix socket. IPv4 through an IPv6 socket shows as IPv4.
    pub fn ip(&self) -> Option<IpAddr> {
        (!self.is_unix).then(|| IpAddr::V6(Ipv6Addr::from(self.octets)).to_canonical())
    }

    /// Its port, 0 for a Unix socket.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// True for peers that the limit per address does not count: this very machine.
    pub fn is_local(&self) -> bool {
        self.ip().is_none_or(|ip| ip.is_loopback())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip() {
            Some(ip) => write!(f, "{ip}"),
            None => f.write_str("unix"),
        }
    }
}

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
    fn an_address_is_read_as_people_write_it() {
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
    fn a_mapped_address_shows_as_ipv4_and_counts_as_loopback() {
        let peer = Peer::tcp("[::ffff:127.0.0.1]:9".parse().unwrap());
        assert_eq!(
            (peer.to_string().as_str(), peer.port(), peer.is_local()),
            ("127.0.0.1", 9, true)
        );
        assert!(!Peer::tcp("192.0.2.1:9".parse().unwrap()).is_local());
        assert!(Peer::UNIX.is_local());
        assert_eq!(size_of::<Peer>(), 20);
    }
}
