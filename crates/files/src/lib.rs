//! Serves static files: resolves paths below a root directory, caches small files and answers
//! conditional and range requests.
//!
//! All threads share a [`Root`]; each thread has its own [`Files`]. Start reading with `files.rs`,
//! then `root.rs` and its rules for names in `name.rs`.
//!
//! # Example
//!
//! ```
//! use std::{path::Path, sync::Arc};
//!
//! use bine_files::{Files, Root, Rules, media_type};
//!
//! let root = Arc::new(Root::open(Path::new("src"))?);
//! // One for each thread; `Files::respond` answers a request.
//! let files = Files::new(Arc::clone(&root), Arc::new(Rules::default()));
//! assert_eq!(media_type("index.html"), "text/html; charset=utf-8");
//! # drop(files);
//! # Ok::<_, std::io::Error>(())
//! ```
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
mod open_file;
mod open_files;
mod ranges;
mod resource;
mod response;
mod root;
mod rules;
mod small_file;
mod walk;

pub use conditions::evaluate_etag;
pub use files::Files;
pub use media::media_type;
pub use named_file::NamedFile;
pub use root::Root;
pub use rules::{FieldRule, Rules};
