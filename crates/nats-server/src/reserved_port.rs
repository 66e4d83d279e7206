//! A port for a program that a test starts.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};

/// A reserved TCP port of IPv4: the system does not assign it to a socket that asks for any free port.
/// A socket of IPv6 alone may get the same number.
///
/// A server that sets `SO_REUSEADDR` can listen at this port, stop and listen again. The kernel
/// refuses connections while no server listens. The value releases the port when it is dropped.
#[derive(Debug)]
pub struct ReservedPort {
    number: u16,
    /// A socket that is bound and does not listen.
    _socket: OwnedFd,
}

impl ReservedPort {
    /// Reserves a free port on all addresses of IPv4.
    ///
    /// # Panics
    ///
    /// All ports are in use.
    pub fn new() -> Self {
        let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        set_socket_reuseaddr(&socket, true).unwrap();
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let address = SocketAddr::try_from(getsockname(&socket).unwrap()).unwrap();
        Self { number: address.port(), _socket: socket }
    }

    /// Its number.
    pub const fn number(&self) -> u16 {
        self.number
    }
}

impl Default for ReservedPort {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn accepts_listeners_of_its_number_in_turn() {
        let port = ReservedPort::new();
        let local = (Ipv4Addr::LOCALHOST, port.number());
        // The standard library sets `SO_REUSEADDR`.
        for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            assert!(TcpStream::connect(local).is_err());
            let _listener = TcpListener::bind((address, port.number())).unwrap();
            assert!(TcpStream::connect(local).is_ok());
            assert!(TcpListener::bind(local).is_err());
        }
    }

    #[test]
    fn differs_from_every_free_port_of_the_system() {
        let reserved: Vec<_> = (0..200).map(|_| ReservedPort::new()).collect();
        let mut numbers: Vec<_> = reserved.iter().map(ReservedPort::number).collect();
        let listeners: Vec<_> =
            (0..200).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        numbers.extend(listeners.iter().map(|listener| listener.local_addr().unwrap().port()));
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 400);
    }
}
