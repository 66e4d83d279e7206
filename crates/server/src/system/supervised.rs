//! The server's side of the supervisor protocol: inherited sockets and the heartbeat socket.

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::address::Address;

/// The environment variable by which the supervisor passes sockets: the supervisor's process id,
/// then one line per socket with its descriptor and address.
pub(crate) const SOCKETS: &str = "BINE_SUPERVISED";

/// The name of the heartbeat socket in that list. No address has this spelling.
pub(crate) const HEARTBEAT: &str = "heartbeat";

/// The name of the socket for notices to the service manager in that list.
pub(crate) const NOTICES: &str = "notices";

/// Exit status of a server with a stuck loop, which asks the supervisor for a restart. It is
/// `EX_SOFTWARE` of `sysexits.h`.
pub(crate) const STUCK: i32 = 70;

/// Whether a supervisor started this process.
pub fn is_supervised() -> bool {
    sockets().is_some()
}

/// Makes the kernel terminate this process when its supervisor exits. A change of user clears the
/// setting, so call it after that.
pub fn end_with_parent() {
    if is_supervised() {
        // The call fails only for invalid signals.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
    }
}

/// Takes the heartbeat socket. Later calls return `None`.
pub(crate) fn take_heartbeat() -> Option<UnixStream> {
    take_owned(HEARTBEAT).map(UnixStream::from)
}

/// The socket by which the supervisor passes notices on to the service manager.
pub(crate) fn notices() -> Option<&'static UnixDatagram> {
    static NOTICES_SOCKET: OnceLock<Option<UnixDatagram>> = OnceLock::new();
    NOTICES_SOCKET.get_or_init(|| take_owned(NOTICES).map(UnixDatagram::from)).as_ref()
}

fn take_owned(name: &str) -> Option<OwnedFd> {
    let number = take(name)?;
    // SAFETY: the supervisor passed this descriptor only for this use, and `take` has removed its
    // entry, so it has one owner.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    // Child processes of the server must not inherit it.
    fcntl_setfd(&socket, FdFlags::CLOEXEC).ok()?;
    Some(socket)
}

/// Takes the supervisor's socket for `address`. Later calls return `None`.
pub(crate) fn take_socket(address: &Address) -> Option<i32> {
    take(&name(address))
}

fn take(name: &str) -> Option<i32> {
    remove(&mut sockets()?.lock().unwrap_or_else(PoisonError::into_inner), name)
}

fn remove(sockets: &mut Vec<(i32, String)>, name: &str) -> Option<i32> {
    let index = sockets.iter().position(|(_, known)| known == name)?;
    Some(sockets.swap_remove(index).0)
}

/// Returns the descriptors that the supervisor itself inherited from the service manager.
pub(crate) fn passed_on() -> Vec<i32> {
    let Some(sockets) = sockets() else { return Vec::new() };
    inherited(&sockets.lock().unwrap_or_else(PoisonError::into_inner))
}

fn inherited(sockets: &[(i32, String)]) -> Vec<i32> {
    let passed = sockets.iter().filter(|(_, name)| name == "inherited");
    passed.map(|(number, _)| *number).collect()
}

/// Returns the name of a socket in the list. A socket from the service manager does not have its
/// own address.
pub(crate) fn name(address: &Address) -> String {
    match address {
        Address::Inherited(_) => "inherited".to_owned(),
        other => other.to_string(),
    }
}

type Sockets = Mutex<Vec<(i32, String)>>;

fn sockets() -> Option<&'static Sockets> {
    static PASSED: OnceLock<Option<Sockets>> = OnceLock::new();
    PASSED.get_or_init(|| parse(&std::env::var(SOCKETS).ok()?, getppid()).map(Mutex::new)).as_ref()
}

/// Parses the list. It returns `None` when the list is for another process, since programs that a
/// server starts inherit the variable.
fn parse(text: &str, parent: Option<Pid>) -> Option<Vec<(i32, String)>> {
    let mut lines = text.lines();
    let number: i32 = lines.next()?.parse().ok()?;
    if parent?.as_raw_nonzero().get() != number {
        return None;
    }
    let socket = |line: &str| {
        let (number, name) = line.split_once(' ')?;
        Some((number.parse().ok().filter(|number| *number > 2)?, name.to_owned()))
    };
    lines.map(socket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_sockets_only_from_its_parent_process() {
        let parent = Pid::from_raw(77);
        let passed = parse("77\n5 http://127.0.0.1:80/\n6 unix:/a b", parent).unwrap();
        assert_eq!(passed[0], (5, "http://127.0.0.1:80/".to_owned()));
        assert_eq!(passed[1], (6, "unix:/a b".to_owned()));
        for wrong in ["", "78\n5 a", "77\nfive a", "77\n5", "77\n1 a"] {
            assert_eq!(parse(wrong, parent), None, "{wrong:?}");
        }
        assert_eq!(parse("77", None), None);
    }

    #[test]
    fn gives_each_socket_once() {
        let list = "77\n5 unix:/a\n6 inherited\n7 heartbeat\n8 inherited";
        let mut sockets = parse(list, Pid::from_raw(77)).unwrap();
        assert_eq!(inherited(&sockets), [6, 8]);
        assert_eq!(remove(&mut sockets, "heartbeat"), Some(7));
        assert_eq!(remove(&mut sockets, "heartbeat"), None);
        assert_eq!(remove(&mut sockets, "unix:/a"), Some(5));
        assert_eq!(inherited(&sockets).len(), 2);
    }

    #[test]
    fn names_a_socket_of_the_service_manager_without_its_number() {
        assert_eq!(name(&Address::Inherited(4)), "inherited");
        assert_eq!(name(&"unix:/a".parse().unwrap()), "unix:/a");
    }
}
