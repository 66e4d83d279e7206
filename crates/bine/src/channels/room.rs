//! Decides what those who follow channels are sent by one thread, and when.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bine_http::{BodyFraming, Exchange};
use bine_push::{
    AfterDelivery, Cursor, Delivery, EndReason, GapPolicy, Payload, Rest, Sequence, Start, Until,
    WaitKind, WaitOptions, WaiterKey, WaiterLimits, Waiters, WaitersFull, jitter,
};
use bine_server::{After, Clock, Deliver, Hold, Sent, Waiters as Waiting, Why};

use super::access::{Denied, Parties, Pass};
use super::clock::now;
use super::engine::Engine;
use super::place::{Ahead, Manner, Place};
use super::watch::{Regions, Watch, encoded, is_head};

/// Those who follow channels at one thread.
pub(crate) struct Room {
    engine: Arc<Engine>,
    clock: Rc<Clock>,
    /// Who is owed what; made when the first comes.
    waiters: Option<Waiters>,
    seats: Seats,
    /// What was asked for of late: most who wait want the same, and share one of it.
    watches: VecDeque<Arc<Watch>>,
    /// For random waits.
    chance: u32,
    /// How many revocations were heeded.
    revocations: u32,
}

/// One who follows.
struct Seat {
    /// The connection's name.
    place: u64,
    watch: Arc<Watch>,
    /// What it has seen and, before its first look, where to begin: as a hold says it, in less room than a [`Start`].
    position: u64,
    detail: u32,
    manner: u8,
    /// Among whom it counts.
    party: u32,
    exchange: Exchange,
    /// Its name among the waiters, while it waits there.
    key: Option<WaiterKey>,
    /// How its content is framed, once its head is written.
    pieces: Option<BodyFraming>,
}

/// Seats by their keys.
#[derive(Default)]
struct Seats {
    all: Vec<Option<Seat>>,
    vacant: Vec<u32>,
    /// Those whose grants can end, by their parties.
    granted: HashMap<u32, Vec<u32>>,
}

/// So many are compared with whatever is asked for.
const WATCHES: usize = 8;
/// At one thread, at most.
const CROWD: WaiterLimits = WaiterLimits { waiters: 1 << 20, subscriptions: 1 << 22 };
/// A stream shows that it lives so often: proxies give up after 30 seconds and more.
const PING: Duration = Duration::from_secs(20);
/// So many milliseconds behind the end of a grant those are asked for who wait by it: the system's coarse clock may lag
/// by ten.
const LATE: u64 = 20;
/// So many milliseconds before its end a range is waited for again.
const EARLY: u64 = 50;

impl Room {
    pub(crate) fn new(engine: Arc<Engine>, clock: Rc<Clock>) -> Self {
        // Any number does, if it is another for each thread.
        let chance = (now() as u32) ^ (Arc::as_ptr(&engine) as usize as u32).rotate_left(7) | 1;
        let watches = VecDeque::with_capacity(WATCHES);
        let revocations = engine.parties.revocations();
        let seats = Seats::default();
        Self { engine, clock, waiters: None, seats, watches, chance, revocations }
    }

    /// Reads what a seat is owed, and lets it wait if that is nothing.
    // Long because each way of following ends in its own way, and they share what was read.
    fn look(&mut self, number: u32, is_last: bool, out: &mut Vec<u8>) -> After {
        let Some(seat) = self.seats.get(number) else { return After::Over { close: true } };
        let watch = Arc::clone(&seat.watch);
        let names = watch.names();
        // Who goes on behind a hole was told of it.
        let holes = if seat.pieces.is_some() { GapPolicy::Allow } else { watch.holes };
        let subscription = watch.subscription(&names, seat.start(), holes);
        let page = self.engine.hub(|hub| {
            let page = hub.read(&subscription, now());
            // Waiters begin where the ring is at the moment of the first look.
            let ring = hub.ring().position();
            (page, ring, hub.watermark().epoch)
        });
        let Some((page, ring, epoch)) = page else { return After::Over { close: true } };
        let date = self.clock.date();
        let page = match page {
            Ok(page) => page,
            Err(refused) => {
                match seat.pieces {
                    // Its channel is gone: its content ends there.
                    Some(pieces) => watch.end(out, pieces),
                    None => watch.refuse(out, seat.exchange, &date, &refused),
                }
                return self.over(number);
            }
        };
        let place = Place::of(&page);
        if let Some(ahead) = Watch::ahead(seat.start(), &page, now()) {
            return self.wait_for_start(number, ahead, is_last, &place, out);
        }
        seat.is_at(page.next);
        if watch.manner.is_poll() {
            let exchange = seat.exchange;
            if !page.messages.is_empty() || page.lost.is_some() {
                let bytes = encoded(watch.manner.view(), &page);
                watch.answer(out, exchange, &date, &bytes, &place);
            } else if let (Rest::Wait(parking), false) = (&page.rest, is_last || watch.wait == 0) {
                let wait = WaitOptions {
                    view: watch.manner.view(),
                    kind: WaitKind::Poll,
                    deadline: u64::MAX,
                };
                if let Some(waits) = self.park(number, parking, wait, (ring, epoch)) {
                    return waits;
                }
                // Answered with nothing, it would be back at once.
                watch.deny(out, exchange, &date, &WaitersFull.into());
            } else {
                watch.nothing(out, exchange, &date, &place);
            }
            return self.over(number);
        }
        let is_first = seat.pieces.is_none();
        let is_stream = !watch.manner.is_poll();
        if watch.regions != Regions::None && page.lost.is_some() && is_stream {
            // What it shows by now, nobody knows: it comes again and says so.
            let pieces =
                seat.pieces.unwrap_or_else(|| watch.begin(out, seat.exchange, &date, &place, true));
            watch.end(out, pieces);
            self.leave(number);
            return After::Over { close: pieces.closes_connection() };
        }
        if is_first && watch.ends_with_nothing(&page) {
            // An `EventSource` comes again and again, unless it is told so.
            watch.nothing(out, seat.exchange, &date, &place);
            return self.over(number);
        }
        let follows = !page.messages.is_empty() || watch.regions != Regions::None;
        let pieces =
            seat.pieces.unwrap_or_else(|| watch.begin(out, seat.exchange, &date, &place, follows));
        seat.pieces = Some(pieces);
        if is_head(seat.exchange) {
            self.leave(number);
            return After::Over { close: false };
        }
        if let Regions::Behind(first, then) = &watch.regions {
            pieces.append(out, first);
            seat.watch = Arc::clone(then);
        }
        if is_first || !page.messages.is_empty() || place.ahead == Ahead::Closed {
            watch.go_on(out, pieces, &encoded(watch.manner.view(), &page), &place);
        }
        let waits = match page.rest {
            Rest::Wait(parking) if !is_last => {
                let wait = WaitOptions {
                    view: watch.manner.view(),
                    kind: WaitKind::Stream,
                    deadline: u64::MAX,
                };
                self.park(number, &parking, wait, (ring, epoch))
            }
            // Asked for again when this has left.
            Rest::More if !is_last => Some(After::Waits(PING)),
            _ => None,
        };
        waits.unwrap_or_else(|| {
            watch.end(out, pieces);
            self.leave(number);
            After::Over { close: pieces.closes_connection() || is_last }
        })
    }

    /// Lets a seat rest whose range has not begun: what comes until then, `ahead` milliseconds, is not for it.
    fn wait_for_start(
        &mut self,
        number: u32,
        ahead: u64,
        is_last: bool,
        place: &Place,
        out: &mut Vec<u8>,
    ) -> After {
        let date = self.clock.date();
        let Some(seat) = self.seats.get(number) else { return After::Over { close: true } };
        let watch = Arc::clone(&seat.watch);
        let granted = self.engine.parties.ends(seat.party);
        let ahead = granted.map_or(ahead, |ends| ahead.min(ends.saturating_sub(now())));
        if watch.manner.is_poll() && (is_last || watch.wait == 0) {
            watch.nothing(out, seat.exchange, &date, place);
            return self.over(number);
        }
        if watch.manner.is_poll() {
            // What is left of its wait then is for what comes in its range.
            let rest = ahead.min(watch.wait);
            seat.watch = Arc::new(Watch { wait: watch.wait - rest, ..Watch::clone(&watch) });
            return After::Waits(Duration::from_millis(rest));
        }
        let pieces =
            seat.pieces.unwrap_or_else(|| watch.begin(out, seat.exchange, &date, place, true));
        seat.pieces = Some(pieces);
        if is_last || is_head(seat.exchange) {
            watch.end(out, pieces);
            self.leave(number);
            return After::Over { close: pieces.closes_connection() || is_last };
        }
        After::Waits(PING.min(Duration::from_millis(ahead)))
    }

    /// Ends what waits by a grant that is no more. `None`: it is good.
    fn end(&mut self, number: u32, out: &mut Vec<u8>) -> Option<After> {
        let seat = self.seats.get(number)?;
        let ends = self.engine.parties.ends(seat.party).filter(|ends| *ends <= now())?;
        let close = seat.end(ends, &self.clock, out);
        self.leave(number);
        Some(After::Over { close })
    }

    /// Lets a seat wait that has seen everything up to `parking`. `None`: too many wait already.
    fn park(
        &mut self,
        number: u32,
        parking: &bine_push::WaitPoint,
        wait: WaitOptions,
        (ring, epoch): (u64, u32),
    ) -> Option<After> {
        let waiters = self.waiters.get_or_insert_with(|| Waiters::new(epoch, CROWD, ring, now()));
        let seat = self.seats.get(number)?;
        seat.key = Some(waiters.park(u64::from(number), parking, wait).ok()?);
        self.chance = self.chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // A moment later, as timers may ring early; who is asked for then must be told that it has ended.
        let granted_until =
            self.engine.parties.ends(seat.party).map(|ends| ends.saturating_add(LATE));
        let ends = [parking.ends(), granted_until].into_iter().flatten().min();
        let ends = ends.map(|ends| Duration::from_millis(ends.saturating_sub(now())));
        let rest = match wait.kind {
            WaitKind::Poll => Duration::from_millis(jitter(seat.watch.wait, self.chance)),
            WaitKind::Stream => PING,
        };
        Some(After::Waits(ends.map_or(rest, |ends| ends.min(rest))))
    }

    /// The same as one that others have, if it can be.
    fn shared(&mut self, wanted: &Wanted) -> Arc<Watch> {
        if let Some(same) = self.watches.iter().find(|same| **same == wanted.watch) {
            return Arc::clone(same);
        }
        let watch = Arc::clone(&wanted.watch);
        if watch.attendee.is_some() || watch.regions != Regions::None {
            // Who is present by it goes with its last owner, and so does a page that nobody looks at.
            return watch;
        }
        if self.watches.len() == WATCHES {
            self.watches.pop_front();
        }
        self.watches.push_back(Arc::clone(&watch));
        watch
    }

    /// The answer to a seat is whole.
    fn over(&mut self, number: u32) -> After {
        let close = self.seats.get(number).is_none_or(|seat| !seat.exchange.keep_alive);
        self.leave(number);
        After::Over { close }
    }

    fn leave(&mut self, number: u32) {
        let Some(seat) = self.seats.leave(number, &self.engine) else { return };
        if let (Some(waiters), Some(key)) = (&mut self.waiters, seat.key) {
            waiters.cancel(key);
        }
    }

    /// Something was revoked: whoever waits by it waits no longer.
    fn show_out(&mut self, out: &mut dyn Deliver) {
        let (revocations, ended) = self.engine.parties.ended_since(self.revocations);
        self.revocations = revocations;
        for number in self.seats.of(ended) {
            let Some(seat) = self.seats.get(number) else { continue };
            let Some(ends @ 0) = self.engine.parties.ends(seat.party) else { continue };
            let (mut bytes, place) = (Vec::new(), seat.place);
            let close = seat.end(ends, &self.clock, &mut bytes);
            // One who has not read what was sent is told when they have.
            if out.send(place, &bytes, After::Over { close }) != Sent::Full {
                self.leave(number);
            }
        }
    }

    /// Nobody has been told meanwhile of what comes behind `cursor`.
    fn wake(&mut self, number: u32) {
        let Some(seat) = self.seats.get(number) else { return };
        if let (Some(waiters), Some(key)) = (&mut self.waiters, seat.key.take()) {
            waiters.cancel(key);
        }
    }
}

impl Waiting for Room {
    fn park(&mut self, place: u64, hold: Hold) -> u32 {
        let Hold { subject, position, detail, manner, exchange } = hold;
        let wanted = subject.downcast::<Wanted>().unwrap_or_default();
        let party = wanted.pass.take();
        let watch = self.shared(&wanted);
        self.engine.parties.sit(party);
        self.engine.parties.load(party, watch.channels.len());
        let manner = manner as u8;
        let (key, pieces) = (None, None);
        self.seats.add(Seat {
            place,
            watch,
            position,
            detail,
            manner,
            party,
            exchange,
            key,
            pieces,
        })
    }

    fn serve(&mut self, key: u32, why: Why, out: &mut Vec<u8>) -> After {
        let is_last = matches!(why, Why::Stop | Why::NoThread);
        if why == Why::Stop
            && let Some(seat) = self.seats.get(key)
        {
            seat.exchange.keep_alive = false;
        }
        if let Some(over) = self.end(key, out) {
            return over;
        }
        if why != Why::Time {
            self.wake(key);
            return self.look(key, is_last, out);
        }
        let Some(seat) = self.seats.get(key) else { return After::Over { close: true } };
        let (watch, pieces) = (Arc::clone(&seat.watch), seat.pieces);
        // It may have rested until its range began, and wait for what comes in it now.
        let is_begun = matches!(seat.start(), Start::Since(_)) && watch.wait > 0;
        // Timers count from their turn's beginning and may ring before the range's end has quite come.
        let is_early = matches!(watch.until, Until::Time(end)
            if (1..=EARLY).contains(&end.saturating_sub(now())));
        // Its cursor is as far as everything that was told.
        self.wake(key);
        let mut bytes = Vec::new();
        let after = self.look(key, watch.manner.is_poll() && !is_begun && !is_early, &mut bytes);
        if let (Some(pieces), After::Waits(_), true) = (pieces, after, bytes.is_empty())
            && let Some(start) = self.seats.get(key).map(|seat| seat.start())
        {
            let mut mark = Vec::new();
            match start {
                Start::After(cursor) => watch.mark(&mut mark, cursor),
                // Nor is there a place before its range.
                _ if watch.manner == Manner::Events => mark.extend_from_slice(b":\n\n"),
                _ => {}
            }
            pieces.append(&mut bytes, &mark);
        }
        out.append(&mut bytes);
        after
    }

    fn deliver(&mut self, slice: usize, out: &mut dyn Deliver) -> bool {
        let revocations = self.engine.parties.revocations();
        if self.revocations != revocations {
            self.show_out(out);
        }
        let Self { engine, clock, waiters, seats, .. } = self;
        let Some(waiters) = waiters else { return false };
        let _ = engine.hub(|hub| waiters.receive(hub.ring()));
        let more = waiters.advance(slice, |delivery| tell(seats, engine, clock, &delivery, out));
        more || engine.hub(|hub| waiters.is_behind(hub.ring())).unwrap_or(false)
    }

    fn forget(&mut self, key: u32) {
        self.leave(key);
    }
}

/// Sends one delivery.
fn tell(
    seats: &mut Seats,
    engine: &Engine,
    clock: &Clock,
    delivery: &Delivery<'_>,
    out: &mut dyn Deliver,
) -> AfterDelivery {
    let number = delivery.token as u32;
    let Some(seat) = seats.get(number) else { return AfterDelivery::Remove };
    let (watch, exchange) = (&seat.watch, seat.exchange);
    let close = !exchange.keep_alive;
    let (mut bytes, mut after) = (Vec::new(), After::Over { close });
    let granted_until = engine.parties.ends(seat.party);
    let is_past = |end: u64| end <= now();
    let range_until = if let Until::Time(end) = watch.until { Some(end) } else { None };
    let has_ended = seat.pieces.is_some() && range_until.is_some_and(is_past);
    if has_ended || granted_until.is_some_and(is_past) {
        // What came before the end, it reads from the hub when it is served, which is at once; or is told why it may not.
        seat.key = None;
        if out.send(seat.place, &[], After::Waits(Duration::ZERO)) == Sent::Gone {
            seats.leave(number, engine);
        }
        return AfterDelivery::Remove;
    }
    let mut place = Place { next: delivery.cursor, lost: None, ahead: Ahead::Nothing };
    if let (Payload::Ended { .. }, Start::After(seen), true) =
        (delivery.payload, seat.start(), watch.live.is_some())
    {
        // A resource's end is behind its last message, whenever it was closed.
        place.next = seen;
    }
    match (delivery.payload, seat.pieces) {
        // The ring went on without it: it reads from the hub, at once.
        (Payload::Evicted(_), _) => {
            seat.key = None;
            after = After::Waits(Duration::ZERO);
        }
        (Payload::Messages { bytes: content, is_final }, None) => {
            place.ahead = if is_final { Ahead::Closed } else { Ahead::Nothing };
            watch.answer(&mut bytes, exchange, &clock.date(), content, &place);
        }
        (Payload::Ended { reason: why, .. }, None) => {
            place.ahead = if why == EndReason::Closed { Ahead::Closed } else { Ahead::Nothing };
            watch.nothing(&mut bytes, exchange, &clock.date(), &place);
        }
        (Payload::Messages { bytes: content, .. }, Some(pieces)) => {
            watch.go_on(&mut bytes, pieces, content, &place);
            after = After::Waits(silence([range_until, granted_until]));
        }
        (Payload::Ended { is_removed: true, reason: why, .. }, Some(pieces)) => {
            if why == EndReason::Closed {
                place.ahead = Ahead::Closed;
                watch.go_on(&mut bytes, pieces, &[], &place);
            }
            watch.end(&mut bytes, pieces);
            after = After::Over { close: pieces.closes_connection() };
        }
        (Payload::Ended { .. }, Some(_)) => {
            seat.is_at(delivery.cursor);
            return AfterDelivery::Keep;
        }
    }
    match out.send(seat.place, &bytes, after) {
        Sent::Taken if matches!(after, After::Waits(_)) => {
            seat.is_at(delivery.cursor);
            AfterDelivery::Keep
        }
        // It reads from the hub what it was not sent, when it has room.
        Sent::Full => {
            seat.key = None;
            AfterDelivery::Remove
        }
        Sent::Taken | Sent::Gone => {
            // The waiters let it go by themselves.
            seats.leave(number, engine);
            AfterDelivery::Remove
        }
    }
}

/// How long a stream may be silent, one of whose ends may come sooner.
fn silence(ends: [Option<u64>; 2]) -> Duration {
    let left = |end: u64| Duration::from_millis(end.saturating_sub(now()));
    ends.into_iter().flatten().map(left).fold(PING, Duration::min)
}

/// How [`Hold::manner`] says where to begin; [`Hold::position`] and [`Hold::detail`] are a time, or a cursor's sequence and
/// epoch.
const AFTER: u8 = 0;
const EARLIEST: u8 = 1;
const NOW: u8 = 2;
const SINCE: u8 = 3;

/// What is wanted by one who comes, and by whom.
pub(crate) struct Wanted {
    watch: Arc<Watch>,
    pass: Pass,
}

/// The hold of somebody who follows from a place on.
pub(crate) fn hold_for(
    pass: Pass,
    watch: impl Into<Arc<Watch>>,
    start: Start,
    exchange: Exchange,
) -> Hold {
    let watch = watch.into();
    let (manner, position, detail) = written(start);
    let manner = u32::from(manner);
    Hold { subject: Arc::new(Wanted { watch, pass }), position, detail, manner, exchange }
}

const fn written(start: Start) -> (u8, u64, u32) {
    match start {
        Start::After(cursor) => (AFTER, cursor.sequence.number(), cursor.epoch),
        Start::Since(time) => (SINCE, time, 0),
        Start::Earliest => (EARLIEST, 0, 0),
        Start::Now => (NOW, 0, 0),
    }
}

impl Seat {
    /// Where it goes on.
    fn start(&self) -> Start {
        match self.manner {
            EARLIEST => Start::Earliest,
            NOW => Start::Now,
            SINCE => Start::Since(self.position),
            _ => {
                let sequence = Sequence::from_number(self.position);
                Start::After(Cursor { epoch: self.detail, sequence })
            }
        }
    }

    /// It has seen everything up to here.
    const fn is_at(&mut self, cursor: Cursor) {
        (self.manner, self.position, self.detail) = written(Start::After(cursor));
    }

    /// It is counted no longer.
    fn rise(&self, engine: &Engine) {
        engine.parties.unload(self.party, self.watch.channels.len());
        engine.parties.rise(self.party);
    }

    /// Tells it that what it was granted has ended, and says whether its connection closes.
    fn end(&self, ends: u64, clock: &Clock, out: &mut Vec<u8>) -> bool {
        match self.pieces {
            Some(pieces) => {
                self.watch.dismiss(out, pieces);
                true
            }
            None => {
                self.watch.deny(out, self.exchange, &clock.date(), &Denied::of_end(ends));
                !self.exchange.keep_alive
            }
        }
    }
}

impl Default for Wanted {
    fn default() -> Self {
        Self { watch: Arc::new(Watch::of(Box::default())), pass: Pass::default() }
    }
}

/// A thread that ends leaves nobody counted.
impl Drop for Room {
    fn drop(&mut self) {
        for seat in self.seats.all.drain(..).flatten() {
            seat.rise(&self.engine);
        }
    }
}

impl Seats {
    fn add(&mut self, seat: Seat) -> u32 {
        let party = seat.party;
        let number = match self.vacant.pop() {
            Some(number) => {
                self.all[number as usize] = Some(seat);
                number
            }
            None => {
                self.all.push(Some(seat));
                (self.all.len() - 1) as u32
            }
        };
        if Parties::has_grant(party) {
            self.granted.entry(party).or_default().push(number);
        }
        number
    }

    /// The seats of these parties, or all whose grants can end.
    fn of(&self, parties: Option<Vec<u32>>) -> Vec<u32> {
        match parties {
            Some(parties) => {
                let own = parties.iter().filter_map(|party| self.granted.get(party));
                own.flatten().copied().collect()
            }
            None => self.granted.values().flatten().copied().collect(),
        }
    }

    fn get(&mut self, number: u32) -> Option<&mut Seat> {
        self.all.get_mut(number as usize)?.as_mut()
    }

    fn leave(&mut self, number: u32, engine: &Engine) -> Option<Seat> {
        let seat = self.all.get_mut(number as usize)?.take()?;
        seat.rise(engine);
        if let Some(own) = self.granted.get_mut(&seat.party) {
            own.retain(|other| *other != number);
            if own.is_empty() {
                self.granted.remove(&seat.party);
            }
        }
        self.vacant.push(number);
        if self.vacant.len() == self.all.len() {
            // A crowd that has gone leaves no memory behind.
            *self = Self::default();
        }
        Some(seat)
    }
}

// A parked poll is as small as this lets it be (docs/measurements/channels.md).
const _: () = assert!(size_of::<Option<Seat>>() <= 64);
