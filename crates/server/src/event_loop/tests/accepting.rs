//! Accepting: slices, pauses, limits, other loops and new settings.

use std::net::TcpStream;

use bine_admission::AdmissionSettings;

use super::*;
use crate::address::Address;
use crate::event_loop::accept::LoopAcceptor;
use crate::settings::Guards;
use crate::tls::test_support::{self, TlsPair};

const PAUSE: Duration = Duration::from_millis(100);

impl Fixture {
    /// Connects over TCP: the connections are pending in the kernel.
    fn pend(&self, count: usize) -> Vec<TcpStream> {
        let Some(Address::Tcp(address)) = self.server.addresses().next() else { panic!() };
        (0..count).map(|_| TcpStream::connect(address).unwrap()).collect()
    }

    fn resumes_in(&self) -> Option<Duration> {
        let now = self.event_loop.context.clock.now();
        self.event_loop.acceptor.resumes_at().map(|moment| moment.since(now))
    }
}

#[test]
fn accepts_a_slice_of_16_connections_at_once() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let _clients = fixture.pend(20);
    let accept = |fixture: &mut Fixture| {
        let LoopAcceptor { has_backlog, .. } = &mut fixture.event_loop.acceptor;
        *has_backlog = false;
        fixture.event_loop.accept(0);
        (fixture.event_loop.load(), fixture.event_loop.acceptor.has_backlog)
    };
    assert_eq!(accept(&mut fixture), (16, true));
    assert_eq!(accept(&mut fixture), (20, false));
    // No listener has this number.
    fixture.event_loop.accept(1);
    assert_eq!(fixture.server.metrics().loops[0].connections, 20);
}

/// Without a pause, the handshakes of a crowd would evict each other.
#[test]
fn leaves_connections_to_the_kernel_while_many_handshakes_wait() {
    let tls = Some(Arc::new(test_support::tls()));
    let settings = Settings { loops: 1, handshakes: 240, tls, ..Settings::default() };
    let mut fixture = Fixture::new(Placement::SameThread, settings);
    let hello = TlsPair::new(test_support::tls(), &[]).encrypted();
    let mut clients = fixture.pend(200);
    for client in &mut clients {
        client.write_all(&hello).unwrap();
    }
    let (mut most, mut turns) = (0, 0);
    while fixture.server.handshakes().full < 200 {
        fixture.turn();
        turns += 1;
        let metrics = fixture.server.handshakes();
        most = metrics.waiting.max(most);
        let refused = fixture.server.metrics().refused[0].1;
        assert!(turns <= 200 && refused == 0 && metrics.evicted == 0, "{metrics:?}");
    }
    // Half of 240, and a slice of connections.
    assert!((120..=136).contains(&most), "{most}");
}

#[test]
fn pauses_at_the_limit_of_connections() {
    let settings = Settings { connections: Some(2), ..Settings::default() };
    let mut fixture = Fixture::new(Placement::SameThread, settings);
    let mut clients = fixture.pend(3);
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (2, Some(PAUSE)));
    fixture.turn();
    assert_eq!(fixture.event_loop.load(), 2, "it does not listen");
    fixture.pass(PAUSE.saturating_sub(MOMENT));
    assert_eq!(fixture.resumes_in(), Some(MOMENT));
    fixture.pass(MOMENT);
    assert_eq!(fixture.resumes_in(), Some(PAUSE), "it is still full");
    drop(clients.remove(0));
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (1, None), "one has closed");
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (2, Some(PAUSE)));
}

/// Each time it is full, the server looks at all connections.
#[test]
fn resumes_before_the_pause_ends_when_a_64th_of_the_connections_has_closed() {
    let (connections, connections_local) = (Some(128), Some(128));
    let settings = Settings { connections, connections_local, loops: 1, ..Settings::default() };
    let mut fixture = Fixture::new(Placement::SameThread, settings);
    let mut clients = fixture.pend(130);
    while fixture.resumes_in().is_none() {
        fixture.turn();
    }
    assert_eq!(fixture.event_loop.load(), 128);
    drop(clients.remove(0));
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (127, Some(PAUSE)));
    drop(clients.remove(0));
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (126, None));
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (128, Some(PAUSE)));
    // With room for one connection it resumes at the end of the pause.
    drop(clients.remove(0));
    fixture.turn();
    fixture.pass(PAUSE);
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (127, None));
}

/// The pause of a process that was frozen for weeks is over.
#[test]
fn resumes_after_weeks() {
    let settings = Settings { connections: Some(1), ..Settings::default() };
    let mut fixture = Fixture::new(Placement::SameThread, settings);
    let _clients = fixture.pend(2);
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (1, Some(PAUSE)));
    fixture.event_loop.context.clock.advance(Duration::from_hours(40 * 24));
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (0, None));
    fixture.turn();
    assert_eq!(fixture.event_loop.load(), 1);
}

#[test]
fn pauses_while_tasks_wait_too_long_for_a_worker() {
    let guards = Guards { back_pressure: true, ..Guards::OFF };
    let off = AdmissionSettings { is_on: false, ..AdmissionSettings::default() };
    let settings = Settings { guards: guards.clone(), admission: off, ..Settings::default() };
    let mut fixture = Fixture::new(Placement::SameThread, settings);
    let messages = log::test_support::capture();
    fixture.scheduler.is_overloaded.store(true, Ordering::Relaxed);
    let _clients = fixture.pend(1);
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (0, Some(PAUSE)));
    assert!(fixture.server.guards().is_queue_over);
    fixture.scheduler.is_overloaded.store(false, Ordering::Relaxed);
    fixture.pass(PAUSE);
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.resumes_in()), (1, None));
    assert_eq!(messages.end().len(), 2);
    // Without this guard, or with admission of sessions, it accepts.
    let pressed = Settings { guards, ..Settings::default() };
    let off = AdmissionSettings { is_on: false, ..AdmissionSettings::default() };
    let unguarded = Settings { guards: Guards::OFF, admission: off, ..Settings::default() };
    for settings in [pressed, unguarded] {
        let mut fixture = Fixture::new(Placement::SameThread, settings);
        fixture.scheduler.is_overloaded.store(true, Ordering::Relaxed);
        let _clients = fixture.pend(1);
        fixture.turn();
        assert_eq!(fixture.event_loop.load(), 1);
    }
}

#[test]
fn refuses_connections_beyond_the_limit_of_an_address_and_without_memory() {
    let settings = Settings { connections_local: Some(1), ..Settings::default() };
    let mut fixture = Fixture::new(Placement::SameThread, settings);
    let mut clients = fixture.pend(2);
    fixture.turn();
    assert_eq!(fixture.event_loop.load(), 1);
    let mut text = String::new();
    clients.remove(1).read_to_string(&mut text).unwrap();
    assert!(text.ends_with("Too many connections from your address\n"), "{text}");
    let guards = Guards { memory: Some(1), memory_refuses: Some(50), ..Guards::OFF };
    let settings = Settings { guards, ..Settings::default() };
    let mut fixture = Fixture::new(Placement::SameThread, settings);
    let _messages = log::test_support::capture();
    let mut clients = fixture.pend(1);
    fixture.turn();
    let mut text = String::new();
    clients.remove(0).read_to_string(&mut text).unwrap();
    assert!(text.ends_with("the server is busy; try again in a moment\n"), "{text}");
    assert_eq!((fixture.event_loop.load(), fixture.server.guards().newcomers), (0, 1));
}

/// A loop keeps 5/4 of the mean and 8 more, and gives further connections to the loop with the
/// fewest.
#[test]
fn hands_connections_to_the_loop_with_the_fewest() {
    let settings = Settings { loops: 3, ..Settings::default() };
    let mut fixture = Fixture::new(Placement::SameThread, settings);
    fixture.server.loops[1].connections.store(4, Ordering::Relaxed);
    fixture.server.loops[2].connections.store(3, Ordering::Relaxed);
    // With n of its own the mean is (n + 7) / 3.
    let mut own = 0;
    let _clients: Vec<TcpStream> = (0..40)
        .flat_map(|_| {
            let client = fixture.pend(1);
            fixture.turn();
            own = own.max(fixture.event_loop.load());
            client
        })
        .collect();
    let counts: Vec<usize> =
        fixture.server.loops.iter().map(|each| each.connections.load(Ordering::Relaxed)).collect();
    assert_eq!(counts.iter().sum::<usize>(), 47);
    assert!(counts[1].abs_diff(counts[2]) <= 1, "{counts:?}");
    let mean = 47 / 3;
    assert!(counts[0] > mean && counts[0] <= mean + mean / 4 + 8 + 1, "{counts:?}");
    // Each is in the mailbox of the other loop.
    let mut letters = Vec::new();
    for each in &fixture.server.loops[1..] {
        each.mailbox.take(&mut letters);
    }
    assert_eq!(letters.len(), counts[1] + counts[2] - 7);
    assert!(letters.iter().all(|letter| matches!(letter, Letter::Adopt(..))));
}

#[test]
fn keeps_its_connections_up_to_the_exact_bound() {
    let settings = Settings { loops: 2, ..Settings::default() };
    let mut fixture = Fixture::new(Placement::SameThread, settings);
    let accept_one = |fixture: &mut Fixture| {
        let client = fixture.pend(1);
        fixture.turn();
        client
    };
    // With 20 of its own and none of the other, the mean is 10: it keeps up to 10 + 2 + 8.
    let _clients: Vec<_> = (0..21).map(|_| accept_one(&mut fixture)).collect();
    assert_eq!(fixture.event_loop.load(), 21);
    let _next = accept_one(&mut fixture);
    assert_eq!(fixture.event_loop.load(), 21);
    assert_eq!(fixture.server.loops[1].connections.load(Ordering::Relaxed), 1);
    // A loop does not give connections to itself.
    fixture.server.loops[1].connections.store(100, Ordering::Relaxed);
    let _last = accept_one(&mut fixture);
    assert_eq!(fixture.event_loop.load(), 22);
    // While the server stops, each loop keeps its connections.
    fixture.server.loops[1].connections.store(0, Ordering::Relaxed);
    fixture.server.running_loops.store(1, Ordering::Relaxed);
    let _pending = fixture.pend(1);
    fixture.server.stop();
    fixture.event_loop.read_letters();
    assert_eq!(fixture.event_loop.load(), 23);
}

#[test]
fn serves_a_connection_from_another_loop() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let (socket, mut client) = UnixStream::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    fixture.server.census.enter(ClientAddress::UNIX).unwrap();
    let mailbox = Arc::clone(&fixture.server.loops[0].mailbox);
    mailbox.post(Letter::Adopt(socket.into(), ClientAddress::UNIX));
    client.write_all(b"GET /hello HTTP/1.0\r\n\r\n").unwrap();
    fixture.turn();
    fixture.turn();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("hello"), "{text}");
}

#[test]
fn accepts_at_the_addresses_of_new_settings() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let old = fixture.pend(3);
    let added = Listen::on("127.0.0.1:0".parse().unwrap());
    let kept = fixture.server.generation().settings.listeners[0].clone();
    let another = Settings { listeners: vec![kept, added], ..Settings::default() };
    fixture.server.replace(another, Arc::new(TestProgram), None).unwrap();
    fixture.turn();
    fixture.turn();
    assert_eq!(fixture.event_loop.load(), 3);
    let addresses: Vec<Address> = fixture.server.addresses().collect();
    assert_eq!(addresses.len(), 2);
    let Address::Tcp(second) = addresses[1] else { panic!() };
    let _new = TcpStream::connect(second).unwrap();
    fixture.turn();
    assert_eq!(
        (fixture.event_loop.load(), fixture.event_loop.context.config.snapshot_count()),
        (4, 1)
    );
    drop(old);
}

#[test]
fn accepts_pending_connections_before_it_stops() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    fixture.server.running_loops.store(1, Ordering::Relaxed);
    let mut clients = fixture.pend(20);
    fixture.server.stop();
    fixture.turn();
    assert_eq!(fixture.event_loop.load(), 20);
    clients[19].write_all(b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    fixture.turn();
    let mut text = String::new();
    clients[19].read_to_string(&mut text).unwrap();
    assert!(text.contains("Connection: close") && text.ends_with("hello"), "{text}");
    let Some(Address::Tcp(address)) = fixture.server.addresses().next() else { panic!() };
    assert!(TcpStream::connect(address).is_err(), "the kernel refuses new ones");
    fixture.pass(stages::GRACE);
    assert!(fixture.event_loop.is_over());
}

/// An accept that fails for one connection, or for good, is no reason to pause for others.
#[test]
fn continues_to_listen_after_an_error_of_one_accept() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let messages = log::test_support::capture();
    // An accept at this listener fails with EINVAL.
    fixture.server.generation().listeners[0].refuse();
    fixture.event_loop.accept(0);
    assert_eq!(fixture.resumes_in(), None);
    assert!(fixture.event_loop.acceptor.has_backlog, "other connections may be pending");
    assert_eq!(messages.end(), [""; 0]);
}
