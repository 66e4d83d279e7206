//! Compressed responses: negotiation of the coding, encoders, and the heads of compressed responses.
//!
//! The crate contains no policy about secrets: the caller decides which responses are compressed.
#![forbid(unsafe_code)]

mod coding;
mod encoder;
mod media_types;
mod negotiation;
mod reply_head;

pub use coding::Coding;
pub use encoder::{Encoder, Level, compress};
pub use media_types::{BadMediaType, MediaTypes};
pub use negotiation::negotiate;
pub use reply_head::{HeadChange, ReplyHead};
