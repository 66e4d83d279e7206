//! A simulated week: the loop itself, on a simulated system, serves simulated peers for days.
//!
//! A seed decides everything. Each run is hours to months of bursts and rests, with slow and silent peers, held
//! replies, reloads, suspensions of the machine and a clock that wraps. What must hold at any time:
//!
//! - each deadline strikes once, no earlier than it may and no later than the wheel and the alarm allow;
//! - whatever can be answered at once is answered without time passing;
//! - no turn without cause: a few turns in a row at most move nothing, and the alarm of a loop at rest rings for
//!   deadlines alone;
//! - after the stop everything drains, and nothing is left in the loop.
//!
//! `BINE_SIMULATED_RUNS` says how many runs there are, `BINE_SIMULATED_SEED` which seed is the first; a failure prints
//! the command that repeats it.

mod program;
mod remote;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::event_loop::EventLoop;
use crate::limits::Room as Wanted;
use crate::mailbox::Letter;
use crate::scheduling::Place;
use crate::server::Server;
use crate::settings::{Guards, Listen, Settings, Timeouts};

use bine_log::test_support::capture;
use program::{Program, Room, Workers};
use remote::{Deed, Outcome, Remote};
use world::{COARSE, SLACK, Simulated, State, Step, World};

/// Enough for more than a week in each test run.
const RUNS: u64 = 60;
/// The same under all settings: whoever watches workers does not know under which each was asked.
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
    let mut all = Seen::default();
    for seed in first..first + runs {
        let Ok(seen) = catch_unwind(|| run(seed)) else {
            panic!(
                "failed; to repeat: BINE_SIMULATED_SEED={seed} BINE_SIMULATED_RUNS=1 \
                 cargo test -p bine-server --lib simulation"
            );
        };
        all.add(&seen);
    }
    println!("{runs} runs, {} days: {all:?}", all.time / DAY);
    if runs >= RUNS {
        assert!(all.time > 7 * DAY, "{all:?}");
        all.check();
    }
}

/// How often what happened, so that a simulation that tries nothing is noticed.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Milliseconds.
    time: u64,
    turns: u64,
    rings: u64,
    connections: u64,
    requests: u64,
    replies: u64,
    /// 408 and 504.
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

impl Seen {
    fn add(&mut self, other: &Self) {
        let Self { time, turns, rings, connections, requests, replies, timeouts, .. } = other;
        self.time += time;
        self.turns += turns;
        self.rings += rings;
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

/// The same numbers each time from the same seed (Steele, Lea and Flood 2014, `SplitMix64`).
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

/// One server from its start to its end.
fn run(seed: u64) -> Seen {
    let mut random = Random(seed);
    let place = match random.below(4) {
        0 => Place::Gathered,
        1 => Place::Here,
        _ => Place::Elsewhere,
    };
    // Often shortly before the tick wraps, or before moments behind it look like those ahead.
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
        state.plan(due, Step::Burst);
    });
    world.state().seen
}

/// A server with these settings, from `start`, until what `plan` plans has stopped it.
fn simulate(
    (random, start): (Random, u64),
    (place, settings): (Place, Settings),
    plan: impl FnOnce(&mut State),
) -> Rc<World> {
    let server = Server::open(settings, Arc::new(Program), None).expect("a port");
    let server = Arc::new(server);
    server.set_waiters(Box::new(|clock, bell| Box::new(Room::new(clock, bell))));
    let workers = Arc::new(Workers::new(place));
    let world = World::new((random, start), (Arc::clone(&server), Arc::clone(&workers)));
    program::enter(Some(&world));
    let messages = capture();
    plan(&mut world.state());
    let driver = Simulated(Rc::clone(&world));
    let clock = Rc::clone(&world.clock);
    let mut own = EventLoop::open(server, workers, 0, (driver, clock)).expect("a loop");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build_local(tokio::runtime::LocalOptions::default())
        .expect("a runtime");
    let ended = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(tokio::task::unconstrained(own.turns())).expect("no call fails");
        check_end(&mut own, &world);
    }));
    drop(own);
    drop(runtime);
    program::enter(None);
    assert!(ended.is_ok(), "the run failed");
    for message in messages.end() {
        assert!(!message.contains("fault of the server"), "{message}");
        assert!(!message.contains("cannot be"), "{message}");
    }
    world
}

/// Peers that do as their scripts say, with nobody else.
fn play(place: Place, scripts: &[&[(u64, Deed)]]) -> Seen {
    let visits: Vec<Visit> =
        scripts.iter().map(|script| Visit { came: 0, host: 1, script: script.to_vec() }).collect();
    play_visits(place, 10, &visits).0
}

/// A peer that does as its script says.
#[derive(Clone)]
struct Visit {
    /// When it comes to the door.
    came: u64,
    /// The last byte of its address.
    host: u8,
    script: Vec<(u64, Deed)>,
}

/// Peers that do as their scripts say, with nobody else, of a server with so many places. The second is what became of
/// each, in order: when, of which of them, and what.
fn play_visits(
    place: Place,
    places: usize,
    visits: &[Visit],
) -> (Seen, Vec<(u64, usize, Outcome)>) {
    let settings = Settings { timeouts: Timeouts::default(), ..settings(&mut Random(1)) };
    let settings =
        Settings { connections: Some(places), connections_per_address: places, ..settings };
    let world = simulate((Random(1), 0), (place, settings), |state| {
        for Visit { came, host, script } in visits {
            let key = state
                .add_remote(|key, random| Remote::new(key, random, *came).scripted(*host, script));
            state.plan(*came, Step::Act(key, 0));
        }
        state.plan(HOUR, Step::Stop);
    });
    let state = world.state();
    (state.seen, state.outcomes.clone())
}

/// A worker that hangs while its peer has left is replaced when its time is over. The loop has no other alarm then that
/// could wake it: nothing else happens.
#[test]
fn replaces_a_worker_that_hangs_for_a_peer_that_left_without_other_traffic() {
    let hangs = Deed::Get("work/0/3000000");
    let seen = play(Place::Elsewhere, &[&[(10, hangs.clone()), (500, Deed::Reset)]]);
    assert_eq!(seen.overdue, 1);
    // The same when no worker had begun as the peer left: its request is withdrawn.
    let seen =
        play(Place::Elsewhere, &[&[(10, Deed::Get("work/900/3000000")), (500, Deed::Reset)]]);
    assert_eq!(seen.overdue, 0);
}

/// Symptom: a held reply whose peer had closed its side with the request was held until its time was over. Cause: the
/// end came with the request's event, before the connection was held, and no event told of it again. Fix: a connection
/// that is held looks whether its end has come already.
#[test]
fn ends_a_held_reply_whose_peer_left_with_its_request() {
    for place in [Place::Here, Place::Gathered, Place::Elsewhere] {
        let poll = [(10, Deed::Get("hold/9000000")), (0, Deed::Finish)];
        assert_eq!(play(place, &[&poll]).closed, 1);
    }
}

/// The server has 32 places. Two at work and 22 idle connections of one address, and two idle ones of each of four
/// others take them all. Only the address with more than a sixteenth of the places gives way, and of its connections
/// the idle ones.
#[test]
fn closes_idle_connections_of_crowded_addresses_when_every_place_is_taken() {
    let works = Visit { came: 0, host: 1, script: vec![(10, Deed::Get("hold/9000000"))] };
    let crowd = vec![Visit { script: vec![(10, PAGE)], ..works.clone() }; 22];
    let others = (0..8).map(|number| idle(0, 2 + number / 2));
    let newcomers = (0..4).map(|number| idle(5 * SECOND * (1 + number), 100 + number as u8));
    let visits: Vec<Visit> =
        [works.clone(), works].into_iter().chain(crowd).chain(others).chain(newcomers).collect();
    let (_, outcomes) = play_visits(Place::Here, 32, &visits);
    let early = outcomes.iter().filter(|(time, ..)| *time < 60 * SECOND);
    let (mut answered, mut closed) = (Vec::new(), Vec::new());
    for (time, peer, outcome) in early {
        match outcome {
            Outcome::Answered => answered.push(*peer),
            Outcome::Closed => closed.push((*time, *peer)),
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, (2..36).collect::<Vec<_>>(), "all but those at work are answered");
    // The door has a place for the next one before that comes.
    assert!((4..=5).contains(&closed.len()), "{closed:?}");
    assert!(closed.iter().all(|(_, peer)| (2..24).contains(peer)), "{closed:?}");
    assert!(closed.iter().all(|(time, _)| time.is_multiple_of(5 * SECOND)), "{closed:?}");
}

/// Sixteen addresses have two of 32 places each: none has more than a sixteenth.
#[test]
fn leaves_idle_connections_to_addresses_with_a_sixteenth_of_the_places() {
    let mut visits: Vec<Visit> = (0..32).map(|number| idle(0, number / 2)).collect();
    visits.push(idle(5 * SECOND, 100));
    let (_, outcomes) = play_visits(Place::Here, 32, &visits);
    let first = outcomes.iter().find(|(.., outcome)| *outcome == Outcome::Closed);
    let timeout = Timeouts::default().idle.as_millis() as u64;
    assert!(first.is_some_and(|(time, ..)| *time >= timeout), "{outcomes:?}");
    let newcomer = outcomes.iter().find(|(_, peer, _)| *peer == 32);
    assert!(newcomer.is_some_and(|(time, ..)| *time >= timeout), "{outcomes:?}");
}

/// One address has 24 of 32 places, and all its connections are at work. The others do not give way in its stead.
#[test]
fn closes_no_connection_of_another_address_for_a_crowded_one_at_work() {
    let works = Visit { came: 0, host: 1, script: vec![(10, Deed::Get("hold/9000000"))] };
    let mut visits = vec![works; 24];
    visits.extend((0..8).map(|number| idle(0, 2 + number / 2)));
    visits.push(idle(5 * SECOND, 100));
    let (_, outcomes) = play_visits(Place::Here, 32, &visits);
    let first = outcomes.iter().find(|(.., outcome)| *outcome == Outcome::Closed);
    let timeout = Timeouts::default().idle.as_millis() as u64;
    assert!(first.is_some_and(|(time, ..)| *time >= timeout), "{outcomes:?}");
}

#[test]
fn leaves_a_connection_its_first_second_when_every_place_is_taken() {
    let mut visits: Vec<Visit> = (0..32).map(|_| idle(0, 1)).collect();
    visits.push(idle(500, 100));
    let (_, outcomes) = play_visits(Place::Here, 32, &visits);
    let first = outcomes.iter().find(|(.., outcome)| *outcome == Outcome::Closed);
    assert!(first.is_some_and(|(time, ..)| (SECOND..2 * SECOND).contains(time)), "{outcomes:?}");
}

const PAGE: Deed = Deed::Get("page/5");

/// A peer that asks for a page and stays.
fn idle(came: u64, host: u8) -> Visit {
    Visit { came, host, script: vec![(10, PAGE)] }
}

/// Everything has drained, in time, and left nothing.
fn check_end(own: &mut EventLoop<Simulated>, world: &Rc<World>) {
    let cut = own.load();
    let mut state = world.state();
    state.tell_failure();
    let (stopped, now, lost) = (state.stopped.expect("it was told to stop"), state.now, state.lost);
    let drain = state.settings.timeouts.drain.as_millis() as u64;
    assert!(
        now <= stopped + drain + SLACK + lost,
        "stopped at {stopped}, ended at {now}: drain {drain}, lost {lost}"
    );
    state.seen.cut += cut as u64;
    drop(state);
    assert_eq!(own.wheel.next().is_some(), cut > 0, "an entry of the wheel is left");
    assert!(own.context.output.is_empty() && own.context.input.is_empty());
    assert!(own.context.deferred_work.is_none());
    assert!(own.buffers.len() <= 64 && own.letters.is_empty());
    assert!(own.abandoned.len() + own.overdue.len() == 0 || !world.workers.is_at_rest());
    assert_eq!(own.returns.departed(), 0);
    for token in own.slab.tokens() {
        own.remove(token);
    }
    assert_eq!((own.slab.len(), own.wheel.next()), (0, None));
    assert_eq!(world.state().held, 0, "somebody waits without a connection");
    assert_eq!(own.context.config.shares(), 1, "settings are kept that no connection needs");
    assert_eq!(own.server.census.filled().0, 0, "the census counts somebody");
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

/// Peers come, and what else may happen meanwhile; later the next come, or the end.
fn burst(state: &mut State) {
    let now = state.now;
    let count = match state.random.below(4) {
        0 => 1,
        1 => 3,
        _ => state.random.below(40),
    };
    // Now and then more at one moment than one turn handles.
    let is_crowd = state.random.below(100) == 0;
    let count = if is_crowd { 1500 } else { count };
    let spread = if is_crowd { 1 } else { state.random.pick(&[1, 2 * SECOND, 100 * SECOND]) };
    // A crowd of slow handlers would hold the loop up for longer than peers are told to allow for.
    let theme = (state.random.below(3) == 0).then(|| state.random.below(18));
    let theme = theme.filter(|kind| !is_crowd || *kind != 1);
    for _ in 0..count {
        let came = now + state.random.below(spread);
        let key = state.add_remote(|key, random| Remote::new(key, random, came).with(theme));
        state.plan(came, Step::Act(key, 0));
    }
    if matches!(theme, Some(8..=10)) {
        // More wait for it than one turn tells.
        let due = now + spread + state.random.below(SECOND);
        state.plan(due, Step::News);
    }
    for _ in 0..state.random.below(4) {
        let due = now + state.random.pick(&[SECOND, 30 * SECOND, 1000 * SECOND]);
        let due = due - state.random.below(due - now);
        let step = match state.random.below(6) {
            0 => Step::Reload,
            1 => Step::MakeRoom,
            2 => Step::WallClock,
            _ => Step::News,
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
    let next = if state.bursts == 0 { Step::Stop } else { Step::Burst };
    state.plan(now + rest, next);
    if state.bursts == 0 && state.random.below(8) == 0 {
        // Told twice, it ends at once.
        let due = now + rest + state.random.below(SECOND);
        state.plan(due, Step::Stop);
    }
}

/// The server is told other settings.
fn reload(world: &World) {
    let mut state = world.state();
    if state.stopped.is_some() {
        return;
    }
    let mut settings = settings(&mut state.random);
    settings.listeners[0].address = state.settings.listeners[0].address.clone();
    drop(state);
    world.server.replace(settings, Arc::new(Program), None).expect("the same address");
    let mut state = world.state();
    state.settings = Arc::clone(&world.server.generation().settings);
    state.note_room();
}

/// Idle connections are to close.
fn make_room(world: &World) {
    let mut state = world.state();
    state.made_room = state.now;
    let room = Wanted { count: state.random.below(10) as usize, known_too: true };
    world.server.loops[0].mailbox.post(Letter::MakeRoom(room));
}
