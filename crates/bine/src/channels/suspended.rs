//! Delivers messages to the suspended polls and streams of one event loop.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bine_http::{BodyFraming, Exchange};
use bine_push::{
    AfterDelivery, Cursor, Delivery, EndReason, GapPolicy, MessageBatch, Payload, Refused, Rest,
    Sequence, Start, Until, WaitKind, WaitOptions, WaiterKey, WaiterLimits, Waiters, WaitersFull,
    jitter,
};
use bine_server::{
    Clock, SendOutcome, ServeOutcome, ServeReason, SuspendedResponse, WaiterSink,
    Waiters as LoopWaiters,
};

use super::access::{Denied, HoldPermit, QuotaTable};
use super::clock::now;
use super::delivery::{DeliveryMode, ReadPosition, Remaining};
use super::engine::Engine;
use super::subscription::{Regions, SubscriptionSpec, encoded, is_head};
use crate::staleness::Staleness;

/// The suspended polls and streams of one event loop.
pub(crate) struct SuspendedResponses {
    engine: Arc<Engine>,
    clock: Rc<Clock>,
    staleness: Arc<Staleness>,
    /// Created when the first response is suspended.
    waiters: Option<Waiters>,
    responses: ResponseTable,
    /// Recent subscriptions: equal ones share one value, and most are equal.
    recent_specs: VecDeque<Arc<SubscriptionSpec>>,
    /// The state of a random number generator for the jitter of waits.
    jitter_state: u32,
    /// The number of revocations that were processed.
    revocations: u32,
}

/// One suspended poll or stream.
struct SuspendedEntry {
    /// The connection's identifier.
    connection: u64,
    spec: Arc<SubscriptionSpec>,
    /// The read position or, before the first read, where to begin: encoded as in a
    /// [`SuspendedResponse`], which takes less memory than a [`Start`].
    position: u64,
    detail: u32,
    manner: u8,
    /// The client group whose quota counts it.
    group: u32,
    exchange: Exchange,
    /// The key in `waiters` while it waits there.
    key: Option<WaiterKey>,
    /// The framing of the body, once the head is written.
    framing: Option<BodyFraming>,
}

/// The suspended responses by their keys.
#[derive(Default)]
struct ResponseTable {
    all: Vec<Option<SuspendedEntry>>,
    vacant: Vec<u32>,
    /// Responses whose clients are ahead of this node: until when they wait for it, in milliseconds
    /// since 1970.
    ahead: HashMap<u32, u64>,
    /// Responses whose grants can end, by client group.
    granted: HashMap<u32, Vec<u32>>,
}

/// How many recent subscriptions a new one is compared with.
const RECENT_SPECS: usize = 8;
/// Limits for each event loop.
const LIMITS: WaiterLimits = WaiterLimits { waiters: 1 << 20, subscriptions: 1 << 22 };
/// The interval of a stream's keep-alives. Proxies close a silent stream after 30 seconds or more.
const PING: Duration = Duration::from_secs(20);
/// Milliseconds for which a client waits for this node to receive what it has read at a second one. A
/// node that is behind for longer reports that it is cut off.
const MAX_LAG: u64 = 5000;
/// Milliseconds after which the `EventSource` of a stream that a stop has ended connects again, before
/// jitter.
const RECONNECT_DELAY: u64 = 1000;
/// Milliseconds after the end of a grant at which its responses are checked: the system's coarse
/// clock may lag by ten.
const GRANT_CHECK_DELAY: u64 = 20;
/// A timer may fire this many milliseconds before the end of a range; the response then waits
/// again.
const TIMER_TOLERANCE: u64 = 50;

impl SuspendedResponses {
    pub(crate) fn new(engine: Arc<Engine>, clock: Rc<Clock>, staleness: Arc<Staleness>) -> Self {
        // The seed only has to differ between threads.
        let jitter_state =
            (now() as u32) ^ (Arc::as_ptr(&engine) as usize as u32).rotate_left(7) | 1;
        let recent_specs = VecDeque::with_capacity(RECENT_SPECS);
        let revocations = engine.parties.revocations();
        let responses = ResponseTable::default();
        Self {
            engine,
            clock,
            staleness,
            waiters: None,
            responses,
            recent_specs,
            jitter_state,
            revocations,
        }
    }

    /// Reads the messages for a response, and suspends it if there are none.
    // Long because each delivery mode ends in its own way, and all share what was read.
    fn read_or_suspend(&mut self, number: u32, is_last: bool, out: &mut Vec<u8>) -> ServeOutcome {
        let Some(response) = self.responses.get(number) else {
            return ServeOutcome::Over { close: true };
        };
        let spec = Arc::clone(&response.spec);
        let names = spec.names();
        // A stream reports a gap itself.
        let holes = if response.framing.is_some() { GapPolicy::Allow } else { spec.holes };
        let subscription = spec.subscription(&names, response.start(), holes);
        let engine = &self.engine;
        let batch = engine.hub(|hub| {
            let batch = engine.read(hub, &subscription);
            // The waiters start at the ring position of this first read.
            let ring = hub.ring().position();
            (batch, ring, hub.watermark().epoch)
        });
        let Some(((batch, is_ahead), ring, epoch)) = batch else {
            return ServeOutcome::Over { close: true };
        };
        let date = self.clock.date();
        let batch = match batch {
            Ok(batch) => batch,
            Err(refused) => {
                match response.framing {
                    // The channel was removed: the stream ends.
                    Some(framing) => spec.end_stream(out, framing),
                    None => spec.write_rejection(out, response.exchange, &date, &refused),
                }
                return self.complete(number);
            }
        };
        let position = ReadPosition::of(&batch);
        if is_ahead {
            return self.wait_for_node(number, is_last, &batch, (ring, epoch), out);
        }
        if !self.responses.ahead.is_empty() {
            self.responses.ahead.remove(&number);
        }
        let Some(response) = self.responses.get(number) else {
            return ServeOutcome::Over { close: true };
        };
        if let Some(ahead) = SubscriptionSpec::ahead(response.start(), &batch, now()) {
            return self.wait_for_start(number, ahead, is_last, &position, out);
        }
        response.move_to(batch.next);
        if spec.manner.is_poll() {
            let exchange = response.exchange;
            if !batch.messages.is_empty() || batch.lost.is_some() {
                let bytes = encoded(spec.manner.view(), &batch);
                spec.write_poll(out, exchange, &date, &bytes, &position);
            } else if let (Rest::Wait(wait_point), false) = (&batch.rest, is_last || spec.wait == 0)
            {
                let wait = WaitOptions { view: spec.manner.view(), kind: WaitKind::Poll };
                if let Some(waits) = self.park(number, wait_point, wait, (ring, epoch)) {
                    return waits;
                }
                // An empty response would only make the client retry at once.
                spec.write_denied(out, exchange, &date, &WaitersFull.into());
            } else {
                spec.write_empty(out, exchange, &date, &position);
            }
            return self.complete(number);
        }
        let is_first = response.framing.is_none();
        let is_stream = !spec.manner.is_poll();
        if spec.regions != Regions::None && batch.lost.is_some() && is_stream {
            // The page's state is unknown after a gap: the client reconnects and sends it.
            let framing = response.framing.unwrap_or_else(|| {
                spec.begin_stream(out, response.exchange, &date, &position, true)
            });
            spec.end_stream(out, framing);
            self.leave(number);
            return ServeOutcome::Over { close: framing.closes_connection() };
        }
        if let (Some(framing), Some(lost)) = (response.framing, batch.lost)
            && !spec.append_gap(out, framing, lost)
        {
            // The client reconnects with its last cursor, and the response then reports the gap.
            spec.end_stream(out, framing);
            self.leave(number);
            return ServeOutcome::Over { close: framing.closes_connection() };
        }
        if is_first && spec.ends_with_nothing(&batch) {
            // Without this response an `EventSource` would reconnect forever.
            spec.write_empty(out, response.exchange, &date, &position);
            return self.complete(number);
        }
        let follows = !batch.messages.is_empty() || spec.regions != Regions::None;
        let framing = response.framing.unwrap_or_else(|| {
            spec.begin_stream(out, response.exchange, &date, &position, follows)
        });
        response.framing = Some(framing);
        if is_head(response.exchange) {
            self.leave(number);
            return ServeOutcome::Over { close: false };
        }
        if let Regions::Behind(first, then) = &spec.regions {
            framing.append(out, first);
            response.spec = Arc::clone(then);
        }
        if is_first || !batch.messages.is_empty() || position.remaining == Remaining::Closed {
            spec.append_messages(out, framing, &encoded(spec.manner.view(), &batch), &position);
        }
        let waits = match batch.rest {
            Rest::Wait(wait_point) if !is_last => {
                let wait = WaitOptions { view: spec.manner.view(), kind: WaitKind::Stream };
                self.park(number, &wait_point, wait, (ring, epoch))
            }
            // The next batch is read when this one was sent.
            Rest::More if !is_last => Some(ServeOutcome::Waits(PING)),
            _ => None,
        };
        waits.unwrap_or_else(|| {
            spec.end_stream(out, framing);
            self.leave(number);
            ServeOutcome::Over { close: framing.closes_connection() || is_last }
        })
    }

    /// Suspends a response whose client has read, at a second node, messages that this node has yet to
    /// receive. The next message after the client's cursor continues it.
    ///
    /// A node is behind for some milliseconds. If the node stays behind, the messages do not exist any
    /// more, and the client is told so.
    fn wait_for_node(
        &mut self,
        number: u32,
        is_last: bool,
        batch: &MessageBatch,
        moment: (u64, u32),
        out: &mut Vec<u8>,
    ) -> ServeOutcome {
        let (date, position) = (self.clock.date(), ReadPosition::of(batch));
        let Some(response) = self.responses.get(number) else {
            return ServeOutcome::Over { close: true };
        };
        let (spec, exchange) = (Arc::clone(&response.spec), response.exchange);
        let is_poll = spec.manner.is_poll();
        let wait = if is_poll { MAX_LAG.min(spec.wait) } else { MAX_LAG };
        let deadline = *self.responses.ahead.entry(number).or_insert(now() + wait);
        let is_over = deadline <= now() + TIMER_TOLERANCE;
        match &batch.rest {
            Rest::Wait(wait_point) if !is_last && !is_over => {
                let options = WaitOptions { view: spec.manner.view(), kind: WaitKind::Poll };
                if let Some(ServeOutcome::Waits(wait)) =
                    self.park(number, wait_point, options, moment)
                {
                    return ServeOutcome::Waits(
                        wait.min(Duration::from_millis(deadline.saturating_sub(now()))),
                    );
                }
                spec.write_denied(out, exchange, &date, &WaitersFull.into());
            }
            Rest::Wait(_) if !is_last && wait == MAX_LAG => {
                let Some(watermark) = self.engine.hub(|hub| hub.watermark()) else {
                    return ServeOutcome::Over { close: true };
                };
                spec.write_rejection(out, exchange, &date, &Refused::Ahead { watermark });
            }
            _ if is_poll => spec.write_empty(out, exchange, &date, &position),
            _ => {
                let framing = spec.begin_stream(out, exchange, &date, &position, false);
                spec.end_stream(out, framing);
                self.leave(number);
                return ServeOutcome::Over { close: framing.closes_connection() || is_last };
            }
        }
        self.complete(number)
    }

    /// Suspends a response whose range begins in `ahead` milliseconds; earlier messages are not
    /// part of the range.
    fn wait_for_start(
        &mut self,
        number: u32,
        ahead: u64,
        is_last: bool,
        position: &ReadPosition,
        out: &mut Vec<u8>,
    ) -> ServeOutcome {
        let date = self.clock.date();
        let Some(response) = self.responses.get(number) else {
            return ServeOutcome::Over { close: true };
        };
        let spec = Arc::clone(&response.spec);
        let granted = self.engine.parties.grant_end(response.group);
        let ahead = granted.map_or(ahead, |ends| ahead.min(ends.saturating_sub(now())));
        if spec.manner.is_poll() && (is_last || spec.wait == 0) {
            spec.write_empty(out, response.exchange, &date, position);
            return self.complete(number);
        }
        if spec.manner.is_poll() {
            // The rest of the wait applies after the range has begun.
            let rest = ahead.min(spec.wait);
            response.spec = Arc::new(SubscriptionSpec {
                wait: spec.wait - rest,
                ..SubscriptionSpec::clone(&spec)
            });
            return ServeOutcome::Waits(Duration::from_millis(rest));
        }
        let framing = response
            .framing
            .unwrap_or_else(|| spec.begin_stream(out, response.exchange, &date, position, true));
        response.framing = Some(framing);
        if is_last || is_head(response.exchange) {
            spec.end_stream(out, framing);
            self.leave(number);
            return ServeOutcome::Over { close: framing.closes_connection() || is_last };
        }
        ServeOutcome::Waits(PING.min(Duration::from_millis(ahead)))
    }

    /// Ends a response whose grant has ended. `None`: the grant is valid.
    fn end(&mut self, number: u32, out: &mut Vec<u8>) -> Option<ServeOutcome> {
        let response = self.responses.get(number)?;
        let ends = self.engine.parties.grant_end(response.group).filter(|ends| *ends <= now())?;
        let close = response.end(ends, &self.clock, out);
        self.leave(number);
        Some(ServeOutcome::Over { close })
    }

    /// Registers a response that has read everything up to `parking`. `None`: the table is full.
    fn park(
        &mut self,
        number: u32,
        wait_point: &bine_push::WaitPoint,
        wait: WaitOptions,
        (ring, epoch): (u64, u32),
    ) -> Option<ServeOutcome> {
        let waiters = self.waiters.get_or_insert_with(|| Waiters::new(epoch, LIMITS, ring));
        let response = self.responses.get(number)?;
        response.key = Some(waiters.park(u64::from(number), wait_point, wait).ok()?);
        self.jitter_state = next_random(self.jitter_state);
        // Slightly later, since timers may fire early and the check must find the grant ended.
        let granted_until = self
            .engine
            .parties
            .grant_end(response.group)
            .map(|ends| ends.saturating_add(GRANT_CHECK_DELAY));
        let ends = [wait_point.ends(), granted_until].into_iter().flatten().min();
        let ends = ends.map(|ends| Duration::from_millis(ends.saturating_sub(now())));
        let rest = match wait.kind {
            WaitKind::Poll => Duration::from_millis(jitter(response.spec.wait, self.jitter_state)),
            WaitKind::Stream => PING,
        };
        Some(ServeOutcome::Waits(ends.map_or(rest, |ends| ends.min(rest))))
    }

    /// Returns an equal subscription of other responses, if there is one to share.
    fn share_spec(&mut self, request: &HoldRequest) -> Arc<SubscriptionSpec> {
        if let Some(same) = self.recent_specs.iter().find(|same| **same == request.spec) {
            return Arc::clone(same);
        }
        let spec = Arc::clone(&request.spec);
        if spec.presence_guard.is_some() || spec.regions != Regions::None {
            // Such a subscription must be dropped with its last owner.
            return spec;
        }
        if self.recent_specs.len() == RECENT_SPECS {
            self.recent_specs.pop_front();
        }
        self.recent_specs.push_back(Arc::clone(&spec));
        spec
    }

    /// Ends a completed response.
    fn complete(&mut self, number: u32) -> ServeOutcome {
        let close = self.responses.get(number).is_none_or(|response| !response.exchange.keep_alive);
        self.leave(number);
        ServeOutcome::Over { close }
    }

    fn leave(&mut self, number: u32) {
        let Some(response) = self.responses.leave(number, &self.engine) else { return };
        if let (Some(waiters), Some(key)) = (&mut self.waiters, response.key) {
            waiters.cancel(key);
        }
    }

    /// Ends the responses whose grants were revoked.
    fn end_revoked(&mut self, out: &mut dyn WaiterSink) {
        let (revocations, ended) = self.engine.parties.ended_since(self.revocations);
        self.revocations = revocations;
        for number in self.responses.of(ended) {
            let Some(response) = self.responses.get(number) else { continue };
            let Some(ends @ 0) = self.engine.parties.grant_end(response.group) else { continue };
            let (mut bytes, position) = (Vec::new(), response.connection);
            let close = response.end(ends, &self.clock, &mut bytes);
            // The connection ends a response with unsent bytes when these are sent.
            if out.send(position, &bytes, ServeOutcome::Over { close }) != SendOutcome::Full {
                self.leave(number);
            }
        }
    }

    /// Tells the `EventSource` of an open stream, which the server ends now, to connect again soon:
    /// a second server may continue the stream. By itself a browser waits for some seconds.
    fn hasten_reconnection(&mut self, number: u32, out: &mut Vec<u8>) {
        let Some(response) = self.responses.get(number) else { return };
        let Some(framing) = response.framing else { return };
        // The script of live pages has its own delays.
        if response.spec.manner == DeliveryMode::Events && response.spec.regions == Regions::None {
            self.jitter_state = next_random(self.jitter_state);
            let delay = jitter(RECONNECT_DELAY, self.jitter_state);
            framing.append(out, format!("retry: {delay}\n\n").as_bytes());
        }
    }

    /// Removes a response from the waiters.
    fn stop_waiting(&mut self, number: u32) {
        let Some(response) = self.responses.get(number) else { return };
        if let (Some(waiters), Some(key)) = (&mut self.waiters, response.key.take()) {
            waiters.cancel(key);
        }
    }
}

impl LoopWaiters for SuspendedResponses {
    fn park(&mut self, connection: u64, hold: SuspendedResponse) -> u32 {
        let SuspendedResponse { subject, position, detail, manner, exchange } = hold;
        let request = subject.downcast::<HoldRequest>().unwrap_or_default();
        let group = request.permit.take();
        let spec = self.share_spec(&request);
        self.engine.parties.begin_hold(group);
        self.engine.parties.add_channels(group, spec.channels.len());
        let manner = manner as u8;
        let (key, framing) = (None, None);
        self.responses.add(SuspendedEntry {
            connection,
            spec,
            position,
            detail,
            manner,
            group,
            exchange,
            key,
            framing,
        })
    }

    // A response that is sent by `deliver` has a message that this node has just received.
    fn serve(&mut self, key: u32, why: ServeReason, out: &mut Vec<u8>) -> ServeOutcome {
        let writes_head = self.responses.get(key).is_some_and(|one| one.framing.is_none());
        let begin = out.len();
        let outcome = self.serve_one(key, why, out);
        if writes_head {
            self.staleness.mark(out, begin);
        }
        outcome
    }

    fn deliver(&mut self, slice: usize, out: &mut dyn WaiterSink) -> bool {
        let revocations = self.engine.parties.revocations();
        if self.revocations != revocations {
            self.end_revoked(out);
        }
        let Self { engine, clock, waiters, responses, .. } = self;
        let Some(waiters) = waiters else { return false };
        let _ = engine.hub(|hub| waiters.receive(hub.ring()));
        let more = waiters
            .advance(slice, |delivery| send_delivery(responses, engine, clock, &delivery, out));
        more || engine.hub(|hub| waiters.is_behind(hub.ring())).unwrap_or(false)
    }

    fn forget(&mut self, key: u32) {
        self.leave(key);
    }
}

impl SuspendedResponses {
    fn serve_one(&mut self, key: u32, why: ServeReason, out: &mut Vec<u8>) -> ServeOutcome {
        let is_last = matches!(why, ServeReason::Stop | ServeReason::NoThread);
        if why == ServeReason::Stop
            && let Some(response) = self.responses.get(key)
        {
            response.exchange.keep_alive = false;
        }
        if let Some(complete) = self.end(key, out) {
            return complete;
        }
        if why == ServeReason::Stop {
            self.hasten_reconnection(key, out);
        }
        if why != ServeReason::Time {
            self.stop_waiting(key);
            return self.read_or_suspend(key, is_last, out);
        }
        let Some(response) = self.responses.get(key) else {
            return ServeOutcome::Over { close: true };
        };
        let (spec, framing) = (Arc::clone(&response.spec), response.framing);
        // A poll that has waited for its range to begin now waits for messages of the range.
        let is_begun = matches!(response.start(), Start::Since(_)) && spec.wait > 0;
        // Timers start with the loop's turn and may fire shortly before the range ends.
        let is_early = matches!(spec.until, Until::Time(end)
            if (1..=TIMER_TOLERANCE).contains(&end.saturating_sub(now())));
        // The node may have received meanwhile what the client has read at a second one.
        let is_ahead = self.responses.ahead.contains_key(&key);
        // Its position includes everything that the waiters delivered.
        self.stop_waiting(key);
        let mut bytes = Vec::new();
        let is_last = spec.manner.is_poll() && !is_begun && !is_early && !is_ahead;
        let after = self.read_or_suspend(key, is_last, &mut bytes);
        if let (Some(framing), ServeOutcome::Waits(_), true) = (framing, after, bytes.is_empty())
            && let Some(start) = self.responses.get(key).map(|response| response.start())
        {
            let mut mark = Vec::new();
            match start {
                Start::After(cursor) => spec.append_keepalive(&mut mark, cursor),
                // Before its range begins, the stream has no cursor to send.
                _ if spec.manner == DeliveryMode::Events => mark.extend_from_slice(b":\n\n"),
                _ => {}
            }
            framing.append(&mut bytes, &mark);
        }
        out.append(&mut bytes);
        after
    }
}

/// The next state of the generator (Press et al., Numerical Recipes, section 7.1).
const fn next_random(state: u32) -> u32 {
    state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}

/// The waiter is served again at once.
const AT_ONCE: ServeOutcome = ServeOutcome::Waits(Duration::ZERO);

/// Sends one delivery.
// Long because each payload continues or ends polls and streams in its own way.
fn send_delivery(
    responses: &mut ResponseTable,
    engine: &Engine,
    clock: &Clock,
    delivery: &Delivery<'_>,
    out: &mut dyn WaiterSink,
) -> AfterDelivery {
    let number = delivery.token as u32;
    // A client that is ahead of this node has read the messages up to its cursor.
    let is_ahead = responses.ahead.contains_key(&number);
    let Some(response) = responses.get(number) else { return AfterDelivery::Remove };
    let (spec, exchange) = (&response.spec, response.exchange);
    let (mut bytes, mut after) = (Vec::new(), ServeOutcome::Over { close: !exchange.keep_alive });
    let granted_until = engine.parties.grant_end(response.group);
    let is_past = |end: u64| end <= now();
    let range_until = if let Until::Time(end) = spec.until { Some(end) } else { None };
    let has_ended = response.framing.is_some() && range_until.is_some_and(is_past);
    if has_ended || is_ahead || granted_until.is_some_and(is_past) {
        // Served at once: the response then reads the earlier messages from the hub, or ends with
        // the reason.
        response.key = None;
        if out.send(response.connection, &[], AT_ONCE) == SendOutcome::Gone {
            responses.leave(number, engine);
        }
        return AfterDelivery::Remove;
    }
    let (next, remaining) = (delivery.cursor, Remaining::Nothing);
    let mut position = ReadPosition { next, lost: None, remaining };
    if let (Payload::Ended { .. }, Start::After(seen), true) =
        (delivery.payload, response.start(), spec.durable.is_some())
    {
        // A resource ends directly after its last message, whenever it was closed.
        position.next = seen;
    }
    match (delivery.payload, response.framing) {
        // The ring has overwritten unread messages: read them from the hub, at once.
        (Payload::Evicted(_), _) => {
            response.key = None;
            after = ServeOutcome::Waits(Duration::ZERO);
        }
        (Payload::Messages { bytes: content, is_final }, None) => {
            position.remaining = Remaining::after(is_final);
            spec.write_poll(&mut bytes, exchange, &clock.date(), content, &position);
        }
        (Payload::Ended { reason: why, .. }, None) => {
            position.remaining = Remaining::after(why == EndReason::Closed);
            spec.write_empty(&mut bytes, exchange, &clock.date(), &position);
        }
        (Payload::Messages { bytes: content, .. }, Some(framing)) => {
            spec.append_messages(&mut bytes, framing, content, &position);
            after = ServeOutcome::Waits(time_until_keepalive([range_until, granted_until]));
        }
        (Payload::Ended { is_removed: true, reason: why, .. }, Some(framing)) => {
            if why == EndReason::Closed {
                position.remaining = Remaining::Closed;
                spec.append_messages(&mut bytes, framing, &[], &position);
            }
            spec.end_stream(&mut bytes, framing);
            after = ServeOutcome::Over { close: framing.closes_connection() };
        }
        (Payload::Ended { .. }, Some(_)) => {
            response.move_to(delivery.cursor);
            return AfterDelivery::Keep;
        }
    }
    match out.send(response.connection, &bytes, after) {
        SendOutcome::Taken if matches!(after, ServeOutcome::Waits(_)) => {
            response.move_to(delivery.cursor);
            AfterDelivery::Keep
        }
        // The unsent messages are read from the hub when the connection has room.
        SendOutcome::Full => {
            response.key = None;
            AfterDelivery::Remove
        }
        SendOutcome::Taken | SendOutcome::Gone => {
            // Returning `Remove` makes the waiters drop it.
            responses.leave(number, engine);
            AfterDelivery::Remove
        }
    }
}

/// Time until the next keep-alive of a stream, or until its range or grant ends.
fn time_until_keepalive(ends: [Option<u64>; 2]) -> Duration {
    let left = |end: u64| Duration::from_millis(end.saturating_sub(now()));
    ends.into_iter().flatten().map(left).fold(PING, Duration::min)
}

/// The values of [`SuspendedResponse::manner`]: how to begin. [`SuspendedResponse::position`] and
/// [`SuspendedResponse::detail`] contain a time, or the sequence and epoch of a cursor.
const AFTER: u8 = 0;
const EARLIEST: u8 = 1;
const NOW: u8 = 2;
const SINCE: u8 = 3;

/// The subscription of a new response, and its reserved hold.
pub(crate) struct HoldRequest {
    spec: Arc<SubscriptionSpec>,
    permit: HoldPermit,
}

/// Creates the hold for a subscription that begins at `start`.
pub(crate) fn hold_for(
    permit: HoldPermit,
    spec: impl Into<Arc<SubscriptionSpec>>,
    start: Start,
    exchange: Exchange,
) -> SuspendedResponse {
    let spec = spec.into();
    let (manner, position, detail) = written(start);
    let manner = u32::from(manner);
    SuspendedResponse {
        subject: Arc::new(HoldRequest { spec, permit }),
        position,
        detail,
        manner,
        exchange,
    }
}

const fn written(start: Start) -> (u8, u64, u32) {
    match start {
        Start::After(cursor) => (AFTER, cursor.sequence.number(), cursor.epoch),
        Start::Since(time) => (SINCE, time, 0),
        Start::Earliest => (EARLIEST, 0, 0),
        Start::Now => (NOW, 0, 0),
    }
}

impl SuspendedEntry {
    /// The position at which to continue.
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

    /// Moves the position to a cursor.
    const fn move_to(&mut self, cursor: Cursor) {
        (self.manner, self.position, self.detail) = written(Start::After(cursor));
    }

    /// Releases its hold.
    fn release(&self, engine: &Engine) {
        engine.parties.remove_channels(self.group, self.spec.channels.len());
        engine.parties.end_hold(self.group);
    }

    /// Writes the end of a response whose grant has ended. Whether the connection closes.
    fn end(&self, ends: u64, clock: &Clock, out: &mut Vec<u8>) -> bool {
        match self.framing {
            Some(framing) => {
                self.spec.end_denied(out, framing);
                true
            }
            None => {
                let denied = Denied::of_end(ends);
                self.spec.write_end_of_grant(out, self.exchange, &clock.date(), &denied);
                !self.exchange.keep_alive
            }
        }
    }
}

impl Default for HoldRequest {
    fn default() -> Self {
        Self { spec: Arc::new(SubscriptionSpec::of(Box::default())), permit: HoldPermit::default() }
    }
}

/// Releases the quotas of a thread that ends.
impl Drop for SuspendedResponses {
    fn drop(&mut self) {
        for response in self.responses.all.drain(..).flatten() {
            response.release(&self.engine);
        }
    }
}

impl ResponseTable {
    fn add(&mut self, response: SuspendedEntry) -> u32 {
        let group = response.group;
        let number = match self.vacant.pop() {
            Some(number) => {
                self.all[number as usize] = Some(response);
                number
            }
            None => {
                self.all.push(Some(response));
                (self.all.len() - 1) as u32
            }
        };
        if QuotaTable::has_grant(group) {
            self.granted.entry(group).or_default().push(number);
        }
        number
    }

    /// Returns the responses of these client groups, or all whose grants can end.
    fn of(&self, parties: Option<Vec<u32>>) -> Vec<u32> {
        match parties {
            Some(parties) => {
                let own = parties.iter().filter_map(|group| self.granted.get(group));
                own.flatten().copied().collect()
            }
            None => self.granted.values().flatten().copied().collect(),
        }
    }

    fn get(&mut self, number: u32) -> Option<&mut SuspendedEntry> {
        self.all.get_mut(number as usize)?.as_mut()
    }

    fn leave(&mut self, number: u32, engine: &Engine) -> Option<SuspendedEntry> {
        let response = self.all.get_mut(number as usize)?.take()?;
        response.release(engine);
        self.ahead.remove(&number);
        if let Some(own) = self.granted.get_mut(&response.group) {
            own.retain(|other| *other != number);
            if own.is_empty() {
                self.granted.remove(&response.group);
            }
        }
        self.vacant.push(number);
        if self.vacant.len() == self.all.len() {
            // Frees the memory of a peak when the table is empty.
            *self = Self::default();
        }
        Some(response)
    }
}

// The size bounds the memory of a suspended poll (docs/measurements/channels.md).
const _: () = assert!(size_of::<Option<SuspendedEntry>>() <= 64);

#[cfg(test)]
mod tests;
