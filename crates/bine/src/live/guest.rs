//! Decides what is known of one who follows a page beyond what all who follow it have in common.

use std::fmt;
use std::sync::Arc;

use super::events::Listener;
use super::place::Presence;
use crate::channels::Watch;

/// One who listens to events, or is seen to be there; until it is dropped.
pub(crate) struct Guest {
    pub(super) listener: Option<Listener>,
    pub(super) presence: Option<Presence>,
    /// As all others follow the page: it is looked at as long as this is here.
    pub(super) page: Arc<Watch>,
}

impl fmt::Debug for Guest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Guest")
            .field("listens", &self.listener.is_some())
            .field("is_seen", &self.presence.is_some())
            .field("page", &self.page.channels)
            .finish()
    }
}
