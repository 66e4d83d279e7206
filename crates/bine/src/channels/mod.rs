//! Channels: named, ordered sequences of messages that are kept for a while, and that any number of peers follow.
//!
//! A program publishes by [`Channels`], which a page takes as an argument. One [`Cursor`] is a place in the order of all
//! messages of all channels, so any set of channels is followed with one.

mod access;
mod argument;
mod asked;
mod attendee;
mod audience;
mod batch;
mod clock;
mod durable;
mod durable_view;
mod engine;
mod face;
mod follow;
mod hold;
mod instant;
mod media_type;
mod origin;
mod place;
mod presence;
mod reader;
mod room;
mod seat;
mod start;
mod status;
mod text_reply;
mod watch;
mod websocket;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bine_store::{Extension, RowId, Store};

pub use access::{
    Access, Ask, Asked, BadPattern, Caps, Grant, Granting, Known, Pattern, Rule, Tokens,
};
pub(crate) use access::{Gate, Pass, Visitor, rule};
#[doc(hidden)]
pub use access::{check_grant, check_token};
#[doc(hidden)]
pub use asked::check_query;
pub use bine_push::{
    Applied, ChannelInfo, ChannelName, Command, Content, Cursor, Draft, Durability, Expiry,
    Publish, Published, Quota, Receipt, Refused, Retention, Sequence, Settings,
};
pub(crate) use engine::{Engine, Figures};
pub use engine::{Error, Ordered, Revocation};
pub(crate) use face::Face;
pub use follow::{Follower, Interruption, Received};
pub use hold::{Held, View};
pub(crate) use origin::origin;
pub(crate) use place::Manner;
pub use presence::Present;
pub(crate) use room::{Room, hold_for};
pub(crate) use start::{AtChannels, Kept};
pub(crate) use status::status_of;
pub(crate) use watch::{Attachment, Regions, Watch};

use attendee::count_presence;
use clock::now;

/// All channels of a program, shared by all who use them.
#[derive(Clone)]
pub struct Channels(Arc<Engine>);

impl Channels {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Engine::new()))
    }

    /// Makes a channel of this name; making it again with the same settings is no mistake.
    pub fn create(&self, name: &str, settings: Settings) -> Ordered {
        let (name, first) = (ChannelName::Given(name.into()), Vec::new());
        self.0.order(Command::Create { name, settings, first, is_closed: false, fork: None })
    }

    /// Makes a channel at the program's start, where the disk has no room to keep that yet.
    pub(crate) fn create_owed(&self, name: &str, settings: Settings) -> Result<(), Error> {
        let (name, first) = (ChannelName::Given(name.into()), Vec::new());
        self.0.owe(Command::Create { name, settings, first, is_closed: false, fork: None })
    }

    /// Publishes text, or what [`Content`] says, in one channel.
    pub fn publish(&self, channel: &str, content: impl Into<Message>) -> Ordered {
        let draft = Draft { channels: vec![channel.into()], content: content.into().0 };
        self.order(Command::Publish(Publish { messages: vec![draft], ..Publish::default() }))
    }

    /// Follows channels, merged in one order, each message once, from now on or from where the [`Follower`] is told.
    ///
    /// ```
    /// # use bine::channels::{Channels, Interruption};
    /// # async fn log(channels: Channels) -> Result<(), bine::Error> {
    /// let mut follower = channels.follow(["news", "weather"]).earliest();
    /// while let Some(next) = follower.next().await {
    ///     match next {
    ///         Ok(message) => println!("{} {}", message.cursor(), message.text()?),
    ///         Err(Interruption::Lost { until }) => println!("what came before {until} is gone"),
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

    /// Has a page answer as `/channels` does, with these channels: it holds the reply until there are messages. Who may
    /// not see them gets another answer of the page.
    ///
    /// ```
    /// use bine::prelude::*;
    ///
    /// #[page("/rooms/{room}/news")]
    /// async fn news(channels: Channels, room: Path<Text>, key: Cookie<Option<Text>>) -> Result<Response, Error> {
    ///     if key.as_deref() != Some("hops") {
    ///         return Err(Error::forbidden("this room is not open to you"));
    ///     }
    ///     Ok(channels.hold([&**room]).into())
    /// }
    /// # let _ = App::new().channels(bine::channels::Access::none()).page(news);
    /// ```
    pub fn hold(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Held {
        let names = names.into_iter().map(|name| name.as_ref().into());
        Held::new(self.clone(), names.collect())
    }

    /// Has any order carried out: several messages at once, in several channels, wholly or not at all.
    pub fn order(&self, order: Command) -> Ordered {
        self.0.order(order)
    }

    /// The same for a client, against whose quota it counts.
    pub(crate) fn order_by(&self, order: Command, visitor: &Visitor<'_>) -> Ordered {
        self.0.order_by(order, Some(&visitor.publisher()))
    }

    /// What there is to know of a channel.
    ///
    /// # Errors
    ///
    /// There is none of this name.
    pub fn describe(&self, name: &str) -> Result<ChannelInfo, Error> {
        let described = self.0.hub(|hub| hub.describe(name, now()));
        let described = described.ok_or(Error::NotKept(bine_store::Error::Closed))?;
        described.map_err(Error::Refused)
    }

    /// Ends what a subject may do over HTTP by grants and tokens of before: whatever waits by them ends at once, and tokens
    /// that were made until now are not taken any more, also after a restart. Who may not come again at all must get no new
    /// ones.
    pub fn revoke(&self, subject: &str) -> Revocation {
        self.0.revoke(subject)
    }

    /// Ends what waits by logins that have ended, of these rows or of all.
    pub(crate) fn end_logins(&self, rows: Option<&[RowId]>) {
        self.0.end_logins(rows);
    }

    /// Who may reach them over HTTP.
    pub(crate) fn gate(&self, access: Access) -> Result<Gate, String> {
        let gate = Gate::new(access, Arc::clone(&self.0.parties), Arc::clone(&self.0.attendance))?;
        self.0.settle(gate.quotas);
        Ok(gate)
    }

    /// Who is present in a channel that [`App::presence`](crate::App::presence) names: how many, and at most so many of
    /// their names. `None`: it names no such channel.
    pub fn present(&self, name: &str, most: usize) -> Option<Present> {
        self.0.attendance.present(name, most)
    }

    /// Counts from now on who follows a channel.
    pub(crate) fn count(&self, name: &str, linger: Duration) -> Result<(), Error> {
        count_presence(&self.0, name, linger)
    }

    /// Whoever looks after a folder that no program uses needs it to know what channels have kept there
    /// ([`Archive::open`](bine_store::Archive::open)).
    pub fn keeper() -> Arc<dyn Extension> {
        Self::new().guest()
    }

    /// What there is, and what was done.
    pub(crate) fn figures(&self) -> Figures {
        self.0.figures()
    }

    /// What keeps them in a store's journal.
    pub(crate) fn guest(&self) -> Arc<dyn Extension> {
        Arc::clone(&self.0) as _
    }

    /// They begin, with what the store has given back.
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

/// What a message is made of: text, or what [`Content`] says.
#[derive(Clone, Debug)]
pub struct Message(Content);

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        let content_type = Some("text/plain; charset=utf-8".into());
        Self(Content { content_type, body: text.as_bytes().into(), ..Content::default() })
    }
}

impl From<Content> for Message {
    fn from(content: Content) -> Self {
        Self(content)
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Channels")
    }
}
