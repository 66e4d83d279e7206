//! Stores the messages of publish/subscribe channels and decides which waiting client receives
//! which message.
//!
//! The crate performs no I/O: it owns no socket, reads no clock, takes no lock and draws no random
//! numbers. The caller passes times and random bits as arguments.
//!
//! It consists of two state machines, each driven by one thread at a time:
//!
//! - A [`Hub`] holds all channels. It checks a [`Command`], the engine's journal numbers the
//!   resulting record, and the hub applies the record. The hub publishes each change in its
//!   [`Ring`].
//! - Each event loop has one [`Waiters`]. It reads the ring in order from its own position and
//!   reports which waiting client is to receive which bytes.
//!
//! One [`Cursor`] is a position in the order of all messages of all channels, so a client follows
//! any set of channels with a single cursor.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use bine_push::{
//!     ChannelName, Command, Content, Draft, GapPolicy, Hub, Limits, Preparation, Publish,
//!     Settings, Start, Subscription, Until,
//! };
//!
//! let mut hub = Hub::new(1, Limits::default());
//! let create = Command::Create {
//!     name: ChannelName::Given("news".into()),
//!     settings: Settings::default(),
//!     fork: None,
//!     first: vec![],
//!     is_closed: false,
//! };
//! let content = Content { body: Arc::from(&b"hello"[..]), ..Content::default() };
//! let messages = vec![Draft { channels: vec!["news".into()], content }];
//! let publish = Command::Publish(Publish { messages, ..Publish::default() });
//! for (record, command) in (1..).zip([create, publish]) {
//!     let now = 1_700_000_000_000;
//!     // A server writes the prepared record to its journal here.
//!     if let Preparation::Record(prepared) = hub.prepare(command, now)? {
//!         hub.apply(prepared, record)?;
//!     }
//! }
//! let batch = hub.read(
//!     &Subscription {
//!         channels: &["news"],
//!         start: Start::Earliest,
//!         end: Until::Open,
//!         gaps: GapPolicy::Reject,
//!         limit: 10,
//!         bytes: usize::MAX,
//!     },
//!     1_700_000_000_001,
//! )?;
//! assert_eq!(&*batch.messages[0].body, b"hello");
//! # Ok::<_, bine_push::Refused>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod channel;
mod codec;
mod cursor;
mod dedup;
mod derived;
mod hub;
mod json;
mod list;
mod memory;
mod message;
mod order;
mod prepare;
mod presence;
mod publisher;
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
pub use memory::Reservation;
pub use message::{
    BodyFormat, Content, Draft, Headers, Message, Producer, Publish, name_from_bits,
};
pub use order::{
    Applied, ChannelInfo, ChannelName, Command, Corrupt, Fork, Preparation, Prepared,
    ProducerProgress, Published, Receipt,
};
pub use presence::{PresenceChange, PresenceFull, PresenceSet};
pub use publisher::Publisher;
pub use read::{GapPolicy, MessageBatch, Rest, Start, Subscription, Until, WaitPoint};
pub use record::is_channel_record;
pub use refused::{Quota, Refused};
pub use ring::{EndReason, Event, Lagged, MessageGroup, Ring};
pub use settings::{Durability, Expiry, Limits, Retention, Settings};
pub use snapshot::{Snapshot, SnapshotReader};
pub use view::{BOUNDARY, View};
pub use waiters::{
    AfterDelivery, Delivery, EvictReason, Payload, WaitKind, WaitOptions, WaiterKey, WaiterLimits,
    Waiters, WaitersFull, jitter,
};
