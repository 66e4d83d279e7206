//! Decides what waiting costs in memory, counted by the allocator.

use std::sync::Arc;

use bine_push::{
    Content, Crowd, Draft, Holes, Hub, Kind, Limits, Name, Order, Parking, Publish, Ready, Rest,
    Settings, Start, Subscription, Then, Until, View, Wait, Waiters, What,
};

use crate::counting::{calls, held};

const EPOCH: u32 = 1;
const WAITERS: usize = 100_000;
const NOW: u64 = 1_000_000;

/// So many waiters, in ten channels each.
fn crowd(waiters: usize) -> Crowd {
    Crowd { waiters, places: 10 * waiters }
}

fn give(hub: &mut Hub, record: u64, order: Order) {
    let Ok(Ready::Record(prepared)) = hub.prepare(order, NOW) else { panic!("refused") };
    hub.apply(prepared, record).unwrap();
}

/// A hub with so many channels, `0` and on.
fn hub(channels: usize) -> Hub {
    let mut hub = Hub::new(EPOCH, Limits::default());
    for number in 0..channels {
        let name = Name::Given(number.to_string().into());
        let (settings, first) = (Settings::default(), Vec::new());
        give(
            &mut hub,
            number as u64 + 1,
            Order::Create { name, settings, fork: None, first, is_closed: false },
        );
    }
    hub
}

fn parking(hub: &Hub, channels: &[&str]) -> Parking {
    let wanted = Subscription {
        channels,
        start: Start::Now,
        end: Until::Open,
        holes: Holes::Refuse,
        limit: 1,
        bytes: 1,
    };
    let Ok(Rest::Wait(parking)) = hub.read(&wanted, NOW).map(|page| page.rest) else {
        panic!("nothing to wait for")
    };
    parking
}

fn park_all(waiters: &mut Waiters, parkings: &[Parking], kind: Kind) {
    for token in 0..WAITERS {
        // As a crowd that comes over half a minute.
        let until = NOW + 25_000 + token as u64 * 30_000 / WAITERS as u64;
        let wait = Wait { view: View::Json, kind, until };
        waiters.park(token as u64, &parkings[token % parkings.len()], wait).unwrap();
    }
}

fn bytes_of_one(channels: usize, sets: &[Vec<String>]) -> isize {
    let hub = hub(channels);
    let parkings = sets.iter().map(|set| {
        let names: Vec<&str> = set.iter().map(String::as_str).collect();
        parking(&hub, &names)
    });
    let parkings: Vec<Parking> = parkings.collect();
    let before = held();
    let mut waiters = Waiters::new(EPOCH, crowd(WAITERS), hub.ring().position(), NOW);
    park_all(&mut waiters, &parkings, Kind::Poll);
    let bytes = (held() - before) / WAITERS.cast_signed();
    waiters.ring(NOW + 100_000, WAITERS, |_| {});
    assert!(waiters.is_empty());
    drop(waiters);
    assert_eq!(held(), before);
    bytes
}

#[test]
fn a_hundred_thousand_waiters_for_one_channel_take_at_most_ninety_six_bytes_each() {
    let bytes = bytes_of_one(1, &[vec!["0".to_owned()]]);
    println!("{bytes} bytes a waiter");
    assert!(bytes <= 96, "{bytes}");
}

#[test]
fn a_waiter_with_a_channel_of_its_own_or_three_takes_at_most_256_bytes() {
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
fn a_delivery_allocates_nothing_and_a_publication_its_bytes_once_for_each_view() {
    let mut hub = hub(1);
    let parkings = [parking(&hub, &["0"])];
    let mut waiters = Waiters::new(EPOCH, crowd(WAITERS), hub.ring().position(), NOW);
    park_all(&mut waiters, &parkings, Kind::Stream);
    let mut publish = |record, waiters: &mut Waiters| {
        let content = Content { body: Arc::from(&b"hello"[..]), ..Content::default() };
        let messages = vec![Draft { channels: vec!["0".into()], content }];
        give(&mut hub, record, Order::Publish(Publish { messages, ..Publish::default() }));
        waiters.receive(hub.ring());
    };
    // The first one makes the buffers that all others use.
    publish(10, &mut waiters);
    while waiters.advance(256, |_| Then::Stay) {}
    publish(11, &mut waiters);
    let before = calls();
    let mut told = 0;
    let mut last = None;
    while waiters.advance(256, |delivery| {
        let What::Messages { bytes, .. } = delivery.what else { panic!("no message") };
        let address = bytes.as_ptr();
        assert_eq!(*last.get_or_insert(address), address);
        told += 1;
        Then::Stay
    }) {}
    assert_eq!(told, WAITERS);
    assert_eq!(calls() - before, 1);
}
