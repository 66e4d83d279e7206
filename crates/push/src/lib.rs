//! Decides what channels hold and who is owed what; it knows no socket, no clock, no lock and no chance.
//!
//! Two machines for one thread each. A [`Hub`] holds all channels: orders are prepared, numbered by the engine's
//! journal, applied, and told by its [`Ring`]. One [`Waiters`] per loop holds who waits there: it reads the ring in
//! order from its own position and says to whom what is to be sent. One [`Cursor`] is a place in the order of all
//! messages of all channels, so any set of channels is followed with one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod channel;
mod codec;
mod cursor;
mod dedup;
mod hub;
mod json;
mod list;
mod memory;
mod message;
mod order;
mod prepare;
mod presence;
mod queue;
mod read;
mod record;
mod refused;
mod removed;
mod ring;
mod settings;
mod snapshot;
#[cfg(test)]
mod steps;
mod view;
mod waiters;

pub use cursor::{Cursor, CursorError, MAX_MESSAGES_PER_RECORD, MAX_RECORD, Sequence};
pub use hub::Hub;
pub use list::ChannelSummary;
pub use message::{BodyFormat, Content, Draft, Headers, Message, Producer, Publish, random_name};
pub use order::{
    Applied, ChannelInfo, ChannelName, Command, Corrupt, Fork, Preparation, Prepared,
    ProducerProgress, Published, Publisher, Receipt,
};
pub use presence::{Presence, PresenceChange, PresenceFull};
pub use read::{GapPolicy, MessageBatch, Rest, Start, Subscription, Until, WaitPoint};
pub use record::is_channel_record;
pub use refused::{Quota, Refused};
pub use ring::{EndReason, Event, Lagged, MessageGroup, Ring};
pub use settings::{Durability, Expiry, Limits, Retention, Settings};
pub use snapshot::{Snapshot, SnapshotReader};
pub use view::{BOUNDARY, View};
pub use waiters::{
    AfterDelivery, Delivery, EvictReason, ExpiredTimer, Payload, WaitKind, WaitOptions, WaiterKey,
    WaiterLimits, Waiters, WaitersFull, jitter,
};
