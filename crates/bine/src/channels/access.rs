//! Decides who may do what with channels over HTTP: by rules for everybody, by tokens, and by a function of the program.

mod ask;
mod check;
mod denied;
mod grant;
mod key;
mod party;
mod pattern;
mod sign;
mod token;
mod visitor;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use ask::{Ask, Asked, Granting, Known};
#[doc(hidden)]
pub use check::check_grant;
pub(crate) use denied::Denied;
pub(crate) use grant::Action;
pub use grant::Grant;
pub use party::Caps;
pub(crate) use party::{MOST_REVOKED, Parties, Quotas};
pub use pattern::{BadPattern, Pattern, Rule};
pub use token::{Tokens, check_token};
pub(crate) use visitor::{Gate, Pass, Resident, Seated, Visitor};

use bine_http::Head;

use ask::Function;
use grant::Rules;

use super::origin::{among, origin};

/// Who may do what with channels over HTTP: whatever any part of it permits.
///
/// ```
/// use bine::channels::{Access, Pattern, Tokens};
///
/// let access = Access::none()
///     .follow("board")
///     .follow(Pattern::new("news/*"))
///     .publish(Pattern::new("chat/{room}"))
///     .users_follow("inbox/{user}")
///     .tokens(Tokens::hs256("one of at least thirty-two bytes, kept elsewhere"));
/// # drop(access);
/// ```
///
/// A rule is the name of one channel, or a [`Pattern`].
#[derive(Clone)]
#[must_use]
pub struct Access {
    rules: Rules,
    /// For whoever has logged in.
    users: Rules,
    tokens: Option<Tokens>,
    function: Option<Function>,
    age: Option<Duration>,
    caps: Caps,
    /// Of other sites whose pages may do what their visitors may, or what is wrong with one.
    origins: Result<Vec<Arc<str>>, String>,
}

/// How long a function's answer holds, unless it is said.
const AGE: Duration = Duration::from_mins(1);

impl Access {
    /// Nothing is open: channels are for the program's own pages, unless more is said.
    pub fn none() -> Self {
        let (rules, users, tokens) = (Rules::default(), Rules::default(), None);
        let (function, age, caps, origins) = (None, None, Caps::default(), Ok(Vec::new()));
        Self { rules, users, tokens, function, age, caps, origins }
    }

    /// Everybody may follow every channel; the program alone publishes.
    pub fn everybody_follows() -> Self {
        Self::none().follow(Pattern::new("*"))
    }

    /// Everybody may do everything: for development, or behind a filter of the program's own.
    pub fn everything() -> Self {
        Self::everybody_follows().publish(Pattern::new("*")).manage(Pattern::new("*"))
    }

    /// Everybody may follow this channel, or those of a [`Pattern`].
    pub fn follow(self, channels: impl Into<Rule>) -> Self {
        self.with(Action::Follow, channels.into())
    }

    /// Everybody may publish in this channel, or in those of a [`Pattern`].
    pub fn publish(self, channels: impl Into<Rule>) -> Self {
        self.with(Action::Publish, channels.into())
    }

    /// Everybody may make this channel, renew, close and remove it, or those of a [`Pattern`].
    pub fn manage(self, channels: impl Into<Rule>) -> Self {
        self.with(Action::Manage, channels.into())
    }

    /// Whoever has [logged in](crate::Session::log_in) may follow this channel, or those of a [`Pattern`], as long as
    /// that session lasts. In both a segment `{user}` is the user's own name: by `users_follow("inbox/{user}")`, Ann may
    /// follow `inbox/ann` and no other.
    pub fn users_follow(mut self, channels: impl Into<Rule>) -> Self {
        self.users.add_for_users(Action::Follow, channels.into());
        self
    }

    /// Whoever has logged in may publish in this channel, or in those of a [`Pattern`]. A segment `{user}` is the user's
    /// own name.
    pub fn users_publish(mut self, channels: impl Into<Rule>) -> Self {
        self.users.add_for_users(Action::Publish, channels.into());
        self
    }

    /// Whoever shows one of these tokens may do what stands in it.
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Pages of another site too may do here what their visitors may, such as `https://example.org`: their browsers are
    /// told so (CORS). Nothing of other sites may publish, and nothing can be read by them, unless it is said.
    pub fn origin(mut self, site: &str) -> Self {
        self.origins = self.origins.and_then(|mut origins| {
            origins.push(origin(site)?);
            Ok(origins)
        });
        self
    }

    /// Asks an async function what a visitor may do whom rules and tokens do not let pass.
    ///
    /// ```
    /// use bine::channels::{Access, Asked, Grant, Pattern};
    ///
    /// async fn may(asked: Asked) -> Grant {
    ///     match asked.user() {
    ///         Some(name) => Grant::to(name).follow("news").publish(Pattern::new("chat/{room}")),
    ///         None => Grant::nothing(),
    ///     }
    /// }
    /// let access = Access::none().ask(may);
    /// # drop(access);
    /// ```
    ///
    /// It may also take [`Store`](crate::store::Store), [`State`](crate::State) and [`Channels`](super::Channels). It is
    /// asked once for all who show the same [`Asked`], and again when its answer is [older](Self::age) than a minute.
    pub fn ask<A: 'static>(mut self, function: impl Ask<A>) -> Self {
        self.function = Some(Function::new(function));
        self
    }

    /// How long an answer of the [function](Self::ask) holds; a minute, unless said. What waits by it waits on.
    pub fn age(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }

    /// How many may wait, and how fast they may publish.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// The same with other tokens than its own.
    pub(crate) fn amend_tokens(mut self, amend: impl FnOnce(Option<Tokens>) -> Tokens) -> Self {
        self.tokens = Some(amend(self.tokens));
        self
    }

    /// The same with other caps than its own.
    pub(crate) fn amend_caps(mut self, amend: impl FnOnce(Caps) -> Caps) -> Self {
        self.caps = amend(self.caps);
        self
    }

    /// Who may do what, in words.
    pub(crate) fn told(&self) -> String {
        let rules = self.rules.all();
        let rules =
            rules.map(|(action, channels)| format!("anyone may {} {channels}", action.name()));
        self.told_by(rules.collect())
    }

    /// The same of one channel.
    pub(crate) fn told_of(&self, channel: &str) -> String {
        let own = [Action::Follow, Action::Publish, Action::Manage].into_iter();
        let own = own.filter(|action| self.rules.permit(*action, channel));
        self.told_by(own.map(|action| format!("anyone may {}", action.name())).collect())
    }

    fn told_by(&self, mut rules: Vec<String>) -> String {
        if self.tokens.is_some() {
            rules.push("tokens say".to_owned());
        }
        if self.function.is_some() {
            rules.push("a function says".to_owned());
        }
        if rules.is_empty() { "nobody".to_owned() } else { rules.join("; ") }
    }

    fn with(mut self, action: Action, rule: Rule) -> Self {
        self.rules.add(action, rule);
        self
    }

    /// The other site, of those that may, whose page a request is from.
    fn origin_of(&self, head: &Head<'_>) -> Option<Arc<str>> {
        among(self.origins.as_deref().unwrap_or_default(), head)
    }

    /// What is wrong with it, and how to mend it.
    fn fault(&self) -> Option<&str> {
        let of_tokens = || self.tokens.as_ref()?.fault();
        let of_origins = || self.origins.as_ref().err().map(String::as_str);
        self.rules.fault().or_else(|| self.users.fault()).or_else(of_tokens).or_else(of_origins)
    }
}

/// The pattern of a rule in a configuration.
///
/// # Errors
///
/// What is wrong with it, and what may stand there.
pub(crate) fn rule(text: &str) -> Result<Pattern, String> {
    let pattern = Pattern::parse(text).map_err(|bad| bad.to_string())?;
    Rule::from(pattern.clone()).check()?;
    Ok(pattern)
}

impl Default for Access {
    fn default() -> Self {
        Self::none()
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Access")
            .field("rules", &self.rules)
            .field("users", &self.users)
            .field("tokens", &self.tokens)
            .field("asks", &self.function.is_some())
            .finish_non_exhaustive()
    }
}
