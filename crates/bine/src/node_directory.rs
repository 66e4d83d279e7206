//! The nodes of a program that runs on several machines, as its subsystems see them.

use std::sync::Arc;

/// Lists the nodes.
pub(crate) trait NodeDirectory: Send + Sync {
    /// The name of this node; `None` before the store is open.
    fn own_name(&self) -> Option<Arc<str>>;

    /// The names of all nodes that have reported themselves lately; `None` while this node is cut
    /// off, and knows nothing about others.
    fn names(&self) -> Option<Vec<String>>;
}
