//! Media types of messages.

/// A media type without its parameters, in small letters.
pub(super) fn essence(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
