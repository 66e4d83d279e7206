//! Decides, vector by vector, what the machine takes and what it refuses.
//!
//! Each vector is a claim, the bytes, and what they mean as text. Every one is fed whole, byte by byte and
//! with something behind it, and must mean the same each time.

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

/// Makes a test of each line: its claim, the bytes, and what [`feed::check`] must tell of them.
macro_rules! vectors {
    ($($claim:ident: $bytes:expr => $told:expr;)+) => {
        $(
            #[test]
            fn $claim() {
                crate::feed::check(AsRef::<[u8]>::as_ref(&$bytes), $told);
            }
        )+
    };
}

pub(crate) use vectors;
