//! System calls on one socket: receive, send, send a file.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// The result of one transfer of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// This many bytes moved, at least one.
    Moved(usize),
    /// The operation would block. A nonblocking transport reports when to try again.
    Again,
    /// A blocking transport reached its deadline, or received too little to parse.
    TimedOut,
    /// The client has closed its sending side (receiving only).
    Ended,
    /// The client violated the transport's protocol, and the server has sent it an alert. The
    /// server can still receive and discard its bytes, so that the close does not reset the
    /// connection before the client has read the alert (receiving only).
    Fault,
    /// The connection is broken.
    Broken,
}

/// Sends without a wait.
const AT_ONCE: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
/// The kernel may wait for more bytes before it sends a small segment.
const MORE_FOLLOWS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::MORE);

pub(crate) fn receive(socket: &OwnedFd, space: &mut [u8]) -> Transfer {
    receive_with(socket, space, RecvFlags::empty())
}

fn receive_with(socket: &OwnedFd, space: &mut [u8], flags: RecvFlags) -> Transfer {
    loop {
        return match recv(socket, &mut *space, flags) {
            Ok((0, _)) => Transfer::Ended,
            Ok((count, _)) => Transfer::Moved(count),
            Err(Errno::AGAIN) => Transfer::Again,
            Err(Errno::INTR) => continue,
            Err(_) => Transfer::Broken,
        };
    }
}

/// Receives into `space` after its first `kept` bytes, and takes only a part of the available bytes
/// from the socket. `part` returns the number of bytes in all that belong to this part, at least
/// one more than `kept`, when it is given the kept and the available ones.
pub(crate) fn receive_part(
    socket: &OwnedFd,
    space: &mut [u8],
    kept: usize,
    part: impl FnOnce(&[u8]) -> usize,
) -> Transfer {
    match receive_with(socket, &mut space[kept..], RecvFlags::PEEK) {
        Transfer::Moved(count) => {
            let end = part(&space[..kept + count]).clamp(kept + 1, kept + count);
            // The bytes are there, so this does not wait.
            receive_with(socket, &mut space[kept..end], RecvFlags::empty())
        }
        other => other,
    }
}

/// Sends what the socket accepts without blocking, and returns the number of bytes, which may be 0.
pub(crate) fn transmit_now(socket: &OwnedFd, bytes: &[u8]) -> usize {
    match transmit_with(socket, bytes, AT_ONCE) {
        Transfer::Moved(count) => count,
        // An error repeats at the next call.
        _ => 0,
    }
}

pub(crate) fn transmit(socket: &OwnedFd, bytes: &[u8], more: bool) -> Transfer {
    transmit_with(socket, bytes, if more { MORE_FOLLOWS } else { SendFlags::NOSIGNAL })
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
            // The file is shorter than when the server sent its length. The server cannot complete
            // the response, and only a broken connection shows that to the client.
            Ok(0) => Transfer::Broken,
            Ok(moved) => Transfer::Moved(moved),
            Err(Errno::AGAIN) => Transfer::Again,
            Err(Errno::INTR) => continue,
            Err(_) => Transfer::Broken,
        };
    }
}

/// Whether the system refused to open one more descriptor, as opposed to a failed connection.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    error.raw_os_error().is_some_and(|code| codes.iter().any(|known| known.raw_os_error() == code))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A refused client must not hold up the thread that refuses it.
    #[test]
    fn sends_without_a_wait_on_a_blocking_socket() {
        let (socket, client) = crate::test_support::sockets();
        let bytes = vec![b'x'; 100_000];
        let mut sent = 0;
        loop {
            match transmit_now(&socket, &bytes) {
                0 => break,
                count => sent += count,
            }
        }
        drop(socket);
        assert_eq!(crate::test_support::received(client).len(), sent);
    }

    #[test]
    fn reports_a_closed_socket_without_a_signal() {
        let (socket, client) = crate::test_support::sockets();
        assert_eq!(transmit(&socket, b"first", true), Transfer::Moved(5));
        drop(client);
        assert_eq!(transmit(&socket, b"more", false), Transfer::Broken);
        assert_eq!(transmit_now(&socket, b"more"), 0);
    }

    #[test]
    fn takes_a_part_of_the_available_bytes_only() {
        use std::io::Write as _;
        let (socket, mut client) = crate::test_support::sockets();
        let mut space = [0; 8];
        client.write_all(b"headtail").unwrap();
        let received = receive_part(&socket, &mut space, 0, |bytes| {
            assert_eq!(bytes, b"headtail");
            4
        });
        assert_eq!((received, &space[..4]), (Transfer::Moved(4), &b"head"[..]));
        // The kept bytes come first.
        let received = receive_part(&socket, &mut space[..6], 4, |bytes| {
            assert_eq!(bytes, b"headta");
            5
        });
        assert_eq!((received, &space[..5]), (Transfer::Moved(1), &b"headt"[..]));
        assert_eq!(receive(&socket, &mut space), Transfer::Moved(3));
        drop(client);
        let ended = receive_part(&socket, &mut space, 0, |_| unreachable!("there are no bytes"));
        assert_eq!(ended, Transfer::Ended);
    }

    #[test]
    fn knows_the_errors_of_a_system_without_descriptors_or_memory() {
        for code in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS] {
            assert!(is_exhaustion(&code.into()), "{code}");
        }
        for code in [Errno::AGAIN, Errno::CONNABORTED, Errno::PERM, Errno::INTR] {
            assert!(!is_exhaustion(&code.into()), "{code}");
        }
        assert!(!is_exhaustion(&io::Error::other("no code")));
    }
}
