//! Decides in which words a hub refuses.

use alloc::sync::Arc;
use core::fmt;

use crate::cursor::{Cursor, Sequence};

/// Why a hub does not do what it was asked for. Its text is for the peer and names what would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no channel of this name (any more).
    NotFound(Arc<str>),
    /// The channel was removed, and others that were forked from it are still there: its name is kept.
    Gone(Arc<str>),
    /// The channel was removed while the order was on its way.
    Removed,
    /// The channel takes no more; what it holds can be read up to its tail.
    Closed {
        /// Its name.
        name: Arc<str>,
        /// Its last message.
        tail: Sequence,
    },
    /// The channel exists with other settings.
    Conflict(Arc<str>),
    /// The channel's messages are of this other type.
    ContentType(Arc<str>),
    /// Nothing to publish, no channel named, or an empty name.
    Empty(&'static str),
    /// A thing has more bytes than it may, or there are more of it than there may be.
    LimitExceeded {
        /// What it is.
        quantity: &'static str,
        /// How much there may be.
        limit: u64,
    },
    /// A quota of memory does not allow it.
    QuotaExceeded {
        /// Whose it is.
        quota: Quota,
        /// Bytes that count against it.
        used: u64,
        /// Bytes that it allows.
        limit: u64,
        /// Bytes that the order takes.
        requested: u64,
    },
    /// A text holds what it must not: a control character, or what would end it early where it is shown.
    Malformed(&'static str),
    /// Messages behind the cursor are gone. From `earliest` on nothing is missing.
    TooOld {
        /// The earliest cursor that is good for these channels.
        earliest: Cursor,
    },
    /// The cursor is of another life of the server's data.
    ForeignEpoch {
        /// The earliest cursor that is good for these channels.
        earliest: Cursor,
    },
    /// The cursor lies beyond all that was ever published here: the data of this server went back.
    Ahead {
        /// Where the order ends.
        watermark: Cursor,
    },
    /// The producer has begun a later epoch elsewhere.
    StaleEpoch {
        /// That epoch.
        current: u64,
    },
    /// A new epoch of a producer begins with 0.
    EpochStart,
    /// A producer's sequence has a gap.
    SequenceGap {
        /// What is due.
        expected: u64,
        /// What came.
        received: u64,
    },
    /// The mark is not behind the last one.
    OutOfOrder,
    /// A producer's sequence and a mark are one channel's.
    OneChannel,
    /// The number of a record was not higher than the last one's: a fault of the engine.
    Record {
        /// The last one's.
        last: u64,
    },
}

/// Whose bytes a quota limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quota {
    /// Those of all channels.
    Total,
    /// Those of the channel of this name.
    Channel(Arc<str>),
    /// Those that the publisher of this name has made and published.
    Publisher(Arc<str>),
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(name) => write!(out, "there is no channel `{name}`; create it first"),
            Self::Gone(name) => write!(out, "channel `{name}` is gone; use another name"),
            Self::Removed => write!(out, "the channel was removed meanwhile; create it again"),
            Self::Closed { name, .. } => write!(out, "channel `{name}` is closed; it can be read"),
            Self::Conflict(name) => {
                write!(
                    out,
                    "channel `{name}` exists with other settings; use those or another name"
                )
            }
            Self::ContentType(wanted) => {
                write!(out, "this channel takes messages of type {wanted}")
            }
            Self::Empty(what) => write!(out, "{what} must not be empty"),
            Self::LimitExceeded { quantity, limit } => write!(out, "{quantity}: at most {limit}"),
            Self::QuotaExceeded { quota, used, limit, requested } => {
                match quota {
                    Quota::Total => write!(out, "the memory of all channels")?,
                    Quota::Channel(name) => write!(out, "channel `{name}`")?,
                    Quota::Publisher(name) => write!(out, "what `{name}` has published")?,
                }
                write!(out, " takes {used} of {limit} bytes, and this order {requested} more; ")?;
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
            Self::Malformed(what) => write!(out, "{what} holds a character that may not be there"),
            Self::TooOld { earliest } => {
                write!(out, "messages behind this cursor are gone; go on from {earliest}")
            }
            Self::ForeignEpoch { earliest } => {
                write!(out, "this cursor is of another server's data; go on from {earliest}")
            }
            Self::Ahead { watermark } => {
                write!(out, "this cursor lies beyond the last message; go on from {watermark}")
            }
            Self::StaleEpoch { current } => {
                write!(out, "this producer is in epoch {current}; begin a later one")
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
                "a producer's sequence and a mark go with one channel; publish to each by itself"
            ),
            Self::Record { last } => {
                write!(out, "records must be applied in order; the last one was {last}")
            }
        }
    }
}

impl core::error::Error for Refused {}
