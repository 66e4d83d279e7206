//! Destinations of a log, as a configuration names them.

use std::path::PathBuf;

/// Where a log goes, as a configuration says it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Target {
    /// Nowhere: `off`.
    #[default]
    Off,
    /// Into the file, or the pipe, with this path. `/dev/stdout` and `/dev/stderr` are paths too.
    File(PathBuf),
}

impl From<&str> for Target {
    fn from(text: &str) -> Self {
        if text == "off" { Self::Off } else { Self::File(text.into()) }
    }
}
