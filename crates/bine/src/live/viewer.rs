//! The state of one client that follows a page, beyond what all its followers share.

use std::fmt;
use std::sync::Arc;

use super::events::EventListener;
use super::presence::PagePresenceGuard;
use crate::channels::SubscriptionSpec;

/// A client that listens to events or is counted as present, until it is dropped.
pub(crate) struct Viewer {
    pub(super) listener: Option<EventListener>,
    pub(super) presence: Option<PagePresenceGuard>,
    /// The watch that all followers of the page share: holding it keeps the view alive.
    pub(super) page: Arc<SubscriptionSpec>,
}

impl fmt::Debug for Viewer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Viewer")
            .field("listens", &self.listener.is_some())
            .field("is_seen", &self.presence.is_some())
            .field("page", &self.page.channels)
            .finish()
    }
}
