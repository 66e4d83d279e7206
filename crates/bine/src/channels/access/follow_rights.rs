//! The rules by which a held request follows channels, which may change while it is held.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bine_http::Method;
use bine_server::Incoming;

use crate::access_guard::{AccessGuard, ChannelUse};
use crate::sessions::VisitorSession;
use crate::text::Text;

/// The channels that a client follows in a program with rights.
pub(super) struct FollowRights {
    guard: Arc<dyn AccessGuard>,
    user: Option<Text>,
    followed: Mutex<FollowedChannels>,
    /// The path of the page that chose the channels, if a page did.
    page: Option<(Box<str>, Method)>,
}

/// The channels of a hold, and the outcome of the last check.
#[derive(Default)]
struct FollowedChannels {
    channels: Vec<FollowedChannel>,
    /// The guard's version at the last check; 0: these channels have not been checked.
    checked: u64,
    /// Whether a check has found a lost right. It stays so, whatever is granted later.
    are_lost: bool,
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
        let followed = Mutex::new(FollowedChannels { channels, ..FollowedChannels::default() });
        Self { guard: Arc::clone(guard), user, followed, page: None }
    }

    /// The rights to a page that chooses the channels of its response.
    pub(super) fn of_page(guard: &Arc<dyn AccessGuard>, request: &Incoming<'_>) -> Self {
        let page = Some((request.head.path().into(), request.head.method()));
        Self { page, ..Self::new(guard, user_of(request), Vec::new()) }
    }

    /// Replaces the channels.
    pub(super) fn follow(&self, channels: Vec<FollowedChannel>) {
        let mut followed = self.followed();
        (followed.channels, followed.checked) = (channels, 0);
    }

    /// Whether a rule denies the page or one of the channels now, or the rule that permitted a
    /// channel was removed. Without a change of rights since the last call, it only compares
    /// versions.
    pub(super) fn are_lost(&self) -> bool {
        let mut followed = self.followed();
        // Read first: a change meanwhile causes one more check.
        let version = self.guard.version();
        if followed.checked != version && !followed.are_lost {
            followed.are_lost = self.are_denied(&followed.channels);
            followed.checked = version;
        }
        followed.are_lost
    }

    fn are_denied(&self, channels: &[FollowedChannel]) -> bool {
        let is_denied = |(path, method): &(Box<str>, Method)| {
            !self.guard.allows(self.user.as_deref(), path, *method)
        };
        self.page.as_ref().is_some_and(is_denied)
            || channels.iter().any(|channel| {
                let user = self.user.as_deref();
                match self.guard.check_channel(user, ChannelUse::Follow, &channel.name) {
                    Some(is_allowed) => !is_allowed,
                    None => channel.is_by_rule,
                }
            })
    }

    fn followed(&self) -> MutexGuard<'_, FollowedChannels> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The user that rights apply to: of the session, as it is now, or of a different login.
pub(super) fn user_of(request: &Incoming<'_>) -> Option<Text> {
    match VisitorSession::of(request) {
        Some(visitor_session) => visitor_session.login().map(|login| login.user),
        None => request.identity.user().map(Text::from),
    }
}

impl fmt::Debug for FollowRights {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("FollowRights").field("user", &self.user).finish_non_exhaustive()
    }
}
