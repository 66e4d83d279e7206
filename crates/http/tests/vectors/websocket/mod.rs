//! Decides, vector by vector, how a connection becomes a WebSocket and what its frames mean.
//!
//! The chapters follow those of the Autobahn suite, which the echo example passes as a whole.

mod feed;
mod frames;
mod handshake;
mod messages;
mod properties;

/// Makes a test of each line: its claim, the frames, and what [`feed::check`] must tell of them.
macro_rules! sequences {
    ($($claim:ident: [$($frame:expr),+ $(,)?] => $told:expr;)+) => {
        $(
            #[test]
            fn $claim() {
                crate::websocket::feed::check(&[$($frame),+].concat(), $told);
            }
        )+
    };
}

pub(crate) use sequences;
