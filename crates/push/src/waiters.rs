//! Decides who waits at one loop, and what each of them is sent.

mod lists;
mod wheel;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cursor::{Cursor, Sequence};
use crate::read::{Followed, WaitPoint};
use crate::ring::{EndReason, Event, Lagged, MessageGroup, Ring};
use crate::view::View;

use lists::{ListPosition, Lists};
use wheel::Wheel;

/// No slot.
const NONE: u32 = u32::MAX;

/// Events taken from the ring at once.
const MAX_EVENTS: usize = 1024;

/// All who wait at one loop. Owns no socket: whoever is to be sent something is named by a token of the loop's.
///
/// A reader that was told to [wait](crate::Rest::Wait) is [parked](Self::park). When the hub has moved on, the loop
/// [receives](Self::receive) the events, which is the only step under the hub's lock, and then
/// [advances](Self::advance) in slices. Since a waiter comes with the place up to which it was read for, and events
/// come in order, nothing can fall between reading and parking, and nothing is sent twice.
///
/// A waiter in one channel takes 72 bytes, those in its channel's list included, before the growth of vectors.
#[derive(Debug)]
pub struct Waiters {
    epoch: u32,
    limits: WaiterLimits,
    slots: Vec<Waiter>,
    /// The first free slot; each names the next in `link.next`.
    free: u32,
    live: usize,
    /// Places in lists.
    subscriptions: usize,
    /// The part of the next key that tells one user of a slot from the one before.
    generation: u32,
    lists: Lists,
    wheel: Wheel,
    /// Where to read the ring.
    position: u64,
    /// Events that were read, and how far they are told.
    events: Vec<Arc<Event>>,
    progress: Progress,
    /// The event that is being told, in each view that was asked for.
    encoded: [Option<Arc<[u8]>>; View::COUNT],
    scratch: Vec<u8>,
    /// Up to here everybody was told.
    delivered_until: Sequence,
    /// Everybody is being sent away: the next slot, and why.
    eviction: Option<(usize, EvictReason)>,
}

/// How many may wait at one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterLimits {
    /// Waiters.
    pub waiters: usize,
    /// Their channels, added up: one that waits for many takes as much as many that wait for one.
    pub subscriptions: usize,
}

/// One that waits. Its size is what a parked poll costs.
#[derive(Debug)]
struct Waiter {
    token: u64,
    /// What it has seen.
    cursor: Sequence,
    /// When its timer rings, in milliseconds since 1970.
    deadline: u64,
    /// Its place in the list of its first channel.
    first: ListPosition,
    /// Its places in the lists of the others.
    other_positions: Option<Box<[ListPosition]>>,
    /// Its neighbors on the wheel, or the next free slot.
    previous: u32,
    next: u32,
    generation: u32,
    /// Where it is on the wheel.
    bucket: u16,
    view: View,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Poll,
    /// A poll whose subscription ends when its timer rings: what is published later is not for it.
    Ending,
    Stream,
}

/// How far events are told.
#[derive(Debug, Default)]
struct Progress {
    event: usize,
    /// Of the event's channels.
    channel: usize,
    /// Of the channel's list, from its end: those at this index and behind it were told. `None`: not begun.
    waiter: Option<usize>,
}

/// A waiter's name. It is never another's, as long as fewer than four billion came in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaiterKey {
    slot: u32,
    generation: u32,
}

/// How one waits.
#[derive(Clone, Copy, Debug)]
pub struct WaitOptions {
    /// How messages are to be shown.
    pub view: View,
    /// What happens after the first.
    pub kind: WaitKind,
    /// When the timer rings, in milliseconds since 1970: up to 256 later. For a poll this is the end; for a stream it
    /// is whatever the loop wants to do then.
    pub deadline: u64,
}

/// What happens to a waiter that was sent messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// It is answered and leaves.
    Poll,
    /// It stays, with its own cursor.
    Stream,
}

/// Something for one waiter.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'d> {
    /// The token that it was parked with.
    pub token: u64,
    /// Its key; of no use any more if it leaves.
    pub key: WaiterKey,
    /// What it has seen with this.
    pub cursor: Cursor,
    /// What it is.
    pub payload: Payload<'d>,
}

/// What a waiter is told.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'d> {
    /// Messages, shown in its view; the same bytes for all who have that view.
    Messages {
        /// The bytes.
        bytes: &'d Arc<[u8]>,
        /// Whether the channels were closed behind them.
        is_final: bool,
    },
    /// A channel takes no more. A poll leaves; a stream leaves with its last channel.
    Ended {
        /// The channel's number.
        channel: u64,
        /// Why.
        reason: EndReason,
        /// Whether it leaves.
        is_removed: bool,
    },
    /// It leaves, without a message.
    Evicted(EvictReason),
}

/// Why all leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictReason {
    /// The loop was so far behind that events, or messages of its channels, are lost to it: read from the hub, with the
    /// cursor.
    Lagged,
    /// The server goes; another has the same messages for the cursor.
    Draining,
}

/// Whether a stream stays after a delivery. A poll leaves anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDelivery {
    /// It stays.
    Keep,
    /// It leaves: what it is sent does not arrive.
    Remove,
}

/// A waiter's timer has rung. A poll has left; a stream stays and has no timer until it is [set](Waiters::set_timer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiredTimer {
    /// The token that it was parked with.
    pub token: u64,
    /// Its key; of no use any more for a poll.
    pub key: WaiterKey,
    /// What it has seen.
    pub cursor: Cursor,
    /// Which kind it is.
    pub kind: WaitKind,
}

/// There is no place for another waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitersFull;

impl Waiters {
    /// Nobody, at most so many, who are told what comes behind this position of the ring. `epoch` is the hub's.
    pub fn new(epoch: u32, limits: WaiterLimits, position: u64, now: u64) -> Self {
        Self {
            epoch,
            limits: WaiterLimits { waiters: limits.waiters.min(NONE as usize), ..limits },
            slots: Vec::new(),
            free: NONE,
            live: 0,
            subscriptions: 0,
            generation: 0,
            lists: Lists::default(),
            wheel: Wheel::new(now),
            position,
            events: Vec::new(),
            progress: Progress::default(),
            encoded: [const { None }; View::COUNT],
            scratch: Vec::new(),
            delivered_until: Sequence::START,
            eviction: None,
        }
    }

    /// Lets a reader wait that has seen everything up to its parking's cursor. If the subscription ends before
    /// `until`, the timer rings then.
    ///
    /// # Errors
    /// There are as many as may be.
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
        let ends = point.ends.filter(|ends| *ends <= options.deadline);
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
            deadline: ends.unwrap_or(options.deadline),
            first,
            other_positions,
            previous: NONE,
            next: NONE,
            generation: self.generation,
            bucket: wheel::UNSET,
            view: options.view,
            state: match options.kind {
                WaitKind::Stream => State::Stream,
                WaitKind::Poll if ends.is_some() => State::Ending,
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
        self.wheel.insert(&mut self.slots, slot);
        Ok(WaiterKey { slot, generation: self.generation })
    }

    /// Lets a waiter go, whose peer is gone. `false`: it had left before.
    pub fn cancel(&mut self, key: WaiterKey) -> bool {
        let is_live = self.find(key).is_some();
        if is_live {
            self.remove(key.slot);
        }
        is_live
    }

    /// Lets a waiter's timer ring at this time and at no other. `false`: it had left before.
    pub fn set_timer(&mut self, key: WaiterKey, deadline: u64) -> bool {
        if self.find(key).is_none() {
            return false;
        }
        self.wheel.remove(&mut self.slots, key.slot);
        self.slots[key.slot as usize].deadline = deadline;
        self.wheel.insert(&mut self.slots, key.slot);
        true
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Takes what happened from the ring, unless some of what was taken before is not told yet. Afterwards
    /// [`advance`](Self::advance) until it is done, and receive again while [`is_behind`](Self::is_behind).
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

    /// Whether the ring holds events that were not taken.
    pub fn is_behind(&self, ring: &Ring) -> bool {
        self.position != ring.position()
    }

    /// Sends all away, as [`advance`](Self::advance) comes to them. Others may come meanwhile.
    pub fn evict_all(&mut self, reason: EvictReason) {
        self.eviction = Some((0, reason));
    }

    /// Tells what was received, to at most so many. Answers whether there is more to tell; then it is to be called
    /// again, after others had their turn.
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
                // From the end, so that those who leave make place for some who were told.
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

    /// Rings the timers that are due, at most so many of them. Answers whether there may be more.
    pub fn expire_timers(
        &mut self,
        now: u64,
        max: usize,
        mut on_expiry: impl FnMut(ExpiredTimer),
    ) -> bool {
        for _ in 0..max {
            let Some(slot) = self.wheel.next_due(&mut self.slots, now) else { return false };
            let waiter = &self.slots[slot as usize];
            let kind =
                if waiter.state == State::Stream { WaitKind::Stream } else { WaitKind::Poll };
            let timer = ExpiredTimer {
                token: waiter.token,
                key: WaiterKey { slot, generation: waiter.generation },
                cursor: self.cursor_of(waiter),
                kind,
            };
            if kind == WaitKind::Poll {
                self.remove(slot);
            }
            on_expiry(timer);
        }
        true
    }

    /// When a timer may ring, at the earliest, in milliseconds since 1970.
    pub fn next_timer(&self) -> Option<u64> {
        self.wheel.next_tick()
    }

    fn deliver_messages(
        &mut self,
        slot: u32,
        group: &MessageGroup,
        send: &mut impl FnMut(Delivery<'_>) -> AfterDelivery,
    ) {
        let waiter = &mut self.slots[slot as usize];
        let time = group.messages.first().map_or(0, |first| first.time);
        if waiter.state == State::Ending && time >= waiter.deadline {
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
        entry: lists::Entry,
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

    /// Up to where a waiter was told: at least as far as everybody, unless its subscription has ended before.
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

    /// Takes a waiter off everything.
    fn remove(&mut self, slot: u32) {
        self.wheel.remove(&mut self.slots, slot);
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
            // A crowd that has gone leaves no memory behind.
            (self.slots, self.free) = (Vec::new(), NONE);
        }
    }

    /// Takes a place off its list; the one that moves there is told.
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
        out.write_str("as many wait here as may; come back later, or for fewer channels at once")
    }
}

impl core::error::Error for WaitersFull {}

/// A wait that is up to a tenth longer or shorter, by chance: a crowd that came at once does not come again at once.
pub fn jitter(wait: u64, random: u32) -> u64 {
    let tenth = wait / 10;
    wait - tenth + ((u128::from(2 * tenth) * u128::from(random)) >> 32) as u64
}
