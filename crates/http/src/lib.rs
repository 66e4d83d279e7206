//! HTTP/1.1 as a machine: bytes in, events out; it knows no socket, no clock and no lock.
//!
//! One [`Machine`] per connection turns received bytes into [`Event`]s; a [`Reply`] writes the answer
//! into a buffer. Both sides are strict (RFC 9110, RFC 9112): what two servers could read differently is
//! refused as a [`PeerFault`], never repaired.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod chunked;
mod date;
mod fault;
mod fields;
mod head;
mod host;
mod known;
mod limits;
mod line;
mod machine;
mod method;
mod parse;
mod path;
mod pieces;
pub mod query;
mod reply;
mod scan;
mod security;
mod status;
mod target;
pub mod websocket;
mod whole;

pub use date::Date;
pub use fault::{Misuse, PeerFault};
pub use head::{Exchange, Framing, Head, HeadIndex, Version};
pub use known::Known;
pub use limits::Limits;
pub use machine::{Event, Machine, Phase, Step};
pub use method::Method;
pub use pieces::Pieces;
pub use reply::{Body, Finished, Lines, Reply, continue_100};
pub use security::SecurityHeaders;
pub use status::Status;
