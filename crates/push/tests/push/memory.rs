//! Tests of the memory that waiters take, as counted by the allocator.

use std::sync::Arc;

use bine_push::{
    AfterDelivery, ChannelName, Command, Content, Draft, EvictReason, GapPolicy, Hub, Limits,
    Payload, Preparation, Publish, Rest, Settings, Start, Subscription, Until, View, WaitKind,
    WaitOptions, WaitPoint, WaiterLimits, Waiters,
};

use crate::allocator::{calls, held};

const EPOCH: u32 = 1;
const WAITERS: usize = 100_000;
const NOW: u64 = 1_000_000;

/// Limits for this number of waiters with ten channels each.
fn waiter_limits(waiters: usize) -> WaiterLimits {
    WaiterLimits { waiters, subscriptions: 10 * waiters }
}

fn submit(hub: &mut Hub, record: u64, command: Command) {
    let Ok(Preparation::Record(prepared)) = hub.prepare(command, NOW) else { panic!("refused") };
    hub.apply(prepared, record).unwrap();
}

/// Creates a hub with this number of channels, named from `0`.
fn hub(channels: usize) -> Hub {
    let mut hub = Hub::new(EPOCH, Limits::default());
    for number in 0..channels {
        let name = ChannelName::Given(number.to_string().into());
        let (settings, first) = (Settings::default(), Vec::new());
        submit(
            &mut hub,
            number as u64 + 1,
            Command::Create { name, settings, fork: None, first, is_closed: false },
        );
    }
    hub
}

fn wait_point(hub: &Hub, channels: &[&str]) -> WaitPoint {
    let subscription = Subscription {
        channels,
        start: Start::Now,
        end: Until::Open,
        gaps: GapPolicy::Reject,
        limit: 1,
        bytes: 1,
    };
    let Ok(Rest::Wait(wait_point)) = hub.read(&subscription, NOW).map(|batch| batch.rest) else {
        panic!("nothing to wait for")
    };
    wait_point
}

fn park_all(waiters: &mut Waiters, wait_points: &[WaitPoint], kind: WaitKind) {
    for token in 0..WAITERS {
        let options = WaitOptions { view: View::Json, kind };
        waiters.park(token as u64, &wait_points[token % wait_points.len()], options).unwrap();
    }
}

fn bytes_of_one(channels: usize, sets: &[Vec<String>]) -> isize {
    let hub = hub(channels);
    let wait_points = sets.iter().map(|set| {
        let names: Vec<&str> = set.iter().map(String::as_str).collect();
        wait_point(&hub, &names)
    });
    let wait_points: Vec<WaitPoint> = wait_points.collect();
    let before = held();
    let mut waiters = Waiters::new(EPOCH, waiter_limits(WAITERS), hub.ring().position());
    park_all(&mut waiters, &wait_points, WaitKind::Poll);
    let bytes = (held() - before) / WAITERS.cast_signed();
    waiters.evict_all(EvictReason::Draining);
    waiters.advance(WAITERS + 1, |_| AfterDelivery::Keep);
    assert!(waiters.is_empty());
    drop(waiters);
    assert_eq!(held(), before);
    bytes
}

#[test]
fn uses_at_most_96_bytes_per_waiter_of_one_channel() {
    let bytes = bytes_of_one(1, &[vec!["0".to_owned()]]);
    println!("{bytes} bytes a waiter");
    assert!(bytes <= 96, "{bytes}");
}

#[test]
fn uses_at_most_256_bytes_per_waiter_of_own_or_three_channels() {
    let own: Vec<Vec<String>> = (0..WAITERS).map(|number| vec![number.to_string()]).collect();
    let bytes = bytes_of_one(WAITERS, &own);
    println!("{bytes} bytes a waiter, each with its own channel");
    assert!(bytes <= 256, "{bytes}");
    let three: Vec<Vec<String>> = (0..1000_usize)
        .map(|number| (0..3).map(|other| ((number + other) % 1000).to_string()).collect())
        .collect();
    let bytes = bytes_of_one(1000, &three);
    println!("{bytes} bytes a waiter in three channels");
    assert!(bytes <= 256, "{bytes}");
}

#[test]
fn encodes_publication_once_per_view_without_allocating_per_delivery() {
    let mut hub = hub(1);
    let wait_points = [wait_point(&hub, &["0"])];
    let mut waiters = Waiters::new(EPOCH, waiter_limits(WAITERS), hub.ring().position());
    park_all(&mut waiters, &wait_points, WaitKind::Stream);
    let mut publish = |record, waiters: &mut Waiters| {
        let content = Content { body: Arc::from(&b"hello"[..]), ..Content::default() };
        let messages = vec![Draft { channels: vec!["0".into()], content }];
        submit(&mut hub, record, Command::Publish(Publish { messages, ..Publish::default() }));
        waiters.receive(hub.ring());
    };
    // The first publication allocates the buffers that later ones reuse.
    publish(10, &mut waiters);
    while waiters.advance(256, |_| AfterDelivery::Keep) {}
    publish(11, &mut waiters);
    let before = calls();
    let mut deliveries = 0;
    let mut last = None;
    while waiters.advance(256, |delivery| {
        let Payload::Messages { bytes, .. } = delivery.payload else { panic!("no message") };
        let address = bytes.as_ptr();
        assert_eq!(*last.get_or_insert(address), address);
        deliveries += 1;
        AfterDelivery::Keep
    }) {}
    assert_eq!(deliveries, WAITERS);
    assert_eq!(calls() - before, 1);
}
