//! Files: which one a path means, that it lies beneath the root, and what is kept of it in memory.
//!
//! A [`Root`] is shared by all threads; each thread asks through [`Files`] of its own. Start reading there,
//! then [`Root`] and the rule of names it keeps.
#![forbid(unsafe_code)]

mod answer;
mod cache;
mod coding;
mod conditions;
mod description;
mod files;
mod listing;
mod location;
mod media;
mod name;
mod open;
mod ranges;
mod resource;
mod root;
mod rules;
mod sending;
mod small;

pub use conditions::judge_tag;
pub use files::Files;
pub use media::media_type;
pub use root::Root;
pub use rules::{FieldRule, Rules};
pub use sending::Sending;
