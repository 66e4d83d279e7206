//! Overload: which connections close to make room, and which requests are rejected.

use super::*;
use crate::limits::Room;
use crate::settings::Guards;

#[test]
fn makes_room_by_the_slowest_unknown_connections() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let mut clients: Vec<Client> = (1..=5).map(|host| fixture.connect_from(remote(host))).collect();
    // The third is known, the fourth waits for its handler.
    clients[2].send("GET /hello HTTP/1.1\r\nHost: a\r\nName: ann\r\n\r\n");
    clients[3].get("/later");
    for number in [0, 1, 4] {
        clients[number].get("/hello");
        fixture.turn();
        fixture.event_loop.context.clock.advance(seconds(1));
    }
    let open = |fixture: &mut Fixture| -> Vec<bool> {
        clients.iter().map(|client| fixture.is_open(client)).collect()
    };
    let room = |count, known_too| Room { count, known_too };
    let mailbox = Arc::clone(&fixture.server.loops[0].mailbox);
    // Only the last of several requests applies.
    mailbox.post(Letter::MakeRoom(room(9, true)));
    mailbox.post(Letter::MakeRoom(room(1, false)));
    fixture.turn();
    assert_eq!(open(&mut fixture), [false, true, true, true, true]);
    fixture.event_loop.make_room(room(9, false));
    assert_eq!(open(&mut fixture), [false, false, true, true, false]);
    fixture.event_loop.make_room(room(9, true));
    assert_eq!(open(&mut fixture), [false, false, false, true, false]);
    assert_eq!((fixture.closed("load"), fixture.server.guards().closed), (4, 4));
}

/// At the limit, the blocks with more than a sixteenth lose 1/64 of the loop's connections and one
/// more.
#[test]
fn closes_connections_of_crowded_blocks_at_the_limit() {
    let settings =
        Settings { connections: Some(64), connections_per_address: 64, ..Settings::default() };
    let mut fixture = Fixture::new(Placement::SameThread, settings);
    let mut crowd: Vec<Client> = (0..60).map(|_| fixture.connect_from(remote(1))).collect();
    let others: Vec<Client> = (2..5).map(|host| fixture.connect_from(remote(host))).collect();
    assert!(!fixture.event_loop.is_full());
    crowd.push(fixture.connect_from(remote(1)));
    assert!(fixture.event_loop.is_full(), "each has been silent for less than a second");
    fixture.event_loop.context.clock.advance(seconds(1).saturating_sub(MOMENT));
    assert!(fixture.event_loop.is_full());
    fixture.event_loop.context.clock.advance(MOMENT);
    assert!(!fixture.event_loop.is_full());
    assert_eq!(fixture.event_loop.load(), 62);
    assert!(others.iter().all(|client| fixture.is_open(client)));
}

#[test]
fn rejects_deferred_requests_of_unknown_clients_without_memory() {
    for place in [Placement::SameThread, Placement::Batched, Placement::Spawn] {
        let guards = Guards { memory: Some(1), memory_refuses: Some(50), ..Guards::OFF };
        let settings = Settings { guards, ..Settings::default() };
        let mut fixture = Fixture::new(place, settings);
        let _messages = log::test_support::capture();
        let mut clients: Vec<Client> = (0..4).map(|_| fixture.connect()).collect();
        fixture.event_loop.may_accept();
        assert!(fixture.server.guard.refuses());
        clients[0].get("/job");
        clients[1].get("/later");
        clients[2].send("GET /later HTTP/1.1\r\nHost: a\r\nName: ann\r\n\r\n");
        clients[3].get("/hello");
        fixture.turn();
        // A static page costs no memory, and a known client is served.
        let busy = "503 the server is busy; try again in a moment";
        let replies: Vec<String> = clients.iter_mut().map(Client::replies).collect();
        let is_known = fixture.is_open(&clients[2]) && fixture.connection(&clients[2]).is_known;
        if is_known {
            assert_eq!(replies, [busy, busy, "", "200 hello"], "{place:?}");
            assert_eq!(fixture.server.guards().strangers, 2);
        } else {
            assert_eq!(replies, [busy, busy, busy, "200 hello"], "{place:?}");
        }
    }
}

#[test]
fn divides_the_connections_to_close_among_the_loops() {
    let guards = Guards { descriptors: Some(90), ..Guards::OFF };
    let settings =
        Settings { loops: 3, guards, connections_local: Some(usize::MAX), ..Settings::default() };
    let fixture = Fixture::new(Placement::SameThread, settings);
    let _messages = log::test_support::capture();
    let most = fixture.server.census.filled().1;
    // Above the threshold by an eleventh of the limit at least.
    (0..most).for_each(|_| fixture.server.census.enter(ClientAddress::UNIX).unwrap());
    let of = |part: usize| most / 4 * part;
    for (each, part) in fixture.server.loops.iter().zip([3, 1, 0]) {
        each.connections.store(of(part), Ordering::Relaxed);
    }
    assert!(!fixture.event_loop.may_accept());
    let counts: Vec<Option<(usize, bool)>> = fixture
        .server
        .loops
        .iter()
        .map(|each| {
            let mut letters = Vec::new();
            each.mailbox.take(&mut letters);
            letters.into_iter().find_map(|letter| match letter {
                Letter::MakeRoom(Room { count, known_too }) => Some((count, known_too)),
                _ => None,
            })
        })
        .collect();
    let (Some((first, true)), Some((second, true)), None) = (counts[0], counts[1], counts[2])
    else {
        panic!("{counts:?}");
    };
    // Rounded up.
    let all = first + second;
    assert!(all > 0 && first.abs_diff(all * of(3) / most) <= 1, "{counts:?}");
    assert!(second.abs_diff(all * of(1) / most) <= 1, "{counts:?}");
}

#[test]
fn drops_only_connections_whose_memory_was_revoked() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let mut client = fixture.connect();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
    fixture.turn();
    assert_eq!(fixture.connection(&client).phase, Phase::Body);
    let mailbox = Arc::clone(&fixture.server.loops[0].mailbox);
    mailbox.post(Letter::Evict(client.token));
    fixture.turn();
    assert!(fixture.is_open(&client) && client.received().is_empty());
    client.send("123456");
    fixture.turn();
    assert!(client.replies().starts_with("200"));
}

#[test]
fn drops_a_connection_whose_memory_was_revoked() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let mut clients: Vec<Client> = (0..2).map(|_| fixture.connect()).collect();
    clients[0].send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n");
    clients[0].send(vec![b'x'; 100_000]);
    clients[1].get("/long/1000000");
    fixture.turn();
    let busy = fixture.connection(&clients[0]).busy.as_ref().unwrap();
    busy.request.as_ref().unwrap().reserved.revoke();
    fixture.connection(&clients[1]).busy.as_ref().unwrap().output_reservation.revoke();
    let mailbox = Arc::clone(&fixture.server.loops[0].mailbox);
    for client in &clients {
        mailbox.post(Letter::Evict(client.token));
    }
    fixture.turn();
    // The client that sends a body learns why.
    assert_eq!(clients[0].replies(), "503 the server is busy; try again in a moment");
    assert!(!fixture.is_open(&clients[1]));
    assert_eq!(fixture.closed("load"), 1);
}

#[test]
fn accepts_while_no_guard_acts() {
    let fixture = Fixture::new(Placement::SameThread, Settings::default());
    assert!(fixture.event_loop.may_accept());
    let guards = Guards { memory: Some(1), memory_pauses: Some(50), ..Guards::OFF };
    let settings = Settings { guards, ..Settings::default() };
    let fixture = Fixture::new(Placement::SameThread, settings);
    let _messages = log::test_support::capture();
    assert!(!fixture.event_loop.may_accept());
}

/// An idle connection may close at once. A client that is about to send, or that reads, has a
/// second.
#[test]
fn makes_room_only_by_connections_that_have_been_silent_for_a_second() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let (mut idle, silent) = (fixture.connect_from(remote(1)), fixture.connect_from(remote(2)));
    idle.get("/hello");
    fixture.turn();
    let all = Room { count: 9, known_too: true };
    fixture.event_loop.context.clock.advance(seconds(1).saturating_sub(MOMENT));
    fixture.event_loop.make_room(all);
    assert!(!fixture.is_open(&idle) && fixture.is_open(&silent));
    fixture.event_loop.context.clock.advance(MOMENT);
    fixture.event_loop.make_room(all);
    assert!(!fixture.is_open(&silent));
}
