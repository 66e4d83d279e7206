//! The bytes of a connection, for `h2`: what it writes is gathered, so that many small frames become
//! one send.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::handler::UpgradedConnection;
use crate::http2::flood::FrameScanner;
use crate::http2::link::Link;

/// The bytes that are gathered before a send.
const GATHER: usize = 64 * 1024;
/// A buffer of this size is kept while streams are open.
const KEPT: usize = 16 * 1024;

/// A connection as `h2` reads and writes it.
pub(super) struct ByteStream {
    connection: UpgradedConnection,
    link: Rc<Link>,
    scanner: FrameScanner,
    /// Bytes to send; those before `sent` have been sent.
    output: Vec<u8>,
    sent: usize,
}

impl ByteStream {
    pub(super) fn new(connection: UpgradedConnection, link: Rc<Link>) -> Self {
        let scanner = FrameScanner::new();
        Self { connection, link, scanner, output: Vec::new(), sent: 0 }
    }

    /// Sends the gathered bytes.
    fn poll_output(&mut self, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.output.len() {
            match self.connection.poll_send(task, &self.output[self.sent..]) {
                Poll::Ready(Ok(count)) => {
                    self.sent += count;
                    self.link.blocked_since.set(None);
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Err(broken())),
                Poll::Pending => return self.blocked(),
            }
        }
        self.output.clear();
        self.sent = 0;
        let kept = if self.link.open_streams() > 0 { KEPT } else { 0 };
        if self.output.capacity() > kept {
            self.output.shrink_to(kept);
        }
        Poll::Ready(Ok(()))
    }

    fn blocked(&self) -> Poll<io::Result<()>> {
        if self.link.blocked_since.get().is_none() {
            self.link.blocked_since.set(Some(Instant::now()));
        }
        Poll::Pending
    }
}

fn broken() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.connection.received().is_empty() {
            let count = ready!(this.connection.poll_receive(task)).map_err(|_| broken())?;
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        let received = this.connection.received();
        let count = received.len().min(space.remaining());
        let idle = this.scanner.count_idle_frames(&received[..count]);
        space.put_slice(&received[..count]);
        this.connection.consume(count);
        this.link.note_idle_frames(idle);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.output.len() >= GATHER {
            ready!(self.poll_output(task))?;
        }
        let count = bytes.len().min(GATHER);
        self.output.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_output(task))?;
        match self.connection.poll_send(task, &[]) {
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(_)) => return Poll::Ready(Err(broken())),
            Poll::Pending => return self.blocked(),
        }
        self.link.blocked_since.set(None);
        self.link.order.open();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(task))?;
        self.connection.finish();
        Poll::Ready(Ok(()))
    }
}
