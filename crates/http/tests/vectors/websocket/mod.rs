//! Test vectors for the WebSocket handshake and for frames.
//!
//! The chapters follow those of the Autobahn test suite, which the echo example passes completely.

mod feed;
mod frames;
mod handshake;
mod messages;
mod properties;

/// Defines one test per line: its name, the frames, and the events that [`feed::check`] expects.
macro_rules! sequences {
    ($($claim:ident: [$($frame:expr),+ $(,)?] => $expected:expr;)+) => {
        $(
            #[test]
            fn $claim() {
                crate::websocket::feed::check(&[$($frame),+].concat(), $expected);
            }
        )+
    };
}

pub(crate) use sequences;
