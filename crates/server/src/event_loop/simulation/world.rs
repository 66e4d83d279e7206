//! The simulated system under a loop: time, epoll, the timer, the accept queue and what is planned.
//!
//! Time moves in [`World::rest`] only, when the loop waits and nothing is ready, and in handlers that take time.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::address::Peer;
use crate::event_loop::alarm::Timer;
use crate::event_loop::driver::{Driver, Nested, Wait};
use crate::event_loop::{ALARM, BATCH, BELL, LISTENER};
use crate::handler::{ReceiveBuffer, Wire};
use crate::listener::Listener;
use crate::mailbox::Mailbox;
use crate::server::Server;
use crate::settings::Settings;
use crate::slab::Token;
use crate::system::Transfer;
use crate::time::Clock;
use crate::tls::Session;
use crate::transport::Transport;

use super::program::Workers;
use super::remote::{Outcome, Remote};
use super::{HANDLER, Random, Seen};

/// One step of the coarse clock that ticks come from.
pub(super) const COARSE: u64 = 4;
/// The most by which a timer expires late.
const LATENCY: u64 = 3;
/// How late a deadline may be noticed: a slot of the wheel, the alarm's lag, the timer's latency and two readings of
/// the coarse clock.
pub(super) const SLACK: u64 = 128 + 5 + LATENCY + 2 * COARSE;
/// A loop may take this many turns in a row that move nothing.
const MOST_IDLE_TURNS: u32 = 3;
/// The longest pause of a door that was shut, with its alarm.
const DOOR: u64 = 100 + SLACK;

/// What is planned for a moment.
pub(super) enum Step {
    /// A peer does what it has in mind, if this is the latest such step of it.
    Act(usize, u64),
    /// A peer reads on.
    Read(usize),
    /// The server must have reacted to a peer.
    Expect(usize, u64),
    /// Peers come.
    Burst,
    Wake(Waker),
    Begin(u64),
    Finish(u64),
    CheckWorkers,
    CheckDoor,
    News,
    Reload,
    MakeRoom,
    WallClock,
    Stop,
}

pub(super) struct World {
    pub(super) clock: Rc<Clock>,
    pub(super) server: Arc<Server>,
    pub(super) workers: Arc<Workers>,
    state: RefCell<State>,
    /// How often the nested wait has let tasks run without a change.
    yields: Cell<u32>,
}

pub(super) struct State {
    pub(super) random: Random,
    /// Milliseconds; the tick is their lower half, at the last step of the coarse clock.
    pub(super) now: u64,
    /// What the clock shows.
    shown: u64,
    /// Time that passed while the loop could not run: in handlers and while the machine was suspended.
    pub(super) lost: u64,
    plan: BTreeMap<(u64, u64), Step>,
    serial: u64,
    pub(super) remotes: BTreeMap<usize, Remote>,
    next_remote: usize,
    /// The peer at the other end of each accepted socket.
    sockets: HashMap<RawFd, usize>,
    /// Accepted and not made a transport yet.
    fresh: Vec<(RawFd, usize)>,
    pub(super) queue: VecDeque<usize>,
    door_is_open: bool,
    ready: VecDeque<Source>,
    timer: Option<u64>,
    /// Something came into the ready list since the runtime last looked.
    announced: bool,
    /// The runtime has seen that, and was not told since that nothing is left.
    readable: bool,
    /// When the loop could last not run.
    held_up: u64,
    mailbox: Option<RawFd>,
    /// Its letters were announced, and the loop has not looked since.
    mailbox_told: bool,
    /// Counts whatever a turn has moved.
    progress: u64,
    progress_before: u64,
    idle_turns: u32,
    /// The alarm began this turn.
    rang: bool,
    /// Rings that moved nothing, since the last step of the plan.
    rings: u64,
    resting_since: u64,
    /// How long connections were open since then, all together.
    open_time: u64,
    /// How long the door was shut.
    shut_time: u64,
    /// Since when there has been a place for another connection.
    room_since: Option<u64>,
    pub(super) settings: Arc<Settings>,
    /// No descriptor is left until then.
    pub(super) exhausted_until: u64,
    /// When every place was last taken: who is silent gives way to a newcomer.
    pub(super) full_at: u64,
    /// When slow connections were closed to make room.
    pub(super) made_room: u64,
    pub(super) stopped: Option<u64>,
    pub(super) news: u64,
    /// Replies that are held.
    pub(super) held: u64,
    pub(super) bell: Option<crate::handler::Bell>,
    pub(super) bursts: u32,
    pub(super) seen: Seen,
    /// What became of peers that do as a test says: when, of which, and what.
    pub(super) outcomes: Vec<(u64, usize, Outcome)>,
    tasks_woken: bool,
    /// What a transport found wrong. It is told when the loop waits, since the loop survives panics in its turns.
    failure: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Mailbox,
    Alarm,
    Door,
    Remote(usize),
}

impl World {
    pub(super) fn new(
        (random, start): (Random, u64),
        (server, workers): (Arc<Server>, Arc<Workers>),
    ) -> Rc<Self> {
        let clock = Rc::new(Clock::told(1_795_208_400));
        clock.advance(Duration::from_millis(start));
        let settings = Arc::clone(&server.generation().settings);
        let state = State {
            random,
            now: start,
            shown: start,
            lost: 0,
            plan: BTreeMap::new(),
            serial: 0,
            remotes: BTreeMap::new(),
            next_remote: 0,
            sockets: HashMap::new(),
            fresh: Vec::new(),
            queue: VecDeque::new(),
            door_is_open: false,
            ready: VecDeque::new(),
            timer: None,
            announced: false,
            readable: false,
            held_up: 0,
            mailbox: None,
            mailbox_told: false,
            progress: 0,
            progress_before: 0,
            idle_turns: 0,
            rang: false,
            rings: 0,
            resting_since: start,
            open_time: 0,
            shut_time: 0,
            room_since: Some(start),
            settings,
            exhausted_until: 0,
            full_at: 0,
            made_room: 0,
            stopped: None,
            news: 0,
            held: 0,
            bell: None,
            bursts: 0,
            seen: Seen::default(),
            outcomes: Vec::new(),
            tasks_woken: false,
            failure: None,
        };
        Rc::new(Self { clock, server, workers, state: RefCell::new(state), yields: Cell::new(0) })
    }

    #[track_caller]
    pub(super) fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    /// A handler keeps its loop for so long.
    pub(super) fn hold_up(&self, milliseconds: u64) {
        let mut state = self.state();
        state.lost += milliseconds;
        state.held_up = state.now + milliseconds;
        let now = state.held_up;
        self.move_to(&mut state, now);
    }

    /// Resolves so many milliseconds from now.
    pub(super) async fn sleep(&self, milliseconds: u64) {
        let until = self.state().now + milliseconds;
        poll_fn(|task| {
            let mut state = self.state();
            if state.now >= until {
                return Poll::Ready(());
            }
            state.plan(until, Step::Wake(task.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    fn move_to(&self, state: &mut State, now: u64) {
        state.seen.time += now - state.now;
        state.shut_time += if state.door_is_open { 0 } else { now - state.now };
        state.open_time += (now - state.now) * state.sockets.len() as u64;
        state.now = now;
        let coarse = now - now % COARSE;
        if coarse > state.shown {
            self.clock.advance(Duration::from_millis(coarse - state.shown));
            state.shown = coarse;
        }
    }

    /// Does what is planned up to now.
    fn do_planned(&self) {
        loop {
            let step = {
                let mut state = self.state();
                let now = state.now;
                let Some(entry) = state.plan.first_entry() else { break };
                if entry.key().0 > now {
                    break;
                }
                let ((due, _), step) = entry.remove_entry();
                if !matches!(step, Step::Expect(..) | Step::CheckWorkers | Step::CheckDoor) {
                    (state.rings, state.open_time, state.shut_time) = (0, 0, 0);
                    state.resting_since = state.now;
                }
                (due, step)
            };
            self.step(step);
        }
        self.look_at_mailbox();
        let new = self.workers.take_new();
        let mut state = self.state();
        for (id, wait) in new {
            let due = state.now + wait;
            state.plan(due, Step::Begin(id));
        }
        state.close_fresh();
    }

    fn step(&self, (due, step): (u64, Step)) {
        match step {
            Step::Wake(waker) => {
                waker.wake();
                self.state().tasks_woken = true;
            }
            Step::Begin(id) => {
                let now = self.state().now;
                if let Some(run) = self.workers.begin(id, now) {
                    let mut state = self.state();
                    let (now, handler) = (state.now, HANDLER.as_millis() as u64);
                    state.plan(now + run, Step::Finish(id));
                    if run > handler {
                        state.plan(now + handler + SLACK + 1, Step::CheckWorkers);
                    }
                }
            }
            Step::Finish(id) => {
                let now = self.state().now;
                self.workers.finish(id, now);
                self.state().progress += 1;
            }
            Step::CheckWorkers => self.check_workers(due),
            Step::News => {
                let mut state = self.state();
                state.news += 1;
                let bell = state.bell.clone();
                state.tell_waiters();
                drop(state);
                if let Some(bell) = bell {
                    bell.ring();
                }
            }
            Step::Reload => super::reload(self),
            Step::MakeRoom => super::make_room(self),
            Step::WallClock => {
                let unix = self.state().random.below(4_000_000_000);
                self.clock.jump(unix);
            }
            Step::Stop => {
                let mut state = self.state();
                state.stopped.get_or_insert(due);
                state.hurry();
                state.refuse_queue_later();
                drop(state);
                self.server.stop();
            }
            other => {
                self.state().step(due, &other);
            }
        }
        self.look_at_mailbox();
    }

    /// Workers whose time is over must have been replaced, and no others.
    fn check_workers(&self, due: u64) {
        let mut state = self.state();
        if state.stopped.is_some() {
            return;
        }
        // A loop that was held up when the time was over has that much longer to notice.
        if state.now > due + 1 || state.held_up + SLACK > due {
            let again = state.now + SLACK;
            return state.plan(again, Step::CheckWorkers);
        }
        state.seen.overdue += self.workers.overdue();
        if let Err(fault) = self.workers.check(state.now) {
            panic!("{fault}: {}", state.describe());
        }
    }

    fn look_at_mailbox(&self) {
        let mut state = self.state();
        if state.mailbox_is_ready() && !std::mem::replace(&mut state.mailbox_told, true) {
            state.make_ready(Source::Mailbox);
            state.progress += 1;
        }
    }

    /// Lets time pass until the next thing happens.
    fn rest(&self) {
        let mut state = self.state();
        let next = state.plan.first_key_value().map(|((due, _), _)| *due);
        let Some(mut next) = next.into_iter().chain(state.timer).min() else {
            panic!("the loop waits, and nothing will ever happen: {}", state.describe());
        };
        next = next.max(state.now);
        if state.random.below(2000) == 0 && state.stopped.is_none() {
            let most = [1_000, 60_000, 3_600_000, 100 * 3_600_000, 3000 * 3_600_000];
            let most = state.random.pick(&most);
            let pause = state.random.below(most);
            state.lost += pause;
            state.seen.suspensions += 1;
            next += pause;
            state.held_up = next;
        }
        state.check_rest(next);
        if next > state.now {
            state.idle_turns = 0;
        }
        self.move_to(&mut state, next);
        if state.timer.is_some_and(|due| due <= state.now) {
            state.timer = None;
            state.rang = true;
            state.seen.rings += 1;
            state.make_ready(Source::Alarm);
        }
    }

    /// Whether the turn that just ended did anything.
    fn judge_turn(&self) {
        let mut state = self.state();
        state.tell_failure();
        state.seen.turns += 1;
        let rang = std::mem::take(&mut state.rang);
        if state.progress > state.progress_before {
            state.idle_turns = 0;
        } else {
            state.rings += u64::from(rang);
            state.idle_turns += 1;
            assert!(
                state.idle_turns <= MOST_IDLE_TURNS,
                "{} turns in a row moved nothing: {}",
                state.idle_turns,
                state.describe()
            );
        }
        state.progress_before = state.progress;
    }
}

impl State {
    pub(super) fn plan(&mut self, due: u64, step: Step) {
        self.serial += 1;
        self.plan.insert((due.max(self.now), self.serial), step);
    }

    pub(super) fn add_remote(&mut self, make: impl FnOnce(usize, &mut Random) -> Remote) -> usize {
        let key = self.next_remote;
        self.next_remote += 1;
        let remote = make(key, &mut self.random);
        self.remotes.insert(key, remote);
        key
    }

    pub(super) fn fail(&mut self, fault: String) {
        self.failure.get_or_insert(fault);
    }

    pub(super) fn tell_failure(&self) {
        if let Some(fault) = &self.failure {
            panic!("{fault}; {}", self.describe());
        }
    }

    pub(super) fn most_connections(&self) -> usize {
        self.settings.connections.unwrap_or(usize::MAX)
    }

    pub(super) fn note_room(&mut self) {
        let is_full = self.sockets.len() >= self.most_connections();
        if is_full {
            self.full_at = self.now;
        }
        self.room_since = if is_full { None } else { self.room_since.or(Some(self.now)) };
    }

    /// Makes a peer's socket ready.
    pub(super) fn arrive(&mut self, key: usize) {
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        if remote.watch.is_some() {
            self.make_ready(Source::Remote(key));
        }
    }

    fn make_ready(&mut self, source: Source) {
        if !self.ready.contains(&source) {
            self.ready.push_back(source);
        }
        self.announced = true;
    }

    pub(super) fn connect(&mut self, key: usize) {
        if self.stopped.is_some() {
            self.remotes.remove(&key);
            return;
        }
        self.queue.push_back(key);
        let due = self.now + DOOR;
        self.plan(due, Step::CheckDoor);
        if self.door_is_open {
            self.make_ready(Source::Door);
        }
    }

    fn step(&mut self, due: u64, step: &Step) {
        match *step {
            Step::Act(key, serial) => self.act(key, serial),
            Step::Read(key) => self.read(key),
            Step::Expect(key, serial) => self.check_expected((key, serial), due),
            Step::Burst => super::burst(self),
            Step::CheckDoor => self.check_door(due),
            _ => unreachable!("the world does it"),
        }
    }

    /// With room for them, newcomers do not wait.
    fn check_door(&mut self, due: u64) {
        if self.now > due + 1 {
            let again = self.now + DOOR;
            return self.plan(again, Step::CheckDoor);
        }
        let calm = self.exhausted_until + DOOR <= self.now && self.stopped.is_none();
        let waited = self.queue.front().and_then(|key| self.remotes.get(key));
        let waited =
            waited.map_or(0, |remote| self.now.saturating_sub(remote.came.max(self.delayed())));
        let room =
            self.room_since.map_or(0, |since| self.now - since.max(self.delayed()).min(self.now));
        assert!(
            !(calm && waited >= DOOR && room >= DOOR),
            "a peer waits at an open door: {}",
            self.describe()
        );
    }

    /// When the loop was held up for the last time.
    fn delayed(&self) -> u64 {
        self.held_up
    }

    fn mailbox_is_ready(&self) -> bool {
        let Some(mailbox) = self.mailbox else { return false };
        // SAFETY: the mailbox lives as long as its server, which the world shares.
        let mailbox = unsafe { BorrowedFd::borrow_raw(mailbox) };
        let mut polled = [PollFd::new(&mailbox, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())) == Ok(1)
    }

    /// A socket that was accepted and got no transport was turned away.
    fn close_fresh(&mut self) {
        for (socket, key) in std::mem::take(&mut self.fresh) {
            self.sockets.remove(&socket);
            self.remotes.remove(&key);
            self.seen.turned_away += 1;
        }
        self.note_room();
    }

    fn refuse_queue_later(&mut self) {
        // The loop takes in whoever waits before it shuts the door for good.
        self.room_since = None;
    }

    /// While nothing is planned the alarm rings for deadlines alone.
    fn check_rest(&mut self, next: u64) {
        let rested = next - self.resting_since;
        let open = self.sockets.len();
        // Each connection has one ring a turn of the wheel, and one for each deadline that was moved.
        let most = 128 + 2 * self.open_time / 131_000;
        // A door that is shut for a moment is looked after.
        let paused = self.shut_time / 100;
        assert!(
            self.rings <= most + paused,
            "{} rings for nothing in {rested} ms with {open} connections: {}",
            self.rings,
            self.describe()
        );
    }

    pub(super) fn describe(&self) -> String {
        format!(
            "now {} (tick {:#x}), timer {:?}, {} in the queue, {} sockets, news {}",
            self.now,
            self.now as u32,
            self.timer,
            self.queue.len(),
            self.sockets.len(),
            self.news
        )
    }

    /// Moves events that are still ready into `batch`.
    fn collect(&mut self, batch: &mut Vec<epoll::Event>) {
        for _ in 0..self.ready.len() {
            if batch.len() == BATCH {
                return;
            }
            let Some(source) = self.ready.pop_front() else { return };
            let (data, flags, stays) = match source {
                Source::Alarm => (ALARM, EventFlags::IN, false),
                Source::Mailbox if self.mailbox_is_ready() => {
                    self.mailbox_told = false;
                    (BELL, EventFlags::IN, true)
                }
                Source::Door if self.door_is_open && !self.queue.is_empty() => {
                    (LISTENER, EventFlags::IN, true)
                }
                Source::Mailbox | Source::Door => continue,
                Source::Remote(key) => {
                    let Some(remote) = self.remotes.get(&key) else { continue };
                    let Some((token, flags)) = remote.readiness() else { continue };
                    (token, flags, false)
                }
            };
            if stays {
                self.ready.push_back(source);
            }
            batch.push(epoll::Event { flags, data: EventData::new_u64(data) });
        }
    }

    /// The peer's end of `socket`.
    pub(super) fn remote(&mut self, socket: RawFd) -> &mut Remote {
        let key = self.sockets[&socket];
        self.remotes.get_mut(&key).expect("a transport's peer lives as long as the transport")
    }
}

/// The driver of a simulated loop.
pub(super) struct Simulated(pub(super) Rc<World>);

pub(super) struct SimulatedTimer(Rc<World>);

/// The server's end of a simulated connection. The descriptor leads nowhere; its number names the connection.
pub(super) struct SimulatedTransport {
    socket: OwnedFd,
    world: Rc<World>,
}

impl Driver for Simulated {
    type Transport = SimulatedTransport;
    type Timer = SimulatedTimer;
    type Nested = Self;

    fn watch_mailbox(&self, mailbox: &Mailbox) -> io::Result<()> {
        self.0.state().mailbox = Some(mailbox.as_fd().as_raw_fd());
        Ok(())
    }

    fn timer(&self) -> io::Result<SimulatedTimer> {
        Ok(SimulatedTimer(Rc::clone(&self.0)))
    }

    fn watch_listener(&self, _listener: &Listener, _number: usize) -> io::Result<()> {
        let mut state = self.0.state();
        state.door_is_open = true;
        if !state.queue.is_empty() {
            state.make_ready(Source::Door);
        }
        Ok(())
    }

    fn forget_listener(&self, _listener: &Listener) {
        let mut state = self.0.state();
        state.door_is_open = false;
        state.ready.retain(|source| *source != Source::Door);
    }

    fn accept(&self, listener: &Listener) -> io::Result<(OwnedFd, Peer)> {
        let mut state = self.0.state();
        state.close_fresh();
        if state.now < state.exhausted_until {
            state.progress += 1;
            return Err(Errno::MFILE.into());
        }
        let Some(key) = state.queue.pop_front() else { return Err(Errno::AGAIN.into()) };
        state.progress += 1;
        if state.random.below(100) == 0 {
            state.remotes.remove(&key);
            return Err(Errno::CONNABORTED.into());
        }
        let socket = listener.as_fd().try_clone_to_owned()?;
        let peer = state.remotes[&key].peer;
        state.sockets.insert(socket.as_raw_fd(), key);
        state.fresh.push((socket.as_raw_fd(), key));
        state.note_room();
        Ok((socket, peer))
    }

    fn transport(&self, socket: OwnedFd, _session: Option<Box<Session>>) -> SimulatedTransport {
        let mut state = self.0.state();
        state.fresh.retain(|(fresh, _)| *fresh != socket.as_raw_fd());
        let key = state.sockets[&socket.as_raw_fd()];
        state.accepted(key);
        SimulatedTransport { socket, world: Rc::clone(&self.0) }
    }

    fn watch(&self, transport: &SimulatedTransport, token: Token) -> io::Result<()> {
        transport.watch(token, false);
        Ok(())
    }

    fn watch_room(&self, transport: &SimulatedTransport, token: Token) -> io::Result<()> {
        transport.watch(token, true);
        Ok(())
    }

    fn forget(&self, transport: &SimulatedTransport) {
        self.0.state().remote(transport.socket.as_raw_fd()).watch = None;
    }

    fn wait(&self, batch: &mut Vec<epoll::Event>, wait: Wait) -> io::Result<()> {
        self.0.judge_turn();
        loop {
            self.0.do_planned();
            self.0.state().collect(batch);
            let mut state = self.0.state();
            if !batch.is_empty() || wait == Wait::Never {
                return Ok(());
            }
            if state.random.below(1000) == 0 {
                // Interrupted.
                state.progress += 1;
                return Ok(());
            }
            drop(state);
            self.0.rest();
        }
    }

    fn nest(&self) -> io::Result<Self> {
        Ok(Self(Rc::clone(&self.0)))
    }

    fn depart(_link: SimulatedTransport, _peer: Peer) {
        unreachable!("nobody speaks another protocol");
    }

    fn wire(
        _link: SimulatedTransport,
        _received: Vec<u8>,
        _space: ReceiveBuffer,
    ) -> io::Result<Wire> {
        unreachable!("nobody upgrades");
    }
}

impl Nested for Simulated {
    type Ready<'n> = &'n Self;

    async fn readable(&self) -> io::Result<&Self> {
        /// Chains of tasks that wake each other are shorter.
        const ROUNDS: u32 = 4;
        poll_fn(|task| {
            let mut state = self.0.state();
            state.readable |= std::mem::take(&mut state.announced);
            let is_readable = state.readable;
            drop(state);
            if is_readable {
                self.0.yields.set(0);
                return Poll::Ready(Ok(self));
            }
            // Tasks have their turn before time passes.
            if self.0.yields.get() >= ROUNDS {
                self.0.yields.set(0);
                self.0.do_planned();
                let mut state = self.0.state();
                let goes_on = state.announced | std::mem::take(&mut state.tasks_woken);
                drop(state);
                if !goes_on {
                    self.0.rest();
                }
            }
            self.0.yields.set(self.0.yields.get() + 1);
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    fn clear(ready: &Self) {
        ready.0.state().readable = false;
    }
}

impl Timer for SimulatedTimer {
    fn set(&self, wait: Duration) -> io::Result<()> {
        let mut state = self.0.state();
        let late = state.random.below(LATENCY + 1);
        state.timer = Some(state.now + wait.as_millis() as u64 + late);
        // An expiry that was not reported yet is forgotten (timerfd_settime(2)).
        state.ready.retain(|source| *source != Source::Alarm);
        Ok(())
    }
}

impl SimulatedTransport {
    fn watch(&self, token: Token, room: bool) {
        let mut state = self.world.state();
        let key = state.sockets[&self.socket.as_raw_fd()];
        let remote = state.remote(self.socket.as_raw_fd());
        remote.watch = Some((token.bits(), room));
        if remote.readiness().is_some() {
            state.arrive(key);
        }
    }

    fn moved(&self, transfer: Transfer) -> Transfer {
        if !matches!(transfer, Transfer::Again) {
            self.world.state().progress += 1;
        }
        transfer
    }
}

impl Transport for SimulatedTransport {
    const BLOCKS: bool = false;

    fn receive(&mut self, space: &mut [u8]) -> Transfer {
        let transfer = self.world.state().remote(self.socket.as_raw_fd()).give(space);
        self.moved(transfer)
    }

    fn send(&mut self, bytes: &[u8], _more: bool) -> Transfer {
        let transfer = self.world.state().take_sent(self.socket.as_raw_fd(), bytes);
        self.moved(transfer)
    }

    fn send_file(&mut self, _file: BorrowedFd<'_>, _offset: u64, count: usize) -> Transfer {
        let transfer = self.world.state().take_sent(self.socket.as_raw_fd(), &vec![b'f'; count]);
        self.moved(transfer)
    }

    fn finish(&mut self) {
        self.world.state().progress += 1;
    }
}

impl Drop for SimulatedTransport {
    fn drop(&mut self) {
        let mut state = self.world.state();
        state.progress += 1;
        state.note_room();
        if let Some(key) = state.sockets.remove(&self.socket.as_raw_fd()) {
            state.ready.retain(|source| *source != Source::Remote(key));
            state.closed(key);
        }
        state.note_room();
    }
}
