//! Tests suspended responses without a server: the messages that a slow client receives later.

use bine_http::{Method, Version};
use bine_store::disk::SimulatedFolder;
use bine_store::{Options, Replica, Store};

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
    suspend_at(responses, spec, Start::Earliest)
}

fn suspend_at(responses: &mut SuspendedResponses, spec: SubscriptionSpec, start: Start) -> u32 {
    let exchange = Exchange {
        method: Method::Get,
        version: Version::Http11,
        keep_alive: true,
        ..Exchange::closing()
    };
    let hold = hold_for(HoldPermit::default(), spec, start, exchange);
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

/// One of two nodes that share a stream.
struct SharingNode {
    channels: Channels,
    replica: Replica,
    sent: u64,
}

impl SharingNode {
    fn join(stream: &mut Vec<Vec<u8>>) -> Self {
        let channels = Channels::new();
        let options = Options::new().extension(channels.store_extension());
        let replica = Replica::new(options, || {}).unwrap();
        let (begun, store) = (channels.clone(), replica.store().clone());
        let mut own = Self { channels, replica, sent: 0 };
        own.exchange(stream);
        let beginning = std::thread::spawn(move || begun.begin(&store).unwrap());
        while !beginning.is_finished() {
            own.exchange(stream);
            std::thread::yield_now();
        }
        beginning.join().unwrap();
        own
    }

    /// Sends this node's messages, and receives those of both nodes.
    fn exchange(&mut self, stream: &mut Vec<Vec<u8>>) {
        while let Some((number, message)) = self.replica.unconfirmed_after(self.sent) {
            self.sent = number;
            stream.push(message.to_vec());
        }
        for message in &stream[self.replica.position() as usize..] {
            self.replica.deliver(self.replica.position() + 1, message).unwrap();
        }
    }

    fn publish(&mut self, body: &str, stream: &mut Vec<Vec<u8>>) {
        let pending = self.channels.publish("a", body);
        self.exchange(stream);
        pending.wait().unwrap();
    }
}

/// The output to one connection.
#[derive(Default)]
struct Output(String);

impl WaiterSink for Output {
    fn send(&mut self, _place: u64, bytes: &[u8], _after: ServeOutcome) -> SendOutcome {
        self.0.push_str(str::from_utf8(bytes).unwrap());
        SendOutcome::Taken
    }
}

/// Two nodes. The first one has two messages that the second one has yet to receive; the cursor is
/// after both.
fn nodes_of_which_one_is_behind() -> (SharingNode, SharingNode, Vec<Vec<u8>>, Cursor) {
    let mut stream = Vec::new();
    let mut first = SharingNode::join(&mut stream);
    let creating = first.channels.create("a", Settings::default());
    first.exchange(&mut stream);
    creating.wait().unwrap();
    let second = SharingNode::join(&mut stream);
    for body in ["one", "two"] {
        first.publish(body, &mut stream);
    }
    let cursor = first.channels.engine().hub(|hub| hub.watermark()).unwrap();
    (first, second, stream, cursor)
}

fn responses_of(node: &SharingNode) -> SuspendedResponses {
    SuspendedResponses::new(
        Arc::clone(node.channels.engine()),
        Rc::new(Clock::told(0)),
        Arc::default(),
    )
}

/// Symptom: a client that polled through a load balancer got 410, and began again at another position.
/// Cause: its cursor was from a node that was ahead by a message. The node behind now waits for the
/// message.
#[test]
fn node_that_is_behind_waits_and_sends_only_later_messages() {
    for manner in [DeliveryMode::Poll, DeliveryMode::Events] {
        let (mut first, mut second, mut stream, cursor) = nodes_of_which_one_is_behind();
        let mut responses = responses_of(&second);
        let spec = SubscriptionSpec { manner, ..SubscriptionSpec::of(Box::new(["a".into()])) };
        let key = suspend_at(&mut responses, spec, Start::After(cursor));
        let mut out = Vec::new();
        let parked = responses.serve(key, ServeReason::Parked, &mut out);
        assert!(matches!(parked, ServeOutcome::Waits(_)) && out.is_empty(), "{manner:?}");
        second.exchange(&mut stream);
        let mut output = Output::default();
        responses.deliver(16, &mut output);
        assert_eq!(output.0, "", "{manner:?}");
        // The loop serves the response again.
        let parked = responses.serve(key, ServeReason::Time, &mut out);
        assert!(matches!(parked, ServeOutcome::Waits(_)), "{manner:?}");
        first.publish("three", &mut stream);
        second.exchange(&mut stream);
        responses.deliver(16, &mut output);
        let sent = String::from_utf8(out).unwrap() + &output.0;
        assert!(sent.contains("three"), "{manner:?}: {sent}");
        assert!(!sent.contains("one") && !sent.contains("two"), "{manner:?}: {sent}");
    }
}

#[test]
fn node_that_stays_behind_rejects_the_cursor() {
    let (_first, second, _stream, cursor) = nodes_of_which_one_is_behind();
    let mut responses = responses_of(&second);
    let spec = SubscriptionSpec::of(Box::new(["a".into()]));
    let key = suspend_at(&mut responses, spec, Start::After(cursor));
    let mut out = Vec::new();
    assert!(matches!(responses.serve(key, ServeReason::Parked, &mut out), ServeOutcome::Waits(_)));
    // The time is over.
    *responses.responses.ahead.get_mut(&key).unwrap() = 0;
    let after = responses.serve(key, ServeReason::Time, &mut out);
    let reply = String::from_utf8(out).unwrap();
    assert!(reply.starts_with("HTTP/1.1 410 "), "{reply}");
    assert!(matches!(after, ServeOutcome::Over { close: false }));
    assert!(responses.responses.ahead.is_empty());
}

#[test]
fn node_that_is_behind_answers_a_poll_without_a_wait() {
    let (_first, second, _stream, cursor) = nodes_of_which_one_is_behind();
    let mut responses = responses_of(&second);
    let spec = SubscriptionSpec { wait: 0, ..SubscriptionSpec::of(Box::new(["a".into()])) };
    let key = suspend_at(&mut responses, spec, Start::After(cursor));
    let mut out = Vec::new();
    responses.serve(key, ServeReason::Parked, &mut out);
    let reply = String::from_utf8(out).unwrap();
    assert!(reply.starts_with("HTTP/1.1 204 "), "{reply}");
    assert!(reply.contains(&format!("Cursor: {cursor}\r\n")), "{reply}");
}

#[test]
fn stop_ends_a_stream_that_waits_for_its_node() {
    let (_first, second, _stream, cursor) = nodes_of_which_one_is_behind();
    let mut responses = responses_of(&second);
    let manner = DeliveryMode::Events;
    let spec = SubscriptionSpec { manner, ..SubscriptionSpec::of(Box::new(["a".into()])) };
    let key = suspend_at(&mut responses, spec, Start::After(cursor));
    let mut out = Vec::new();
    assert!(matches!(responses.serve(key, ServeReason::Parked, &mut out), ServeOutcome::Waits(_)));
    let after = responses.serve(key, ServeReason::Stop, &mut out);
    let reply = String::from_utf8(out).unwrap();
    assert!(matches!(after, ServeOutcome::Over { close: true }), "{reply}");
    assert!(reply.contains(&format!("id: {cursor}\n")) && reply.ends_with("0\r\n\r\n"), "{reply}");
}
