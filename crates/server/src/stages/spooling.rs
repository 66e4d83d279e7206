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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use bine_http::SecurityHeaders;
    use bine_log::test_support::{ScratchFolder, capture};

    use super::*;
    use crate::mailbox::{Mailbox, Ticket};
    use crate::slab::Token;
    use crate::test_support::request;
    use crate::workers::{Job, Task};

    /// The reply of a spool in `folder` that stores a piece.
    fn store(folder: &Path, security: SecurityHeaders) -> (String, bool, Spool) {
        let spool = Spool::new(folder);
        let mut request = request("/");
        request.body = b"piece".to_vec();
        request.exchange.security = security;
        let (mut buffer, mut keep) = (Vec::new(), |_: &mut Vec<u8>| {});
        let mut out = Outgoing { buffer: &mut buffer, drain: &mut keep };
        let done = spool.run(&request, &Clock::told(1_795_208_400), &mut out);
        (String::from_utf8(buffer).unwrap(), done.close, spool)
    }

    #[test]
    fn stores_a_piece_without_a_reply() {
        let folder = ScratchFolder::new();
        let (reply, closes, spool) = store(&folder.path(""), SecurityHeaders::NONE);
        assert_eq!((&*reply, closes, spool.length()), ("", false, 5));
    }

    #[test]
    fn answers_and_logs_an_error_of_the_disk() {
        let folder = ScratchFolder::new();
        let messages = capture();
        let nosniff = SecurityHeaders::NOSNIFF;
        let (reply, closes, _) = store(&folder.path("missing"), nosniff);
        assert!(reply.starts_with("HTTP/1.1 500 ") && closes, "{reply}");
        assert!(reply.contains("\r\nConnection: close\r\n"), "{reply}");
        assert!(reply.contains("nosniff"), "{reply}");
        assert!(reply.ends_with(
            "\r\n\r\nThe body could not be stored; the server's log has the details.\n"
        ));
        let messages = messages.end();
        assert!(messages[0].contains("missing: No such file"), "{messages:?}");
    }

    /// Schedulers see the requests of handlers only.
    #[test]
    fn hides_its_request_from_schedulers() {
        let ticket =
            Ticket { token: Token::default(), reply_to: Arc::new(Mailbox::new().unwrap()) };
        let (work, bytes) = (Arc::new(Spool::new(Path::new("unused"))), Vec::new());
        let task = Task {
            job: Job::Answer { work, request: request("/"), bytes },
            ticket,
            patience: std::time::Duration::ZERO,
            since: std::time::Instant::now(),
            admission: Arc::new(bine_admission::Admission::off()),
        };
        assert!(task.request().is_none() && task.path().is_some());
        assert_eq!(task.handler(), STORING);
    }
}
