//! The errors of a hub and their texts.

use alloc::sync::Arc;
use core::fmt;

use crate::cursor::{Cursor, Sequence};

/// The reason why a hub rejects a command or a read. Its text is for the client and names the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No channel has this name.
    NotFound(Arc<str>),
    /// The channel was removed. Its forks still exist, so its name stays reserved.
    Gone(Arc<str>),
    /// The channel was removed between preparation and application of the command.
    Removed,
    /// The channel accepts no more messages. Its messages can be read up to the tail.
    Closed {
        /// Its name.
        name: Arc<str>,
        /// Its last message.
        tail: Sequence,
    },
    /// The channel exists with other settings.
    Conflict(Arc<str>),
    /// The channel requires this other media type.
    ContentType(Arc<str>),
    /// The publication, the list of channels or a text is empty.
    Empty(&'static str),
    /// A size or a count exceeds its limit.
    LimitExceeded {
        /// The name of the size or count.
        quantity: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The command would exceed a memory quota.
    QuotaExceeded {
        /// The quota.
        quota: Quota,
        /// Bytes in use.
        used: u64,
        /// Bytes that the quota allows.
        limit: u64,
        /// Bytes that the command would add.
        requested: u64,
    },
    /// A text contains a forbidden character: a control character, or one that would end it early
    /// in a view.
    Malformed(&'static str),
    /// Messages after the cursor were dropped. No message is missing after `earliest`.
    TooOld {
        /// The earliest valid cursor for these channels.
        earliest: Cursor,
    },
    /// The cursor is from another epoch of the server's data.
    ForeignEpoch {
        /// The earliest valid cursor for these channels.
        earliest: Cursor,
    },
    /// The cursor is after the last message: the server has lost data since it issued the cursor.
    Ahead {
        /// The cursor after the last message.
        watermark: Cursor,
    },
    /// The producer has started a later epoch elsewhere.
    StaleEpoch {
        /// That epoch.
        current: u64,
    },
    /// A producer's new epoch must start with sequence 0.
    EpochStart,
    /// A producer's sequence has a gap.
    SequenceGap {
        /// The expected sequence number.
        expected: u64,
        /// The received sequence number.
        received: u64,
    },
    /// The mark is not greater than the last one.
    OutOfOrder,
    /// A producer sequence or a mark is allowed for a single channel only.
    OneChannel,
    /// The number of a record was not greater than the last one: a fault of the engine.
    Record {
        /// The last number.
        last: u64,
    },
}

/// A memory quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quota {
    /// The quota of all channels together.
    Total,
    /// The quota of the channel of this name.
    Channel(Arc<str>),
    /// The quota of the publisher of this name.
    Publisher(Arc<str>),
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(name) => write!(out, "there is no channel `{name}`; create it first"),
            Self::Gone(name) => write!(
                out,
                "channel `{name}` was removed and its forks reserve the name; use another name"
            ),
            Self::Removed => write!(out, "the channel was removed meanwhile; create it again"),
            Self::Closed { name, .. } => {
                write!(out, "channel `{name}` is closed; it accepts no messages, but can be read")
            }
            Self::Conflict(name) => {
                write!(
                    out,
                    "channel `{name}` exists with other settings; use those or another name"
                )
            }
            Self::ContentType(required) => {
                write!(out, "this channel takes messages of type {required}")
            }
            Self::Empty(what) => write!(out, "{what} must not be empty"),
            Self::LimitExceeded { quantity, limit } => write!(out, "{quantity}: at most {limit}"),
            Self::QuotaExceeded { quota, used, limit, requested } => {
                match quota {
                    Quota::Total => write!(out, "the memory of all channels")?,
                    Quota::Channel(name) => write!(out, "channel `{name}`")?,
                    Quota::Publisher(name) => write!(out, "what `{name}` has published")?,
                }
                write!(
                    out,
                    " takes {used} of {limit} bytes, and this command needs {requested} more; "
                )?;
                match quota {
                    Quota::Total => out.write_str(
                        "the server's operator finds the largest channels by `bine channel list --by size`, removes \
                         one by `bine channel delete NAME`, or raises channels-bytes",
                    ),
                    Quota::Channel(_) => out.write_str(
                        "limit its retention, remove it, or have channels-bytes-per-channel raised",
                    ),
                    Quota::Publisher(_) => out.write_str(
                        "remove channels of yours, or have channels-bytes-per-subject raised",
                    ),
                }
            }
            Self::Malformed(what) => write!(out, "{what} contains a forbidden character"),
            Self::TooOld { earliest } => {
                write!(out, "messages after this cursor were dropped; go on from {earliest}")
            }
            Self::ForeignEpoch { earliest } => {
                write!(out, "this cursor is of another server's data; go on from {earliest}")
            }
            Self::Ahead { watermark } => {
                write!(out, "this cursor is after the last message; go on from {watermark}")
            }
            Self::StaleEpoch { current } => {
                write!(out, "this producer is in epoch {current}; start a later one")
            }
            Self::EpochStart => write!(out, "the first sequence of a producer's epoch is 0"),
            Self::SequenceGap { expected, received } => {
                write!(
                    out,
                    "the producer's next sequence is {expected}, not {received}; send what is missing"
                )
            }
            Self::OutOfOrder => write!(out, "the mark must be higher than the last one"),
            Self::OneChannel => write!(
                out,
                "a producer sequence or a mark is allowed for one channel only; publish to each separately"
            ),
            Self::Record { last } => {
                write!(out, "records must be applied in order; the last one was {last}")
            }
        }
    }
}

impl core::error::Error for Refused {}
