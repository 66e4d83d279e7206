//! Short responses in plain text.

use bine_http::Reply;

use crate::inert;

/// Completes a response whose head is begun: with a reason for the client, which no cache keeps.
pub(super) fn tell(mut reply: Reply<'_>, reason: &str) {
    reply.static_lines("Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n");
    inert::put_fields(&mut reply);
    reply.whole(format!("{reason}\n").as_bytes());
}
