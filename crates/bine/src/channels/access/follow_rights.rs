//! The rules by which a held request follows channels, which may change while it is held.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::access_guard::{AccessGuard, ChannelUse};
use crate::text::Text;

/// The channels that a client follows in a program with rights.
pub(super) struct FollowRights {
    guard: Arc<dyn AccessGuard>,
    user: Option<Text>,
    channels: Mutex<Vec<FollowedChannel>>,
}

/// A channel that a client may follow.
#[derive(Clone)]
pub(super) struct FollowedChannel {
    pub(super) name: Box<str>,
    /// Whether a rule of rights permits it; otherwise the program's own access rules do.
    pub(super) is_by_rule: bool,
}

impl FollowRights {
    pub(super) fn new(
        guard: &Arc<dyn AccessGuard>,
        user: Option<Text>,
        channels: Vec<FollowedChannel>,
    ) -> Self {
        Self { guard: Arc::clone(guard), user, channels: Mutex::new(channels) }
    }

    /// Replaces the channels.
    pub(super) fn follow(&self, channels: Vec<FollowedChannel>) {
        *self.channels() = channels;
    }

    /// Whether a rule denies one of the channels now, or the rule that permitted it is gone.
    pub(super) fn are_lost(&self) -> bool {
        self.channels().iter().any(|channel| {
            let user = self.user.as_deref();
            match self.guard.check_channel(user, ChannelUse::Follow, &channel.name) {
                Some(is_allowed) => !is_allowed,
                None => channel.is_by_rule,
            }
        })
    }

    fn channels(&self) -> MutexGuard<'_, Vec<FollowedChannel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FollowRights {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("FollowRights").field("user", &self.user).finish_non_exhaustive()
    }
}
