//! A tab of this node, as the other nodes see it.

use super::present_visitor::PresentVisitor;
use crate::shared_state::SharedState;

/// The beginning of the places of pages.
pub(super) const PREFIX: &str = "page:";

/// Tells the other nodes about a tab until it is dropped.
pub(super) struct SharedTab {
    state: SharedState,
    place: String,
    key: String,
}

impl SharedTab {
    /// Tells the other nodes about a tab of this node; `None`: there are none.
    pub(super) fn enter(
        state: &SharedState,
        address: &str,
        number: u64,
        visitor: Option<&PresentVisitor>,
    ) -> Option<Self> {
        let key = format!("{}/{number}", state.node()?);
        let place = format!("{PREFIX}{address}");
        state.enter(&place, &key, &PresentVisitor::write(visitor));
        Some(Self { state: state.clone(), place, key })
    }
}

impl Drop for SharedTab {
    fn drop(&mut self) {
        self.state.leave(&self.place, &self.key);
    }
}

/// Whether a key is one of this node.
pub(super) fn is_of(node: &str, key: &str) -> bool {
    key.strip_prefix(node).is_some_and(|rest| rest.starts_with('/'))
}
