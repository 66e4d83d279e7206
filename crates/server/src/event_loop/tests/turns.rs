//! Turns of a loop: events, deadlines, workers and the end.

use super::*;

#[test]
fn counts_each_connection_by_its_end() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let (mut idle, leaves, silent) = (fixture.connect(), fixture.connect(), fixture.connect());
    idle.get("/hello");
    fixture.turn();
    assert_eq!(idle.replies(), "200 hello");
    leaves.stream.shutdown(std::net::Shutdown::Both).unwrap();
    fixture.turn();
    assert_eq!(fixture.closed("peer"), 1);
    assert!(!fixture.is_open(&leaves));
    let timeouts = Timeouts::default();
    fixture.pass(timeouts.first_byte.saturating_sub(MOMENT));
    assert!(fixture.is_open(&silent));
    fixture.pass(MOMENT);
    assert!(!fixture.is_open(&silent));
    assert_eq!(fixture.closed("timeout"), 1);
    fixture.pass(timeouts.idle.saturating_sub(timeouts.first_byte).saturating_sub(MOMENT));
    assert!(fixture.is_open(&idle));
    fixture.pass(MOMENT);
    assert_eq!((fixture.closed("idle"), fixture.event_loop.load()), (1, 0));
    let metrics = fixture.server.metrics();
    assert_eq!((metrics.accepted, metrics.open, metrics.loops[0].connections), (3, 0, 0));
}

#[test]
fn gives_a_started_handler_its_time_from_the_request_on() {
    let timeouts = Timeouts::default();
    assert_eq!(handler_deadline(Tick::at(1500), &timeouts), Tick::at(1500 + 29_000));
    let mut fixture = Fixture::new(Placement::Spawn, Settings::default());
    let mut client = fixture.connect();
    client.get("/job");
    fixture.turn();
    assert_eq!(fixture.connection(&client).phase, Phase::Queued);
    assert_eq!(fixture.left(&client), timeouts.queue);
    // A worker starts it.
    let task = fixture.scheduler.waiting().pop().unwrap();
    fixture.pass(timeouts.queue);
    assert_eq!(fixture.connection(&client).phase, Phase::Handler);
    assert_eq!(fixture.left(&client), timeouts.handler.saturating_sub(timeouts.queue));
    fixture.pass(timeouts.handler.saturating_sub(timeouts.queue).saturating_sub(MOMENT));
    assert_eq!((client.received(), fixture.scheduler.counts()), (String::new(), (0, 0)));
    let messages = log::test_support::capture();
    fixture.pass(MOMENT);
    assert_eq!(client.replies(), "504 the page took too long");
    assert_eq!(fixture.scheduler.counts(), (1, 0));
    task.run();
    fixture.turn();
    assert_eq!(fixture.scheduler.counts(), (1, 1));
    let messages = messages.end();
    assert!(messages[1].contains("loop 0: 1 workers run handlers beyond"), "{messages:?}");
    assert!(messages[2].contains("finished after its time limit"), "{messages:?}");
    assert!(!client.received().contains("worked"));
}

#[test]
fn rejects_a_request_that_no_worker_starts_in_time() {
    let mut fixture = Fixture::new(Placement::Spawn, Settings::default());
    let mut client = fixture.connect();
    client.get("/job");
    fixture.turn();
    assert_eq!(fixture.scheduler.waiting().len(), 1);
    fixture.pass(Timeouts::default().queue);
    assert_eq!(client.replies(), "503 the server is busy; try again in a moment");
    assert_eq!(fixture.scheduler.waiting().len(), 0, "the request was withdrawn");
    // The queue has four places.
    let mut clients: Vec<Client> = (0..5).map(|_| fixture.connect()).collect();
    for client in &mut clients {
        client.get("/job");
    }
    fixture.turn();
    let rejected = clients.iter_mut().map(Client::replies).filter(|text| text.starts_with("503"));
    assert_eq!(rejected.count(), 1);
    // A worker refuses one, and answers one.
    fixture.scheduler.waiting().remove(0).refuse();
    fixture.scheduler.waiting().remove(0).run();
    fixture.turn();
    let mut replies: Vec<String> = clients.iter_mut().map(Client::replies).collect();
    replies.retain(|text| !text.is_empty());
    replies.sort();
    assert_eq!(replies, ["200 worked", "503 the server is busy; try again in a moment"]);
}

#[test]
fn withdraws_the_request_of_a_client_that_has_left() {
    let mut fixture = Fixture::new(Placement::Spawn, Settings::default());
    let mut client = fixture.connect();
    client.get("/job");
    fixture.turn();
    drop(client);
    fixture.turn();
    assert_eq!((fixture.scheduler.waiting().len(), fixture.event_loop.load()), (0, 0));
    assert!(fixture.event_loop.abandoned.is_empty());
}

/// A worker that hangs is reported at the deadline of its handler, even if the client has left.
#[test]
fn reports_the_worker_of_a_client_that_has_left() {
    let timeouts = Timeouts::default();
    let messages = log::test_support::capture();
    for has_begun in [false, true] {
        let mut fixture = Fixture::new(Placement::Spawn, Settings::default());
        let (mut client, mut other) = (fixture.connect(), fixture.connect());
        client.get("/job");
        fixture.turn();
        other.get("/job");
        fixture.turn();
        let first = fixture.scheduler.waiting().remove(0);
        let second = fixture.scheduler.waiting().remove(0);
        if has_begun {
            // The loop has noticed that the worker has begun.
            fixture.pass(timeouts.queue);
            fixture.event_loop.context.clock.advance(Duration::ZERO);
        }
        drop((client, other));
        fixture.turn();
        let elapsed = if has_begun { timeouts.queue } else { Duration::ZERO };
        let now = fixture.event_loop.context.clock.now();
        let due: Vec<Duration> =
            fixture.event_loop.abandoned.iter().map(|(_, due)| due.since(now)).collect();
        assert_eq!(due, [timeouts.handler.saturating_sub(elapsed); 2]);
        // One returns in time.
        first.run();
        fixture.turn();
        assert_eq!(fixture.event_loop.abandoned.len(), 1);
        fixture.pass(timeouts.handler.saturating_sub(elapsed).saturating_sub(MOMENT));
        assert_eq!(fixture.scheduler.counts(), (0, 0));
        fixture.pass(MOMENT);
        assert_eq!(fixture.scheduler.counts(), (1, 0));
        second.run();
        fixture.turn();
        assert_eq!(fixture.scheduler.counts(), (1, 1));
    }
    drop(messages);
}

/// Earlier replies of a pipeline are sent while a worker runs the next request, which does not end
/// the wait for its reply.
#[test]
fn sends_earlier_replies_while_a_handler_runs() {
    let mut fixture = Fixture::new(Placement::Spawn, Settings::default());
    let mut client = fixture.connect();
    client.get("/job");
    fixture.turn();
    for phase in [Phase::Queued, Phase::Handler] {
        let connection = fixture.connection(&client);
        (connection.phase, connection.wants_turn) = (phase, true);
        let busy = connection.busy.as_mut().unwrap();
        (busy.output, busy.sent) = (b"earlier".to_vec(), 2);
        fixture.event_loop.ready.push(client.token);
        fixture.turn();
        assert_eq!(client.received(), "rlier");
        assert_eq!(fixture.connection(&client).phase, phase);
        assert!(!fixture.connection(&client).wants_turn);
    }
    let task = fixture.scheduler.waiting().pop().unwrap();
    task.run();
    fixture.turn();
    assert_eq!(client.replies(), "200 worked");
}

#[test]
fn ends_handlers_of_clients_that_have_left() {
    let shutdown = |client: &Client, how| client.stream.shutdown(how).unwrap();
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let mut clients: Vec<Client> = (0..4).map(|_| fixture.connect()).collect();
    for (client, path) in clients.iter_mut().zip(["/later", "/later", "/open", "/open"]) {
        client.get(path);
    }
    fixture.turn();
    assert!(clients.iter().all(|client| fixture.is_open(client)));
    // A half-closed connection ends only handlers that run while it is open.
    shutdown(&clients[0], std::net::Shutdown::Write);
    shutdown(&clients[2], std::net::Shutdown::Write);
    clients[3].get("/hello");
    fixture.turn();
    let open: Vec<bool> = clients.iter().map(|client| fixture.is_open(client)).collect();
    assert_eq!(open, [true, true, false, true]);
    drop(clients.remove(1));
    fixture.turn();
    assert_eq!(fixture.event_loop.load(), 2);
    assert_eq!(fixture.closed("peer"), 2);
}

#[test]
fn closes_one_connection_after_a_panic_of_its_handler() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let (mut one, mut other) = (fixture.connect(), fixture.connect());
    one.get("/panic");
    other.get("/hello");
    let messages = log::test_support::capture();
    fixture.turn();
    assert!(one.replies().starts_with("500"));
    assert_eq!(other.replies(), "200 hello");
    assert_eq!(messages.end().len(), 1);
    assert!(!fixture.is_open(&one) && fixture.is_open(&other));
}

#[test]
fn reports_no_events_of_a_socket_that_it_has_given_away() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let (mut kept, mut given) = (fixture.connect(), fixture.connect());
    let Fixture { event_loop, .. } = &mut fixture;
    event_loop.driver.forget(&event_loop.slab.get(given.token).unwrap().connection.transport);
    kept.get("/hello");
    given.get("/hello");
    fixture.turn();
    assert_eq!((kept.replies(), given.replies()), ("200 hello".to_owned(), String::new()));
}

/// The load of a loop includes upgraded connections, which end with the server.
#[test]
fn counts_upgraded_connections_until_their_end() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let (mut upgraded, _idle) = (fixture.connect(), fixture.connect());
    upgraded.get("/upgrade");
    fixture.turn();
    assert!(upgraded.received().starts_with("HTTP/1.1 101 "));
    assert_eq!((fixture.event_loop.slab.len(), fixture.event_loop.load()), (1, 2));
    assert_eq!((fixture.closed("upgrade"), fixture.server.census.filled().0), (1, 2));
    fixture.server.stop();
    fixture.server.stop();
    fixture.turn();
    fixture.turn();
    assert_eq!((fixture.event_loop.load(), fixture.server.census.filled().0), (1, 1));
}

/// A client that sends a body slowly gets no new deadline with its turn.
#[test]
fn keeps_the_deadline_of_a_body_in_its_turn() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let mut client = fixture.connect();
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
    fixture.turn();
    assert_eq!(fixture.left(&client), Timeouts::default().body);
    fixture.event_loop.context.clock.advance(seconds(3));
    fixture.connection(&client).wants_turn = true;
    fixture.event_loop.ready.push(client.token);
    fixture.turn();
    let left = Timeouts::default().body.saturating_sub(seconds(3));
    assert_eq!((fixture.left(&client), fixture.connection(&client).phase), (left, Phase::Body));
    // A byte adds a moment, at the minimum rate.
    client.send("a");
    fixture.turn();
    assert_eq!(fixture.left(&client), left + MOMENT);
}

#[test]
fn answers_a_cohort_together() {
    // More than a cohort, and some of them pipeline.
    let mut fixture = Fixture::new(Placement::Batched, Settings::default());
    let mut clients: Vec<Client> = (0..70).map(|_| fixture.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.get("/hello");
        if number % 7 == 0 {
            client.get("/job");
        }
    }
    fixture.turn();
    for (number, client) in clients.iter_mut().enumerate() {
        let expected = if number % 7 == 0 { "200 hello, 200 worked" } else { "200 hello" };
        assert_eq!(client.replies(), expected, "{number}");
    }
    assert_eq!(fixture.server.metrics().replies.iter().sum::<u64>(), 80);
}

#[test]
fn keeps_up_to_64_buffers_of_up_to_64_kib() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let event_loop = &mut fixture.event_loop;
    event_loop.keep_buffer(Vec::with_capacity(64 * 1024 + 1));
    assert_eq!(event_loop.buffers.len(), 0);
    event_loop.keep_buffer(Vec::with_capacity(64 * 1024));
    let mut used = Vec::with_capacity(10);
    used.push(1);
    event_loop.keep_buffer(used);
    assert!(event_loop.buffers.len() == 2 && event_loop.buffers[1].is_empty());
    (0..70).for_each(|_| event_loop.keep_buffer(Vec::new()));
    assert_eq!(event_loop.buffers.len(), 64);
}

/// Long replies share an allowance of 512 KiB for each turn. The connections that had no turn are
/// the first in the next one.
#[test]
fn sends_long_replies_in_turns() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let clients: Vec<Client> = (0..3).map(|_| fixture.connect()).collect();
    for client in &clients {
        fixture.connection(client).wants_turn = true;
        fixture.event_loop.ready.push(client.token);
    }
    // No byte may be sent after the first response.
    let file = rustix::fs::memfd_create("long", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, 1 << 21).unwrap();
    let part = crate::handler::FilePart { file: Arc::new(file), offset: 0, length: 1 << 21 };
    fixture.connection(&clients[0]).phase = Phase::Writing;
    let mut busy = Box::<crate::connection::Busy>::default();
    busy.file = Some(part);
    fixture.connection(&clients[0]).busy = Some(busy);
    fixture.event_loop.context.clock.advance(seconds(1));
    let deadline = fixture.event_loop.context.clock.now().after(seconds(9));
    fixture.connection(&clients[0]).deadline = deadline;
    fixture.turn();
    // The socket is full before the allowance is used up, so all run.
    assert!(fixture.event_loop.ready.is_empty());
    assert!(fixture.is_open(&clients[0]) && fixture.connection(&clients[0]).has_unsent());
}

#[test]
fn stops_when_all_connections_have_ended_or_the_time_is_over() {
    for waits in [false, true] {
        let settings = Settings::default();
        let mut fixture = Fixture::new(Placement::SameThread, settings);
        let (mut idle, mut busy) = (fixture.connect(), fixture.connect());
        idle.get("/hello");
        busy.get("/later");
        fixture.turn();
        assert!(!fixture.event_loop.is_over() && !fixture.event_loop.is_drain_over());
        fixture.server.stop();
        fixture.turn();
        // The idle client has a moment to send a request.
        assert_eq!(fixture.left(&idle), stages::GRACE);
        assert_eq!(fixture.left(&busy), Timeouts::default().handler);
        fixture.pass(stages::GRACE);
        assert!(!fixture.is_open(&idle) && fixture.is_open(&busy));
        assert_eq!(fixture.closed("drain"), 1);
        assert!(!fixture.event_loop.is_over());
        if waits {
            let drain = Timeouts::default().drain;
            fixture
                .event_loop
                .context
                .clock
                .advance(drain.saturating_sub(stages::GRACE).saturating_sub(MOMENT));
            assert!(!fixture.event_loop.is_over() && !fixture.event_loop.is_drain_over());
            fixture.event_loop.context.clock.advance(MOMENT);
            assert!(fixture.event_loop.is_over() && fixture.event_loop.is_drain_over());
            let messages = log::test_support::capture();
            fixture.event_loop.report_unfinished();
            let messages = messages.end();
            assert!(messages[0].contains("loop 0 cuts connections"), "{messages:?}");
            assert!(messages[0].contains("1 handler runs"), "{messages:?}");
        } else {
            drop(busy);
            fixture.turn();
            assert!(fixture.event_loop.is_over() && !fixture.event_loop.is_drain_over());
        }
    }
}

/// A loop reports queued requests as waiting, and takes them out of the queue.
#[test]
fn reports_requests_that_wait_for_a_worker_at_its_end() {
    let mut fixture = Fixture::new(Placement::Spawn, Settings::default());
    let (mut queued, mut runs) = (fixture.connect(), fixture.connect());
    queued.get("/job/1");
    fixture.turn();
    runs.get("/job/2");
    fixture.turn();
    let started = fixture.scheduler.waiting().pop().unwrap();
    let messages = log::test_support::capture();
    fixture.event_loop.report_unfinished();
    let messages = messages.end();
    for expected in ["1 handler runs, 1 request waits for a worker", "GET /job/1 has waited"] {
        assert!(messages[0].contains(expected), "{messages:?}");
    }
    assert_eq!(fixture.scheduler.waiting().len(), 0);
    drop(started);
}

/// A deadline after the end of a long gap stays as it is.
#[test]
fn keeps_deadlines_beyond_a_long_gap() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    // Ticks of this time look like past ones from the start of the clock.
    fixture.event_loop.context.clock.advance(Duration::from_hours(30 * 24));
    fixture.turn();
    let client = fixture.connect();
    let later = LONG_GAP + Duration::from_hours(1);
    let deadline = fixture.event_loop.context.clock.now().after(later);
    fixture.connection(&client).deadline = deadline;
    fixture.event_loop.context.clock.advance(LONG_GAP);
    fixture.turn();
    assert_eq!(fixture.left(&client), Duration::from_hours(1));
}

/// The process was frozen for weeks: all deadlines that passed are due.
#[test]
fn catches_up_with_deadlines_after_weeks() {
    for gap in [LONG_GAP, Duration::from_hours(40 * 24)] {
        let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
        let client = fixture.connect();
        fixture.turn();
        fixture.event_loop.abandoned.push((Token::default(), Tick::at(5)));
        fixture.event_loop.drain_deadline = Some(Tick::at(7));
        fixture.event_loop.context.clock.advance(gap);
        fixture.turn();
        assert!(!fixture.is_open(&client));
        let now = fixture.event_loop.context.clock.now();
        assert_eq!(fixture.event_loop.drain_deadline, Some(now));
        assert!(fixture.event_loop.abandoned.is_empty());
    }
}

/// A connection that waits for a part of its file sends nothing before, and ends with its client.
#[test]
fn sends_nothing_while_a_worker_reads_the_file() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let mut client = fixture.connect();
    let mut busy = Box::<crate::connection::Busy>::default();
    (busy.output, busy.warms_up) = (b"file".to_vec(), true);
    let connection = fixture.connection(&client);
    (connection.phase, connection.busy) = (Phase::Writing, Some(busy));
    client.send("next");
    fixture.turn();
    assert_eq!((client.received(), fixture.is_open(&client)), (String::new(), true));
    fixture.event_loop.on_warm(client.token);
    assert_eq!(client.received(), "file");
    let connection = fixture.connection(&client);
    connection.phase = Phase::Writing;
    let mut busy = Box::<crate::connection::Busy>::default();
    (busy.output, busy.warms_up) = (b"file".to_vec(), true);
    connection.busy = Some(busy);
    let token = client.token;
    drop(client);
    fixture.turn();
    assert!(fixture.event_loop.slab.get(token).is_none());
}

/// Work that remains at the end of a turn has waited since the first turn that did not end with all
/// work done.
#[test]
fn measures_a_backlog_from_its_first_turn() {
    let mut fixture = Fixture::new(Placement::SameThread, Settings::default());
    let client = fixture.connect();
    let event_loop = &mut fixture.event_loop;
    let mut report = |is_batch_full, is_ready: bool| {
        event_loop.ready.clear();
        event_loop.ready.extend(is_ready.then_some(client.token));
        let began = event_loop.context.clock.now();
        event_loop.context.clock.advance(MOMENT);
        event_loop.report_wait(began, is_batch_full);
        (event_loop.waited, event_loop.backlog_since.is_some())
    };
    assert_eq!(report(false, false), (MOMENT, false));
    assert_eq!(report(true, false), (MOMENT, true));
    assert_eq!(report(false, true), (MOMENT * 2, true));
    assert_eq!(report(true, true), (MOMENT * 3, true));
    assert_eq!(report(false, false), (MOMENT * 4, false));
    assert_eq!(report(false, false), (MOMENT, false));
}
