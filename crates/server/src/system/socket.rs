//! System calls on one socket: receive, send, send a file.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// What came of moving bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// This many bytes moved, at least one.
    Moved(usize),
    /// Nothing can move now; a transport that never blocks says when to come again.
    Again,
    /// A transport that blocks waited until its deadline, or received what is not enough to be understood.
    TimedOut,
    /// The peer will send nothing more (receiving only).
    Ended,
    /// The peer broke the transport's own rules and was told so; what it still sends can be received and dropped, so
    /// that closing does not take that away from it (receiving only).
    Fault,
    /// The connection is gone.
    Broken,
}

pub(crate) fn receive(socket: &OwnedFd, space: &mut [u8]) -> Transfer {
    loop {
        return match recv(socket, &mut *space, RecvFlags::empty()) {
            Ok((0, _)) => Transfer::Ended,
            Ok((count, _)) => Transfer::Moved(count),
            Err(Errno::AGAIN) => Transfer::Again,
            Err(Errno::INTR) => continue,
            Err(_) => Transfer::Broken,
        };
    }
}

/// Sends what there is room for without a wait, be that nothing.
pub(crate) fn transmit_now(socket: &OwnedFd, bytes: &[u8]) -> usize {
    match transmit_with(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Transfer::Moved(count) => count,
        // What is wrong, if anything, shows again at the next call.
        _ => 0,
    }
}

pub(crate) fn transmit(socket: &OwnedFd, bytes: &[u8], more: bool) -> Transfer {
    let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
    transmit_with(socket, bytes, flags)
}

fn transmit_with(socket: &OwnedFd, bytes: &[u8], flags: SendFlags) -> Transfer {
    loop {
        return match send(socket, bytes, flags) {
            Ok(count) => Transfer::Moved(count),
            Err(Errno::AGAIN) => Transfer::Again,
            Err(Errno::INTR) => continue,
            Err(_) => Transfer::Broken,
        };
    }
}

pub(crate) fn transmit_file(
    socket: &OwnedFd,
    file: BorrowedFd<'_>,
    offset: u64,
    count: usize,
) -> Transfer {
    let mut offset = offset;
    loop {
        return match rustix::fs::sendfile(socket, file, Some(&mut offset), count) {
            // The file became shorter than it was when its length was announced: the reply cannot
            // be finished, and only a broken connection tells the peer so.
            Ok(0) => Transfer::Broken,
            Ok(moved) => Transfer::Moved(moved),
            Err(Errno::AGAIN) => Transfer::Again,
            Err(Errno::INTR) => continue,
            Err(_) => Transfer::Broken,
        };
    }
}

/// The system's refusal to open one more descriptor, as opposed to a failed connection.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    error.raw_os_error().is_some_and(|code| codes.iter().any(|known| known.raw_os_error() == code))
}
