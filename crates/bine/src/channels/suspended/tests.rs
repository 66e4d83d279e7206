//! Tests suspended responses without a server: the messages that a slow client receives later.

use bine_http::{Method, Version};
use bine_store::disk::SimulatedFolder;
use bine_store::{Options, Store};

use super::*;
use crate::channels::{Channels, Retention, Settings};

fn begin() -> (Channels, Store) {
    let channels = Channels::new();
    let options = Options::new().extension(channels.store_extension());
    let disk = SimulatedFolder::new(1, 1 << 30);
    let store = Store::in_folder(Arc::new(disk.process()), options, &mut |_, _| {}).unwrap();
    channels.begin(&store).unwrap();
    let retention = Retention { messages: 3, ..Retention::default() };
    channels.create("a", Settings { retention, ..Settings::default() }).wait().unwrap();
    (channels, store)
}

/// Suspends a stream that begins with the earliest message.
fn suspend(responses: &mut SuspendedResponses, manner: DeliveryMode) -> u32 {
    let spec = SubscriptionSpec { manner, ..SubscriptionSpec::of(Box::new(["a".into()])) };
    let exchange = Exchange {
        method: Method::Get,
        version: Version::Http11,
        keep_alive: true,
        ..Exchange::closing()
    };
    let hold = hold_for(HoldPermit::default(), spec, Start::Earliest, exchange);
    LoopWaiters::park(responses, 1, hold)
}

/// The output of a stream to a client that does not read while eight of nine messages are
/// published, and whether the stream continues.
fn send_after_gap(manner: DeliveryMode) -> (String, bool) {
    let (channels, _store) = begin();
    let clock = Rc::new(Clock::told(0));
    let mut responses =
        SuspendedResponses::new(Arc::clone(channels.engine()), clock, Arc::default());
    channels.publish("a", "message-1").wait().unwrap();
    let key = suspend(&mut responses, manner);
    let mut out = Vec::new();
    assert!(matches!(responses.serve(key, ServeReason::Parked, &mut out), ServeOutcome::Waits(_)));
    assert!(!out.is_empty());
    for number in 2..10 {
        channels.publish("a", format!("message-{number}").as_str()).wait().unwrap();
    }
    out.clear();
    let after = responses.serve(key, ServeReason::Room, &mut out);
    (String::from_utf8(out).unwrap(), matches!(after, ServeOutcome::Waits(_)))
}

#[test]
fn open_stream_reports_messages_that_were_dropped_before_it_was_read() {
    for (manner, notice) in
        [(DeliveryMode::Events, "event: lost\ndata: "), (DeliveryMode::Lines, "{\"lost\":\"")]
    {
        let (sent, continues) = send_after_gap(manner);
        let notice = sent.find(notice).unwrap_or_else(|| panic!("no notice of the gap: {sent}"));
        let next = sent.find("message-7").expect("the oldest message that is left");
        assert!(notice < next && continues, "{sent}");
        assert!(!sent.contains("message-6") && sent.contains("message-9"), "{sent}");
    }
}

#[test]
fn open_stream_without_room_for_a_notice_ends_at_a_gap() {
    for manner in [DeliveryMode::Parts, DeliveryMode::DataEvent, DeliveryMode::Base64Event] {
        let (sent, continues) = send_after_gap(manner);
        // An end of a chunked body, with the closing boundary of parts.
        assert!(!continues && sent.len() < 40 && sent.ends_with("0\r\n\r\n"), "{manner:?}: {sent}");
    }
}

#[test]
fn open_stream_without_a_gap_reports_none() {
    let (channels, _store) = begin();
    let clock = Rc::new(Clock::told(0));
    let mut responses =
        SuspendedResponses::new(Arc::clone(channels.engine()), clock, Arc::default());
    let key = suspend(&mut responses, DeliveryMode::Events);
    let mut out = Vec::new();
    for number in 1..10 {
        channels.publish("a", format!("message-{number}").as_str()).wait().unwrap();
        assert!(matches!(
            responses.serve(key, ServeReason::Room, &mut out),
            ServeOutcome::Waits(_)
        ));
    }
    let sent = String::from_utf8(out).unwrap();
    assert!(sent.contains("message-9") && !sent.contains("lost"), "{sent}");
}
