//! Client sockets with a chosen source address.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};

/// A socket bound to `from`, with a port chosen by the kernel.
pub(crate) fn bound(from: IpAddr, flags: SocketFlags) -> rustix::io::Result<OwnedFd> {
    let family = if from.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, flags | SocketFlags::CLOEXEC, None)?;
    // Otherwise `bind` requires a port that no other socket of this address uses.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddr::new(from, 0))?;
    Ok(socket)
}

/// Opens a non-blocking connection.
pub(crate) fn begin(from: IpAddr, to: SocketAddr) -> rustix::io::Result<TcpStream> {
    let socket = bound(from, SocketFlags::NONBLOCK)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error),
    }
}
