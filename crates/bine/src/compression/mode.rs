//! Which responses are compressed.

use crate::configuration::values::word;

/// Which responses are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CompressionMode {
    /// Those that do not depend on who the client is.
    Shared,
    /// All.
    All,
    /// None.
    Off,
}

impl CompressionMode {
    /// Parses `auto`, `on` or `off`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        Ok(match &*word(text, &["auto", "on", "off"])? {
            "on" => Self::All,
            "off" => Self::Off,
            _ => Self::Shared,
        })
    }
}
