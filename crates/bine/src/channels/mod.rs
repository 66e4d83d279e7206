//! Channels: named, ordered sequences of messages with a limited retention, which any number of
//! clients follow.
//!
//! A program publishes through [`Channels`], which a page takes as an argument. One [`Cursor`] is a
//! position in the order of all messages of all channels, so one cursor suffices for any set of
//! channels.

mod access;
mod argument;
mod async_waiter;
mod async_waiters;
mod batch;
mod choices;
mod clock;
mod delivery;
mod durable;
mod durable_view;
mod endpoint;
mod engine;
mod follow;
mod follow_request;
mod media_type;
mod origin;
mod presence;
mod presence_guard;
mod reader;
mod response;
mod shared_presence;
mod status;
mod subscription;
mod subsystem;
mod suspended;
mod text_reply;
mod timestamp;
mod watched;
mod websocket;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "script")]
use bine_server::AddressBlock;
use bine_store::{Extension, RowId, Store};

use crate::access_guard::AccessGuard;
use crate::shared_state::SharedState;

#[cfg(feature = "script")]
pub(crate) use access::ChannelScopes;
pub use access::{
    Access, AccessArgument, AccessFunction, BadPattern, ChannelRule, ClientLimits, Credentials,
    Grant, IntoGrant, Pattern, TokenVerifier,
};
pub(crate) use access::{AccessControl, ChannelClient, HoldPermit};
#[cfg(feature = "script")]
pub(crate) use access::{ChannelAction, ChannelScope, RuleAudience, ScopeLoad, ScopeRules};
#[doc(hidden)]
pub use access::{check_grant, check_token};
pub use bine_push::{
    Applied, ChannelInfo, ChannelName, Command, Content, Cursor, Draft, Durability, Expiry,
    Publish, Published, Quota, Receipt, Refused, Retention, Sequence, Settings,
};
#[cfg(feature = "script")]
pub(crate) use bine_push::{BodyFormat, Message, Publisher};
#[cfg(feature = "script")]
pub(crate) use bine_push::{Preparation, Reservation};
pub(crate) use delivery::DeliveryMode;
#[cfg(feature = "script")]
pub(crate) use endpoint::PATH as CHANNELS_PATH;
pub(crate) use engine::{ChannelMetrics, Engine};
pub use engine::{Error, PendingCommand, Revocation};
pub use follow::{Follower, Interruption, ReceivedMessage};
#[doc(hidden)]
pub use follow_request::check_query;
pub use presence::PresentSessions;
pub use response::{ChannelResponse, Format};
pub(crate) use status::status_of;
pub(crate) use subscription::{Attachment, HIDE, Regions, SubscriptionSpec};
pub(crate) use subsystem::ChannelEngine;
pub(crate) use suspended::{SuspendedResponses, hold_for};

#[cfg_attr(not(feature = "script"), allow(unused_imports, reason = "for applications in TSX"))]
pub(crate) use clock::now;
use presence_guard::count_presence;
use shared_presence::SharedPresence;

/// The channels of a program. Clones share them.
#[derive(Clone)]
pub struct Channels(Arc<Engine>);

impl Channels {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Engine::new()))
    }

    /// Creates a channel. Repeating the call with the same settings has no effect.
    pub fn create(&self, name: &str, settings: Settings) -> PendingCommand {
        let (name, first) = (ChannelName::Given(name.into()), Vec::new());
        self.0.execute(Command::Create { name, settings, first, is_closed: false, fork: None })
    }

    /// Creates a channel at the program's start although the disk is full; the store writes the
    /// record as soon as the disk has room.
    pub(crate) fn create_deferred(&self, name: &str, settings: Settings) -> Result<(), Error> {
        let (name, first) = (ChannelName::Given(name.into()), Vec::new());
        self.0.execute_deferred(Command::Create {
            name,
            settings,
            first,
            is_closed: false,
            fork: None,
        })
    }

    /// Publishes text or a [`Content`] in one channel.
    pub fn publish(&self, channel: &str, content: impl Into<MessageContent>) -> PendingCommand {
        let draft = Draft { channels: vec![channel.into()], content: content.into().0 };
        self.execute(Command::Publish(Publish { messages: vec![draft], ..Publish::default() }))
    }

    /// Follows channels, merged into one order in which each message appears once. The follower
    /// begins now unless a method of [`Follower`] sets another position.
    ///
    /// ```
    /// # use bine::channels::{Channels, Interruption};
    /// # async fn log(channels: Channels) -> Result<(), bine::Error> {
    /// let mut follower = channels.follow(["news", "weather"]).earliest();
    /// while let Some(next) = follower.next().await {
    ///     match next {
    ///         Ok(message) => println!("{} {}", message.cursor(), message.text()?),
    ///         Err(Interruption::Gap { until }) => println!("what came before {until} is gone"),
    ///         Err(other) => return Err(other.into()),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn follow(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Follower {
        let names = names.into_iter().map(|name| name.as_ref().into());
        Follower::new(Arc::clone(&self.0), names.collect())
    }

    /// Builds a response that behaves like `/channels` for these channels: the server suspends it
    /// until there are messages. A page that denies access returns another response instead.
    ///
    /// ```
    /// use bine::prelude::*;
    ///
    /// #[page("/rooms/{room}/news")]
    /// async fn news(channels: Channels, room: Path<Text>, key: Cookie<Option<Text>>) -> Result<Response, Error> {
    ///     if key.as_deref() != Some("hops") {
    ///         return Err(Error::forbidden("this room is not open to you"));
    ///     }
    ///     Ok(channels.respond([&**room]).into())
    /// }
    /// # let _ = App::new().channels(bine::channels::Access::none()).page(news);
    /// ```
    pub fn respond(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> ChannelResponse {
        let names = names.into_iter().map(|name| name.as_ref().into());
        ChannelResponse::new(self.clone(), names.collect())
    }

    /// Executes any command. A command may publish several messages in several channels,
    /// atomically.
    pub fn execute(&self, command: Command) -> PendingCommand {
        self.0.execute(command)
    }

    /// Executes a client's command, which counts against the client's quota.
    pub(crate) fn execute_for(
        &self,
        command: Command,
        client: &ChannelClient<'_>,
    ) -> PendingCommand {
        self.0.execute_for(command, Some(&client.publisher()))
    }

    /// The publisher whose quota the channels and messages of a visitor use, as if the visitor had
    /// published them without a token. `user`: the logged-in user.
    #[cfg(feature = "script")]
    pub(crate) fn publisher_of(&self, user: Option<&str>, address: AddressBlock) -> Publisher {
        self.0.memory_quotas().publisher(user.map(Arc::from).as_ref(), address)
    }

    /// Executes a command that counts against the quota of a publisher; `None`: the program's.
    #[cfg(feature = "script")]
    pub(crate) fn execute_by(
        &self,
        command: Command,
        publisher: Option<&Publisher>,
    ) -> PendingCommand {
        self.0.execute_for(command, publisher)
    }

    /// Describes a channel: its settings, size and positions.
    ///
    /// # Errors
    ///
    /// There is no channel of this name.
    pub fn describe(&self, name: &str) -> Result<ChannelInfo, Error> {
        let described = self.0.hub(|hub| hub.describe(name, now()));
        let described = described.ok_or(Error::Storage(bine_store::Error::Closed))?;
        described.map_err(Error::Refused)
    }

    /// Ends everything that a subject was granted over HTTP until now. Held requests of the
    /// subject end at once, and the server rejects tokens issued before this call, also after a
    /// restart. Tokens issued later are valid: to keep a subject out, stop issuing them.
    pub fn revoke(&self, subject: &str) -> Revocation {
        self.0.revoke(subject)
    }

    /// Ends the held requests of logins that have ended: of these rows, or of all.
    pub(crate) fn end_logins(&self, rows: Option<&[RowId]>) {
        self.0.end_logins(rows);
    }

    /// Ends the held requests of clients that have lost a right to a channel.
    pub(crate) fn end_lost_rights(&self) {
        self.0.end_lost_rights();
    }

    /// Builds the access control for HTTP and applies its quotas.
    pub(crate) fn gate(
        &self,
        access: Access,
        guard: Option<Arc<dyn AccessGuard>>,
    ) -> Result<AccessControl, String> {
        let gate = AccessControl::new(
            access,
            guard,
            Arc::clone(&self.0.parties),
            Arc::clone(&self.0.presence_tracker),
        )?;
        self.0.set_memory_quotas(gate.memory_quotas);
        Ok(gate)
    }

    /// Returns the number of sessions present in a channel, and at most `most` of their names.
    /// `None`: no [`App::presence`](crate::App::presence) names the channel.
    pub fn present(&self, name: &str, most: usize) -> Option<PresentSessions> {
        self.0.presence_tracker.present(name, most)
    }

    /// Shares the presence of clients with other nodes by this state.
    pub(crate) fn share_presence(&self, state: &SharedState) {
        self.0.presence_tracker.share(state.clone());
        state.observe(Arc::new(SharedPresence(Arc::downgrade(&self.0))));
    }

    /// Starts to track presence in a channel.
    pub(crate) fn count(&self, name: &str, linger: Duration) -> Result<(), Error> {
        count_presence(&self.0, name, linger)
    }

    /// Returns the extension that reads the channels of a store that no program has open, for
    /// [`Archive::open`](bine_store::Archive::open).
    pub fn extension() -> Arc<dyn Extension> {
        Self::new().store_extension()
    }

    /// Returns current counts for the metrics.
    pub(crate) fn figures(&self) -> ChannelMetrics {
        self.0.figures()
    }

    /// Returns the store extension that journals the channels.
    pub(crate) fn store_extension(&self) -> Arc<dyn Extension> {
        Arc::clone(&self.0) as _
    }

    /// Starts the channels after the store has replayed its journal.
    pub(crate) fn begin(&self, store: &Store) -> Result<(), String> {
        self.0.begin(store)
    }

    pub(crate) fn end(&self) {
        self.0.end();
    }

    /// The engine that all clones share.
    pub(crate) const fn engine(&self) -> &Arc<Engine> {
        &self.0
    }
}

/// The content of a message: text, or a [`Content`].
#[derive(Clone, Debug)]
pub struct MessageContent(Content);

impl From<&str> for MessageContent {
    fn from(text: &str) -> Self {
        let content_type = Some("text/plain; charset=utf-8".into());
        Self(Content { content_type, body: text.as_bytes().into(), ..Content::default() })
    }
}

impl From<Content> for MessageContent {
    fn from(content: Content) -> Self {
        Self(content)
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Channels")
    }
}
