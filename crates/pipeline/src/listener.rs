//! Decides how a listening socket comes to be: bound here, in the file system, or inherited.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, acceptfrom_with, bind, getsockname,
    listen, socket_with, sockopt,
};

use crate::address::{Address, Peer};
use crate::settings::Listen;

/// A socket that connections come from. Dropping a Unix one removes its file.
#[derive(Debug)]
pub(crate) struct Listener {
    descriptor: OwnedFd,
    address: Address,
}

impl Listener {
    /// Opens `wish.address`; the error names the address and, where there is one, the cure.
    pub(crate) fn open(wish: &Listen) -> io::Result<Self> {
        let opened = match &wish.address {
            Address::Tcp(address) => open_tcp(*address, wish),
            Address::Unix(path) => open_unix(path, wish),
            Address::Inherited(descriptor) => inherit(*descriptor),
        };
        opened.map_err(|error| {
            let cure = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    "; another program has it: stop that one or choose another with --listen"
                }
                io::ErrorKind::PermissionDenied => {
                    "; ports below 1024 need root or CAP_NET_BIND_SERVICE"
                }
                io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
                _ => "",
            };
            io::Error::new(
                error.kind(),
                format!("cannot listen on {}: {error}{cure}", wish.address),
            )
        })
    }

    /// The next connection; accepted sockets inherit `nodelay` and `send_buffer` from this one, so
    /// that an accept is one system call.
    pub(crate) fn accept(&self, flags: SocketFlags) -> io::Result<(OwnedFd, Peer)> {
        let (descriptor, peer) = acceptfrom_with(&self.descriptor, flags | SocketFlags::CLOEXEC)?;
        Ok((descriptor, Peer::from_kernel(peer)))
    }

    /// Where it listens, with the port that the kernel chose.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            // Nothing useful can be done if it is gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The descriptors that systemd passed, `LISTEN_FDS` from 3 on, if they are meant for us
/// (`sd_listen_fds(3)`).
pub fn inherited() -> Vec<Address> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").unwrap_or(0).min(64);
    (3..).take(count as usize).map(Address::Inherited).collect()
}

fn open_tcp(address: SocketAddr, wish: &Listen) -> io::Result<Listener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let descriptor = match socket_with(family, SocketType::STREAM, flags, None) {
        // `:8080` means every address; a machine without IPv6 still has the IPv4 ones.
        Err(rustix::io::Errno::AFNOSUPPORT) if address.ip().is_unspecified() => {
            return open_tcp((Ipv4Addr::UNSPECIFIED, address.port()).into(), wish);
        }
        other => other?,
    };
    sockopt::set_socket_reuseaddr(&descriptor, true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        sockopt::set_ipv6_v6only(&descriptor, false)?;
    }
    sockopt::set_tcp_nodelay(&descriptor, wish.nodelay)?;
    if let Some(bytes) = wish.send_buffer {
        sockopt::set_socket_send_buffer_size(&descriptor, bytes)?;
    }
    bind(&descriptor, &address)?;
    listen(&descriptor, wish.backlog)?;
    let bound = getsockname(&descriptor)?;
    let address = SocketAddr::try_from(bound).map_or(address, |bound| bound);
    Ok(Listener { descriptor, address: Address::Tcp(address) })
}

fn open_unix(path: &Path, wish: &Listen) -> io::Result<Listener> {
    remove_stale(path)?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let descriptor = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    if let Some(bytes) = wish.send_buffer {
        sockopt::set_socket_send_buffer_size(&descriptor, bytes)?;
    }
    bind(&descriptor, &SocketAddrUnix::new(path)?)?;
    listen(&descriptor, wish.backlog)?;
    Ok(Listener { descriptor, address: Address::Unix(path.to_owned()) })
}

/// A server that was killed leaves its socket's file behind. It is removed only when it is a
/// socket and nobody answers there.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            std::fs::remove_file(path)
        }
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file of that name")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn inherit(number: i32) -> io::Result<Listener> {
    // SAFETY: the number comes from the service manager's LISTEN_FDS contract, which gives these
    // descriptors to this process and to nobody else in it; each is adopted once, at start.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    let flags = fcntl_getfd(&descriptor)?;
    fcntl_setfd(&descriptor, flags | FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    let address = match SocketAddr::try_from(getsockname(&descriptor)?) {
        Ok(address) => Address::Tcp(address),
        Err(_) => Address::Inherited(number),
    };
    Ok(Listener { descriptor, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(address: &str) -> Listen {
        Listen::on(address.parse().unwrap())
    }

    #[test]
    fn a_port_in_use_is_an_error_that_names_the_cure() {
        let first = Listener::open(&on("127.0.0.1:0")).unwrap();
        let Address::Tcp(address) = first.address() else { panic!("{:?}", first.address()) };
        let error = Listener::open(&on(&address.to_string())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains("choose another with --listen"), "{error}");
    }

    #[test]
    fn a_dead_servers_socket_file_is_replaced_and_a_living_ones_is_not() {
        let folder = std::env::temp_dir().join(format!("bine-listener-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let wish = on(&format!("unix:{}", path.display()));
        // A dropped std listener leaves its file, as a killed server does.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let living = Listener::open(&wish).unwrap();
        assert_eq!(Listener::open(&wish).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(living);
        assert!(!path.exists(), "the file goes with its listener");
        std::fs::write(&path, "a file of somebody's").unwrap();
        assert_eq!(Listener::open(&wish).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(path.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
