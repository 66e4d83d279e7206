//! Decides what channels hold and who is owed what; it knows no socket, no clock, no lock and no chance.
//!
//! Two machines for one thread each. A [`Hub`] holds all channels: orders are prepared, numbered by the engine's
//! journal, applied, and told by its [`Ring`]. One [`Waiters`] per loop holds who waits there: it reads the ring in
//! order from its own position and says to whom what is to be sent. One [`Cursor`] is a place in the order of all
//! messages of all channels, so any set of channels is followed with one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bytes;
mod channel;
mod cursor;
mod gone;
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
mod repeats;
mod ring;
mod settings;
mod snapshot;
#[cfg(test)]
mod steps;
mod view;
mod waiters;

pub use cursor::{Cursor, CursorFault, LAST_RECORD, MOST_PLACES, Sequence};
pub use hub::Hub;
pub use list::Listed;
pub use message::{Content, Draft, Form, Headers, Message, Producer, Publish, name_of};
pub use order::{
    Applied, Damaged, Description, Fork, Name, Order, Prepared, Published, Publisher, Reached,
    Ready, Taken,
};
pub use presence::{Change as PresenceChange, Crowded, Presence};
pub use read::{Holes, Page, Parking, Rest, Start, Subscription, Until};
pub use record::is_of_channels;
pub use refused::{Quota, Refused};
pub use ring::{End, Event, Overrun, Ring, Run};
pub use settings::{Durability, Expiry, Limits, Retention, Settings};
pub use snapshot::{Restoring, Snapshot};
pub use view::{BOUNDARY, View};
pub use waiters::{
    Away, Crowd, Delivery, Full, Kind, Rung, Then, Wait, WaiterKey, Waiters, What, jittered,
};
