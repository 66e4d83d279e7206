//! Tests that each waiter receives each message exactly once and in order, for all combinations of
//! polls, streams, time limits and views.

use std::sync::Arc;

use bine_push::{
    AfterDelivery, Applied, ChannelName, Command, Content, Cursor, Delivery, Draft, EvictReason,
    GapPolicy, Hub, Limits, Payload, Preparation, Publish, Rest, Sequence, Settings, Start,
    Subscription, Until, View, WaitKind, WaitOptions, WaiterKey, WaiterLimits, Waiters,
    WaitersFull, jitter,
};
use proptest::prelude::*;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const EPOCH: u32 = 0xe90c;

#[derive(Clone, Debug)]
enum Step {
    Publish(Vec<u8>),
    Close(usize),
    Connect {
        channels: u8,
        view: usize,
        is_stream: bool,
    },
    Disconnect(usize),
    /// A wait takes too long: the loop cancels it, and the client asks again.
    TimeOut(usize),
    /// The loop reads events.
    Receive,
    /// The loop delivers to at most this number of waiters.
    Advance(usize),
    SendAway,
}

/// A client of the loop: a browser that polls repeatedly, or one stream.
struct Client {
    channels: Vec<&'static str>,
    start: Cursor,
    cursor: Cursor,
    received: Vec<Cursor>,
    view: usize,
    is_stream: bool,
    parked: Option<WaiterKey>,
    is_disconnected: bool,
}

struct Server {
    hub: Hub,
    waiters: Waiters,
    clients: Vec<Client>,
    now: u64,
    record: u64,
    published: Vec<(u8, Sequence)>,
}

/// Views that include each message's cursor.
const VIEWS: [View; 4] = [View::Json, View::Ndjson, View::Sse, View::Multipart];

fn chosen(bits: u8) -> Vec<&'static str> {
    (0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| NAMES[bit]).collect()
}

/// Returns the cursors in encoded messages.
fn cursors(bytes: &[u8]) -> Vec<Cursor> {
    let text = std::str::from_utf8(bytes).unwrap();
    let prefix = format!("{EPOCH:08x}_");
    text.match_indices(&prefix).map(|(at, _)| text[at..at + 25].parse().unwrap()).collect()
}

/// Limits for this number of waiters with ten channels each.
fn waiter_limits(waiters: usize) -> WaiterLimits {
    WaiterLimits { waiters, subscriptions: 10 * waiters }
}

impl Server {
    fn new(ring: usize) -> Self {
        let now = 1_000_000;
        let hub = Hub::new(EPOCH, Limits { ring, ..Limits::default() });
        let waiters = Waiters::new(EPOCH, waiter_limits(1000), hub.ring().position());
        let (clients, published) = (Vec::new(), Vec::new());
        let mut server = Self { hub, waiters, clients, now, record: 0, published };
        for name in NAMES {
            let name = ChannelName::Given(name.into());
            let (settings, first) = (Settings::default(), Vec::new());
            server.submit(Command::Create { name, settings, fork: None, first, is_closed: false });
        }
        server
    }

    fn submit(&mut self, command: Command) -> Option<Applied> {
        let Ok(Preparation::Record(prepared)) = self.hub.prepare(command, self.now) else {
            return None;
        };
        self.record += 1;
        self.hub.apply(prepared, self.record).ok()
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Publish(all) => {
                let drafts = all.iter().map(|bits| Draft {
                    channels: chosen(*bits).into_iter().map(Arc::from).collect(),
                    content: Content { body: b"x".as_slice().into(), ..Content::default() },
                });
                let publish = Publish { messages: drafts.collect(), ..Publish::default() };
                if self.submit(Command::Publish(publish)).is_some() {
                    for (place, bits) in (0..).zip(all) {
                        let sequence = Sequence::from_number(self.record << 10 | place);
                        self.published.push((*bits, sequence));
                    }
                }
            }
            Step::Close(name) => {
                let close = vec![Arc::from(NAMES[*name])];
                self.submit(Command::Publish(Publish { close, ..Publish::default() }));
            }
            Step::Connect { channels, view, is_stream } => {
                let start = self.hub.watermark();
                self.clients.push(Client {
                    channels: chosen(*channels),
                    start,
                    cursor: start,
                    received: Vec::new(),
                    view: *view,
                    is_stream: *is_stream,
                    parked: None,
                    is_disconnected: false,
                });
                self.read(self.clients.len() - 1);
            }
            Step::Disconnect(client) => {
                let count = self.clients.len().max(1);
                if let Some(client) = self.clients.get_mut(client % count) {
                    let was_parked = client.parked.take().map(|key| self.waiters.cancel(key));
                    assert_ne!(was_parked, Some(false));
                    client.is_disconnected = true;
                }
            }
            Step::TimeOut(client) => {
                let index = client % self.clients.len().max(1);
                let parked = self.clients.get_mut(index).and_then(|client| client.parked.take());
                if let Some(key) = parked {
                    assert!(self.waiters.cancel(key));
                    self.read(index);
                }
            }
            Step::Receive => self.waiters.receive(self.hub.ring()),
            Step::Advance(max) => {
                self.advance(*max);
            }
            Step::SendAway => self.waiters.evict_all(EvictReason::Draining),
        }
    }

    /// Reads all messages and waits for more, as a poll or a new stream does.
    fn read(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.channels.is_empty() || client.is_disconnected {
            return;
        }
        loop {
            let batch = self.hub.read(
                &Subscription {
                    channels: &client.channels,
                    start: Start::After(client.cursor),
                    end: Until::Open,
                    gaps: GapPolicy::Reject,
                    limit: 2,
                    bytes: usize::MAX,
                },
                self.now,
            );
            let batch = batch.unwrap();
            let sequences = batch.messages.iter().map(|message| message.sequence);
            client.received.extend(sequences.map(|sequence| Cursor { epoch: EPOCH, sequence }));
            client.cursor = batch.next;
            match batch.rest {
                Rest::More => {}
                Rest::Ended | Rest::Closed => return,
                Rest::Wait(wait_point) => {
                    // Each wait uses the next view.
                    client.view += 1;
                    let options = WaitOptions {
                        view: VIEWS[client.view % VIEWS.len()],
                        kind: if client.is_stream { WaitKind::Stream } else { WaitKind::Poll },
                    };
                    client.cursor = wait_point.cursor();
                    client.parked =
                        Some(self.waiters.park(index as u64, &wait_point, options).unwrap());
                    return;
                }
            }
        }
    }

    fn advance(&mut self, max: usize) -> bool {
        let Self { waiters, clients, .. } = self;
        let mut removed = Vec::new();
        let mut deliveries = 0;
        let is_more = waiters.advance(max, |delivery: Delivery<'_>| {
            deliveries += 1;
            let client = &mut clients[delivery.token as usize];
            assert_eq!(client.parked, Some(delivery.key));
            assert!(delivery.cursor >= client.cursor);
            client.cursor = delivery.cursor;
            let is_removed = match delivery.payload {
                Payload::Messages { bytes, .. } => {
                    client.received.extend(cursors(bytes));
                    assert_eq!(client.received.last(), Some(&delivery.cursor));
                    !client.is_stream
                }
                Payload::Ended { is_removed, .. } => is_removed,
                Payload::Evicted(_) => true,
            };
            if is_removed {
                client.parked = None;
                removed.push(delivery.token as usize);
            }
            AfterDelivery::Keep
        });
        assert!(deliveries <= max);
        for client in removed {
            self.read(client);
        }
        is_more
    }

    /// Runs the loop until it is idle, then checks what every client received.
    fn settle(&mut self) {
        loop {
            self.waiters.receive(self.hub.ring());
            let is_more = self.advance(7);
            if !is_more && !self.waiters.is_behind(self.hub.ring()) {
                break;
            }
        }
        for client in self.clients.iter().filter(|client| !client.is_disconnected) {
            let is_expected =
                |bits: &u8| chosen(*bits).iter().any(|name| client.channels.contains(name));
            let expected = self
                .published
                .iter()
                .filter(|(bits, sequence)| is_expected(bits) && *sequence > client.start.sequence);
            let expected: Vec<Cursor> = expected
                .map(|(_, sequence)| Cursor { epoch: EPOCH, sequence: *sequence })
                .collect();
            assert_eq!(client.received, expected);
        }
        let parked = self.clients.iter().filter(|client| client.parked.is_some()).count();
        assert_eq!(self.waiters.len(), parked);
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(1_u8..16, 1..4).prop_map(Step::Publish),
        1 => (0_usize..40).prop_map(|name| Step::Close(name.min(3))),
        6 => (1_u8..16, 0_usize..4, any::<bool>())
            .prop_map(|(channels, view, is_stream)| Step::Connect { channels, view, is_stream }),
        2 => (0_usize..100).prop_map(Step::Disconnect),
        3 => (0_usize..100).prop_map(Step::TimeOut),
        6 => Just(Step::Receive),
        8 => (0_usize..6).prop_map(Step::Advance),
        1 => Just(Step::SendAway),
    ]
}

/// Parks one waiter that follows channels from now on.
fn park(server: &mut Server, channels: &[&str], kind: WaitKind, end: Until) -> WaiterKey {
    let (start, gaps) = (Start::Now, GapPolicy::Reject);
    let subscription = Subscription { channels, start, end, gaps, limit: 1, bytes: 1 };
    let batch = server.hub.read(&subscription, server.now).unwrap();
    let Rest::Wait(wait_point) = batch.rest else { panic!("nothing to wait for") };
    server.waiters.park(9, &wait_point, WaitOptions { view: View::Raw, kind }).unwrap()
}

/// Returns the deliveries of one turn of the loop as text.
fn deliver(server: &mut Server, after: AfterDelivery) -> Vec<String> {
    let mut deliveries = Vec::new();
    server.waiters.receive(server.hub.ring());
    server.waiters.advance(100, |delivery| {
        deliveries.push(match delivery.payload {
            Payload::Messages { bytes, is_final } => {
                format!("{} {is_final}", std::str::from_utf8(bytes).unwrap())
            }
            Payload::Ended { reason, is_removed, .. } => format!("{reason:?} {is_removed}"),
            Payload::Evicted(reason) => format!("{reason:?}"),
        });
        after
    });
    deliveries
}

fn publish(server: &mut Server, channels: &[&str], close: &[&str]) {
    let draft = |body: &str| Draft {
        channels: channels.iter().map(|name| Arc::from(*name)).collect(),
        content: Content { body: body.as_bytes().into(), ..Content::default() },
    };
    let messages = if channels.is_empty() { Vec::new() } else { vec![draft("x"), draft("y")] };
    let close = close.iter().map(|name| Arc::from(*name)).collect();
    server.submit(Command::Publish(Publish { messages, close, ..Publish::default() })).unwrap();
}

#[test]
fn delivers_whole_publication_to_poll_and_removes_it() {
    let mut server = Server::new(100);
    park(&mut server, &["a", "b"], WaitKind::Poll, Until::Open);
    publish(&mut server, &["b", "c"], &[]);
    publish(&mut server, &["a"], &[]);
    assert_eq!(deliver(&mut server, AfterDelivery::Keep), ["xy false"]);
    assert!(server.waiters.is_empty());
}

#[test]
fn removes_stream_that_cannot_be_sent_to() {
    let mut server = Server::new(100);
    let key = park(&mut server, &["a"], WaitKind::Stream, Until::Open);
    assert!(!server.waiters.is_empty());
    publish(&mut server, &["a"], &[]);
    publish(&mut server, &["a"], &[]);
    assert_eq!(deliver(&mut server, AfterDelivery::Remove), ["xy false"]);
    assert!(!server.waiters.cancel(key));
}

#[test]
fn ends_stream_with_last_channel_and_poll_with_first() {
    let mut server = Server::new(100);
    park(&mut server, &["a", "b"], WaitKind::Stream, Until::Open);
    publish(&mut server, &["a"], &["a"]);
    assert_eq!(deliver(&mut server, AfterDelivery::Keep), ["xy true", "Closed false"]);
    park(&mut server, &["b", "c"], WaitKind::Poll, Until::Open);
    server.submit(Command::Remove("b".into())).unwrap();
    assert_eq!(deliver(&mut server, AfterDelivery::Keep), ["Removed true", "Removed true"]);
    assert!(server.waiters.is_empty());
}

#[test]
fn skips_messages_published_at_or_after_subscription_end() {
    let mut server = Server::new(100);
    let end = server.now + 100;
    park(&mut server, &["a"], WaitKind::Poll, Until::Time(end));
    let watermark = server.hub.watermark();
    server.now = end;
    publish(&mut server, &["a"], &[]);
    assert!(deliver(&mut server, AfterDelivery::Keep).is_empty());
    // A client that continues from its cursor receives them.
    server.waiters.evict_all(EvictReason::Draining);
    let mut evicted = Vec::new();
    server.waiters.advance(100, |delivery| {
        evicted.push(delivery.cursor);
        AfterDelivery::Keep
    });
    assert_eq!(evicted, [watermark]);
}

#[test]
fn delivers_messages_published_before_subscription_end() {
    let mut server = Server::new(100);
    let end = server.now + 100;
    park(&mut server, &["a"], WaitKind::Poll, Until::Time(end));
    server.now = end - 1;
    publish(&mut server, &["a"], &[]);
    assert_eq!(deliver(&mut server, AfterDelivery::Keep), ["xy false"]);
}

#[test]
fn rejects_waiters_over_limits() {
    let mut server = Server::new(100);
    server.waiters = Waiters::new(EPOCH, waiter_limits(1), server.hub.ring().position());
    let key = park(&mut server, &["a"], WaitKind::Poll, Until::Open);
    let subscription = Subscription {
        channels: &["a"],
        start: Start::Now,
        end: Until::Open,
        gaps: GapPolicy::Reject,
        limit: 1,
        bytes: 1,
    };
    let Rest::Wait(wait_point) = server.hub.read(&subscription, server.now).unwrap().rest else {
        panic!()
    };
    let options = WaitOptions { view: View::Raw, kind: WaitKind::Poll };
    let full = server.waiters.park(1, &wait_point, options).unwrap_err();
    let text = "too many clients are waiting; retry later, or follow fewer channels at once";
    assert_eq!(full.to_string(), text);
    assert!(server.waiters.cancel(key));
    assert!(server.waiters.park(1, &wait_point, options).is_ok());
    // A waiter of several channels counts once for each.
    let limits = WaiterLimits { waiters: 10, subscriptions: 3 };
    server.waiters = Waiters::new(EPOCH, limits, server.hub.ring().position());
    let key = park(&mut server, &["a", "b", "c"], WaitKind::Poll, Until::Open);
    assert_eq!(server.waiters.park(1, &wait_point, options), Err(WaitersFull));
    assert!(server.waiters.cancel(key));
    let key = server.waiters.park(1, &wait_point, options).unwrap();
    assert!(server.waiters.cancel(key));
    park(&mut server, &["a", "b", "c"], WaitKind::Poll, Until::Open);
}

/// A connection may cancel its waiter after the waiter was removed and its slot used again.
#[test]
fn ignores_key_of_removed_waiter() {
    let mut server = Server::new(100);
    let follow = |server: &mut Server| park(server, &["a"], WaitKind::Stream, Until::Open);
    let old = follow(&mut server);
    let other = follow(&mut server);
    assert!(server.waiters.cancel(old) && !server.waiters.cancel(old));
    assert_eq!(server.waiters.len(), 1);
    let new = follow(&mut server);
    assert!(!server.waiters.cancel(old));
    publish(&mut server, &["a"], &[]);
    assert_eq!(deliver(&mut server, AfterDelivery::Keep), ["xy false", "xy false"]);
    assert!(server.waiters.cancel(new) && server.waiters.cancel(other));
    assert!(server.waiters.is_empty());
}

#[test]
fn jitters_waits_by_a_tenth() {
    assert_eq!(jitter(25_000, 0), 22_500);
    assert_eq!(jitter(25_000, u32::MAX), 27_499);
    assert_eq!(jitter(0, u32::MAX), 0);
}

proptest! {
    #[test]
    fn delivers_each_message_exactly_once_in_order(
        steps in prop::collection::vec(step(), 1..80),
        ring in prop_oneof![Just(3_usize), Just(1000)],
    ) {
        let mut server = Server::new(ring);
        for step in &steps {
            server.step(step);
        }
        server.settle();
    }
}

/// The ring does not keep dropped messages for waiters that lag. Those waiters read from the hub
/// and detect the gap; other waiters are not affected.
#[test]
fn evicts_waiters_that_missed_dropped_messages() {
    let mut server = Server::new(1000);
    let retention = bine_push::Retention { messages: 1, ..bine_push::Retention::default() };
    let (name, settings) =
        (ChannelName::Given("short".into()), Settings { retention, ..Settings::default() });
    server.submit(Command::Create { name, settings, fork: None, first: vec![], is_closed: false });
    let start = server.hub.watermark();
    for (token, channels) in [&["short"][..], &["a"], &["a", "short"]].into_iter().enumerate() {
        let subscription = Subscription {
            channels,
            start: Start::Now,
            end: Until::Open,
            gaps: GapPolicy::Reject,
            limit: 10,
            bytes: usize::MAX,
        };
        let Ok(Rest::Wait(wait_point)) =
            server.hub.read(&subscription, server.now).map(|batch| batch.rest)
        else {
            panic!("nothing to wait for")
        };
        let options = WaitOptions { view: View::Ndjson, kind: WaitKind::Stream };
        server.waiters.park(token as u64, &wait_point, options).unwrap();
    }
    let mut publish = |channel: &str| {
        let content = Content { body: b"x".as_slice().into(), ..Content::default() };
        let messages = vec![Draft { channels: vec![channel.into()], content }];
        server.submit(Command::Publish(Publish { messages, ..Publish::default() })).unwrap();
    };
    publish("a");
    publish("short");
    publish("short");
    let mut deliveries = Vec::new();
    server.waiters.receive(server.hub.ring());
    while server.waiters.advance(1, |delivery| {
        deliveries.push(match delivery.payload {
            Payload::Messages { bytes, .. } => (delivery.token, cursors(bytes).len(), None),
            Payload::Evicted(reason) => {
                (delivery.token, 0, Some((reason, delivery.cursor > start)))
            }
            Payload::Ended { .. } => panic!("nothing has ended"),
        });
        AfterDelivery::Keep
    }) {}
    deliveries.sort_by_key(|(token, ..)| *token);
    let behind = |has_moved| Some((EvictReason::Lagged, has_moved));
    assert_eq!(
        deliveries,
        [(0, 0, behind(true)), (1, 1, None), (2, 1, None), (2, 0, behind(true))]
    );
    assert_eq!(server.waiters.len(), 1);
}
