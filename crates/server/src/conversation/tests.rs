//! Waits, connections that give way, and stages on other threads, with a scheduler of one thread.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::address::{Address, ClientAddress};
use crate::settings::{Settings, Timeouts};
use crate::test_support::{received, server, sockets};
use crate::time::Clock;
use crate::workers::Task;

/// A scheduler with one thread, which the test plays.
#[derive(Default)]
struct OneThread {
    is_full: AtomicBool,
    /// Whether each stage runs elsewhere.
    spawns: AtomicBool,
    /// A client that sends when the thread has asked for the load this often.
    sends_later: Mutex<Option<(u32, UnixStream)>>,
}

impl Scheduler for OneThread {
    fn accept(self: Arc<Self>, _server: &Arc<Server>) -> io::Result<()> {
        unreachable!("the test runs the thread")
    }

    fn stage(&self, _next: Next) -> Placement {
        if self.spawns.load(Ordering::Relaxed) { Placement::Spawn } else { Placement::SameThread }
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn load(&self) -> f32 {
        if let Some((left, client)) = &mut *self.sends_later.lock().unwrap() {
            *left -= 1;
            if *left == 0 {
                client.write_all(b"G").unwrap();
            }
        }
        f32::from(u8::from(self.is_full.load(Ordering::Relaxed)))
    }
}

/// Replaces the clock by one that only the test moves.
fn stop_clock(conversations: &mut Conversations<'_>) {
    let clock = Rc::new(Clock::told(1_795_208_400));
    conversations.context = conversations.view.context_with_clock(clock);
}

fn connection(conversations: &mut Conversations<'_>) -> (Connection<Blocking>, UnixStream) {
    crate::test_support::connection(&mut conversations.context)
}

fn arrival(server: &Arc<Server>) -> (Arrival, UnixStream) {
    let (socket, client) = sockets();
    (crate::arrival::test_support::arrival(server, socket, ClientAddress::UNIX), client)
}

fn tcp(server: &Server) -> TcpStream {
    let Some(Address::Tcp(address)) = server.addresses().next() else { panic!("no TCP") };
    TcpStream::connect(address).unwrap()
}

fn closed(server: &Server, reason: &str) -> u64 {
    let metrics = server.metrics();
    metrics.closed.iter().find(|(name, _)| *name == reason).unwrap().1
}

#[test]
fn ends_silent_connections_for_the_reason_of_their_phase() {
    let timeouts = Timeouts { idle: Duration::ZERO, ..Timeouts::default() };
    let server = server(Settings { timeouts, ..Settings::default() });
    let scheduler = OneThread::default();
    let mut conversations = Conversations::new(&server, &scheduler);
    stop_clock(&mut conversations);
    for (phase, expected) in [
        (Phase::Handshake, Ending::Timeout),
        (Phase::First, Ending::Timeout),
        (Phase::Idle, Ending::Idle),
    ] {
        let (mut connection, _client) = connection(&mut conversations);
        (connection.phase, connection.deadline) = (phase, conversations.context.clock.now());
        assert!(!conversations.await_peer(&mut connection));
        assert_eq!(connection.ending, Some(expected), "{phase:?}");
    }
}

/// A stop leaves an idle client a moment to send its next request, and less if other
/// connections wait for the thread.
#[test]
fn shortens_the_wait_at_a_stop() {
    for (is_pressed, grace) in [(false, GRACE), (true, KEPT_TIME)] {
        let server = server(Settings::default());
        let scheduler = OneThread::default();
        let queue = ArrivalQueue::new(4).unwrap();
        let mut conversations = Conversations::from_queue(&queue, &server, &scheduler);
        stop_clock(&mut conversations);
        if is_pressed {
            queue.put_back(arrival(&server).0);
        }
        let (mut connection, mut client) = connection(&mut conversations);
        client.write_all(b"G").unwrap();
        connection.phase = Phase::Idle;
        assert!(conversations.await_peer(&mut connection));
        let now = conversations.context.clock.now();
        assert_eq!(connection.deadline.since(now), Timeouts::default().idle);
        server.stop();
        assert!(conversations.await_peer(&mut connection), "it has sent something");
        assert_eq!(connection.deadline.since(now), grace);
    }
}

#[test]
fn closes_an_idle_connection_at_a_stop() {
    let server = server(Settings::default());
    let scheduler = OneThread::default();
    let queue = ArrivalQueue::new(4).unwrap();
    let mut conversations = Conversations::from_queue(&queue, &server, &scheduler);
    queue.put_back(arrival(&server).0);
    let (mut connection, _client) = connection(&mut conversations);
    connection.phase = Phase::Idle;
    server.stop();
    assert!(!conversations.await_peer(&mut connection));
    assert_eq!(connection.ending, Some(Ending::Drain));
}

#[test]
fn notices_input_and_new_connections() {
    let server = server(Settings::default());
    let scheduler = OneThread::default();
    let queue = ArrivalQueue::new(4).unwrap();
    let mut conversations = Conversations::from_queue(&queue, &server, &scheduler);
    stop_clock(&mut conversations);
    let (connection, mut client) = connection(&mut conversations);
    let name = |event| match event {
        Some(WaitEvent::Input) => "input",
        Some(WaitEvent::NewConnection) => "new connection",
        None => "none",
    };
    let wait = |conversations: &mut Conversations<'_>, watches_new| {
        let transport = &connection.transport;
        name(conversations.await_event(transport, false, watches_new, Duration::ZERO))
    };
    let now = conversations.context.clock.now();
    assert_eq!(wait(&mut conversations, true), "none");
    assert!(!conversations.is_crowded(now));
    queue.put_back(arrival(&server).0);
    assert_eq!(wait(&mut conversations, false), "none", "it does not watch them");
    assert!(!conversations.is_crowded(now));
    assert_eq!(wait(&mut conversations, true), "new connection");
    assert!(conversations.is_crowded(now));
    assert!(!conversations.is_crowded(now.after(CHECK_INTERVAL)), "it forgets after a while");
    client.write_all(b"G").unwrap();
    assert_eq!(wait(&mut conversations, true), "input");
    assert!(conversations.is_crowded(now));
    queue.take();
    assert_eq!(wait(&mut conversations, true), "input");
    assert!(!conversations.is_crowded(now));
    // A stop ends the wait too, without an event.
    server.stop();
    let (silent, _client) = self::connection(&mut conversations);
    let long = Duration::from_mins(1);
    let event = conversations.await_event(&silent.transport, false, false, long);
    assert_eq!(name(event), "none");
}

/// An idle connection gives way at full load only, after the time that it is kept.
#[test]
fn gives_way_to_a_connection_of_the_queue() {
    let server = server(Settings::default());
    let scheduler = OneThread::default();
    let queue = ArrivalQueue::new(4).unwrap();
    let mut conversations = Conversations::from_queue(&queue, &server, &scheduler);
    assert!(!conversations.give_way(), "no connection waits");
    scheduler.is_full.store(true, Ordering::Relaxed);
    let (mut connection, _client) = connection(&mut conversations);
    connection.phase = Phase::Idle;
    queue.put_back(arrival(&server).0);
    assert!(!conversations.await_peer(&mut connection));
    assert_eq!(connection.ending, Some(Ending::Load));
    assert!(conversations.accept().unwrap().is_some(), "it is served next");
    assert!(conversations.take_newcomer().is_none());
}

/// Within its first moment a kept connection does not give way, at full load either.
#[test]
fn keeps_its_thread_for_a_moment() {
    let server = server(Settings::default());
    let scheduler = OneThread::default();
    let queue = ArrivalQueue::new(4).unwrap();
    let mut conversations = Conversations::from_queue(&queue, &server, &scheduler);
    stop_clock(&mut conversations);
    scheduler.is_full.store(true, Ordering::Relaxed);
    let (mut connection, client) = connection(&mut conversations);
    *scheduler.sends_later.lock().unwrap() = Some((3, client));
    connection.phase = Phase::Idle;
    let (waiting, _other) = arrival(&server);
    queue.put_back(waiting);
    assert!(conversations.await_peer(&mut connection), "its request arrives in time");
    assert_eq!((queue.len(), connection.ending), (1, None));
    assert!(conversations.newcomer.is_none());
}

#[test]
fn gives_its_place_to_a_pending_connection_at_the_limit() {
    let server = server(Settings { connections: Some(1), ..Settings::default() });
    let scheduler = OneThread::default();
    let mut conversations = Conversations::new(&server, &scheduler);
    let (current, client) = arrival(&server);
    assert!(!conversations.give_way(), "none is pending");
    assert!(conversations.room_permit.is_none());
    let _pending = tcp(&server);
    let (never, _other) = sockets();
    conversations.acceptor.wait_for_pending(std::os::fd::AsFd::as_fd(&never));
    assert!(conversations.give_way());
    assert!(conversations.room_permit.is_some() && conversations.newcomer.is_none());
    assert!(!conversations.give_way(), "one connection at a time makes room");
    drop(client);
    // It accepts the next connection when the current one has closed.
    conversations.hold(current);
    assert!(conversations.room_permit.is_none());
    assert!(conversations.take_newcomer().is_some());
    assert_eq!(server.census.filled().0, 0);
}

#[test]
fn accepts_a_pending_connection_without_a_queue() {
    let server = server(Settings::default());
    let scheduler = OneThread::default();
    let mut conversations = Conversations::new(&server, &scheduler);
    let mut client = tcp(&server);
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let arrival = conversations.accept().unwrap().unwrap();
    conversations.hold(arrival);
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 204 "), "{text}");
    assert_eq!((closed(&server, "reply"), server.census.filled().0), (1, 0));
    server.stop();
    assert!(conversations.accept().unwrap().is_none());
}

#[test]
fn moves_between_stages_and_keeps_its_place() {
    let server = server(Settings::default());
    let scheduler = OneThread::default();
    scheduler.spawns.store(true, Ordering::Relaxed);
    let mut conversations = Conversations::new(&server, &scheduler);
    let (arrival, mut client) = arrival(&server);
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    // Each call runs at least one stage.
    let arrival = conversations.serve_stages(arrival).unwrap();
    assert!(arrival.may_be_turned_away());
    let arrival = conversations.serve_stages(arrival).unwrap();
    assert!(!arrival.may_be_turned_away(), "its reply is ready");
    assert_eq!(server.census.filled().0, 1);
    assert!(conversations.serve_stages(arrival).is_none());
    assert!(received(client).starts_with("HTTP/1.1 204 "));
    assert_eq!((closed(&server, "reply"), server.census.filled().0), (1, 0));
    assert_eq!(conversations.context.config.snapshot_count(), 1);
}

#[test]
fn answers_a_request_that_has_waited_too_long() {
    let server = server(Settings::default());
    let scheduler = OneThread::default();
    scheduler.spawns.store(true, Ordering::Relaxed);
    let mut conversations = Conversations::new(&server, &scheduler);
    let (one, mut client) = arrival(&server);
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let one = conversations.serve_stages(one).unwrap();
    conversations.turn_away(one);
    let text = received(client);
    assert!(text.starts_with("HTTP/1.1 503 ") && text.contains("Connection: close"), "{text}");
    let (new, client) = arrival(&server);
    conversations.turn_away(new);
    let text = received(client);
    assert!(text.starts_with("HTTP/1.1 503 ") && text.contains("All threads"), "{text}");
    assert_eq!(server.census.refused()[2], ("scheduler", 2));
    assert_eq!((closed(&server, "load"), server.census.filled().0), (1, 0));
    assert!(conversations.context.output.is_empty());
}

#[test]
fn reuses_the_allocation_of_a_list() {
    let bell = std::io::stdin();
    let list = vec![PollFd::new(&bell, PollFlags::IN); 3];
    let memory = (list.as_ptr().addr(), list.capacity());
    let list = reuse_allocation(list);
    assert_eq!((list.as_ptr().addr(), list.capacity(), list.len()), (memory.0, memory.1, 0));
}
