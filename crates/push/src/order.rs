//! Decides what a hub can be asked to change, and what is told of it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cursor::{Cursor, Sequence};
use crate::memory::Reservation;
use crate::message::{Draft, Publish};
use crate::record::{Change, Record};
use crate::settings::{Durability, Expiry, Settings};

/// What a hub can be asked to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Makes a channel.
    Create {
        /// Its name, or random bits for a new one that nobody guesses.
        name: ChannelName,
        /// Its settings.
        settings: Settings,
        /// What it begins with.
        fork: Option<Fork>,
        /// What is published in it with its making. The drafts' own channels are ignored: they are this one alone.
        first: Vec<Draft>,
        /// Whether it is closed behind that.
        is_closed: bool,
    },
    /// Publishes, closes, or both.
    Publish(Publish),
    /// Puts off a channel's expiry as if something had been published.
    Renew(Arc<str>),
    /// The same, and from now on the channel goes by itself when this says.
    SetExpiry {
        /// Its name.
        channel: Arc<str>,
        /// What takes the place of what it was told when it was made.
        expiry: Expiry,
    },
    /// Removes a channel with all that it holds.
    Remove(Arc<str>),
}

/// Who gives an order, so that what they make and publish counts against a quota of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publisher {
    /// By what they are counted.
    pub name: Arc<str>,
    /// Bytes that all messages and channels of theirs may take.
    pub bytes: u64,
}

/// A new channel begins with what another one holds, at the same places, and goes its own way from there.
///
/// Who published in the other, and whether that is closed, is not taken over. As long as a fork is there, the name of
/// the other is not given away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The other's name.
    pub channel: Arc<str>,
    /// Up to here; `None`: all.
    pub until: Option<Cursor>,
    /// So many bytes of the body that follows as well; 0 is none of it.
    pub bytes: u64,
}

/// How a new channel is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelName {
    /// So.
    Given(Arc<str>),
    /// By a name that is made of these bits.
    Random(u128),
}

/// What came of an order that was checked.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart at once; a box would be an allocation for each publication"
)]
pub enum Preparation {
    /// It changes something: write it, then apply it.
    Record(Prepared),
    /// It changes nothing: it was done before.
    Done(Applied),
}

/// An order that was checked and has no place yet.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) record: Record,
    pub(crate) durability: Durability,
    /// The room that it will take.
    pub(crate) reserved: Option<Reservation>,
}

/// What an order has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// A channel was made.
    Created {
        /// What it is called.
        name: Arc<str>,
        /// When it goes by itself if nothing happens.
        expires: Option<u64>,
        /// What was published in it with its making.
        published: Published,
    },
    /// The channel was there, with the same settings. Nothing was published.
    Existed {
        /// When it goes by itself if nothing happens.
        expires: Option<u64>,
    },
    /// A publication was taken.
    Published(Published),
    /// A channel's expiry was put off.
    Renewed {
        /// When it goes by itself if nothing happens.
        expires: Option<u64>,
    },
    /// A channel was removed.
    Removed,
    /// So many channels went by themselves.
    Expired(usize),
}

/// What became of a publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Each message in its order; none if the producer has published them before.
    pub messages: Vec<Receipt>,
    /// The highest number that the producer's epoch has reached, if there is one.
    pub producer: Option<ProducerProgress>,
    /// The last message of the publication's first channel.
    pub tail: Sequence,
}

/// How a message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It got this place.
    New(Sequence),
    /// All its channels know its id; the one that was published first has this place.
    Duplicate(Sequence),
}

/// How far a producer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerProgress {
    /// Its highest number in this epoch.
    pub sequence: u64,
    /// Whether the publication was a repetition, and nothing was changed by it.
    pub is_duplicate: bool,
}

/// A record that this program cannot have written: the engine gave back other bytes, or another version's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// What there is to know of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelInfo {
    /// Its number, which no other channel of this hub ever has.
    pub number: u64,
    /// Its settings.
    pub settings: Settings,
    /// When it was made.
    pub created: u64,
    /// When it goes by itself if nothing happens.
    pub expires: Option<u64>,
    /// Whether it takes no more.
    pub is_closed: bool,
    /// Behind its last message.
    pub tail: Cursor,
    /// From here on nothing is missing.
    pub earliest: Cursor,
    /// Messages that it holds.
    pub messages: usize,
    /// What they count for.
    pub bytes: u64,
}

impl Prepared {
    /// Appends the bytes that the engine keeps.
    pub fn write(&self, to: &mut Vec<u8>) {
        self.record.write(to);
    }

    /// Bytes of all bodies that it publishes. The bytes that [`write`](Self::write) appends are little more.
    pub fn body_bytes(&self) -> usize {
        match &self.record.change {
            Change::Create { publication, .. } | Change::Publish(publication) => {
                publication.entries.iter().map(|entry| entry.content.body.len()).sum()
            }
            Change::Renew(_) | Change::SetExpiry(..) | Change::Remove(_) | Change::Expire(_) => 0,
        }
    }

    /// How durable the record must be before it is applied: as the strictest of its channels wants it.
    pub fn durability(&self) -> Durability {
        self.durability
    }
}

impl core::fmt::Display for Corrupt {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(
            "these bytes are no record of channels; was the journal written by a later version?",
        )
    }
}

impl core::error::Error for Corrupt {}
