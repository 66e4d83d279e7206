//! Writes collected pieces of a body to disk, as work that may block.

use bine_http::{Exchange, Reply, Status};
use bine_log as log;
use rustix::io::Errno;

use crate::handler::{Done, Outgoing, Retained, STORING, Spool, Work};
use crate::time::Clock;

/// Writes the piece that was collected. An empty `out` reports success.
impl Work for Spool {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        let Err(error) = self.append(&request.body) else { return Done::default() };
        log::error(format_args!("a body cannot be stored in {}: {error}", self.folder().display()));
        let full =
            [Errno::NOSPC, Errno::DQUOT, Errno::FBIG].map(|errno| Some(errno.raw_os_error()));
        let (status, text) = if full.contains(&error.raw_os_error()) {
            (Status::INSUFFICIENT_STORAGE, "The server has no disk space for the body.\n")
        } else {
            (
                Status::INTERNAL_SERVER_ERROR,
                "The body could not be stored; the server's log has the details.\n",
            )
        };
        let exchange = Exchange { security: request.exchange.security, ..Exchange::closing() };
        let mut reply = Reply::begin(out.buffer, exchange, status, &clock.date());
        reply.static_lines("Content-Type: text/plain; charset=utf-8\r\n");
        reply.whole(text.as_bytes());
        Done { follow: None, close: true }
    }

    fn name(&self) -> &'static str {
        STORING
    }
}
