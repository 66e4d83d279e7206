//! Decides how bytes get to a peer and back: one trait over sockets that block and sockets that
//! answer "not now", so that the stages are written once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};

/// What came of moving bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// This many bytes moved, at least one.
    Moved(usize),
    /// Nothing can move now; a link that never blocks says when to come again.
    Again,
    /// A link that blocks waited until its deadline.
    TimedOut,
    /// The peer will send nothing more (receiving only).
    Ended,
    /// The connection is gone.
    Broken,
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From the peer.
    In,
    /// To the peer.
    Out,
}

/// One end of a byte stream.
pub trait Link {
    /// True when calls wait; such a link never says [`Transfer::Again`].
    const BLOCKS: bool;

    /// Receives into `space`, which is not empty.
    fn receive(&mut self, space: &mut [u8]) -> Transfer;

    /// Sends from `bytes`, which is not empty. `more` says that something follows at once, so a
    /// small segment should wait for it.
    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer;

    /// Sends up to `count` bytes of `file` from `offset` without a copy in user space.
    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer;

    /// Tells the peer that nothing more will come; what it still sends can be received.
    fn finish(&mut self);

    /// How long the calls of one way that follow may wait; a link that does not block has nothing
    /// to set.
    fn wait_at_most(&mut self, _way: Way, _duration: Duration) {}
}

/// A socket that never waits: the event loop's.
pub(crate) struct Nonblocking(pub(crate) OwnedFd);

impl Link for Nonblocking {
    const BLOCKS: bool = false;

    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        receive(&self.0, space)
    }

    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer {
        transmit(&self.0, bytes, more)
    }

    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
        transmit_file(&self.0, file, offset, count)
    }

    fn finish(&mut self) {
        finish(&self.0);
    }
}

/// A socket whose calls wait: a thread's own.
pub(crate) struct Blocking {
    descriptor: OwnedFd,
    /// What the kernel was last told, so that an unchanged wait costs no system call.
    wait_in: Duration,
    wait_out: Duration,
}

impl Blocking {
    pub(crate) fn new(descriptor: OwnedFd) -> Self {
        Self { descriptor, wait_in: Duration::MAX, wait_out: Duration::MAX }
    }
}

impl Link for Blocking {
    const BLOCKS: bool = true;

    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        timed(receive(&self.descriptor, space))
    }

    fn send(&mut self, bytes: &[u8], more: bool) -> Transfer {
        timed(transmit(&self.descriptor, bytes, more))
    }

    fn send_file(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
        timed(transmit_file(&self.descriptor, file, offset, count))
    }

    fn finish(&mut self) {
        finish(&self.descriptor);
    }

    fn wait_at_most(&mut self, way: Way, duration: Duration) {
        // Zero would mean for ever (socket(7), SO_RCVTIMEO).
        let duration = duration.max(Duration::from_millis(1));
        // Deadlines are compared at every call anyway; a quarter second of slack saves a system
        // call for each request of a kept connection.
        let slack = Duration::from_millis(250);
        let (told, direction) = match way {
            Way::In => (&mut self.wait_in, sockopt::Timeout::Recv),
            Way::Out => (&mut self.wait_out, sockopt::Timeout::Send),
        };
        if (duration..=duration + slack).contains(told) {
            return;
        }
        *told = duration;
        if sockopt::set_socket_timeout(&self.descriptor, direction, Some(duration)).is_err() {
            // A socket that takes no timeout is of no use here; the next call says it is gone.
            let _ = shutdown(&self.descriptor, Shutdown::Both);
        }
    }
}

impl AsFd for Nonblocking {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for Blocking {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// With `SO_RCVTIMEO` or `SO_SNDTIMEO` the kernel says EAGAIN when the time is over.
fn timed(transfer: Transfer) -> Transfer {
    match transfer {
        Transfer::Again => Transfer::TimedOut,
        other => other,
    }
}

fn receive(socket: &OwnedFd, space: &mut [u8]) -> Transfer {
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

fn transmit(socket: &OwnedFd, bytes: &[u8], more: bool) -> Transfer {
    let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
    loop {
        return match send(socket, bytes, flags) {
            Ok(count) => Transfer::Moved(count),
            Err(Errno::AGAIN) => Transfer::Again,
            Err(Errno::INTR) => continue,
            Err(_) => Transfer::Broken,
        };
    }
}

fn transmit_file(socket: &OwnedFd, file: BorrowedFd<'_>, offset: u64, count: usize) -> Transfer {
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

fn finish(socket: &OwnedFd) {
    // A connection that is gone already has nothing to be told.
    let _ = shutdown(socket, Shutdown::Write);
}

/// The system's refusal to open one more descriptor, as opposed to a failed connection.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    error.raw_os_error().is_some_and(|code| codes.iter().any(|known| known.raw_os_error() == code))
}
