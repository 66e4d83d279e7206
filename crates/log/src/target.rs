//! The destination of a log in the configuration.

use std::path::PathBuf;

/// The destination of a log: a path, or `off`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Target {
    /// The log is not written: `off`.
    #[default]
    Off,
    /// The file or the named pipe at this path. `/dev/stdout` and `/dev/stderr` are valid paths.
    File(PathBuf),
}

impl From<&str> for Target {
    fn from(text: &str) -> Self {
        if text == "off" { Self::Off } else { Self::File(text.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_off_or_a_path() {
        assert_eq!(Target::from("off"), Target::Off);
        assert_eq!(Target::from("/var/log/offline"), Target::File("/var/log/offline".into()));
    }
}
