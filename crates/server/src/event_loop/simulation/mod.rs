//! A simulation of weeks: the event loop runs on a simulated system and serves simulated clients
//! for days.
//!
//! A seed determines everything. Each run lasts hours to months, with bursts and idle periods, slow
//! and silent clients, suspended responses, reloads, suspensions of the machine and a clock that
//! wraps. These conditions hold at any time:
//!
//! - Each timeout occurs once, no earlier than documented and no later than the wheel and the timer
//!   allow.
//! - The server answers without delay whatever it can answer at once.
//! - No turn without a cause: at most a few consecutive turns have no effect, and the timer of an
//!   idle loop expires only for deadlines.
//! - After a stop all connections drain, and the loop is empty.
//!
//! `BINE_SIMULATED_RUNS` is the number of runs, `BINE_SIMULATED_SEED` the first seed. A failure
//! prints the command that repeats it.

mod client;
mod program;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::event_loop::EventLoop;
use crate::limits::Room as RoomWanted;
use crate::mailbox::Letter;
use crate::scheduling::Placement;
use crate::server::Server;
use crate::settings::{Guards, Listen, Settings, Timeouts};

use bine_log::test_support::capture;
use client::{Action, Client, Outcome};
use program::{SimulatedProgram, SimulatedWorkers, SuspendedResponses};
use world::{COARSE, Planned, SLACK, Simulated, World, WorldState};

/// Together the runs last longer than a week.
const RUNS: u64 = 60;
/// The same in all settings: the check of the workers does not know the settings of a request.
const HANDLER: Duration = Duration::from_secs(30);
const SECOND: u64 = 1000;
const HOUR: u64 = 3600 * SECOND;
const DAY: u64 = 24 * HOUR;

#[test]
fn serves_for_weeks_without_a_late_deadline_or_an_idle_turn() {
    let number = |name: &str, otherwise| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let first = number("BINE_SIMULATED_SEED", 1);
    let runs = number("BINE_SIMULATED_RUNS", RUNS);
    let mut all = Totals::default();
    for seed in first..first + runs {
        let Ok(totals) = catch_unwind(|| run(seed)) else {
            panic!(
                "failed; to repeat: BINE_SIMULATED_SEED={seed} BINE_SIMULATED_RUNS=1 \
                 cargo test -p bine-server --lib simulation"
            );
        };
        all.add(&totals);
    }
    println!("{runs} runs, {} days: {all:?}", all.time / DAY);
    if runs >= RUNS {
        assert!(all.time > 7 * DAY, "{all:?}");
        all.check();
    }
}

/// How often each event occurred, so that the test notices a simulation that does not try
/// everything.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// In milliseconds.
    time: u64,
    turns: u64,
    expiries: u64,
    connections: u64,
    requests: u64,
    replies: u64,
    /// Responses with status 408 or 504.
    timeouts: u64,
    stalled: u64,
    ends: u64,
    resets: u64,
    closed: u64,
    turned_away: u64,
    suspensions: u64,
    overdue: u64,
    cut: u64,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        let Self { time, turns, expiries, connections, requests, replies, timeouts, .. } = other;
        self.time += time;
        self.turns += turns;
        self.expiries += expiries;
        self.connections += connections;
        self.requests += requests;
        self.replies += replies;
        self.timeouts += timeouts;
        self.stalled += other.stalled;
        self.ends += other.ends;
        self.resets += other.resets;
        self.closed += other.closed;
        self.turned_away += other.turned_away;
        self.suspensions += other.suspensions;
        self.overdue += other.overdue;
        self.cut += other.cut;
    }

    fn check(&self) {
        let Self {
            timeouts, stalled, ends, resets, turned_away, suspensions, overdue, cut, ..
        } = *self;
        let rare = [timeouts, stalled, ends, resets, turned_away, suspensions, overdue, cut];
        assert!(rare.iter().all(|count| *count > 0), "{self:?}");
    }
}

/// Returns the same numbers for the same seed (Steele, Lea and Flood 2014, `SplitMix64`).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn pick(&mut self, choices: &[u64]) -> u64 {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Runs one server from its start to its end.
fn run(seed: u64) -> Totals {
    let mut random = Random(seed);
    let place = match random.below(4) {
        0 => Placement::Batched,
        1 => Placement::SameThread,
        _ => Placement::Spawn,
    };
    // Often shortly before the tick wraps, or before past ticks look like future ones.
    let wrap = random.pick(&[1 << 32, 1 << 31, 1 << 32]);
    let start = match random.below(4) {
        0 => 0,
        1 => random.below(1 << 32),
        _ => wrap - random.below(2 * HOUR),
    };
    let start = start - start % COARSE;
    let settings = settings(&mut random);
    let world = simulate((random, start), (place, settings), |state| {
        state.bursts = 1 + state.random.below(6) as u32;
        let due = state.now + state.random.below(2 * SECOND);
        state.plan(due, Planned::Burst);
    });
    world.state().totals
}

/// Runs a server with these settings from time `start` until a planned step has stopped it.
fn simulate(
    (random, start): (Random, u64),
    (place, settings): (Placement, Settings),
    plan: impl FnOnce(&mut WorldState),
) -> Rc<World> {
    let server = Server::open(settings, Arc::new(SimulatedProgram), None).expect("a port");
    let server = Arc::new(server);
    server.set_waiters(Box::new(|clock, bell| Box::new(SuspendedResponses::new(clock, bell))));
    let workers = Arc::new(SimulatedWorkers::new(place));
    let world = World::new((random, start), (Arc::clone(&server), Arc::clone(&workers)));
    program::enter(Some(&world));
    let messages = capture();
    plan(&mut world.state());
    let driver = Simulated(Rc::clone(&world));
    let clock = Rc::clone(&world.clock);
    let mut event_loop = EventLoop::open(server, workers, 0, (driver, clock)).expect("a loop");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build_local(tokio::runtime::LocalOptions::default())
        .expect("a runtime");
    let ended = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(tokio::task::unconstrained(event_loop.turns())).expect("no call fails");
        check_end(&mut event_loop, &world);
    }));
    drop(event_loop);
    drop(runtime);
    program::enter(None);
    assert!(ended.is_ok(), "the run failed");
    for message in messages.end() {
        assert!(!message.contains("the server panicked"), "{message}");
        assert!(!message.contains("cannot be"), "{message}");
    }
    world
}

/// Runs scripted clients, without other traffic.
fn play(place: Placement, scripts: &[&[(u64, Action)]]) -> Totals {
    let clients: Vec<ScriptedClient> = scripts
        .iter()
        .map(|script| ScriptedClient { connects_at: 0, host: 1, script: script.to_vec() })
        .collect();
    play_clients(place, 10, &clients).0
}

/// A client that follows a script.
#[derive(Clone)]
struct ScriptedClient {
    /// When it connects.
    connects_at: u64,
    /// The last byte of the address.
    host: u8,
    script: Vec<(u64, Action)>,
}

/// Runs scripted clients, without other traffic, on a server with at most `connections`
/// connections. Also returns the outcomes in order: the time, the client and the outcome.
fn play_clients(
    place: Placement,
    connections: usize,
    clients: &[ScriptedClient],
) -> (Totals, Vec<(u64, usize, Outcome)>) {
    let settings = Settings { timeouts: Timeouts::default(), ..settings(&mut Random(1)) };
    let settings = Settings {
        connections: Some(connections),
        connections_per_address: connections,
        ..settings
    };
    let world = simulate((Random(1), 0), (place, settings), |state| {
        for ScriptedClient { connects_at, host, script } in clients {
            let key = state.add_client(|key, random| {
                Client::new(key, random, *connects_at).scripted(*host, script)
            });
            state.plan(*connects_at, Planned::Act(key, 0));
        }
        state.plan(HOUR, Planned::Stop);
    });
    let state = world.state();
    (state.totals, state.outcomes.clone())
}

/// A worker that hangs for a disconnected client is replaced at the time limit of the handler.
/// There is no other traffic, so only the timer can wake the loop for it.
#[test]
fn replaces_a_worker_that_hangs_for_a_peer_that_left_without_other_traffic() {
    let hangs = Action::Get("work/0/3000000");
    let totals = play(Placement::Spawn, &[&[(10, hangs.clone()), (500, Action::Reset)]]);
    assert_eq!(totals.overdue, 1);
    // If no worker had started when the client disconnected, the request is withdrawn.
    let totals =
        play(Placement::Spawn, &[&[(10, Action::Get("work/900/3000000")), (500, Action::Reset)]]);
    assert_eq!(totals.overdue, 0);
}

/// Symptom: a suspended response stayed until its timeout if the client had half-closed the
/// connection with its request. Cause: the event of the request also reported the close, before the
/// response was suspended, and no later event reported it. Fix: a connection checks for a close
/// when its response is suspended.
#[test]
fn ends_a_held_reply_whose_peer_left_with_its_request() {
    for place in [Placement::SameThread, Placement::Batched, Placement::Spawn] {
        let poll = [(10, Action::Get("hold/9000000")), (0, Action::Finish)];
        assert_eq!(play(place, &[&poll]).closed, 1);
    }
}

/// The server has 32 connections: from one address 2 with suspended responses and 22 idle ones, and
/// from each of four other addresses 2 idle ones. For a new client it closes connections only of
/// the address with more than 1/16 of all, and only idle ones.
#[test]
fn closes_idle_connections_of_crowded_addresses_when_every_place_is_taken() {
    let works =
        ScriptedClient { connects_at: 0, host: 1, script: vec![(10, Action::Get("hold/9000000"))] };
    let crowd = vec![ScriptedClient { script: vec![(10, PAGE)], ..works.clone() }; 22];
    let others = (0..8).map(|number| idle(0, 2 + number / 2));
    let newcomers = (0..4).map(|number| idle(5 * SECOND * (1 + number), 100 + number as u8));
    let clients: Vec<ScriptedClient> =
        [works.clone(), works].into_iter().chain(crowd).chain(others).chain(newcomers).collect();
    let (_, outcomes) = play_clients(Placement::SameThread, 32, &clients);
    let early = outcomes.iter().filter(|(time, ..)| *time < 60 * SECOND);
    let (mut answered, mut closed) = (Vec::new(), Vec::new());
    for (time, peer, outcome) in early {
        match outcome {
            Outcome::Answered => answered.push(*peer),
            Outcome::Closed => closed.push((*time, *peer)),
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, (2..36).collect::<Vec<_>>(), "all but suspended clients are answered");
    // The loop makes room for the next client before that client connects.
    assert!((4..=5).contains(&closed.len()), "{closed:?}");
    assert!(closed.iter().all(|(_, peer)| (2..24).contains(peer)), "{closed:?}");
    assert!(closed.iter().all(|(time, _)| time.is_multiple_of(5 * SECOND)), "{closed:?}");
}

/// Sixteen addresses have 2 of 32 connections each: no address has more than 1/16.
#[test]
fn leaves_idle_connections_to_addresses_with_a_sixteenth_of_the_places() {
    let mut clients: Vec<ScriptedClient> = (0..32).map(|number| idle(0, number / 2)).collect();
    clients.push(idle(5 * SECOND, 100));
    let (_, outcomes) = play_clients(Placement::SameThread, 32, &clients);
    let first = outcomes.iter().find(|(.., outcome)| *outcome == Outcome::Closed);
    let timeout = Timeouts::default().idle.as_millis() as u64;
    assert!(first.is_some_and(|(time, ..)| *time >= timeout), "{outcomes:?}");
    let newcomer = outcomes.iter().find(|(_, peer, _)| *peer == 32);
    assert!(newcomer.is_some_and(|(time, ..)| *time >= timeout), "{outcomes:?}");
}

/// One address has 24 of 32 connections, all with suspended responses. The server closes no
/// connection of other addresses instead.
#[test]
fn closes_no_connection_of_another_address_for_a_crowded_one_at_work() {
    let works =
        ScriptedClient { connects_at: 0, host: 1, script: vec![(10, Action::Get("hold/9000000"))] };
    let mut clients = vec![works; 24];
    clients.extend((0..8).map(|number| idle(0, 2 + number / 2)));
    clients.push(idle(5 * SECOND, 100));
    let (_, outcomes) = play_clients(Placement::SameThread, 32, &clients);
    let first = outcomes.iter().find(|(.., outcome)| *outcome == Outcome::Closed);
    let timeout = Timeouts::default().idle.as_millis() as u64;
    assert!(first.is_some_and(|(time, ..)| *time >= timeout), "{outcomes:?}");
}

#[test]
fn leaves_a_connection_its_first_second_when_every_place_is_taken() {
    let mut clients: Vec<ScriptedClient> = (0..32).map(|_| idle(0, 1)).collect();
    clients.push(idle(500, 100));
    let (_, outcomes) = play_clients(Placement::SameThread, 32, &clients);
    let first = outcomes.iter().find(|(.., outcome)| *outcome == Outcome::Closed);
    assert!(first.is_some_and(|(time, ..)| (SECOND..2 * SECOND).contains(time)), "{outcomes:?}");
}

const PAGE: Action = Action::Get("page/5");

/// A client that requests a page and stays connected.
fn idle(connects_at: u64, host: u8) -> ScriptedClient {
    ScriptedClient { connects_at, host, script: vec![(10, PAGE)] }
}

/// Checks that all connections have drained, in time, and that the loop is empty.
fn check_end(event_loop: &mut EventLoop<Simulated>, world: &Rc<World>) {
    let cut = event_loop.load();
    let mut state = world.state();
    state.report_failure();
    let stopped = state.stopped.expect("the plan ends with a stop");
    let (now, lost) = (state.now, state.lost);
    let drain = state.settings.timeouts.drain.as_millis() as u64;
    assert!(
        now <= stopped + drain + SLACK + lost,
        "stopped at {stopped}, ended at {now}: drain {drain}, lost {lost}"
    );
    state.totals.cut += cut as u64;
    drop(state);
    assert_eq!(event_loop.wheel.next().is_some(), cut > 0, "the wheel is not empty");
    assert!(event_loop.context.output.is_empty() && event_loop.context.input.is_empty());
    assert!(event_loop.context.deferred_work.is_none());
    assert!(event_loop.buffers.len() <= 64 && event_loop.letters.is_empty());
    assert!(event_loop.abandoned.len() + event_loop.overdue.len() == 0 || !world.workers.is_idle());
    assert_eq!(event_loop.task_results.upgraded(), 0);
    for token in event_loop.slab.tokens() {
        event_loop.remove(token);
    }
    assert_eq!((event_loop.slab.len(), event_loop.wheel.next()), (0, None));
    assert_eq!(world.state().held, 0, "a suspended response has no connection");
    assert_eq!(
        event_loop.context.config.snapshot_count(),
        1,
        "a snapshot without connections is kept"
    );
    assert_eq!(event_loop.server.census.filled().0, 0, "the census counts a closed connection");
}

fn settings(random: &mut Random) -> Settings {
    let mut wait =
        |most: &[u64]| Duration::from_millis(1 + random.pick(most) - random.pick(&[0, 1]));
    let timeouts = Timeouts {
        first_byte: wait(&[2 * SECOND, 10 * SECOND, 200 * SECOND]),
        handshake: Duration::from_secs(5),
        head: wait(&[SECOND, 10 * SECOND, 140 * SECOND]),
        body: wait(&[5 * SECOND, 10 * SECOND, 60 * SECOND]),
        handler: HANDLER,
        write: wait(&[5 * SECOND, 30 * SECOND, 131_072]),
        rate: 1024,
        idle: wait(&[5 * SECOND, 75 * SECOND, 131_072, HOUR, 3 * DAY, 30 * DAY]),
        queue: Duration::from_secs(1),
        linger: Duration::from_secs(2),
        leave: None,
        drain: wait(&[SECOND, 30 * SECOND]),
    };
    Settings {
        listeners: vec![Listen {
            backlog: 16 + random.below(2) as i32,
            ..Listen::on("127.0.0.1:0".parse().expect("an address"))
        }],
        loops: 1,
        timeouts,
        guards: Guards::OFF,
        connections: Some(random.pick(&[4, 20, 100, 2000]) as usize),
        connections_per_address: random.pick(&[2, 10, 100, 2000]) as usize,
        unsent: 1 << 20,
        ..Settings::default()
    }
}

/// Plans clients and other events, and then either the next burst or the stop.
fn burst(state: &mut WorldState) {
    let now = state.now;
    let count = match state.random.below(4) {
        0 => 1,
        1 => 3,
        _ => state.random.below(40),
    };
    // Sometimes more clients connect at one moment than one turn accepts.
    let is_crowd = state.random.below(100) == 0;
    let count = if is_crowd { 1500 } else { count };
    let spread = if is_crowd { 1 } else { state.random.pick(&[1, 2 * SECOND, 100 * SECOND]) };
    // A crowd of slow handlers would block the loop for longer than the clients expect.
    let request_kind = (state.random.below(3) == 0).then(|| state.random.below(18));
    let request_kind = request_kind.filter(|kind| !is_crowd || *kind != 1);
    for _ in 0..count {
        let connects_at = now + state.random.below(spread);
        let key = state
            .add_client(|key, random| Client::new(key, random, connects_at).with(request_kind));
        state.plan(connects_at, Planned::Act(key, 0));
    }
    if matches!(request_kind, Some(8..=10)) {
        // More suspended responses wait for the event than one turn sends to.
        let due = now + spread + state.random.below(SECOND);
        state.plan(due, Planned::News);
    }
    for _ in 0..state.random.below(4) {
        let due = now + state.random.pick(&[SECOND, 30 * SECOND, 1000 * SECOND]);
        let due = due - state.random.below(due - now);
        let step = match state.random.below(6) {
            0 => Planned::Reload,
            1 => Planned::MakeRoom,
            2 => Planned::WallClock,
            _ => Planned::News,
        };
        state.plan(due, step);
    }
    if state.random.below(10) == 0 {
        state.exhausted_until = now + state.random.below(2 * SECOND);
    }
    let rest =
        state.random.pick(&[2 * SECOND, 100 * SECOND, 1000 * SECOND, 3 * HOUR, 3 * DAY, 60 * DAY]);
    let rest = 1 + state.random.below(rest);
    state.bursts -= 1;
    let next = if state.bursts == 0 { Planned::Stop } else { Planned::Burst };
    state.plan(now + rest, next);
    if state.bursts == 0 && state.random.below(8) == 0 {
        // A second stop ends the server at once.
        let due = now + rest + state.random.below(SECOND);
        state.plan(due, Planned::Stop);
    }
}

/// Changes the settings of the server.
fn reload(world: &World) {
    let mut state = world.state();
    if state.stopped.is_some() {
        return;
    }
    let mut settings = settings(&mut state.random);
    settings.listeners[0].address = state.settings.listeners[0].address.clone();
    drop(state);
    world.server.replace(settings, Arc::new(SimulatedProgram), None).expect("the same address");
    let mut state = world.state();
    state.settings = Arc::clone(&world.server.generation().settings);
    state.note_room();
}

/// Asks the loop to close idle connections.
fn make_room(world: &World) {
    let mut state = world.state();
    state.made_room = state.now;
    let room = RoomWanted { count: state.random.below(10) as usize, known_too: true };
    world.server.loops[0].mailbox.post(Letter::MakeRoom(room));
}
