//! Listening sockets: bound by this process (TCP, or a file for a Unix socket), or inherited.

use std::ffi::OsStr;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bine_log as log;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
    acceptfrom_with, bind, getsockname, listen, shutdown, socket_with, sockopt,
};
use socket2::SockRef;

use crate::address::{Address, ClientAddress};
use crate::proxies::TrustedProxies;
use crate::settings::Listen;
use crate::system::supervised;

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    descriptor: OwnedFd,
    address: Address,
    file: Mutex<Option<Arc<SocketFile>>>,
    /// Whether this process has bound it, so that no other process listens on it.
    is_own: bool,
    /// Options to set on each accepted socket, because it does not inherit them from this one.
    nodelay: Option<bool>,
    send_buffer: Option<usize>,
    /// Whether connections use TLS.
    is_secure: bool,
    /// Whether connections begin with a header of the PROXY protocol.
    has_preface: bool,
    proxies: Arc<TrustedProxies>,
}

/// How each socket is opened: it does not block, and child processes do not inherit it.
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// The bytes of a reply that the kernel keeps besides those on their way to the client, for a
/// connection of TCP.
///
/// Without this limit the kernel accepts up to 4 MiB for each client that reads slowly. With it, a
/// client with 8 connections got 1.3 to 1.6 times as many files of 10 MB, because the bytes that it read
/// were still in a cache (docs/measurements/files.md).
const MAX_UNSENT: u32 = 256 * 1024;

/// The file of a Unix socket that this process has bound. It is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl SocketFile {
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl Listener {
    /// Opens `options.address`. The error names the address and the remedy, if one is known.
    pub(crate) fn open(options: &Listen, proxies: &Arc<TrustedProxies>) -> io::Result<Self> {
        let opened = match &options.address {
            Address::Tcp(_) | Address::Unix(_)
                if let Some(descriptor) = supervised::take_socket(&options.address) =>
            {
                inherit(descriptor, options)
            }
            Address::Tcp(address) => open_tcp(*address, options),
            Address::Unix(path) => open_unix(path, options),
            Address::Inherited(descriptor) => inherit(*descriptor, options),
        };
        let opened = opened.map(|listener| Self { proxies: Arc::clone(proxies), ..listener });
        opened.map_err(|error| {
            let remedy = remedy(&options.address, error.kind());
            io::Error::new(
                error.kind(),
                format!("cannot listen on {}: {error}{remedy}", options.address),
            )
        })
    }

    /// The same socket with the options of `options`, for connections accepted from now on. The
    /// previous options are `older`.
    pub(crate) fn under(
        &self,
        options: &Listen,
        older: &Listen,
        proxies: &Arc<TrustedProxies>,
    ) -> io::Result<Self> {
        let descriptor = self.descriptor.try_clone()?;
        // A listening socket accepts a new limit.
        listen(&descriptor, options.backlog)?;
        if let (Some(bytes), None) = (older.send_buffer, options.send_buffer) {
            let address = &options.address;
            log::warn(format_args!("{address}: the send buffer is {bytes} until a restart"));
        }
        Ok(Self {
            descriptor,
            address: self.address.clone(),
            file: Mutex::new(self.file.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            is_own: self.is_own,
            nodelay: matches!(self.address, Address::Tcp(_)).then_some(options.nodelay),
            send_buffer: options.send_buffer,
            is_secure: options.tls,
            has_preface: options.proxy,
            proxies: Arc::clone(proxies),
        })
    }

    /// Accepts the next connection. A TCP socket inherits [`MAX_UNSENT`] from any listening socket,
    /// and `nodelay` and `send_buffer` from one that was bound here, so an accept is one system call. A
    /// Unix socket inherits no options. A connection that was already pending at an inherited socket has
    /// its old options.
    pub(crate) fn accept(&self, flags: SocketFlags) -> io::Result<(OwnedFd, ClientAddress)> {
        let (descriptor, peer) =
            acceptfrom_with(&self.descriptor, flags.union(SocketFlags::CLOEXEC))?;
        if let Some(nodelay) = self.nodelay {
            sockopt::set_tcp_nodelay(&descriptor, nodelay)?;
        }
        if let Some(bytes) = self.send_buffer {
            sockopt::set_socket_send_buffer_size(&descriptor, bytes)?;
        }
        let peer = ClientAddress::from_kernel(peer).with_security(self.is_secure);
        let peer = peer.with_trust(self.proxies.contain(peer)).with_preface(self.has_preface);
        Ok((descriptor, peer))
    }

    /// Makes the kernel refuse new connections, which would otherwise be queued and never accepted.
    /// An inherited socket stays open, because its other owners continue to use it.
    pub(crate) fn refuse(&self) {
        if self.is_own {
            // A shutdown ends listening.
            let _ = shutdown(&self.descriptor, Shutdown::Both);
        }
    }

    /// Removes the file of a Unix socket when serving has ended, even if other code still shares
    /// the server.
    pub(crate) fn remove_file(&self) {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Whether connections use TLS.
    pub(crate) const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The address, with the port that the kernel chose.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let path = self.0.display();
                log::warn(format_args!("the socket {path} could not be removed: {error}"));
            }
            _ => {}
        }
    }
}

/// The descriptors that systemd passed, `LISTEN_FDS` from 3 on, if they are for this process
/// (`sd_listen_fds(3)`).
pub fn inherited() -> Vec<Address> {
    let passed_on = supervised::passed_on();
    if !passed_on.is_empty() {
        return passed_on.into_iter().map(Address::Inherited).collect();
    }
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").unwrap_or(0).min(64);
    (3..).take(count as usize).map(Address::Inherited).collect()
}

/// The remedy for an address that cannot be opened.
const fn remedy(address: &Address, kind: io::ErrorKind) -> &'static str {
    match (kind, address) {
        (io::ErrorKind::AddrInUse, _) => {
            "; another program uses it: stop that program or choose another address with --listen"
        }
        (io::ErrorKind::PermissionDenied, Address::Tcp(_)) => {
            "; ports below 1024 need root or CAP_NET_BIND_SERVICE"
        }
        (io::ErrorKind::PermissionDenied, Address::Unix(_)) => {
            "; this user may not write to that folder: choose another or change its owner"
        }
        (io::ErrorKind::AddrNotAvailable, _) => "; this machine has no such address",
        (io::ErrorKind::InvalidInput, Address::Inherited(_)) => {
            "; its socket unit must set ListenStream= and Accept=no"
        }
        _ => "",
    }
}

fn open_tcp(address: SocketAddr, options: &Listen) -> io::Result<Listener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let descriptor = match socket_with(family, SocketType::STREAM, FLAGS, None) {
        // `:8080` means all addresses; a machine without IPv6 still has the IPv4 ones.
        Err(rustix::io::Errno::AFNOSUPPORT) if address.ip().is_unspecified() => {
            return open_tcp((Ipv4Addr::UNSPECIFIED, address.port()).into(), options);
        }
        other => other?,
    };
    sockopt::set_socket_reuseaddr(&descriptor, true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        sockopt::set_ipv6_v6only(&descriptor, false)?;
    }
    sockopt::set_tcp_nodelay(&descriptor, options.nodelay)?;
    if let Some(bytes) = options.send_buffer {
        sockopt::set_socket_send_buffer_size(&descriptor, bytes)?;
    }
    limit_unsent(&descriptor);
    bind(&descriptor, &address)?;
    listen(&descriptor, options.backlog)?;
    let bound = getsockname(&descriptor)?;
    let address = SocketAddr::try_from(bound).map_or(address, |bound| bound);
    Ok(Listener {
        descriptor,
        address: Address::Tcp(address),
        file: Mutex::default(),
        is_own: true,
        nodelay: None,
        send_buffer: None,
        is_secure: options.tls,
        has_preface: options.proxy,
        proxies: Arc::default(),
    })
}

fn limit_unsent(listener: &OwnedFd) {
    // A system without the option keeps more in memory, and works.
    let _ = SockRef::from(listener).set_tcp_notsent_lowat(MAX_UNSENT);
}

fn open_unix(path: &Path, options: &Listen) -> io::Result<Listener> {
    remove_stale(path)?;
    let descriptor = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    bind(&descriptor, &SocketAddrUnix::new(path)?)?;
    let file = Mutex::new(Some(Arc::new(SocketFile(path.to_owned()))));
    listen(&descriptor, options.backlog)?;
    Ok(Listener {
        descriptor,
        address: Address::Unix(path.to_owned()),
        file,
        is_own: true,
        nodelay: None,
        send_buffer: options.send_buffer,
        is_secure: options.tls,
        has_preface: options.proxy,
        proxies: Arc::default(),
    })
}

/// Removes the file of a server that was killed, if the file is a socket on which no process
/// listens.
pub(crate) fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            std::fs::remove_file(path)
        }
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file with this name exists")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn inherit(number: i32, options: &Listen) -> io::Result<Listener> {
    // SAFETY: the number is from a supervising parent or from the LISTEN_FDS contract of the
    // service manager, which gives these descriptors to this process only. Each is adopted once, at
    // the start.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    // The kernel has no other flag.
    fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
    // On other descriptors an accept fails at once, while the descriptor stays readable.
    let listens = sockopt::socket_type(&descriptor) == Ok(SocketType::STREAM)
        && sockopt::socket_acceptconn(&descriptor) == Ok(true);
    if !listens {
        let message = "it is not a listening stream socket";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    let name = getsockname(&descriptor)?;
    let address = match SocketAddr::try_from(name.clone()) {
        Ok(address) => Address::Tcp(address),
        Err(_) => unix_path(name).map_or(Address::Inherited(number), Address::Unix),
    };
    let nodelay = matches!(address, Address::Tcp(_)).then_some(options.nodelay);
    if nodelay.is_some() {
        limit_unsent(&descriptor);
    }
    Ok(Listener {
        descriptor,
        address,
        file: Mutex::default(),
        is_own: false,
        nodelay,
        send_buffer: options.send_buffer,
        is_secure: options.tls,
        has_preface: options.proxy,
        proxies: Arc::default(),
    })
}

/// Returns `None` for a socket without a file.
fn unix_path(name: SocketAddrAny) -> Option<PathBuf> {
    let name = SocketAddrUnix::try_from(name).ok()?;
    Some(OsStr::from_bytes(name.path_bytes()?).into())
}

#[cfg(test)]
mod tests {
    use rustix::io::fcntl_getfd;

    use super::*;

    fn on(address: &str) -> Listen {
        Listen::on(address.parse().unwrap())
    }

    #[test]
    fn removes_only_sockets_without_a_listener() {
        use bine_log::test_support::ScratchFolder;
        use std::os::unix::net::UnixListener;
        let folder = ScratchFolder::new();
        let (file, socket) = (folder.path("file"), folder.path("socket"));
        remove_stale(&folder.path("missing")).unwrap();
        std::fs::write(&file, "content").unwrap();
        assert_eq!(remove_stale(&file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let below_a_file = remove_stale(&file.join("socket")).unwrap_err();
        assert_eq!(below_a_file.kind(), io::ErrorKind::NotADirectory);
        let listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(remove_stale(&socket).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(file.exists() && socket.exists());
        drop(listener);
        remove_stale(&socket).unwrap();
        assert!(!socket.exists());
    }

    #[test]
    fn names_the_remedy_for_a_port_in_use() {
        let first = Listener::open(&on("127.0.0.1:0"), &Arc::default()).unwrap();
        let Address::Tcp(address) = first.address() else { panic!("{:?}", first.address()) };
        let error = Listener::open(&on(&address.to_string()), &Arc::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains("choose another address with --listen"), "{error}");
    }

    #[test]
    fn names_the_remedy_for_each_cause() {
        let tcp: Address = "127.0.0.1:80".parse().unwrap();
        let unix: Address = "unix:/run/bine".parse().unwrap();
        let inherited = Address::Inherited(3);
        for (address, kind, part) in [
            (&tcp, io::ErrorKind::AddrInUse, "; another program uses it"),
            (&unix, io::ErrorKind::AddrInUse, "; another program uses it"),
            (&tcp, io::ErrorKind::PermissionDenied, "; ports below 1024 need root"),
            (&unix, io::ErrorKind::PermissionDenied, "; this user may not write to that folder"),
            (&tcp, io::ErrorKind::AddrNotAvailable, "; this machine has no such address"),
            (&inherited, io::ErrorKind::InvalidInput, "; its socket unit must set ListenStream="),
        ] {
            let remedy = remedy(address, kind);
            assert!(remedy.starts_with(part), "{kind}: {remedy}");
        }
        assert_eq!(remedy(&tcp, io::ErrorKind::InvalidInput), "");
        assert_eq!(remedy(&inherited, io::ErrorKind::Other), "");
    }

    #[test]
    fn replaces_only_the_socket_file_of_a_dead_server() {
        let folder = std::env::temp_dir().join(format!("bine-listener-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let options = on(&format!("unix:{}", path.display()));
        // Like a server that was killed, a dropped std listener does not remove its file.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let living = Listener::open(&options, &Arc::default()).unwrap();
        assert_eq!(
            Listener::open(&options, &Arc::default()).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
        drop(living);
        assert!(!path.exists(), "the listener removes its file");
        std::fs::write(&path, "a file of somebody's").unwrap();
        assert_eq!(
            Listener::open(&options, &Arc::default()).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert!(path.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Accepts a connection from a listener with these options.
    fn accepted(options: &Listen) -> OwnedFd {
        let listener = Listener::open(options, &Arc::default()).unwrap();
        // A completed connect means that the connection is queued, so the accept need not wait.
        match listener.address() {
            Address::Tcp(address) => drop(std::net::TcpStream::connect(address).unwrap()),
            Address::Unix(path) => drop(std::os::unix::net::UnixStream::connect(path).unwrap()),
            Address::Inherited(_) => unreachable!(),
        }
        listener.accept(SocketFlags::empty()).unwrap().0
    }

    #[test]
    fn keeps_little_in_the_kernel_for_a_client_that_does_not_read() {
        use std::io::Write as _;
        let listener = Listener::open(&on("127.0.0.1:0"), &Arc::default()).unwrap();
        let passed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let Address::Tcp(address) = *listener.address() else { unreachable!() };
        let inherited = passed.local_addr().unwrap();
        let number = Address::Inherited(std::os::fd::IntoRawFd::into_raw_fd(passed));
        let inheriting = Listener::open(&Listen::on(number), &Arc::default()).unwrap();
        for (listener, address) in [(listener, address), (inheriting, inherited)] {
            // The window of a small receive buffer does not grow.
            let client = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
            let client = client.unwrap();
            client.set_recv_buffer_size(64 * 1024).unwrap();
            client.connect(&address.into()).unwrap();
            let socket = listener.accept(SocketFlags::NONBLOCK).unwrap().0;
            assert_eq!(SockRef::from(&socket).tcp_notsent_lowat().unwrap(), MAX_UNSENT);
            let mut socket = std::net::TcpStream::from(socket);
            let (part, mut accepted) = (vec![b'x'; 16 * 1024], 0);
            while let Ok(count) = socket.write(&part) {
                accepted += count;
            }
            let expected = MAX_UNSENT as usize..2 * MAX_UNSENT as usize;
            assert!(expected.contains(&accepted), "{accepted}");
        }
    }

    /// Regression: a Unix socket inherits no options from its listener, so the send buffer had the
    /// kernel's default size.
    #[test]
    fn sets_socket_options_on_accepted_connections() {
        for nodelay in [true, false] {
            let socket = accepted(&Listen { nodelay, ..on("127.0.0.1:0") });
            assert_eq!(sockopt::tcp_nodelay(&socket).unwrap(), nodelay);
        }
        let path = std::env::temp_dir().join(format!("bine-options-{}", std::process::id()));
        for address in ["127.0.0.1:0", &format!("unix:{}", path.display())] {
            let socket = accepted(&Listen { send_buffer: Some(40_000), ..on(address) });
            // The kernel doubles the value, to have room for its own data.
            assert_eq!(sockopt::socket_send_buffer_size(&socket).unwrap(), 80_000, "{address}");
        }
    }

    /// Symptom: the second part of a reply waited 45 ms for the client's delayed acknowledgment.
    /// Cause: an inherited listener had Nagle's algorithm on, whatever the settings were. Fix: the
    /// options are set on each accepted connection, because one that was pending before the start
    /// has them from the old listener.
    #[test]
    fn sets_socket_options_on_connections_of_an_inherited_listener() {
        for nodelay in [true, false] {
            let passed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let early = std::net::TcpStream::connect(passed.local_addr().unwrap()).unwrap();
            let address = Address::Inherited(std::os::fd::IntoRawFd::into_raw_fd(passed));
            let options = Listen { nodelay, send_buffer: Some(40_000), ..Listen::on(address) };
            let listener = Listener::open(&options, &Arc::default()).unwrap();
            let socket = listener.accept(SocketFlags::empty()).unwrap().0;
            assert_eq!(sockopt::tcp_nodelay(&socket).unwrap(), nodelay);
            assert_eq!(sockopt::socket_send_buffer_size(&socket).unwrap(), 80_000);
            drop(early);
        }
    }

    /// Regression: for a Unix socket in a folder without write permission, the message advised
    /// about ports.
    #[test]
    fn names_the_remedy_for_missing_permission_by_kind_of_address() {
        let message =
            |address: &str| remedy(&address.parse().unwrap(), io::ErrorKind::PermissionDenied);
        assert!(message("127.0.0.1:80").contains("ports below 1024"));
        assert!(message("unix:/run/bine").contains("may not write to that folder"));
    }

    #[test]
    fn inherits_listening_stream_sockets_only() {
        use std::os::fd::IntoRawFd as _;
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::net::{
            SocketAddr as UnixAddress, UnixDatagram, UnixListener, UnixStream,
        };
        let open =
            |socket: i32| Listener::open(&Listen::on(Address::Inherited(socket)), &Arc::default());
        let path = std::env::temp_dir().join(format!("bine-inherited-{}", std::process::id()));
        let named = UnixListener::bind(&path).unwrap();
        let listener = open(named.into_raw_fd()).unwrap();
        assert_eq!(*listener.address(), Address::Unix(path.clone()));
        assert_eq!(fcntl_getfd(&listener).unwrap(), FdFlags::CLOEXEC);
        // It blocks no thread.
        let accepted = listener.accept(SocketFlags::empty());
        assert_eq!(accepted.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // Its owner uses it after this server.
        listener.refuse();
        assert!(UnixStream::connect(&path).is_ok());
        drop(listener);
        assert!(path.exists());
        std::fs::remove_file(&path).unwrap();
        let name = format!("bine-inherited-{}", std::process::id());
        let address = UnixAddress::from_abstract_name(name).unwrap();
        let socket = UnixListener::bind_addr(&address).unwrap().into_raw_fd();
        assert_eq!(*open(socket).unwrap().address(), Address::Inherited(socket));
        let (stream, _other) = UnixStream::pair().unwrap();
        for socket in [stream.into_raw_fd(), UnixDatagram::unbound().unwrap().into_raw_fd()] {
            let error = open(socket).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            let text = error.to_string();
            assert!(
                text.contains("it is not a listening stream socket; its socket unit"),
                "{text}"
            );
        }
    }

    #[test]
    fn limits_pending_connections_by_the_backlog() {
        let path = std::env::temp_dir().join(format!("bine-backlog-{}", std::process::id()));
        let options = Listen { backlog: 3, ..on(&format!("unix:{}", path.display())) };
        let listener = Listener::open(&options, &Arc::default()).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        let connected = |_: &i32| {
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None).unwrap();
            rustix::net::connect(&socket, &address).is_ok()
        };
        // The kernel accepts one more than the limit.
        assert_eq!((0..10).take_while(connected).count(), 4);
        listener.refuse();
        assert!(!connected(&0));
    }

    #[test]
    fn refuses_connections_after_refuse() {
        let listener = Listener::open(&on("127.0.0.1:0"), &Arc::default()).unwrap();
        let Address::Tcp(address) = listener.address() else { unreachable!() };
        assert!(std::net::TcpStream::connect(address).is_ok());
        listener.refuse();
        assert!(std::net::TcpStream::connect(address).is_err());
    }
}
