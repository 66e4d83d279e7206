//! HTTP/2 (RFC 9113), by the crate `h2` (docs/decisions/0024).
//!
//! A task runs each connection. It turns each of its streams into a [memory
//! stream](crate::memory_stream) that carries one request and one response of HTTP/1.1, written
//! anew from parsed values. For the event loop such a stream is a connection like any other: the
//! same stages, limits, deadlines, logs and metrics hold, and it counts against the same quotas.
//!
//! - `connection`: the task of a connection, its deadlines and its end.
//! - `idle`: the connections that the loop may close when something runs short.
//! - `exchange`: one stream, from its request to its response.
//! - `link`: what both share.
//! - `request_head`, `response_reader`: the translation of both. `known_lines`: fields that responses
//!   share.
//! - `byte_stream`, `send_order`, `flood`: the bytes of the connection, which stream sends next, and
//!   frames that cost the server more than they cost the client.

mod byte_stream;
mod connection;
mod exchange;
mod flood;
mod idle;
mod known_lines;
mod link;
mod request_head;
mod response_reader;
mod send_order;
#[cfg(test)]
mod tests;

pub(crate) use connection::{ConnectionTerms, serve};
pub(crate) use flood::FloodCounter;
pub(crate) use idle::IdleConnections;

/// The first bytes of a connection (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether a connection that begins with `received` is one of HTTP/2. The bytes are at least a
/// request line that HTTP/1.1 refuses.
pub(crate) fn is_preface(received: &[u8]) -> bool {
    let common = received.len().min(PREFACE.len());
    common >= b"PRI * HTTP/2.0".len() && received[..common] == PREFACE[..common]
}
