//! Tests of the rules of the nested event loop. Each test fails without its rule.

use std::time::{Duration, Instant};

use bine_server::Settings;

use crate::house::{House, LOOPS, settings};
use crate::metrics::metrics;
use crate::peer::{Peer, get};

/// Blocks the loop of `house` until the gate opens, so that events accumulate.
fn hold(house: &House) -> Peer {
    let mut holder = house.connect();
    holder.send(get("/hold/loop"));
    house.program.gate("loop").await_arrivals(1);
    holder
}

/// Rule 1. The burst arrives with one edge and exceeds one receive and one slice. A loop that
/// forgets a connection after its slice answers sixteen requests and then waits forever.
#[test]
fn answers_a_burst_larger_than_a_slice() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let holder = hold(&house);
        let mut peer = house.connect();
        peer.send(get("/say/x").repeat(3000));
        house.program.gate("loop").open();
        for number in 0..3000 {
            assert_eq!(peer.reply().to_string(), "200 x", "{number}, {scheduler}");
        }
        drop(holder);
    }
}

/// Rule 2. More connections are ready than one batch of events holds, while a task is alive. A loop
/// that clears the runtime's readiness after a full batch misses the rest, because edge-triggered
/// events do not repeat.
#[test]
fn answers_more_ready_connections_than_a_batch_while_a_task_lives() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let mut peers: Vec<Peer> = (0..600).map(|_| house.connect()).collect();
        for peer in &mut peers {
            assert_eq!(peer.ask("/"), "200 hello");
        }
        let mut waiting = house.connect();
        waiting.send(get("/wait/task"));
        house.program.gate("task").await_arrivals(1);
        let mut holder = hold(&house);
        for peer in &mut peers {
            peer.send(get("/say/x"));
        }
        house.program.gate("loop").open();
        assert_eq!(holder.reply().to_string(), "200 held");
        for peer in &mut peers {
            assert_eq!(peer.reply().to_string(), "200 x", "{scheduler}");
        }
        house.program.gate("task").open();
        assert_eq!(waiting.reply().to_string(), "200 later");
    }
}

/// Rule 2. A connection is ready for another turn for many times the duration of the timer. A loop
/// that never yields to the runtime between turns fires the timer only after the last request.
/// (Requests and responses fit into the socket buffers, so no send waits for the client.)
#[test]
fn fires_a_timer_under_a_flood_of_pipelined_requests() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let mut floods: Vec<Peer> = (0..30).map(|_| house.connect()).collect();
        let mut sleeper = house.connect();
        let holder = hold(&house);
        for flood in &mut floods {
            flood.send(get("/say/g").repeat(1000));
        }
        sleeper.send(get("/sleep/5"));
        house.program.gate("loop").open();
        assert_eq!(sleeper.reply().to_string(), "200 later");
        for flood in &mut floods {
            for _ in 0..1000 {
                assert_eq!(flood.reply().to_string(), "200 g", "{scheduler}");
            }
        }
        let said = house.program.said();
        let place = said.iter().position(|word| word == "slept").unwrap();
        assert!(place < 29_000, "{place} of 30000 were served first, {scheduler}");
        drop(holder);
    }
}

/// Rule 3. No task is alive, so the loop sleeps in its own epoll. If a worker signalled a different
/// descriptor, the loop would wake only at the next deadline, which is a minute here.
#[test]
fn wakes_an_idle_loop_for_the_response_of_a_worker() {
    let mut settings = settings("hybrid");
    settings.timeouts.queue = Duration::from_mins(1);
    let house = House::with(settings);
    let mut peer = house.connect();
    peer.send(get("/block/worker"));
    house.program.gate("worker").await_arrivals(1);
    house.program.gate("worker").open();
    assert_eq!(peer.reply().to_string(), "200 work");
}

/// Rule 3, for the second message that arrives from other threads.
#[test]
fn wakes_an_idle_loop_for_a_stop() {
    for scheduler in LOOPS {
        for loops in [1, 3] {
            let house = House::with(Settings { loops, ..settings(scheduler) });
            // A loop that has answered a request is at rest; a new one may still be starting.
            assert_eq!(house.connect().ask("/"), "200 hello");
            house.stop();
            house.await_end();
        }
    }
}

/// The converse of rule 3. While a task is alive the loop must sleep in the runtime, which observes
/// timers: without active sockets, its own epoll would sleep past them.
#[test]
fn fires_a_timer_while_no_socket_is_active() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let began = Instant::now();
        assert_eq!(house.connect().ask("/sleep/30"), "200 later", "{scheduler}");
        assert!(began.elapsed() >= Duration::from_millis(30));
    }
}

/// A thread wakes a task through the runtime, in which the loop sleeps while a task is alive.
#[test]
fn runs_a_task_woken_by_another_thread() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let mut peer = house.connect();
        peer.send(get("/wait/task"));
        house.program.gate("task").await_arrivals(1);
        house.program.gate("task").open();
        assert_eq!(peer.reply().to_string(), "200 later", "{scheduler}");
    }
}

/// Rule 4. A connection has 2000 pending requests, and a second connection has one. Without slices
/// the single request waits for all 2000.
#[test]
fn serves_other_connections_beside_one_with_thousands_of_requests() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let (mut greedy, mut modest) = (house.connect(), house.connect());
        assert_eq!(greedy.ask("/"), "200 hello");
        assert_eq!(modest.ask("/"), "200 hello");
        let holder = hold(&house);
        greedy.send(get("/say/g").repeat(2000));
        modest.send(get("/say/m"));
        house.program.gate("loop").open();
        assert_eq!(modest.reply().to_string(), "200 m");
        for _ in 0..2000 {
            greedy.reply();
        }
        check_place(&house, 16);
        drop(holder);
    }
}

/// Rule 4 for new connections: an accept is an event as any other.
#[test]
fn accepts_connections_beside_one_with_thousands_of_requests() {
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let mut greedy = house.connect();
        assert_eq!(greedy.ask("/"), "200 hello");
        let holder = hold(&house);
        greedy.send(get("/say/g").repeat(2000));
        let mut newcomers: Vec<Peer> = (0..40).map(|_| house.connect()).collect();
        for peer in &mut newcomers {
            peer.send(get("/say/m"));
        }
        house.program.gate("loop").open();
        for peer in &mut newcomers {
            assert_eq!(peer.reply().to_string(), "200 m", "{scheduler}");
        }
        for _ in 0..2000 {
            greedy.reply();
        }
        // Each turn accepts sixteen connections and serves them in the next turn.
        check_place(&house, 8 * 16);
        drop(holder);
    }
}

/// Checks that at most `most` requests `g` ran before the last request `m`.
#[track_caller]
fn check_place(house: &House, most: usize) {
    let said = house.program.said();
    let last = said.iter().rposition(|word| word == "m").unwrap();
    let before = said[..last].iter().filter(|word| *word == "g").count();
    assert!(before <= most, "{before} were served before");
}

/// Rule 4 under constant input. Symptom: a connection got several slices in one turn. Cause: each
/// edge put a connection that waited for its next turn on the ready list again.
#[test]
fn gives_a_constantly_receiving_connection_one_slice_per_turn() {
    const TURNS: usize = 20;
    for scheduler in LOOPS {
        let house = House::open(scheduler);
        let mut greedy = house.connect();
        assert_eq!(greedy.ask("/"), "200 hello");
        let slices: String = (0..TURNS)
            .map(|turn| get(&format!("/hold/{turn}")) + &get("/say/g").repeat(15))
            .collect();
        greedy.send(slices + &get("/say/g").repeat(1000));
        let mut newcomer = None;
        let mut before = 0;
        for turn in 0..TURNS {
            let gate = house.program.gate(&turn.to_string());
            gate.await_arrivals(1);
            greedy.send(get("/say/g"));
            if turn == TURNS - 1 {
                before = house.program.said().len();
                let mut peer = house.connect();
                peer.send(get("/say/m"));
                newcomer = Some(peer);
            }
            gate.open();
        }
        assert_eq!(newcomer.map(|mut peer| peer.reply().to_string()), Some("200 m".to_owned()));
        let said = house.program.said();
        let place = said.iter().position(|word| word == "m").unwrap();
        // The rest of one slice, a slice during the accept, and a slice during the read.
        assert!(place - before <= 48, "{} were served before, {scheduler}", place - before);
    }
}

/// Symptom: a client received the rest of an earlier response only together with a later one.
/// Cause: the loop did not watch the socket for free space while the connection waited for a
/// handler.
#[test]
fn sends_earlier_responses_while_a_later_handler_runs() {
    for (scheduler, path) in
        [("hybrid", "/wait/gate"), ("event", "/wait/gate"), ("hybrid", "/block/gate")]
    {
        let mut settings = settings(scheduler);
        settings.listeners[0].send_buffer = Some(4096);
        let house = House::with(settings);
        let mut peer = Peer::connect_narrow(&house.address()).unwrap();
        peer.send(get("/long/60000") + &get(path));
        house.program.gate("gate").await_arrivals(1);
        assert_eq!(peer.reply().to_string(), "200 <60000>", "{path}, {scheduler}");
        house.program.gate("gate").open();
        assert_eq!(peer.reply().status, 200);
    }
}

#[test]
fn shares_connections_among_loops() {
    for scheduler in LOOPS {
        let house = House::with(Settings { loops: 2, ..settings(scheduler) });
        let mut peers: Vec<Peer> = (0..100).map(|_| house.connect()).collect();
        let threads: Vec<String> = peers.iter_mut().map(|peer| peer.ask("/thread")).collect();
        // The share is fifty; a quarter and eight more are too many.
        let most = threads
            .iter()
            .map(|thread| threads.iter().filter(|other| *other == thread).count())
            .max();
        assert!(most.is_some_and(|most| most <= 72), "{most:?} on one loop, {scheduler}");
    }
}

/// A loop that has clearly more connections than the mean hands new ones over, also to a loop that is
/// busy now.
#[test]
fn hands_new_connections_over_to_a_loop_with_fewer() {
    for scheduler in LOOPS {
        let house = House::with(Settings { loops: 2, ..settings(scheduler) });
        let mut holder = hold(&house);
        // The other loop accepts all of these.
        let mut peers: Vec<Peer> = (0..60).map(|_| house.connect()).collect();
        let told = metrics(&house.server, |told| {
            told.loops.iter().map(|each| each.connections).sum::<usize>() == 61
        });
        let mut counts: Vec<usize> = told.loops.iter().map(|each| each.connections).collect();
        counts.sort_unstable();
        // At most 5/4 of the mean of 30, and 8 more.
        assert!((38..=46).contains(&counts[1]), "{counts:?}, {scheduler}");
        house.program.gate("loop").open();
        assert_eq!(holder.reply().to_string(), "200 held");
        for peer in &mut peers {
            assert_eq!(peer.ask("/"), "200 hello", "{scheduler}");
        }
        drop(peers);
        metrics(&house.server, |told| {
            told.loops.iter().map(|each| each.connections).sum::<usize>() == 1
        });
    }
}
