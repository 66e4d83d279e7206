//! WebSocket (RFC 6455) as a machine: how a connection changes to it, and what its frames mean.
//!
//! [`Upgrade`] reads the request and writes the 101. From then on a [`FrameReader`] turns received bytes into
//! [`Frame`]s, in place, and a frame appends itself to what is sent. No extension is spoken: an offer of
//! permessage-deflate is left unanswered, which declines it.
//!
//! ```
//! use bine_http::websocket::{FrameEvent, Frame, MessageLimits, FrameReader};
//!
//! let mut received = *b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
//! let mut parts = Vec::new();
//! let step = FrameReader::server().receive(&mut received, &mut parts, &MessageLimits::default());
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
