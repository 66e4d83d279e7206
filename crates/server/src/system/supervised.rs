//! The server's side of its supervisor: the sockets and the pipe that it was passed.

use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::address::Address;

/// Tells a server of its parent and of the sockets that it passes: the parent's number, then on each
/// line a descriptor and its address.
pub(crate) const SOCKETS: &str = "BINE_SUPERVISED";

/// The name of the socket for heartbeats among them. No address is spelled so.
pub(crate) const HEARTBEAT: &str = "heartbeat";

/// Exit status of a server that has a stuck loop, and wants to be started again. It is `EX_SOFTWARE` of `sysexits.h`.
pub(crate) const STUCK: i32 = 70;

/// Whether this process is a server with such a parent.
pub fn is_supervised() -> bool {
    sockets().is_some()
}

/// Has this process end with its parent. The wish is lost with a change of user, so that comes before.
pub fn end_with_parent() {
    if is_supervised() {
        // It fails for no signal that exists.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
    }
}

/// Where the parent listens for heartbeats, once.
pub(crate) fn take_heartbeat() -> Option<UnixStream> {
    let number = take(HEARTBEAT)?;
    // SAFETY: the parent passed this descriptor for nothing else, and the entry is gone, so it has one owner.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    // What this process starts is not to have it.
    fcntl_setfd(&socket, FdFlags::CLOEXEC).ok()?;
    Some(socket.into())
}

/// The socket that the parent has for `address`, once.
pub(crate) fn take_socket(address: &Address) -> Option<i32> {
    take(&name(address))
}

fn take(name: &str) -> Option<i32> {
    let mut sockets = sockets()?.lock().unwrap_or_else(PoisonError::into_inner);
    let place = sockets.iter().position(|(_, known)| known == name)?;
    Some(sockets.swap_remove(place).0)
}

/// The descriptors that the parent itself has inherited.
pub(crate) fn passed_on() -> Vec<i32> {
    let Some(sockets) = sockets() else { return Vec::new() };
    let sockets = sockets.lock().unwrap_or_else(PoisonError::into_inner);
    let passed = sockets.iter().filter(|(_, name)| name == "inherited");
    passed.map(|(number, _)| *number).collect()
}

/// How a socket is called between parent and server. One that the service manager has passed has no
/// address of its own.
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

/// `None` when it is meant for somebody else: a program that a server starts inherits the variable.
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
    fn sockets_are_for_the_child_of_the_process_that_passes_them() {
        let parent = Pid::from_raw(77);
        let passed = parse("77\n5 http://127.0.0.1:80/\n6 unix:/a b", parent).unwrap();
        assert_eq!(passed[0], (5, "http://127.0.0.1:80/".to_owned()));
        assert_eq!(passed[1], (6, "unix:/a b".to_owned()));
        for wrong in ["", "78\n5 a", "77\nfive a", "77\n5", "77\n1 a"] {
            assert_eq!(parse(wrong, parent), None, "{wrong:?}");
        }
        assert_eq!(parse("77", None), None);
    }
}
