//! Access and error logs: the formats of their lines, and the threads that write them.
//!
//! A caller formats a line into its own buffer ([`Format`], [`Entry`]) and appends it to a
//! [`Writer`], which has a bounded queue and a thread: a slow disk, a full disk, or a pipe without
//! a reader never blocks an event loop. [`error`], [`warn`], [`notice`] and [`debug`] write
//! messages for the operator to the error log.
//!
//! ```
//! use bine_log::{Entry, Format, Stamp};
//!
//! let format = Format::parse("%h %s %b")?;
//! let entry = Entry { client: "192.0.2.7:4711".parse().ok(), status: 404, ..Entry::default() };
//! let mut lines = Vec::new();
//! entry.write(&mut lines, &format, &Stamp::at(1_795_208_400));
//! assert_eq!(lines, b"192.0.2.7 404 -\n");
//! # Ok::<(), String>(())
//! ```
//!
//! Start reading at [`Writer`], then `entry.rs`.

mod entry;
mod error_log;
mod escape;
mod format;
mod level;
mod limit;
mod log_file;
mod secret_targets;
mod stamp;
mod target;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
mod writer;

pub use entry::Entry;
pub use error_log::{debug, error, finish, notice, set_level, to_file, to_standard_error, warn};
pub use format::Format;
pub use level::Level;
pub use limit::LogLimit;
pub use secret_targets::SecretTargets;
pub use stamp::Stamp;
pub use target::Target;
pub use writer::{Gap, LogSettings, WhenFull, Writer, reopen_all};
