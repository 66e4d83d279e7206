//! The publisher of a command.

use alloc::sync::Arc;

/// The publisher of a command. Channels and messages of the command count against this publisher's
/// quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publisher {
    /// The name under which the hub counts the publisher's bytes.
    pub name: Arc<str>,
    /// The quota: bytes that all channels and messages of this publisher may take.
    pub bytes: u64,
}
