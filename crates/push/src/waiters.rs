//! Tracks the clients that wait for messages at one event loop, and determines the deliveries to
//! each.

mod lists;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cursor::{Cursor, Sequence};
use crate::read::{Followed, WaitPoint};
use crate::ring::{EndReason, Event, Lagged, MessageGroup, Ring};
use crate::view::View;

use lists::{ListPosition, Lists};

/// The absence of a slot.
const NONE: u32 = u32::MAX;

/// The maximum number of events read from the ring at once.
const MAX_EVENTS: usize = 1024;

/// All clients that wait at one event loop. It owns no socket: each waiter is identified by a token
/// that the loop chose.
///
/// A client whose read ends in [`Rest::Wait`](crate::Rest::Wait) is [parked](Self::park). When the
/// hub has changed, the loop [receives](Self::receive) the events, which is the only step under the
/// hub's lock, and then [advances](Self::advance) in slices. A waiter is parked with the position
/// up to which it has read, and events arrive in order, so no message is lost between the read and
/// the parking, and none is sent twice.
///
/// A waiter of one channel takes 72 bytes, including its entry in the channel's list, before the
/// growth of vectors.
#[derive(Debug)]
pub struct Waiters {
    epoch: u32,
    limits: WaiterLimits,
    slots: Vec<Waiter>,
    /// The first free slot. Each free slot's `next` is the following one.
    free: u32,
    live: usize,
    /// The number of entries in all lists.
    subscriptions: usize,
    /// The generation of the next key. It distinguishes successive uses of a slot.
    generation: u32,
    lists: Lists,
    /// The position from which to read the ring.
    position: u64,
    /// The events that were read, and how far they are delivered.
    events: Vec<Arc<Event>>,
    progress: Progress,
    /// The current event, encoded in each view that a waiter needed.
    encoded: [Option<Arc<[u8]>>; View::COUNT],
    scratch: Vec<u8>,
    /// The position up to which every waiter was served.
    delivered_until: Sequence,
    /// The eviction of all waiters in progress: the next slot, and the reason.
    eviction: Option<(usize, EvictReason)>,
}

/// The limits of waiters at one event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterLimits {
    /// The number of waiters.
    pub waiters: usize,
    /// The sum of the waiters' channels. A waiter of ten channels counts as ten waiters.
    pub subscriptions: usize,
}

/// A waiter. Its size is the cost of a parked poll.
#[derive(Debug)]
struct Waiter {
    token: u64,
    /// The position up to which the waiter was served.
    cursor: Sequence,
    /// The time at which the subscription ends, in milliseconds since 1970, or `u64::MAX`.
    ends: u64,
    /// The entry in the first channel's list.
    first: ListPosition,
    /// The entries in the lists of the other channels.
    other_positions: Option<Box<[ListPosition]>>,
    /// The next free slot, if this one is free.
    next: u32,
    generation: u32,
    view: View,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Poll,
    /// A poll whose subscription ends at a time. It does not receive messages published later.
    Ending,
    Stream,
}

/// The progress of the delivery of events.
#[derive(Debug, Default)]
struct Progress {
    event: usize,
    /// The index among the event's channels.
    channel: usize,
    /// The index in the channel's list, which is processed from its end: waiters at this index and
    /// after it were served. `None` at the start of a list.
    waiter: Option<usize>,
}

/// The key of a waiter. No other waiter has it until four billion more were parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterKey {
    slot: u32,
    generation: u32,
}

/// The options of a waiter.
#[derive(Clone, Copy, Debug)]
pub struct WaitOptions {
    /// The format of messages.
    pub view: View,
    /// The behavior after the first delivery.
    pub kind: WaitKind,
}

/// The behavior of a waiter after a delivery of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// The waiter receives one response and is removed.
    Poll,
    /// The waiter stays, with its own cursor.
    Stream,
}

/// A delivery to one waiter.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'d> {
    /// The token with which the waiter was parked.
    pub token: u64,
    /// Its key. It is invalid if the delivery removes the waiter.
    pub key: WaiterKey,
    /// The cursor after this delivery.
    pub cursor: Cursor,
    /// The content of the delivery.
    pub payload: Payload<'d>,
}

/// The content of a delivery.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'d> {
    /// Messages in the waiter's view. All waiters of that view share the same bytes.
    Messages {
        /// The encoded messages.
        bytes: &'d Arc<[u8]>,
        /// Whether the publication also closed the channels.
        is_final: bool,
    },
    /// A channel ended. A poll is removed; a stream is removed with its last channel.
    Ended {
        /// The channel's number.
        channel: u64,
        /// The reason.
        reason: EndReason,
        /// Whether the waiter is removed.
        is_removed: bool,
    },
    /// The waiter is removed without a message.
    Evicted(EvictReason),
}

/// The reason why waiters are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictReason {
    /// The loop lagged so far that it lost events or messages of the waiter's channels. Read from
    /// the hub with the cursor.
    Lagged,
    /// The server shuts down. The cursor is valid on any other server with the same data.
    Draining,
}

/// Whether to keep a stream after a delivery. A poll is removed in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDelivery {
    /// Keep it.
    Keep,
    /// Remove it, because the connection cannot be written to.
    Remove,
}

/// The limit of waiters is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitersFull;

impl Waiters {
    /// Creates an empty set that delivers the events after this position of the ring. `epoch` is
    /// the hub's.
    pub fn new(epoch: u32, limits: WaiterLimits, position: u64) -> Self {
        Self {
            epoch,
            limits: WaiterLimits { waiters: limits.waiters.min(NONE as usize), ..limits },
            slots: Vec::new(),
            free: NONE,
            live: 0,
            subscriptions: 0,
            generation: 0,
            lists: Lists::default(),
            position,
            events: Vec::new(),
            progress: Progress::default(),
            encoded: [const { None }; View::COUNT],
            scratch: Vec::new(),
            delivered_until: Sequence::START,
            eviction: None,
        }
    }

    /// Parks a client that has read everything up to the cursor of `point`. A poll whose
    /// subscription ends receives no message published after the end; the loop has the timer that
    /// [cancels](Self::cancel) it.
    ///
    /// # Errors
    /// The limit of waiters is reached.
    pub fn park(
        &mut self,
        token: u64,
        point: &WaitPoint,
        options: WaitOptions,
    ) -> Result<WaiterKey, WaitersFull> {
        let positions = point.channels.count();
        if self.live >= self.limits.waiters
            || positions > self.limits.subscriptions - self.subscriptions
        {
            return Err(WaitersFull);
        }
        let slot = if self.free == NONE { self.slots.len() as u32 } else { self.free };
        self.generation = self.generation.wrapping_add(1);
        let join = |lists: &mut Lists, channel, ordinal| lists.join(channel, slot, ordinal);
        let (first, other_positions) = match &point.channels {
            Followed::One(channel) => (join(&mut self.lists, *channel, 0), None),
            Followed::Many(channels) => {
                let positions =
                    (0..).zip(channels).map(|(ordinal, to)| join(&mut self.lists, *to, ordinal));
                let positions: Vec<ListPosition> = positions.collect();
                (positions[0], Some(Box::from(&positions[1..])))
            }
        };
        let waiter = Waiter {
            token,
            cursor: point.cursor.sequence,
            ends: point.ends.unwrap_or(u64::MAX),
            first,
            other_positions,
            next: NONE,
            generation: self.generation,
            view: options.view,
            state: match options.kind {
                WaitKind::Stream => State::Stream,
                WaitKind::Poll if point.ends.is_some() => State::Ending,
                WaitKind::Poll => State::Poll,
            },
        };
        if self.free == NONE {
            self.slots.push(waiter);
        } else {
            self.free = self.slots[slot as usize].next;
            self.slots[slot as usize] = waiter;
        }
        self.live += 1;
        self.subscriptions += positions;
        Ok(WaiterKey { slot, generation: self.generation })
    }

    /// Removes a waiter whose client has disconnected. Returns whether the waiter existed.
    pub fn cancel(&mut self, key: WaiterKey) -> bool {
        let is_live = self.find(key).is_some();
        if is_live {
            self.remove(key.slot);
        }
        is_live
    }

    /// Returns the number of waiters.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there is no waiter.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Reads events from the ring, unless earlier ones are not fully delivered. Call
    /// [`advance`](Self::advance) afterwards until it returns `false`, and receive again while
    /// [`is_behind`](Self::is_behind).
    pub fn receive(&mut self, ring: &Ring) {
        if self.progress.event < self.events.len() || self.eviction.is_some() {
            return;
        }
        self.events.clear();
        self.progress = Progress::default();
        match ring.read(self.position, MAX_EVENTS, &mut self.events) {
            Ok(position) => self.position = position,
            Err(Lagged) => {
                self.position = ring.position();
                self.evict_all(EvictReason::Lagged);
            }
        }
    }

    /// Whether the ring holds events that were not read.
    pub fn is_behind(&self, ring: &Ring) -> bool {
        self.position != ring.position()
    }

    /// Evicts all waiters during the next calls of [`advance`](Self::advance). New waiters may be
    /// parked in the meantime.
    pub fn evict_all(&mut self, reason: EvictReason) {
        self.eviction = Some((0, reason));
    }

    /// Delivers the received events to at most `max` waiters. Returns whether more work remains;
    /// the loop then calls it again after its other tasks.
    pub fn advance(
        &mut self,
        max: usize,
        mut send: impl FnMut(Delivery<'_>) -> AfterDelivery,
    ) -> bool {
        let mut left = max;
        while let Some((slot, reason)) = self.eviction {
            if slot >= self.slots.len() {
                self.eviction = None;
            } else if left == 0 {
                return true;
            } else {
                left -= 1;
                self.eviction = Some((slot + 1, reason));
                self.evict(slot, reason, &mut send);
            }
        }
        while let Some(event) = self.events.get(self.progress.event).cloned() {
            let (channels, last) = match &*event {
                Event::Messages(group) => (&group.channels[..], group.last()),
                Event::Dropped { channels, sequence } => (&channels[..], *sequence),
                Event::Ended { channel, sequence, .. } => {
                    (core::slice::from_ref(channel), *sequence)
                }
            };
            while let Some(channel) = channels.get(self.progress.channel) {
                // From the end, so that a waiter that is removed is replaced by one that was
                // already served.
                let count = self.lists.count(*channel);
                let end = self.progress.waiter.map_or(count, |index| index.min(count));
                let Some(index) = end.checked_sub(1) else {
                    self.progress.channel += 1;
                    self.progress.waiter = None;
                    continue;
                };
                if left == 0 {
                    return true;
                }
                left -= 1;
                self.progress.waiter = Some(index);
                let Some(entry) = self.lists.get(*channel, index) else { continue };
                if self.slots[entry.slot as usize].cursor >= last {
                    continue;
                }
                match &*event {
                    Event::Messages(group) => self.deliver_messages(entry.slot, group, &mut send),
                    Event::Dropped { .. } => {
                        self.evict(entry.slot as usize, EvictReason::Lagged, &mut send);
                    }
                    Event::Ended { channel, reason, .. } => {
                        self.deliver_end(entry, *channel, *reason, last, &mut send);
                    }
                }
            }
            self.delivered_until = self.delivered_until.max(last);
            self.encoded = [const { None }; View::COUNT];
            self.progress = Progress { event: self.progress.event + 1, ..Progress::default() };
        }
        self.events.clear();
        self.progress = Progress::default();
        false
    }

    fn deliver_messages(
        &mut self,
        slot: u32,
        group: &MessageGroup,
        send: &mut impl FnMut(Delivery<'_>) -> AfterDelivery,
    ) {
        let waiter = &mut self.slots[slot as usize];
        let time = group.messages.first().map_or(0, |first| first.time);
        if waiter.state == State::Ending && time >= waiter.ends {
            return;
        }
        let bytes = self.encoded[waiter.view as usize].get_or_insert_with(|| {
            self.scratch.clear();
            waiter.view.encode(self.epoch, &group.messages, &mut self.scratch);
            Arc::from(&self.scratch[..])
        });
        waiter.cursor = group.last();
        let after = send(Delivery {
            token: waiter.token,
            key: WaiterKey { slot, generation: waiter.generation },
            cursor: Cursor { epoch: self.epoch, sequence: waiter.cursor },
            payload: Payload::Messages { bytes, is_final: group.is_final },
        });
        if waiter.state != State::Stream || after == AfterDelivery::Remove {
            self.remove(slot);
        }
    }

    fn deliver_end(
        &mut self,
        entry: lists::ListEntry,
        channel: u64,
        reason: EndReason,
        sequence: Sequence,
        send: &mut impl FnMut(Delivery<'_>) -> AfterDelivery,
    ) {
        let waiter = &mut self.slots[entry.slot as usize];
        let mut is_removed = true;
        if waiter.state == State::Stream {
            let position =
                core::mem::replace(waiter.position_mut(entry.ordinal), ListPosition::REMOVED);
            is_removed = waiter.positions().all(|position| position == ListPosition::REMOVED);
            self.remove_from_list(position);
        }
        let waiter = &mut self.slots[entry.slot as usize];
        waiter.cursor = sequence;
        let after = send(Delivery {
            token: waiter.token,
            key: WaiterKey { slot: entry.slot, generation: waiter.generation },
            cursor: Cursor { epoch: self.epoch, sequence },
            payload: Payload::Ended { channel, reason, is_removed },
        });
        if is_removed || after == AfterDelivery::Remove {
            self.remove(entry.slot);
        }
    }

    fn evict(
        &mut self,
        slot: usize,
        reason: EvictReason,
        send: &mut impl FnMut(Delivery<'_>) -> AfterDelivery,
    ) {
        let waiter = &self.slots[slot];
        if waiter.state == State::Free {
            return;
        }
        let key = WaiterKey { slot: slot as u32, generation: waiter.generation };
        let (token, cursor) = (waiter.token, self.cursor_of(waiter));
        self.remove(key.slot);
        send(Delivery { token, key, cursor, payload: Payload::Evicted(reason) });
    }

    /// Returns the cursor up to which a waiter was served: at least as far as every waiter, unless
    /// its subscription ended before.
    fn cursor_of(&self, waiter: &Waiter) -> Cursor {
        let is_over = waiter.state == State::Ending;
        let sequence =
            if is_over { waiter.cursor } else { waiter.cursor.max(self.delivered_until) };
        Cursor { epoch: self.epoch, sequence }
    }

    fn find(&self, key: WaiterKey) -> Option<&Waiter> {
        let waiter = self.slots.get(key.slot as usize)?;
        (waiter.state != State::Free && waiter.generation == key.generation).then_some(waiter)
    }

    /// Removes a waiter from all lists.
    fn remove(&mut self, slot: u32) {
        let waiter = &mut self.slots[slot as usize];
        let (first, other_positions) = (waiter.first, waiter.other_positions.take());
        self.subscriptions -= 1 + other_positions.as_ref().map_or(0, |positions| positions.len());
        waiter.state = State::Free;
        waiter.next = self.free;
        self.free = slot;
        self.live -= 1;
        for position in core::iter::once(first).chain(other_positions.into_iter().flatten()) {
            self.remove_from_list(position);
        }
        if self.live == 0 {
            // Release the memory of the largest number of waiters.
            (self.slots, self.free) = (Vec::new(), NONE);
        }
    }

    /// Removes an entry from its list and updates the waiter whose entry moves into its index.
    fn remove_from_list(&mut self, position: ListPosition) {
        if let Some(moved) = self.lists.remove(position) {
            self.slots[moved.slot as usize].position_mut(moved.ordinal).index = position.index;
        }
    }
}

impl Waiter {
    fn positions(&self) -> impl Iterator<Item = ListPosition> {
        core::iter::once(self.first).chain(self.other_positions.iter().flatten().copied())
    }

    fn position_mut(&mut self, ordinal: u32) -> &mut ListPosition {
        match (ordinal, &mut self.other_positions) {
            (1.., Some(positions)) => &mut positions[ordinal as usize - 1],
            _ => &mut self.first,
        }
    }
}

impl core::fmt::Display for WaitersFull {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("too many clients are waiting; retry later, or follow fewer channels at once")
    }
}

impl core::error::Error for WaitersFull {}

/// Changes a wait by up to a tenth at random, so that clients that connected together do not poll
/// together.
pub fn jitter(wait: u64, random: u32) -> u64 {
    let tenth = wait / 10;
    wait - tenth + ((u128::from(2 * tenth) * u128::from(random)) >> 32) as u64
}
