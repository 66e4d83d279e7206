//! Decides what somebody may do with channels: by rules for everybody, or by a grant of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::pattern::Rule;
use crate::sessions::Login;
use crate::user_name::UserName;

/// What can be done with a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Read what is in it, and wait for more.
    Follow,
    /// Put messages into it.
    Publish,
    /// Make it, renew it, close it, remove it.
    Manage,
}

/// What may be done with which channels.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    of: [Vec<Rule>; 3],
    /// What is wrong with the first that could not be understood.
    fault: Option<String>,
}

/// What one visitor may do with channels, in the words of the program or of a token.
///
/// ```
/// use bine::channels::{Grant, Pattern};
///
/// let user = "ann";
/// let grant = Grant::to(user).follow(format!("inbox/{user}")).publish(Pattern::new("chat/{room}"));
/// # drop(grant);
/// ```
///
/// A text is the name of one channel; only a [`Pattern`](super::Pattern) stands for more.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Grant {
    pub(super) subject: Option<Arc<str>>,
    pub(super) rules: Rules,
    /// In milliseconds since 1970.
    pub(super) until: Option<u64>,
    /// Why it is nobody's.
    pub(super) fault: Option<String>,
}

/// A grant while it is good.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) grant: Grant,
    pub(super) issued: Issued,
    /// Where a token's grant is joined by that of the function: to whom this was given, and when.
    joined: Option<(Arc<str>, Issued)>,
    /// The login by which it was given, and with which it ends.
    pub(super) login: Option<Login>,
    /// When that ends, in milliseconds since 1970: later, when the session is used.
    login_ends: AtomicU64,
    is_over: AtomicBool,
}

/// When a grant was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Issued {
    /// By a token, in milliseconds since 1970.
    At(u64),
    /// By the program's function, behind so many revocations.
    Behind(u32),
}

impl Action {
    /// As it is called in a rule and in a token.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Follow => "follow",
            Self::Publish => "publish",
            Self::Manage => "manage",
        }
    }
}

impl Rules {
    pub(super) fn add(&mut self, action: Action, rule: Rule) {
        self.push(action, rule.check());
    }

    /// Adds a rule for users, in which a segment may stand for the name of each.
    pub(super) fn add_for_users(&mut self, action: Action, rule: Rule) {
        self.push(action, rule.check_for_users());
    }

    /// What rules for users give to one of them.
    pub(super) fn of_user(&self, user: &UserName) -> Self {
        let own = |rules: &Vec<Rule>| rules.iter().map(|rule| rule.of_user(user)).collect();
        Self { of: self.of.each_ref().map(own), fault: None }
    }

    fn push(&mut self, action: Action, rule: Result<Rule, String>) {
        match rule {
            Ok(rule) => self.of[action as usize].push(rule),
            Err(fault) => {
                self.fault.get_or_insert(fault);
            }
        }
    }

    pub(super) fn permit(&self, action: Action, channel: &str) -> bool {
        self.of[action as usize].iter().any(|rule| rule.matches(channel))
    }

    /// Whether there is any channel with which it may be done.
    pub(super) fn permit_some(&self, action: Action) -> bool {
        !self.of[action as usize].is_empty()
    }

    /// Each, with what it permits.
    pub(super) fn all(&self) -> impl Iterator<Item = (Action, &str)> {
        let each = [Action::Follow, Action::Publish, Action::Manage].into_iter();
        each.flat_map(|action| {
            self.of[action as usize].iter().map(move |rule| (action, rule.text()))
        })
    }

    /// As an array of patterns, which the names of a rule are too: they have no syntax.
    pub(super) fn names(&self, action: Action) -> serde_json::Value {
        self.of[action as usize].iter().map(Rule::text).collect()
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
    /// Nothing, to nobody: more than rules and tokens say is not given.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// To somebody by a name, which counts what they hold and by which it is [revoked](super::super::Channels::revoke).
    /// A text that is no [`UserName`] is given nothing, and the log tells why.
    pub fn to(subject: &str) -> Self {
        match UserName::parse(subject) {
            Ok(name) => Self { subject: Some(name.into_shared()), ..Self::default() },
            Err(bad) => {
                Self { fault: Some(format!("nothing is granted: {bad}")), ..Self::default() }
            }
        }
    }

    /// They may follow this channel, or those of a [`Pattern`](super::Pattern).
    pub fn follow(self, channels: impl Into<Rule>) -> Self {
        self.with(Action::Follow, channels.into())
    }

    /// They may publish in this channel, or in those of a [`Pattern`](super::Pattern).
    pub fn publish(self, channels: impl Into<Rule>) -> Self {
        self.with(Action::Publish, channels.into())
    }

    /// They may make this channel, renew, close and remove it, or those of a [`Pattern`](super::Pattern).
    pub fn manage(self, channels: impl Into<Rule>) -> Self {
        self.with(Action::Manage, channels.into())
    }

    /// It ends then, and whatever waits by it.
    pub fn until(mut self, end: SystemTime) -> Self {
        let since = end.duration_since(UNIX_EPOCH);
        self.until = Some(since.map_or(0, |since| since.as_millis() as u64));
        self
    }

    pub(super) fn with(mut self, action: Action, rule: Rule) -> Self {
        self.rules.add(action, rule);
        self
    }

    /// What is wrong with it: whose it is, or a rule.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref().or_else(|| self.rules.fault())
    }

    /// The same without what is wrong with it: nothing, if it is nobody's whose name is known.
    pub(super) fn sound(self) -> Self {
        if self.fault.is_some() { Self::nothing() } else { self }
    }

    /// What both give, for as long as both are good.
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

impl Session {
    pub(super) const fn new(grant: Grant, issued: Issued) -> Self {
        let (login_ends, is_over) = (AtomicU64::new(u64::MAX), AtomicBool::new(false));
        Self { grant, issued, joined: None, login: None, login_ends, is_over }
    }

    /// The same by a login.
    pub(super) fn by(mut self, login: Option<Login>) -> Self {
        self.login_ends =
            login.as_ref().map_or(u64::MAX, |login| in_milliseconds(login.until)).into();
        self.login = login;
        self
    }

    /// The same with a grant of the function's. It ends with either.
    pub(super) fn and(&self, grant: Grant, issued: Issued) -> Self {
        let joined = grant.subject.clone().map(|subject| (subject, issued));
        Self { joined, ..Self::new(self.grant.clone().and(grant), self.issued) }
            .by(self.login.clone())
    }

    /// By whom it counts, and is known.
    pub(super) fn subject(&self) -> Option<&Arc<str>> {
        self.grant.subject.as_ref()
    }

    /// Whose revocation ends it, and since when it is theirs.
    pub(super) fn subjects(&self) -> impl Iterator<Item = (&Arc<str>, Issued)> {
        let joined = self.joined.as_ref().map(|(subject, issued)| (subject, *issued));
        self.subject().map(|subject| (subject, self.issued)).into_iter().chain(joined)
    }

    /// Whoever waits by it waits no longer.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// When it ends, in milliseconds since 1970; 0: it was revoked.
    pub(super) fn ends(&self) -> u64 {
        if self.is_over.load(Ordering::Acquire) {
            return 0;
        }
        self.grant.until.unwrap_or(u64::MAX).min(self.login_ends.load(Ordering::Acquire))
    }

    /// The login by which it was given may have ended, or was used and so lasts for longer. Says whether it has ended.
    pub(super) fn heed_login(&self) -> bool {
        let Some(login) = &self.login else { return false };
        match login.lasts() {
            Some(until) => self.login_ends.store(in_milliseconds(until), Ordering::Release),
            None => self.end(),
        }
        self.ends() == 0
    }
}

const fn in_milliseconds(seconds: u64) -> u64 {
    seconds.saturating_mul(1000)
}
