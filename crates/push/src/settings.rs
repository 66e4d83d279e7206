//! The settings of a channel and the limits of a hub.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::codec::{Decoder, put_number, put_optional};

/// The settings of a channel. Creating an existing channel again succeeds with equal settings and
/// is a conflict with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The media type of all its messages; `None` if each message has its own.
    pub content_type: Option<Arc<str>>,
    /// The messages to keep.
    pub retention: Retention,
    /// The time at which the channel expires.
    pub expiry: Expiry,
    /// The point at which a publication is acknowledged. The engine implements it.
    pub durability: Durability,
}

/// The messages to keep: the newest ones that satisfy all three limits. 0 means no limit but the
/// channel's quota.
///
/// The default is 10 000 messages, 32 MiB and seven days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The maximum number of messages.
    pub messages: u64,
    /// The maximum number of bytes of bodies and headers.
    pub bytes: u64,
    /// The maximum age in milliseconds.
    pub age: u64,
}

impl Retention {
    /// No limits. The hub rejects messages that exceed the channel's quota.
    pub const UNLIMITED: Self = Self { messages: 0, bytes: 0, age: 0 };

    /// Applies the quota of a channel. A retention without a limit of bytes stays without one.
    pub(crate) fn within(self, quota: u64) -> Self {
        Self { bytes: self.bytes.min(quota), ..self }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { messages: 10_000, bytes: 32 << 20, age: 7 * 24 * 60 * 60 * 1000 }
    }
}

/// The time at which a channel expires. Times are in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Never.
    #[default]
    Never,
    /// This long after the last publication or renewal.
    AfterPublish(u64),
    /// This long after the last publication, renewal or read.
    AfterActivity(u64),
    /// At this time since 1970.
    At(u64),
}

/// The point at which a publication is acknowledged. The hub stores it; the engine implements it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// When it is in memory.
    Memory,
    /// When it was written to the operating system, which is asked to flush at intervals.
    #[default]
    Interval,
    /// When it is on the disk.
    Commit,
}

/// The limits of a hub. A command that exceeds one is rejected with the name of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of channels.
    pub channels: usize,
    /// Bytes of all messages and channels. A message of several channels counts once.
    pub bytes: u64,
    /// Bytes of the messages of one channel. A channel whose retention limits its bytes drops the
    /// oldest messages at this limit; any other channel rejects new ones.
    pub channel_bytes: u64,
    /// Bytes of a channel's name.
    pub name: usize,
    /// Bytes of a content type, an event name, a message id, a producer id or a mark.
    pub attribute: usize,
    /// Bytes of one message's header names and values.
    pub headers: usize,
    /// Bytes of one body.
    pub body: usize,
    /// Bytes of all bodies of one publication.
    pub publication: usize,
    /// Messages of one publication; at most
    /// [`MAX_MESSAGES_PER_RECORD`](crate::MAX_MESSAGES_PER_RECORD).
    pub messages: usize,
    /// Channels of one message.
    pub channels_per_message: usize,
    /// Channels of one subscription.
    pub channels_per_subscription: usize,
    /// Ids that a channel remembers.
    pub ids: usize,
    /// The time in milliseconds for which a channel remembers an id.
    pub id_window: u64,
    /// Producers that a channel remembers. The one that published least recently is evicted.
    pub producers: usize,
    /// Names of removed channels that are remembered, so that a reader detects a gap if a name is
    /// reused.
    pub removed_names: usize,
    /// Events in the ring, for event loops that lag.
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
