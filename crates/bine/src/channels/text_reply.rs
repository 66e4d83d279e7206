//! Short responses in plain text.

use bine_http::Reply;

use crate::inert;

/// Completes a response with a reason for the client. Caches do not store it.
pub(super) fn finish_with_reason(mut reply: Reply<'_>, reason: &str) {
    reply.static_lines("Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n");
    inert::put_fields(&mut reply);
    reply.whole(format!("{reason}\n").as_bytes());
}
