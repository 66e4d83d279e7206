//! Access control for channels over HTTP: rules for everyone, tokens, and an access function.

mod ask;
mod check;
mod client;
mod denied;
mod follow_rights;
mod grant;
mod key;
mod pattern;
mod quota;
#[cfg_attr(not(feature = "script"), allow(dead_code, reason = "for applications in TSX"))]
mod scope;
mod sign;
mod token;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use ask::{AccessArgument, AccessFunction, Credentials, IntoGrant};
#[doc(hidden)]
pub use check::check_grant;
pub(crate) use client::{AccessControl, ChannelClient, HoldGuard, HoldPermit, OwnedClient};
pub(crate) use denied::Denied;
pub(crate) use grant::ChannelAction;
pub use grant::Grant;
pub use pattern::{BadPattern, ChannelRule, Pattern};
pub use quota::ClientLimits;
pub(crate) use quota::{MAX_REVOKED, MemoryQuotas, QuotaTable};
#[cfg_attr(
    not(feature = "script"),
    expect(unused_imports, reason = "for applications in TSX")
)]
pub(crate) use scope::{ChannelScope, ChannelScopes, RuleAudience, ScopeLoad, ScopeRules};
pub use token::{TokenVerifier, check_token};

use bine_http::Head;

use ask::ErasedAccessFunction;
use grant::Rules;

use super::origin::{among, origin};

/// The permissions of clients over HTTP. A client may do what any part permits.
///
/// ```
/// use bine::channels::{Access, Pattern, TokenVerifier};
///
/// let access = Access::none()
///     .follow("board")
///     .follow(Pattern::new("news/*"))
///     .publish(Pattern::new("chat/{room}"))
///     .users_follow("inbox/{user}")
///     .tokens(TokenVerifier::hs256("one of at least thirty-two bytes, kept elsewhere"));
/// # drop(access);
/// ```
///
/// A rule is the name of one channel, or a [`Pattern`].
#[derive(Clone)]
#[must_use]
pub struct Access {
    rules: Rules,
    /// Rules for logged-in users.
    users: Rules,
    tokens: Option<TokenVerifier>,
    function: Option<ErasedAccessFunction>,
    age: Option<Duration>,
    client_limits: ClientLimits,
    /// Origins with cross-origin access, or the error of an invalid one.
    origins: Result<Vec<Arc<str>>, String>,
}

/// How long an answer of the access function is cached by default.
const AGE: Duration = Duration::from_mins(1);

impl Access {
    /// Denies all access over HTTP: only the program's own pages use channels.
    pub fn none() -> Self {
        let (rules, users, tokens) = (Rules::default(), Rules::default(), None);
        let (function, age, client_limits, origins) =
            (None, None, ClientLimits::default(), Ok(Vec::new()));
        Self { rules, users, tokens, function, age, client_limits, origins }
    }

    /// Permits everyone to follow every channel; only the program publishes.
    pub fn anyone_follows() -> Self {
        Self::none().follow(Pattern::new("*"))
    }

    /// Permits everything to everyone: for development, or with a filter of the program.
    pub fn allow_all() -> Self {
        Self::anyone_follows().publish(Pattern::new("*")).manage(Pattern::new("*"))
    }

    /// Permits everyone to follow this channel, or those that match a [`Pattern`].
    pub fn follow(self, channels: impl Into<ChannelRule>) -> Self {
        self.with(ChannelAction::Follow, channels.into())
    }

    /// Permits everyone to publish in this channel, or in those that match a [`Pattern`].
    pub fn publish(self, channels: impl Into<ChannelRule>) -> Self {
        self.with(ChannelAction::Publish, channels.into())
    }

    /// Permits everyone to create, renew, close and remove this channel, or those that match a
    /// [`Pattern`].
    pub fn manage(self, channels: impl Into<ChannelRule>) -> Self {
        self.with(ChannelAction::Manage, channels.into())
    }

    /// Permits users who have [logged in](crate::Session::log_in) to follow this channel, or those
    /// that match a [`Pattern`], until the session ends. A segment `{user}` matches the user's
    /// name: `users_follow("inbox/{user}")` permits Ann to follow `inbox/ann` and no other inbox.
    pub fn users_follow(mut self, channels: impl Into<ChannelRule>) -> Self {
        self.users.add_for_users(ChannelAction::Follow, channels.into());
        self
    }

    /// Permits logged-in users to publish in this channel, or in those that match a [`Pattern`]. A
    /// segment `{user}` stands for the user's name.
    pub fn users_publish(mut self, channels: impl Into<ChannelRule>) -> Self {
        self.users.add_for_users(ChannelAction::Publish, channels.into());
        self
    }

    /// Permits clients with one of these tokens what the token grants.
    pub fn tokens(mut self, tokens: TokenVerifier) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Allows cross-origin requests (CORS) from pages of a site such as `https://example.org`, with
    /// the permissions of their visitors. By default, pages of other sites can neither publish nor
    /// read responses.
    pub fn origin(mut self, site: &str) -> Self {
        self.origins = self.origins.and_then(|mut origins| {
            origins.push(origin(site)?);
            Ok(origins)
        });
        self
    }

    /// Calls an async function for clients that rules and tokens do not permit.
    ///
    /// ```
    /// use bine::channels::{Access, Credentials, Grant, Pattern};
    ///
    /// async fn may(credentials: Credentials) -> Grant {
    ///     match credentials.user() {
    ///         Some(name) => Grant::to(name).follow("news").publish(Pattern::new("chat/{room}")),
    ///         None => Grant::none(),
    ///     }
    /// }
    /// let access = Access::none().authorize(may);
    /// # drop(access);
    /// ```
    ///
    /// The function may also take [`Store`](crate::store::Store), [`State`](crate::State) and
    /// [`Channels`](super::Channels). The server calls it once for all requests with the same
    /// [`Credentials`], and again when the answer is [older](Self::cache_for) than a minute.
    pub fn authorize<A: 'static>(mut self, function: impl AccessFunction<A>) -> Self {
        self.function = Some(ErasedAccessFunction::new(function));
        self
    }

    /// Sets how long the server caches an answer of the [function](Self::authorize): one minute by
    /// default. Held requests continue beyond that time.
    pub fn cache_for(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }

    /// Sets limits for held requests, publications and memory.
    pub fn client_limits(mut self, client_limits: ClientLimits) -> Self {
        self.client_limits = client_limits;
        self
    }

    /// Replaces the tokens.
    pub(crate) fn amend_tokens(
        mut self,
        amend: impl FnOnce(Option<TokenVerifier>) -> TokenVerifier,
    ) -> Self {
        self.tokens = Some(amend(self.tokens));
        self
    }

    /// Replaces the limits for clients.
    pub(crate) fn amend_client_limits(
        mut self,
        amend: impl FnOnce(ClientLimits) -> ClientLimits,
    ) -> Self {
        self.client_limits = amend(self.client_limits);
        self
    }

    /// Describes the permissions for an operator.
    pub(crate) fn told(&self) -> String {
        let rules = self.rules.all();
        let rules =
            rules.map(|(action, channels)| format!("anyone may {} {channels}", action.name()));
        self.told_by(rules.collect())
    }

    /// Describes the permissions for one channel.
    pub(crate) fn told_of(&self, channel: &str) -> String {
        let own =
            [ChannelAction::Follow, ChannelAction::Publish, ChannelAction::Manage].into_iter();
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

    fn with(mut self, action: ChannelAction, rule: ChannelRule) -> Self {
        self.rules.add(action, rule);
        self
    }

    /// Returns the origin of a request if it is an allowed one.
    fn origin_of(&self, head: &Head<'_>) -> Option<Arc<str>> {
        among(self.origins.as_deref().unwrap_or_default(), head)
    }

    /// Returns the first configuration error and how to fix it.
    fn fault(&self) -> Option<&str> {
        let of_tokens = || self.tokens.as_ref()?.fault();
        let of_origins = || self.origins.as_ref().err().map(String::as_str);
        self.rules.fault().or_else(|| self.users.fault()).or_else(of_tokens).or_else(of_origins)
    }
}

/// Parses a pattern of the configuration.
///
/// # Errors
///
/// The text is not a valid pattern for a rule; the error shows the valid forms.
pub(crate) fn rule(text: &str) -> Result<Pattern, String> {
    let pattern = Pattern::parse(text).map_err(|bad| bad.to_string())?;
    ChannelRule::from(pattern.clone()).check()?;
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
