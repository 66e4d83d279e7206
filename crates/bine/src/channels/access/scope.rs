//! The channels of a part of the program whose rules are known once that part is loaded, such as an
//! application in TSX.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bine_server::Incoming;

use super::grant::{ChannelAction, Rules};
use super::pattern::ChannelRule;
use crate::app_state::AppState;
use crate::error::Error;
use crate::user_name::UserName;

/// A part of the program with its own channels.
pub(crate) trait ChannelScope: Send + Sync {
    /// Whether a channel of this name belongs to it.
    fn has(&self, channel: &str) -> bool;

    /// The rules for its channels; `None`: it is not loaded.
    fn rules(&self) -> Option<Arc<ScopeRules>>;

    /// Loads it for a request to one of its channels.
    fn load(&self, request: &Incoming<'_>, app: &Arc<AppState>) -> ScopeLoad;
}

/// A load of a [`ChannelScope`].
pub(crate) type ScopeLoad = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// The parts of the program with channels of their own.
#[derive(Clone, Default)]
pub(crate) struct ChannelScopes(pub(crate) Arc<[Arc<dyn ChannelScope>]>);

/// The rules for the channels of a [`ChannelScope`]. A client may also do what the program's own
/// rules permit.
#[derive(Debug, Default)]
pub(crate) struct ScopeRules {
    everyone: Rules,
    /// Rules for logged-in users.
    users: Rules,
}

/// The users that a rule is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RuleAudience {
    Everyone,
    /// Logged-in users. A segment `{user}` matches the name of the user.
    Users,
}

impl ChannelScopes {
    /// The part of the program to which a channel belongs.
    pub(super) fn of(&self, channel: &str) -> Option<&Arc<dyn ChannelScope>> {
        self.0.iter().find(|scope| scope.has(channel))
    }

    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a client that logs in may get the action on a channel, or on any.
    pub(super) fn are_for_users(&self, action: ChannelAction, channel: Option<&str>) -> bool {
        let mut concerned = self.0.iter().filter(|scope| channel.is_none_or(|own| scope.has(own)));
        concerned
            .any(|scope| scope.rules().is_some_and(|rules| rules.are_for_users(action, channel)))
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether any channel may permit the action. A part that is not loaded may.
    pub(super) fn may_permit(&self, action: ChannelAction, is_user: bool) -> bool {
        let may = |scope: &Arc<dyn ChannelScope>| {
            scope.rules().is_none_or(|rules| {
                rules.everyone.permit_some(action) || is_user && rules.users.permit_some(action)
            })
        };
        self.0.iter().any(may)
    }
}

impl ScopeRules {
    /// Permits everyone or all users an action on these channels.
    ///
    /// # Errors
    ///
    /// The rule is wrong; the text names the correction.
    pub(crate) fn permit(
        &mut self,
        action: ChannelAction,
        audience: RuleAudience,
        channels: ChannelRule,
    ) -> Result<(), String> {
        let rules = match audience {
            RuleAudience::Everyone => {
                self.everyone.add(action, channels);
                &self.everyone
            }
            RuleAudience::Users => {
                self.users.add_for_users(action, channels);
                &self.users
            }
        };
        rules.fault().map_or(Ok(()), |fault| Err(fault.to_owned()))
    }

    /// Whether a client may perform an action on a channel. `user`: the login of the client.
    pub(crate) fn permits(
        &self,
        action: ChannelAction,
        channel: &str,
        user: Option<&UserName>,
    ) -> bool {
        self.everyone.permit(action, channel)
            || user.is_some_and(|user| self.users.of_user(user).permit(action, channel))
    }

    /// Whether a client that logs in may get the action on a channel, or on any.
    fn are_for_users(&self, action: ChannelAction, channel: Option<&str>) -> bool {
        match channel {
            // In a pattern, the segment for a user matches any.
            Some(channel) => self.users.permit(action, channel),
            None => self.users.permit_some(action),
        }
    }
}

impl fmt::Debug for ChannelScopes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "ChannelScopes({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Pattern;
    use super::*;

    #[test]
    fn permits_users_their_own_channels_only() {
        let mut rules = ScopeRules::default();
        let inbox = Pattern::new("board/inbox/{user}");
        rules.permit(ChannelAction::Follow, RuleAudience::Users, inbox.clone().into()).unwrap();
        rules.permit(ChannelAction::Follow, RuleAudience::Everyone, "board/news".into()).unwrap();
        let ann = UserName::parse("ann").unwrap();
        let follow = |channel: &str, user| rules.permits(ChannelAction::Follow, channel, user);
        assert!(follow("board/inbox/ann", Some(&ann)) && follow("board/news", None));
        assert!(!follow("board/inbox/bob", Some(&ann)) && !follow("board/inbox/ann", None));
        assert!(!rules.permits(ChannelAction::Publish, "board/news", Some(&ann)));
        let wrong = rules.permit(ChannelAction::Publish, RuleAudience::Everyone, inbox.into());
        assert!(wrong.unwrap_err().contains("{user}"));
    }
}
