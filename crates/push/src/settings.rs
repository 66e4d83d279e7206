//! Decides what a channel can be told when it is made, and what one hub will hold.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::codec::{Decoder, put_number, put_optional};

/// What a channel is told when it is made. Making it again with the same is no mistake, with others is a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The media type of all its messages; `None`: each says its own.
    pub content_type: Option<Arc<str>>,
    /// Which messages stay.
    pub retention: Retention,
    /// When the channel goes by itself.
    pub expiry: Expiry,
    /// When a publication counts as acknowledged; carried for the engine.
    pub durability: Durability,
}

/// Which messages stay: the newest that keep to all of these. 0 is no limit but that of the channel's quota.
///
/// Unless said, the newest 10 000 messages, 32 MiB and seven days stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// So many messages.
    pub messages: u64,
    /// So many bytes, of bodies with all that goes with them.
    pub bytes: u64,
    /// No older than so many milliseconds.
    pub age: u64,
}

impl Retention {
    /// Everything stays, as far as the channel's quota allows: what exceeds that is refused.
    pub const UNLIMITED: Self = Self { messages: 0, bytes: 0, age: 0 };

    /// The same where a channel may have no more than so many bytes. Without a limit of its own it is not shortened.
    pub(crate) fn within(self, most: u64) -> Self {
        Self { bytes: self.bytes.min(most), ..self }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { messages: 10_000, bytes: 32 << 20, age: 7 * 24 * 60 * 60 * 1000 }
    }
}

/// When a channel goes by itself. Times are milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Never.
    #[default]
    Never,
    /// So long after the last publication or renewal.
    AfterPublish(u64),
    /// So long after the last publication, renewal or reader's visit.
    AfterActivity(u64),
    /// At this time since 1970.
    At(u64),
}

/// When a publication counts as acknowledged. The hub carries it; the engine keeps to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// When it is in memory.
    Memory,
    /// When it was handed to the system, which is told to keep it at intervals.
    #[default]
    Interval,
    /// When it is on the disk.
    Commit,
}

/// What one hub will hold and take. Whatever passes one of these is refused with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Channels at once.
    pub channels: usize,
    /// Bytes that all messages and channels take, each message counted once.
    pub bytes: u64,
    /// Bytes of the messages of one channel. A channel whose retention limits its bytes drops the oldest at this limit,
    /// one that does not takes no more.
    pub channel_bytes: u64,
    /// Bytes of a channel's name.
    pub name: usize,
    /// Bytes of a message's type, of its event's name, of its id, of a producer's id, of a mark.
    pub attribute: usize,
    /// Bytes of one message's headers, names and values.
    pub headers: usize,
    /// Bytes of one body.
    pub body: usize,
    /// Bytes of all bodies of one publication.
    pub publication: usize,
    /// Messages of one publication; never more than [`MAX_MESSAGES_PER_RECORD`](crate::MAX_MESSAGES_PER_RECORD).
    pub messages: usize,
    /// Channels of one message.
    pub channels_per_message: usize,
    /// Channels of one subscription.
    pub channels_per_subscription: usize,
    /// Ids that a channel remembers, and for how many milliseconds.
    pub ids: usize,
    /// See [`ids`](Self::ids).
    pub id_window: u64,
    /// Producers that a channel remembers; the one unheard for longest goes.
    pub producers: usize,
    /// Names of gone channels that are remembered, so that a hole is told if one comes back.
    pub removed_names: usize,
    /// Events in the ring, for loops that are behind.
    pub ring: usize,
    /// Bytes of messages in the ring.
    pub ring_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            channels: 1_000_000,
            bytes: 1 << 30,
            channel_bytes: 256 << 20,
            name: 255,
            attribute: 255,
            headers: 8 << 10,
            body: 1 << 20,
            publication: 16 << 20,
            messages: 1000,
            channels_per_message: 64,
            channels_per_subscription: 10_000,
            ids: 1000,
            id_window: 120_000,
            producers: 1000,
            removed_names: 10_000,
            ring: 1 << 14,
            ring_bytes: 64 << 20,
        }
    }
}

impl Settings {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        put_optional(to, self.content_type.as_deref());
        put_number(to, self.retention.messages);
        put_number(to, self.retention.bytes);
        put_number(to, self.retention.age);
        self.expiry.write(to);
        to.push(match self.durability {
            Durability::Memory => 0,
            Durability::Interval => 1,
            Durability::Commit => 2,
        });
    }

    pub(crate) fn read(from: &mut Decoder<'_>) -> Option<Self> {
        let content_type = from.optional()?;
        let retention =
            Retention { messages: from.number()?, bytes: from.number()?, age: from.number()? };
        let expiry = Expiry::read(from)?;
        let durability = match from.byte()? {
            0 => Durability::Memory,
            1 => Durability::Interval,
            2 => Durability::Commit,
            _ => return None,
        };
        Some(Self { content_type, retention, expiry, durability })
    }
}

impl Expiry {
    pub(crate) fn write(self, to: &mut Vec<u8>) {
        let (kind, time) = match self {
            Self::Never => (0, 0),
            Self::AfterPublish(after) => (1, after),
            Self::AfterActivity(after) => (2, after),
            Self::At(time) => (3, time),
        };
        to.push(kind);
        put_number(to, time);
    }

    pub(crate) fn read(from: &mut Decoder<'_>) -> Option<Self> {
        Some(match (from.byte()?, from.number()?) {
            (0, 0) => Self::Never,
            (1, after) => Self::AfterPublish(after),
            (2, after) => Self::AfterActivity(after),
            (3, time) => Self::At(time),
            _ => return None,
        })
    }
}
