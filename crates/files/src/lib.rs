//! Files: which one a path means, that it lies beneath the root, and what is kept of it in memory.
//!
//! A [`Root`] is shared by all threads; each thread asks through [`Files`] of its own. Start reading there,
//! then [`Root`] and the rule of names it keeps.
#![forbid(unsafe_code)]

mod cache;
mod conditions;
mod description;
mod encoding;
mod files;
mod listing;
mod location;
mod media;
mod name;
mod named_file;
mod open;
mod ranges;
mod resource;
mod response;
mod root;
mod rules;
mod small;

pub use conditions::evaluate_etag;
pub use files::Files;
pub use media::media_type;
pub use named_file::NamedFile;
pub use root::Root;
pub use rules::{FieldRule, Rules};
