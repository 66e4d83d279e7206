//! Grants: the permissions of a client for channels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::follow_rights::FollowRights;
use super::pattern::ChannelRule;
use crate::access_guard::ChannelUse;
use crate::sessions::Login;
use crate::user_name::UserName;

/// An operation on a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChannelAction {
    /// Read its messages and wait for more.
    Follow,
    /// Publish messages.
    Publish,
    /// Create, renew, close and remove it.
    Manage,
}

/// The rules for each action.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    of: [Vec<ChannelRule>; 3],
    /// The error of the first invalid rule.
    fault: Option<String>,
}

/// The permissions of one client, from an access function or a token.
///
/// ```
/// use bine::channels::{Grant, Pattern};
///
/// let user = "ann";
/// let grant = Grant::to(user).follow(format!("inbox/{user}")).publish(Pattern::new("chat/{room}"));
/// # drop(grant);
/// ```
///
/// A plain text is the name of one channel; only a [`Pattern`](super::Pattern) matches more.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Grant {
    pub(super) subject: Option<Arc<str>>,
    pub(super) rules: Rules,
    /// The end in milliseconds since 1970.
    pub(super) until: Option<u64>,
    /// Why the subject's name is invalid.
    pub(super) fault: Option<String>,
}

/// A grant in use, which a revocation or the end of a login invalidates.
#[derive(Debug)]
pub(crate) struct ActiveGrant {
    pub(super) grant: Grant,
    pub(super) issued: Issued,
    /// The subject of the access function's grant, and its time, if a token's grant was merged with
    /// it.
    merged: Option<(Arc<str>, Issued)>,
    /// The login that it depends on.
    pub(super) login: Option<Login>,
    /// The end of the login in milliseconds since 1970. It moves when the session is used.
    login_ends: AtomicU64,
    /// The rules by which it follows channels, in a program with rights.
    pub(super) follow_rights: Option<FollowRights>,
    is_over: AtomicBool,
}

/// The time of a grant, to compare with revocations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Issued {
    /// The time of a token in milliseconds since 1970.
    At(u64),
    /// The number of revocations before the call of the access function.
    Behind(u32),
}

impl From<ChannelAction> for ChannelUse {
    fn from(action: ChannelAction) -> Self {
        match action {
            ChannelAction::Follow => Self::Follow,
            ChannelAction::Publish => Self::Publish,
            ChannelAction::Manage => Self::Manage,
        }
    }
}

impl ChannelAction {
    /// The name in rules and tokens.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Follow => "follow",
            Self::Publish => "publish",
            Self::Manage => "manage",
        }
    }
}

impl Rules {
    pub(super) fn add(&mut self, action: ChannelAction, rule: ChannelRule) {
        self.push(action, rule.check());
    }

    /// Adds a rule for users, in which a segment may represent the user's name.
    pub(super) fn add_for_users(&mut self, action: ChannelAction, rule: ChannelRule) {
        self.push(action, rule.check_for_users());
    }

    /// Returns the rules for users as they apply to one user.
    pub(super) fn of_user(&self, user: &UserName) -> Self {
        let own = |rules: &Vec<ChannelRule>| rules.iter().map(|rule| rule.of_user(user)).collect();
        Self { of: self.of.each_ref().map(own), fault: None }
    }

    fn push(&mut self, action: ChannelAction, rule: Result<ChannelRule, String>) {
        match rule {
            Ok(rule) => self.of[action as usize].push(rule),
            Err(fault) => {
                self.fault.get_or_insert(fault);
            }
        }
    }

    pub(super) fn permit(&self, action: ChannelAction, channel: &str) -> bool {
        self.of[action as usize].iter().any(|rule| rule.matches(channel))
    }

    /// Whether the action is permitted for any channel.
    pub(super) fn permit_some(&self, action: ChannelAction) -> bool {
        !self.of[action as usize].is_empty()
    }

    /// Returns each rule with its action.
    pub(super) fn all(&self) -> impl Iterator<Item = (ChannelAction, &str)> {
        let each =
            [ChannelAction::Follow, ChannelAction::Publish, ChannelAction::Manage].into_iter();
        each.flat_map(|action| {
            self.of[action as usize].iter().map(move |rule| (action, rule.text()))
        })
    }

    /// Returns the rules as an array of patterns. Names are valid patterns, as they have no syntax.
    pub(super) fn names(&self, action: ChannelAction) -> serde_json::Value {
        self.of[action as usize].iter().map(ChannelRule::text).collect()
    }

    pub(super) fn are_none(&self) -> bool {
        self.of.iter().all(Vec::is_empty)
    }

    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    fn join(&mut self, other: Self) {
        for (own, others) in self.of.iter_mut().zip(other.of) {
            own.extend(others);
        }
    }
}

impl Grant {
    /// Creates an empty grant: only rules and tokens permit something.
    pub fn none() -> Self {
        Self::default()
    }

    /// Creates a grant for a subject. The subject's quotas apply to it, and
    /// [`revoke`](super::super::Channels::revoke) ends it. A text that is not a [`UserName`] gets
    /// an empty grant, and the log shows why.
    pub fn to(subject: &str) -> Self {
        match UserName::parse(subject) {
            Ok(name) => Self { subject: Some(name.into_shared()), ..Self::default() },
            Err(bad) => {
                Self { fault: Some(format!("nothing is granted: {bad}")), ..Self::default() }
            }
        }
    }

    /// Permits the client to follow this channel, or those that match a
    /// [`Pattern`](super::Pattern).
    pub fn follow(self, channels: impl Into<ChannelRule>) -> Self {
        self.with(ChannelAction::Follow, channels.into())
    }

    /// Permits the client to publish in this channel, or in those that match a
    /// [`Pattern`](super::Pattern).
    pub fn publish(self, channels: impl Into<ChannelRule>) -> Self {
        self.with(ChannelAction::Publish, channels.into())
    }

    /// Permits the client to create, renew, close and remove this channel, or those that match a
    /// [`Pattern`](super::Pattern).
    pub fn manage(self, channels: impl Into<ChannelRule>) -> Self {
        self.with(ChannelAction::Manage, channels.into())
    }

    /// Sets the end of the grant. Its held requests end at the same time.
    pub fn until(mut self, end: SystemTime) -> Self {
        let since = end.duration_since(UNIX_EPOCH);
        self.until = Some(since.map_or(0, |since| since.as_millis() as u64));
        self
    }

    pub(super) fn with(mut self, action: ChannelAction, rule: ChannelRule) -> Self {
        self.rules.add(action, rule);
        self
    }

    /// Returns the error of the subject or of a rule.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref().or_else(|| self.rules.fault())
    }

    /// Removes invalid parts: a grant to an invalid subject is empty.
    pub(super) fn sound(self) -> Self {
        if self.fault.is_some() { Self::none() } else { self }
    }

    /// Merges two grants. The result ends with the first grant that ends.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.subject = self.subject.or(other.subject);
        self.rules.join(other.rules);
        self.until = match (self.until, other.until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self
    }
}

impl ActiveGrant {
    pub(super) const fn new(grant: Grant, issued: Issued) -> Self {
        let (login_ends, is_over) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
        Self { grant, issued, merged: None, login: None, login_ends, follow_rights: None, is_over }
    }

    /// The grant of one hold, which ends when the client loses a right to follow a channel.
    pub(super) fn following(
        base: Option<&Self>,
        issued: Issued,
        follow_rights: FollowRights,
    ) -> Self {
        let follow_rights = Some(follow_rights);
        let Some(base) = base else {
            return Self { follow_rights, ..Self::new(Grant::none(), issued) };
        };
        let is_over = base.is_over.load(Ordering::Acquire).into();
        let (grant, merged) = (base.grant.clone(), base.merged.clone());
        Self { merged, follow_rights, is_over, ..Self::new(grant, base.issued) }
            .with_login(base.login.clone())
    }

    /// Whether the client may not follow one of its channels any more.
    pub(super) fn has_lost_rights(&self) -> bool {
        self.follow_rights.as_ref().is_some_and(FollowRights::are_lost)
    }

    /// Makes the grant depend on a login.
    pub(super) fn with_login(mut self, login: Option<Login>) -> Self {
        self.login_ends =
            login.as_ref().map_or(u64::MAX, |login| in_milliseconds(login.until)).into();
        self.login = login;
        self
    }

    /// Merges it with a grant of the access function. The result ends with either.
    pub(super) fn and(&self, grant: Grant, issued: Issued) -> Self {
        let merged = grant.subject.clone().map(|subject| (subject, issued));
        Self { merged, ..Self::new(self.grant.clone().and(grant), self.issued) }
            .with_login(self.login.clone())
    }

    /// The subject whose quotas apply.
    pub(super) fn subject(&self) -> Option<&Arc<str>> {
        self.grant.subject.as_ref()
    }

    /// The subjects whose revocation ends it, each with the time of its grant.
    pub(super) fn subjects(&self) -> impl Iterator<Item = (&Arc<str>, Issued)> {
        let merged = self.merged.as_ref().map(|(subject, issued)| (subject, *issued));
        self.subject().map(|subject| (subject, self.issued)).into_iter().chain(merged)
    }

    /// Ends it, and thereby its held requests.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Returns its end in milliseconds since 1970; 0: it was revoked, or a right was lost. Each
    /// delivery asks it, so that a change of rights is in effect before the holds are visited.
    pub(super) fn grant_end(&self) -> u64 {
        if self.is_over.load(Ordering::Acquire) || self.has_lost_rights() {
            return 0;
        }
        self.grant.until.unwrap_or(u64::MAX).min(self.login_ends.load(Ordering::Acquire))
    }

    /// Updates its end after a change of the login. Whether it has ended.
    pub(super) fn refresh_login(&self) -> bool {
        let Some(login) = &self.login else { return false };
        match login.lasts() {
            Some(until) => self.login_ends.store(in_milliseconds(until), Ordering::Release),
            None => self.end(),
        }
        self.grant_end() == 0
    }
}

const fn in_milliseconds(seconds: u64) -> u64 {
    seconds.saturating_mul(1000)
}
