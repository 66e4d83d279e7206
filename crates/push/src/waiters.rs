//! Decides who waits at one loop, and what each of them is sent.

mod lists;
mod wheel;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::cursor::{Cursor, Sequence};
use crate::read::{Followed, Parking};
use crate::ring::{End, Event, Overrun, Ring, Run};
use crate::view::View;

use lists::{Lists, Place};
use wheel::Wheel;

/// No slot.
const NONE: u32 = u32::MAX;

/// Events taken from the ring at once.
const TURN: usize = 1024;

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
    crowd: Crowd,
    slots: Vec<Waiter>,
    /// The first free slot; each names the next in `link.next`.
    free: u32,
    live: usize,
    /// Places in lists.
    places: usize,
    /// The part of the next key that tells one user of a slot from the one before.
    generation: u32,
    lists: Lists,
    wheel: Wheel,
    /// Where to read the ring.
    position: u64,
    /// Events that were read, and how far they are told.
    events: Vec<Arc<Event>>,
    told: Told,
    /// The event that is being told, in each view that was asked for.
    encoded: [Option<Arc<[u8]>>; View::COUNT],
    scratch: Vec<u8>,
    /// Up to here everybody was told.
    reached: Sequence,
    /// Everybody is being sent away: the next slot, and why.
    leaving: Option<(usize, Away)>,
}

/// How many may wait at one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Waiters.
    pub waiters: usize,
    /// Their channels, added up: one that waits for many takes as much as many that wait for one.
    pub places: usize,
}

/// One that waits. Its size is what a parked poll costs.
#[derive(Debug)]
struct Waiter {
    token: u64,
    /// What it has seen.
    cursor: Sequence,
    /// When its timer rings, in milliseconds since 1970.
    until: u64,
    /// Its place in the list of its first channel.
    first: Place,
    /// Its places in the lists of the others.
    others: Option<Box<[Place]>>,
    /// Its neighbors on the wheel, or the next free slot.
    before: u32,
    next: u32,
    generation: u32,
    /// Where it is on the wheel.
    spoke: u16,
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
struct Told {
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
pub struct Wait {
    /// How messages are to be shown.
    pub view: View,
    /// What happens after the first.
    pub kind: Kind,
    /// When the timer rings, in milliseconds since 1970: up to 256 later. For a poll this is the end; for a stream it
    /// is whatever the loop wants to do then.
    pub until: u64,
}

/// What happens to a waiter that was sent messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    pub what: What<'d>,
}

/// What a waiter is told.
#[derive(Clone, Copy, Debug)]
pub enum What<'d> {
    /// Messages, shown in its view; the same bytes for all who have that view.
    Messages {
        /// The bytes.
        bytes: &'d Arc<[u8]>,
        /// Whether the channels were closed behind them.
        closes: bool,
    },
    /// A channel takes no more. A poll leaves; a stream leaves with its last channel.
    Ended {
        /// The channel's number.
        channel: u64,
        /// Why.
        why: End,
        /// Whether it leaves.
        leaves: bool,
    },
    /// It leaves, without a message.
    Away(Away),
}

/// Why all leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Away {
    /// The loop was so far behind that events, or messages of its channels, are lost to it: read from the hub, with the
    /// cursor.
    Behind,
    /// The server goes; another has the same messages for the cursor.
    Draining,
}

/// Whether a stream stays after a delivery. A poll leaves anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It stays.
    Stay,
    /// It leaves: what it is sent does not arrive.
    Leave,
}

/// A waiter's timer has rung. A poll has left; a stream stays and has no timer until it is [set](Waiters::set_timer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The token that it was parked with.
    pub token: u64,
    /// Its key; of no use any more for a poll.
    pub key: WaiterKey,
    /// What it has seen.
    pub cursor: Cursor,
    /// Which kind it is.
    pub kind: Kind,
}

/// There is no place for another waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Waiters {
    /// Nobody, at most so many, who are told what comes behind this position of the ring. `epoch` is the hub's.
    pub fn new(epoch: u32, crowd: Crowd, position: u64, now: u64) -> Self {
        Self {
            epoch,
            crowd: Crowd { waiters: crowd.waiters.min(NONE as usize), ..crowd },
            slots: Vec::new(),
            free: NONE,
            live: 0,
            places: 0,
            generation: 0,
            lists: Lists::default(),
            wheel: Wheel::new(now),
            position,
            events: Vec::new(),
            told: Told::default(),
            encoded: [const { None }; View::COUNT],
            scratch: Vec::new(),
            reached: Sequence::START,
            leaving: None,
        }
    }

    /// Lets a reader wait that has seen everything up to its parking's cursor. If the subscription ends before
    /// `until`, the timer rings then.
    ///
    /// # Errors
    /// There are as many as may be.
    pub fn park(&mut self, token: u64, parking: &Parking, wait: Wait) -> Result<WaiterKey, Full> {
        let places = parking.channels.count();
        if self.live >= self.crowd.waiters || places > self.crowd.places - self.places {
            return Err(Full);
        }
        let ends = parking.ends.filter(|ends| *ends <= wait.until);
        let slot = if self.free == NONE { self.slots.len() as u32 } else { self.free };
        self.generation = self.generation.wrapping_add(1);
        let join = |lists: &mut Lists, channel, which| lists.join(channel, slot, which);
        let (first, others) = match &parking.channels {
            Followed::One(channel) => (join(&mut self.lists, *channel, 0), None),
            Followed::Many(channels) => {
                let places =
                    (0..).zip(channels).map(|(which, to)| join(&mut self.lists, *to, which));
                let places: Vec<Place> = places.collect();
                (places[0], Some(Box::from(&places[1..])))
            }
        };
        let waiter = Waiter {
            token,
            cursor: parking.cursor.sequence,
            until: ends.unwrap_or(wait.until),
            first,
            others,
            before: NONE,
            next: NONE,
            generation: self.generation,
            spoke: wheel::OFF,
            view: wait.view,
            state: match wait.kind {
                Kind::Stream => State::Stream,
                Kind::Poll if ends.is_some() => State::Ending,
                Kind::Poll => State::Poll,
            },
        };
        if self.free == NONE {
            self.slots.push(waiter);
        } else {
            self.free = self.slots[slot as usize].next;
            self.slots[slot as usize] = waiter;
        }
        self.live += 1;
        self.places += places;
        self.wheel.insert(&mut self.slots, slot);
        Ok(WaiterKey { slot, generation: self.generation })
    }

    /// Lets a waiter go, whose peer is gone. `false`: it had left before.
    pub fn cancel(&mut self, key: WaiterKey) -> bool {
        let is_live = self.find(key).is_some();
        if is_live {
            self.leave(key.slot);
        }
        is_live
    }

    /// Lets a waiter's timer ring at this time and at no other. `false`: it had left before.
    pub fn set_timer(&mut self, key: WaiterKey, until: u64) -> bool {
        if self.find(key).is_none() {
            return false;
        }
        self.wheel.remove(&mut self.slots, key.slot);
        self.slots[key.slot as usize].until = until;
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
        if self.told.event < self.events.len() || self.leaving.is_some() {
            return;
        }
        self.events.clear();
        self.told = Told::default();
        match ring.read(self.position, TURN, &mut self.events) {
            Ok(position) => self.position = position,
            Err(Overrun) => {
                self.position = ring.position();
                self.send_away(Away::Behind);
            }
        }
    }

    /// Whether the ring holds events that were not taken.
    pub fn is_behind(&self, ring: &Ring) -> bool {
        self.position != ring.position()
    }

    /// Sends all away, as [`advance`](Self::advance) comes to them. Others may come meanwhile.
    pub fn send_away(&mut self, why: Away) {
        self.leaving = Some((0, why));
    }

    /// Tells what was received, to at most so many. Answers whether there is more to tell; then it is to be called
    /// again, after others had their turn.
    pub fn advance(&mut self, most: usize, mut send: impl FnMut(Delivery<'_>) -> Then) -> bool {
        let mut left = most;
        while let Some((slot, why)) = self.leaving {
            if slot >= self.slots.len() {
                self.leaving = None;
            } else if left == 0 {
                return true;
            } else {
                left -= 1;
                self.leaving = Some((slot + 1, why));
                self.tell_away(slot, why, &mut send);
            }
        }
        while let Some(event) = self.events.get(self.told.event).cloned() {
            let (channels, last) = match &*event {
                Event::Run(run) => (&run.channels[..], run.last()),
                Event::Missed { channels, sequence } => (&channels[..], *sequence),
                Event::Ended { channel, sequence, .. } => {
                    (core::slice::from_ref(channel), *sequence)
                }
            };
            while let Some(channel) = channels.get(self.told.channel) {
                // From the end, so that those who leave make place for some who were told.
                let count = self.lists.count(*channel);
                let end = self.told.waiter.map_or(count, |told| told.min(count));
                let Some(index) = end.checked_sub(1) else {
                    self.told.channel += 1;
                    self.told.waiter = None;
                    continue;
                };
                if left == 0 {
                    return true;
                }
                left -= 1;
                self.told.waiter = Some(index);
                let Some(entry) = self.lists.at(*channel, index) else { continue };
                if self.slots[entry.slot as usize].cursor >= last {
                    continue;
                }
                match &*event {
                    Event::Run(run) => self.tell_run(entry.slot, run, &mut send),
                    Event::Missed { .. } => {
                        self.tell_away(entry.slot as usize, Away::Behind, &mut send);
                    }
                    Event::Ended { channel, why, .. } => {
                        self.tell_end(entry, *channel, *why, last, &mut send);
                    }
                }
            }
            self.reached = self.reached.max(last);
            self.encoded = [const { None }; View::COUNT];
            self.told = Told { event: self.told.event + 1, ..Told::default() };
        }
        self.events.clear();
        self.told = Told::default();
        false
    }

    /// Rings the timers that are due, at most so many of them. Answers whether there may be more.
    pub fn ring(&mut self, now: u64, most: usize, mut tell: impl FnMut(Rung)) -> bool {
        for _ in 0..most {
            let Some(slot) = self.wheel.next_due(&mut self.slots, now) else { return false };
            let waiter = &self.slots[slot as usize];
            let kind = if waiter.state == State::Stream { Kind::Stream } else { Kind::Poll };
            let rung = Rung {
                token: waiter.token,
                key: WaiterKey { slot, generation: waiter.generation },
                cursor: self.seen(waiter),
                kind,
            };
            if kind == Kind::Poll {
                self.leave(slot);
            }
            tell(rung);
        }
        true
    }

    /// When a timer may ring, at the earliest, in milliseconds since 1970.
    pub fn next_ring(&self) -> Option<u64> {
        self.wheel.next_turn()
    }

    fn tell_run(&mut self, slot: u32, run: &Run, send: &mut impl FnMut(Delivery<'_>) -> Then) {
        let waiter = &mut self.slots[slot as usize];
        let time = run.messages.first().map_or(0, |first| first.time);
        if waiter.state == State::Ending && time >= waiter.until {
            return;
        }
        let bytes = self.encoded[waiter.view as usize].get_or_insert_with(|| {
            self.scratch.clear();
            waiter.view.encode(self.epoch, &run.messages, &mut self.scratch);
            Arc::from(&self.scratch[..])
        });
        waiter.cursor = run.last();
        let then = send(Delivery {
            token: waiter.token,
            key: WaiterKey { slot, generation: waiter.generation },
            cursor: Cursor { epoch: self.epoch, sequence: waiter.cursor },
            what: What::Messages { bytes, closes: run.closes },
        });
        if waiter.state != State::Stream || then == Then::Leave {
            self.leave(slot);
        }
    }

    fn tell_end(
        &mut self,
        entry: lists::Entry,
        channel: u64,
        why: End,
        sequence: Sequence,
        send: &mut impl FnMut(Delivery<'_>) -> Then,
    ) {
        let waiter = &mut self.slots[entry.slot as usize];
        let mut leaves = true;
        if waiter.state == State::Stream {
            let place = core::mem::replace(waiter.place_mut(entry.which), Place::NOWHERE);
            leaves = waiter.places().all(|place| place == Place::NOWHERE);
            self.unlist(place);
        }
        let waiter = &mut self.slots[entry.slot as usize];
        waiter.cursor = sequence;
        let then = send(Delivery {
            token: waiter.token,
            key: WaiterKey { slot: entry.slot, generation: waiter.generation },
            cursor: Cursor { epoch: self.epoch, sequence },
            what: What::Ended { channel, why, leaves },
        });
        if leaves || then == Then::Leave {
            self.leave(entry.slot);
        }
    }

    fn tell_away(&mut self, slot: usize, why: Away, send: &mut impl FnMut(Delivery<'_>) -> Then) {
        let waiter = &self.slots[slot];
        if waiter.state == State::Free {
            return;
        }
        let key = WaiterKey { slot: slot as u32, generation: waiter.generation };
        let (token, cursor) = (waiter.token, self.seen(waiter));
        self.leave(key.slot);
        send(Delivery { token, key, cursor, what: What::Away(why) });
    }

    /// Up to where a waiter was told: at least as far as everybody, unless its subscription has ended before.
    fn seen(&self, waiter: &Waiter) -> Cursor {
        let is_over = waiter.state == State::Ending;
        let sequence = if is_over { waiter.cursor } else { waiter.cursor.max(self.reached) };
        Cursor { epoch: self.epoch, sequence }
    }

    fn find(&self, key: WaiterKey) -> Option<&Waiter> {
        let waiter = self.slots.get(key.slot as usize)?;
        (waiter.state != State::Free && waiter.generation == key.generation).then_some(waiter)
    }

    /// Takes a waiter off everything.
    fn leave(&mut self, slot: u32) {
        self.wheel.remove(&mut self.slots, slot);
        let waiter = &mut self.slots[slot as usize];
        let (first, others) = (waiter.first, waiter.others.take());
        self.places -= 1 + others.as_ref().map_or(0, |others| others.len());
        waiter.state = State::Free;
        waiter.next = self.free;
        self.free = slot;
        self.live -= 1;
        for place in core::iter::once(first).chain(others.into_iter().flatten()) {
            self.unlist(place);
        }
        if self.live == 0 {
            // A crowd that has gone leaves no memory behind.
            (self.slots, self.free) = (Vec::new(), NONE);
        }
    }

    /// Takes a place off its list; the one that moves there is told.
    fn unlist(&mut self, place: Place) {
        if let Some(moved) = self.lists.remove(place) {
            self.slots[moved.slot as usize].place_mut(moved.which).index = place.index;
        }
    }
}

impl Waiter {
    fn places(&self) -> impl Iterator<Item = Place> {
        core::iter::once(self.first).chain(self.others.iter().flatten().copied())
    }

    fn place_mut(&mut self, which: u32) -> &mut Place {
        match (which, &mut self.others) {
            (1.., Some(others)) => &mut others[which as usize - 1],
            _ => &mut self.first,
        }
    }
}

impl core::fmt::Display for Full {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("as many wait here as may; come back later, or for fewer channels at once")
    }
}

impl core::error::Error for Full {}

/// A wait that is up to a tenth longer or shorter, by chance: a crowd that came at once does not come again at once.
pub fn jittered(wait: u64, random: u32) -> u64 {
    let tenth = wait / 10;
    wait - tenth + ((u128::from(2 * tenth) * u128::from(random)) >> 32) as u64
}
