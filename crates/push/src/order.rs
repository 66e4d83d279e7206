//! The commands that change a hub, and their results.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cursor::{Cursor, Sequence};
use crate::memory::Reservation;
use crate::message::{Draft, Publish};
use crate::record::{Change, Record};
use crate::settings::{Durability, Expiry, Settings};

/// A change that a hub can make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Creates a channel.
    Create {
        /// The name, or random bits for a name that cannot be guessed.
        name: ChannelName,
        /// The settings of the channel.
        settings: Settings,
        /// The channel to fork, if any.
        fork: Option<Fork>,
        /// The first messages. Their lists of channels are ignored: each is for the new channel
        /// only.
        first: Vec<Draft>,
        /// Whether the channel is closed after its first messages.
        is_closed: bool,
    },
    /// Publishes messages, closes channels, or both.
    Publish(Publish),
    /// Postpones a channel's expiry as a publication would.
    Renew(Arc<str>),
    /// Postpones a channel's expiry and replaces its expiry setting.
    SetExpiry {
        /// The name of the channel.
        channel: Arc<str>,
        /// The new setting.
        expiry: Expiry,
    },
    /// Removes a channel with all its messages.
    Remove(Arc<str>),
}

/// The source of a new channel: the fork starts with the source's messages at the same positions
/// and diverges from there.
///
/// A fork does not inherit the source's producers or whether the source is closed. While a fork
/// exists, no other channel can take the name of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The name of the source.
    pub channel: Arc<str>,
    /// The last message to share; `None` for all.
    pub until: Option<Cursor>,
    /// The number of bytes to take from the body of the next message; 0 for none.
    pub bytes: u64,
}

/// The name of a new channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelName {
    /// This name.
    Given(Arc<str>),
    /// A generated name that encodes these random bits.
    Random(u128),
}

/// The result of a valid command's preparation.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart at once; a box would be an allocation for each publication"
)]
pub enum Preparation {
    /// The command changes the hub. Write this record, then apply it.
    Record(Prepared),
    /// The command was applied before, so there is no record to write.
    Done(Applied),
}

/// A checked command that has no record number yet.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) record: Record,
    pub(crate) durability: Durability,
    /// The memory reserved for the command.
    pub(crate) reserved: Option<Reservation>,
}

/// The change that a command made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// A channel was created.
    Created {
        /// Its name.
        name: Arc<str>,
        /// The time at which it expires without further activity, in milliseconds since 1970.
        expires: Option<u64>,
        /// The result for its first messages.
        published: Published,
    },
    /// The channel existed already, with the same settings. No message was published.
    Existed {
        /// The time at which it expires without further activity, in milliseconds since 1970.
        expires: Option<u64>,
    },
    /// A publication was accepted.
    Published(Published),
    /// A channel's expiry was postponed.
    Renewed {
        /// The new time of expiry, in milliseconds since 1970.
        expires: Option<u64>,
    },
    /// A channel was removed.
    Removed,
    /// This number of channels expired.
    Expired(usize),
}

/// The result of a publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// A receipt for each message, in order. The list is empty if the producer has already
    /// published the messages.
    pub messages: Vec<Receipt>,
    /// The progress of the publication's producer, if it has one.
    pub producer: Option<ProducerProgress>,
    /// The last message of the publication's first channel.
    pub tail: Sequence,
}

/// The result for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The message was stored at this position.
    New(Sequence),
    /// Every channel of the message already knows its id. The first message of that id has this
    /// position.
    Duplicate(Sequence),
}

/// The progress of a producer in its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerProgress {
    /// The highest sequence number that was accepted in this epoch.
    pub sequence: u64,
    /// Whether the publication was a duplicate without effect.
    pub is_duplicate: bool,
}

/// A record or snapshot that this program did not write: the engine returned other bytes, or
/// another version wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// The description of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelInfo {
    /// The channel's number. The hub never reuses it.
    pub number: u64,
    /// The settings.
    pub settings: Settings,
    /// The time of creation, in milliseconds since 1970.
    pub created: u64,
    /// The time at which the channel expires without further activity, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// Whether the channel accepts no more messages.
    pub is_closed: bool,
    /// The cursor after the last message.
    pub tail: Cursor,
    /// The earliest cursor after which no message is missing.
    pub earliest: Cursor,
    /// The number of messages that the channel holds.
    pub messages: usize,
    /// The sum of their weights; see [`Message::weight`](crate::Message::weight).
    pub bytes: u64,
}

impl Prepared {
    /// Appends the bytes of the record for the journal.
    pub fn write(&self, to: &mut Vec<u8>) {
        self.record.write(to);
    }

    /// Returns the size of all bodies that the record publishes. The bytes that
    /// [`write`](Self::write) appends are slightly more.
    pub fn body_bytes(&self) -> usize {
        match &self.record.change {
            Change::Create { publication, .. } | Change::Publish(publication) => {
                publication.entries.iter().map(|entry| entry.content.body.len()).sum()
            }
            Change::Renew(_) | Change::SetExpiry(..) | Change::Remove(_) | Change::Expire(_) => 0,
        }
    }

    /// Keeps only the memory that is reserved for the command: it stays reserved until the
    /// reservation is dropped. `None`: the command takes no memory.
    pub fn into_reservation(self) -> Option<Reservation> {
        self.reserved
    }

    /// Returns how durable the record must be before it is applied: the strictest setting among its
    /// channels.
    pub fn durability(&self) -> Durability {
        self.durability
    }
}

impl core::fmt::Display for Corrupt {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(
            "these bytes are not a channel record; was the journal written by a later version?",
        )
    }
}

impl core::error::Error for Corrupt {}
