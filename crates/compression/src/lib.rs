//! Compressed responses: encoders, and the heads of compressed responses.
//!
//! The crate contains no policy about secrets: the caller decides which responses are compressed.
#![forbid(unsafe_code)]

mod encoder;
mod media_types;
mod reply_head;

pub use encoder::{Encoder, Level, compress};
pub use media_types::{BadMediaType, MediaTypes};
pub use reply_head::{HeadChange, ReplyHead};
