//! Suspended responses: events, fan-outs in slices, panics of the program and stops.

use std::cell::{Cell, RefCell};

use super::*;
use crate::handler::{
    SendOutcome, ServeOutcome, ServeReason, SuspendedResponse, WaiterSink, Waiters,
};
use crate::settings::Guards;

thread_local! {
    static NEWS: RefCell<News> = RefCell::new(News::default());
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// The state of the waiters of a test.
#[derive(Default)]
struct News {
    /// The connections that still need the event.
    due: Vec<u64>,
    outcomes: Vec<SendOutcome>,
    slices: Vec<usize>,
    reasons: Vec<ServeReason>,
    forgotten: Vec<u32>,
}

struct TestWaiters;

impl Waiters for TestWaiters {
    fn park(&mut self, place: u64, _hold: SuspendedResponse) -> u32 {
        NEWS.with_borrow_mut(|news| news.due.push(place));
        Token::from_bits(place).index
    }

    fn serve(&mut self, _key: u32, why: ServeReason, out: &mut Vec<u8>) -> ServeOutcome {
        NEWS.with_borrow_mut(|news| news.reasons.push(why));
        match why {
            ServeReason::Parked | ServeReason::Room => ServeOutcome::Waits(seconds(60)),
            _ => {
                out.extend_from_slice(REPLY);
                ServeOutcome::Over { close: why == ServeReason::Stop }
            }
        }
    }

    fn deliver(&mut self, slice: usize, out: &mut dyn WaiterSink) -> bool {
        NEWS.with_borrow_mut(|news| news.slices.push(slice));
        if PANICS.get() > 0 {
            PANICS.set(PANICS.get() - 1);
            resume_unwind(Box::new("a waiter's fault"));
        }
        let mut due = NEWS.with_borrow_mut(|news| std::mem::take(&mut news.due));
        let rest = due.split_off(slice.min(due.len()));
        for place in due {
            let outcome = out.send(place, REPLY, ServeOutcome::Over { close: false });
            NEWS.with_borrow_mut(|news| news.outcomes.push(outcome));
        }
        let has_more = !rest.is_empty();
        NEWS.with_borrow_mut(|news| news.due = rest);
        has_more
    }

    fn forget(&mut self, key: u32) {
        NEWS.with_borrow_mut(|news| news.forgotten.push(key));
    }
}

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnews";

struct Suspending;

impl Handler for Suspending {
    fn local(&self, _context: HandlerContext) -> Box<dyn Responder> {
        Box::new(Self)
    }
}

impl Responder for Suspending {
    fn identify(&mut self, _head: &bine_http::Head<'_>, _peer: ClientAddress) -> Identity {
        Identity::Anonymous
    }

    fn respond(&mut self, request: &Incoming<'_>, _out: &mut Outgoing<'_>) -> Answer {
        let exchange = request.exchange;
        let subject = Arc::new(());
        Answer::Suspend(SuspendedResponse { subject, position: 0, detail: 0, manner: 0, exchange })
    }

    fn last(&self) -> &'static str {
        "suspending"
    }
}

fn fixture() -> Fixture {
    fixture_with(Guards::OFF)
}

fn fixture_with(guards: Guards) -> Fixture {
    NEWS.take();
    Fixture::with(Placement::SameThread, Settings::default(), |server| {
        server.set_waiters(Box::new(|_clock, _bell| Box::new(TestWaiters)));
        let listeners = server.generation().settings.listeners.clone();
        let settings = Settings { listeners, guards, ..Settings::default() };
        server.replace(settings, Arc::new(Suspending), None).unwrap();
    })
}

fn suspend(fixture: &mut Fixture, count: usize) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..count).map(|_| fixture.connect()).collect();
    for client in &mut clients {
        client.get("/");
    }
    fixture.turn();
    assert!(clients.iter().all(|client| fixture.connection(client).phase == Phase::Held));
    clients
}

fn outcomes() -> Vec<SendOutcome> {
    NEWS.with_borrow_mut(|news| std::mem::take(&mut news.outcomes))
}

#[test]
fn sends_an_event_to_a_slice_of_16_in_each_turn() {
    let mut fixture = fixture();
    let mut clients = suspend(&mut fixture, 20);
    fixture.event_loop.has_deliveries = true;
    fixture.turn();
    assert_eq!(outcomes(), [SendOutcome::Taken; 16]);
    assert!(fixture.event_loop.has_deliveries);
    fixture.turn();
    assert_eq!(outcomes(), [SendOutcome::Taken; 4]);
    assert!(!fixture.event_loop.has_deliveries);
    assert!(clients.iter_mut().all(|client| client.replies() == "200 news"));
    fixture.turn();
    assert_eq!(NEWS.with_borrow(|news| news.slices.len()), 2);
    assert_eq!(fixture.server.metrics().replies[1], 20);
}

#[test]
fn reports_connections_that_take_no_events() {
    let mut fixture = fixture();
    let mut clients = suspend(&mut fixture, 4);
    // One has closed, one is no longer suspended, and one sends an earlier event.
    drop(clients.remove(0));
    fixture.turn();
    assert_eq!(NEWS.with_borrow(|news| news.forgotten.len()), 1);
    fixture.connection(&clients[0]).hold = NO_HOLD;
    fixture.connection(&clients[1]).phase = Phase::Writing;
    fixture.event_loop.has_deliveries = true;
    fixture.turn();
    let (gone, full, taken) = (SendOutcome::Gone, SendOutcome::Full, SendOutcome::Taken);
    assert_eq!(outcomes(), [gone, gone, full, taken]);
    fixture.connection(&clients[0]).phase = Phase::Idle;
}

/// A fan-out that panics is repeated, but not for ever.
#[test]
fn repeats_a_fan_out_after_a_panic_eight_times_at_most() {
    let mut fixture = fixture();
    let _clients = suspend(&mut fixture, 1);
    let messages = log::test_support::capture();
    PANICS.set(100);
    fixture.event_loop.has_deliveries = true;
    for failed in 1..=8 {
        fixture.turn();
        assert_eq!(fixture.event_loop.failed_fan_outs, failed);
        assert_eq!(fixture.event_loop.has_deliveries, failed < 8);
    }
    // The next event counts on.
    fixture.event_loop.has_deliveries = true;
    fixture.turn();
    assert_eq!((fixture.event_loop.failed_fan_outs, fixture.event_loop.has_deliveries), (9, false));
    PANICS.set(0);
    fixture.event_loop.has_deliveries = true;
    fixture.turn();
    assert_eq!((fixture.event_loop.failed_fan_outs, outcomes()), (0, vec![SendOutcome::Taken]));
    assert_eq!(messages.end().len(), 9);
}

#[test]
fn ends_suspended_responses_at_their_time_for_a_close_and_at_a_stop() {
    let mut fixture = fixture();
    let mut clients = suspend(&mut fixture, 3);
    fixture.pass(seconds(59));
    assert!(clients[0].received().is_empty());
    // The next request waits for the current one.
    clients[0].get("/");
    fixture.turn();
    assert!(fixture.connection(&clients[0]).has_input);
    clients[2].stream.shutdown(std::net::Shutdown::Write).unwrap();
    fixture.turn();
    assert!(!fixture.is_open(&clients[2]));
    fixture.server.stop();
    fixture.turn();
    let delays: Vec<Duration> = clients[..2].iter().map(|client| fixture.left(client)).collect();
    let expected = clients[..2]
        .iter()
        .map(|client| fan_out::stop_delay(client.token, Timeouts::default().drain).min(seconds(1)));
    assert_eq!(delays, expected.collect::<Vec<_>>());
    fixture.pass(seconds(1));
    assert_eq!(clients[1].replies(), "200 news");
    let reasons = NEWS.with_borrow(|news| news.reasons[3..].to_vec());
    assert!(reasons.contains(&ServeReason::Stop), "{reasons:?}");
}

/// A suspended connection that runs again asks its waiter for more, and stays suspended.
#[test]
fn continues_a_suspended_response_in_its_turn() {
    let mut fixture = fixture();
    let clients = suspend(&mut fixture, 1);
    fixture.connection(&clients[0]).wants_turn = true;
    fixture.event_loop.ready.push(clients[0].token);
    fixture.turn();
    let reasons = NEWS.with_borrow(|news| news.reasons.clone());
    assert_eq!(reasons, [ServeReason::Parked, ServeReason::Room]);
    assert_eq!(fixture.connection(&clients[0]).phase, Phase::Held);
}

/// A suspended response costs little memory: the guard rejects other requests only.
#[test]
fn suspends_responses_while_memory_is_short() {
    let guards = Guards { memory: Some(1), memory_refuses: Some(50), ..Guards::OFF };
    let mut fixture = fixture_with(guards);
    let messages = log::test_support::capture();
    fixture.event_loop.may_accept();
    assert!(fixture.server.guard.refuses());
    suspend(&mut fixture, 1);
    assert_eq!(fixture.server.guards().strangers, 0);
    drop(messages);
}

#[test]
fn rings_for_events_of_the_program() {
    let mut fixture = fixture();
    let mut clients = suspend(&mut fixture, 1);
    fixture.server.loops[0].mailbox.wakeup().ring();
    fixture.turn();
    assert_eq!((outcomes().len(), clients[0].replies()), (1, "200 news".to_owned()));
}
