//! Test vectors: which requests the parser accepts, and which it rejects.
//!
//! Each vector is a claim, the input bytes, and the expected events as text. `feed::check` feeds
//! the bytes at once, byte by byte, and with further bytes after them. The events must be the same
//! each time.

#![allow(
    clippy::format_push_string,
    reason = "short texts of tests; write! would add an error that cannot occur"
)]

mod chunks;
mod feed;
mod fields;
mod framing;
mod host;
mod properties;
mod replies;
mod request_line;
mod websocket;

/// Defines one test per line: its name, the input, and the events that [`feed::check`] expects.
macro_rules! vectors {
    ($($claim:ident: $bytes:expr => $expected:expr;)+) => {
        $(
            #[test]
            fn $claim() {
                crate::feed::check(AsRef::<[u8]>::as_ref(&$bytes), $expected);
            }
        )+
    };
}

pub(crate) use vectors;
