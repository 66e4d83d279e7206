//! The server side of WebSocket (RFC 6455) without I/O: the handshake, and reading and writing
//! frames.
//!
//! [`Upgrade`] parses the request and writes the 101. From then on a [`FrameReader`] turns received
//! bytes into [`Frame`]s in place, and a frame appends itself to the output. The module supports no
//! extension: it does not answer an offer of permessage-deflate, which declines it.
//!
//! ```
//! use bine_http::websocket::{Frame, FrameEvent, FrameReader, MessageLimits};
//!
//! let mut received = *b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
//! let mut fragments = Vec::new();
//! let limits = MessageLimits::default();
//! let step = FrameReader::server().receive(&mut received, &mut fragments, &limits);
//! assert!(matches!(step.event, FrameEvent::Frame(Frame::Text("Hello"))));
//!
//! let mut out = Vec::new();
//! Frame::Text("Hello").append(&mut out);
//! assert_eq!(out, b"\x81\x05Hello");
//! ```

mod accept;
mod close_code;
mod fault;
mod frame;
mod header;
mod mask;
mod reader;
mod upgrade;

pub use accept::accept_key;
pub use close_code::CloseCode;
pub use fault::FrameFault;
pub use frame::Frame;
pub use header::{Header, Opcode};
pub use mask::mask;
pub use reader::{FrameEvent, FrameReader, FrameStep, MessageLimits};
pub use upgrade::{Upgrade, UpgradeError};
