//! The simulated system under a loop: time, epoll, the timer, the accept queue and planned steps.
//!
//! Time advances only in [`World::rest`], when the loop waits and no event is ready, and in
//! handlers that take time.

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

use crate::address::ClientAddress;
use crate::event_loop::driver::{Driver, Nested, Wait};
use crate::event_loop::timer::Timer;
use crate::event_loop::{BATCH, FIRST_LISTENER, MAILBOX, TIMER};
use crate::handler::{ReceiveBuffer, UpgradedConnection};
use crate::listener::Listener;
use crate::mailbox::Mailbox;
use crate::memory_stream::MemoryTransport;
use crate::server::Server;
use crate::settings::Settings;
use crate::slab::Token;
use crate::system::Transfer;
use crate::time::Clock;
use crate::tls::Session;
use crate::transport::Transport;

use super::client::{Client, Outcome};
use super::program::SimulatedWorkers;
use super::{HANDLER, Random, Totals};

/// The step of the coarse clock from which ticks are read, in milliseconds.
pub(super) const COARSE: u64 = 4;
/// The longest delay of a timer's expiry, in milliseconds.
const LATENCY: u64 = 3;
/// The longest delay until the loop handles a deadline: a slot of the wheel, the lag of the loop's
/// timer, the timer's latency and two readings of the coarse clock.
pub(super) const SLACK: u64 = 128 + 5 + LATENCY + 2 * COARSE;
/// The number of consecutive turns without progress that a loop may run.
const MOST_IDLE_TURNS: u32 = 3;
/// The longest time until a loop accepts: a pause and the delay of the timer.
const MAX_ACCEPT_DELAY: u64 = 100 + SLACK;

/// A step that is planned for a moment.
pub(super) enum Planned {
    /// A client does its next action, if no later action was planned for it.
    Act(usize, u64),
    /// A client reads more of a response.
    Read(usize),
    /// Checks that the server has reacted to a client.
    Expect(usize, u64),
    /// Clients connect.
    Burst,
    Wake(Waker),
    Begin(u64),
    Finish(u64),
    CheckWorkers,
    CheckAccept,
    News,
    Reload,
    MakeRoom,
    WallClock,
    Stop,
}

pub(super) struct World {
    pub(super) clock: Rc<Clock>,
    pub(super) server: Arc<Server>,
    pub(super) workers: Arc<SimulatedWorkers>,
    state: RefCell<WorldState>,
    /// How often in a row the nested wait has let tasks run without an event.
    yields: Cell<u32>,
}

pub(super) struct WorldState {
    pub(super) random: Random,
    /// Milliseconds. The tick is their lower half, rounded down to a step of the coarse clock.
    pub(super) now: u64,
    /// The time of the clock.
    shown: u64,
    /// Time during which the loop could not run: in handlers and while the machine was suspended.
    pub(super) lost: u64,
    plan: BTreeMap<(u64, u64), Planned>,
    serial: u64,
    pub(super) clients: BTreeMap<usize, Client>,
    next_client: usize,
    /// The client of each accepted socket.
    sockets: HashMap<RawFd, usize>,
    /// Accepted sockets without a transport.
    without_transport: Vec<(RawFd, usize)>,
    pub(super) queue: VecDeque<usize>,
    is_listening: bool,
    ready: VecDeque<ReadySource>,
    timer: Option<u64>,
    /// Whether a source became ready since the runtime last looked.
    announced: bool,
    /// Whether the runtime has seen readiness that the loop has not cleared.
    readable: bool,
    /// When the loop was last blocked.
    blocked_until: u64,
    mailbox: Option<RawFd>,
    /// Whether the mailbox was reported and the loop has not read it since.
    mailbox_reported: bool,
    /// Counts everything that a turn has done.
    progress: u64,
    progress_before: u64,
    idle_turns: u32,
    /// Whether the timer started this turn.
    has_expired: bool,
    /// Expiries of the timer without an effect, since the last planned step.
    expiries: u64,
    idle_since: u64,
    /// The sum of the times during which connections were open since then.
    open_time: u64,
    /// How long accepting was paused.
    paused_time: u64,
    /// Since when the server has had room for a connection.
    room_since: Option<u64>,
    pub(super) settings: Arc<Settings>,
    /// Until then the process has no free descriptor.
    pub(super) exhausted_until: u64,
    /// When the server last had its maximum of connections. It may then close silent connections.
    pub(super) full_at: u64,
    /// When the loop was last asked to close slow connections.
    pub(super) made_room: u64,
    pub(super) stopped: Option<u64>,
    pub(super) news: u64,
    /// The number of suspended responses.
    pub(super) held: u64,
    pub(super) bell: Option<crate::handler::WakeHandle>,
    pub(super) bursts: u32,
    pub(super) totals: Totals,
    /// The outcomes of scripted clients: the time, the client and the outcome.
    pub(super) outcomes: Vec<(u64, usize, Outcome)>,
    tasks_woken: bool,
    /// A fault that a transport found. It is reported when the loop waits, since the loop survives
    /// a panic in a turn.
    failure: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadySource {
    Mailbox,
    Timer,
    Listener,
    Client(usize),
}

impl World {
    pub(super) fn new(
        (random, start): (Random, u64),
        (server, workers): (Arc<Server>, Arc<SimulatedWorkers>),
    ) -> Rc<Self> {
        let clock = Rc::new(Clock::told(1_795_208_400));
        clock.advance(Duration::from_millis(start));
        let settings = Arc::clone(&server.generation().settings);
        let state = WorldState {
            random,
            now: start,
            shown: start,
            lost: 0,
            plan: BTreeMap::new(),
            serial: 0,
            clients: BTreeMap::new(),
            next_client: 0,
            sockets: HashMap::new(),
            without_transport: Vec::new(),
            queue: VecDeque::new(),
            is_listening: false,
            ready: VecDeque::new(),
            timer: None,
            announced: false,
            readable: false,
            blocked_until: 0,
            mailbox: None,
            mailbox_reported: false,
            progress: 0,
            progress_before: 0,
            idle_turns: 0,
            has_expired: false,
            expiries: 0,
            idle_since: start,
            open_time: 0,
            paused_time: 0,
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
            totals: Totals::default(),
            outcomes: Vec::new(),
            tasks_woken: false,
            failure: None,
        };
        Rc::new(Self { clock, server, workers, state: RefCell::new(state), yields: Cell::new(0) })
    }

    #[track_caller]
    pub(super) fn state(&self) -> RefMut<'_, WorldState> {
        self.state.borrow_mut()
    }

    /// Blocks the loop in a handler for this time.
    pub(super) fn block_loop(&self, milliseconds: u64) {
        let mut state = self.state();
        state.lost += milliseconds;
        state.blocked_until = state.now + milliseconds;
        let now = state.blocked_until;
        self.move_to(&mut state, now);
    }

    /// Resolves after this many milliseconds.
    pub(super) async fn sleep(&self, milliseconds: u64) {
        let until = self.state().now + milliseconds;
        poll_fn(|task| {
            let mut state = self.state();
            if state.now >= until {
                return Poll::Ready(());
            }
            state.plan(until, Planned::Wake(task.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    fn move_to(&self, state: &mut WorldState, now: u64) {
        state.totals.time += now - state.now;
        state.paused_time += if state.is_listening { 0 } else { now - state.now };
        state.open_time += (now - state.now) * state.sockets.len() as u64;
        state.now = now;
        let coarse = now - now % COARSE;
        if coarse > state.shown {
            self.clock.advance(Duration::from_millis(coarse - state.shown));
            state.shown = coarse;
        }
    }

    /// Runs all steps that are due.
    fn run_planned(&self) {
        loop {
            let step = {
                let mut state = self.state();
                let now = state.now;
                let Some(entry) = state.plan.first_entry() else { break };
                if entry.key().0 > now {
                    break;
                }
                let ((due, _), step) = entry.remove_entry();
                if !matches!(
                    step,
                    Planned::Expect(..) | Planned::CheckWorkers | Planned::CheckAccept
                ) {
                    (state.expiries, state.open_time, state.paused_time) = (0, 0, 0);
                    state.idle_since = state.now;
                }
                (due, step)
            };
            self.step(step);
        }
        self.check_mailbox();
        let new = self.workers.take_new();
        let mut state = self.state();
        for (id, wait) in new {
            let due = state.now + wait;
            state.plan(due, Planned::Begin(id));
        }
        state.close_turned_away();
    }

    fn step(&self, (due, step): (u64, Planned)) {
        match step {
            Planned::Wake(waker) => {
                waker.wake();
                self.state().tasks_woken = true;
            }
            Planned::Begin(id) => {
                let now = self.state().now;
                if let Some(run) = self.workers.begin(id, now) {
                    let mut state = self.state();
                    let (now, handler) = (state.now, HANDLER.as_millis() as u64);
                    state.plan(now + run, Planned::Finish(id));
                    if run > handler {
                        state.plan(now + handler + SLACK + 1, Planned::CheckWorkers);
                    }
                }
            }
            Planned::Finish(id) => {
                let now = self.state().now;
                self.workers.finish(id, now);
                self.state().progress += 1;
            }
            Planned::CheckWorkers => self.check_workers(due),
            Planned::News => {
                let mut state = self.state();
                state.news += 1;
                let bell = state.bell.clone();
                state.expect_news();
                drop(state);
                if let Some(bell) = bell {
                    bell.wake();
                }
            }
            Planned::Reload => super::reload(self),
            Planned::MakeRoom => super::make_room(self),
            Planned::WallClock => {
                let unix = self.state().random.below(4_000_000_000);
                self.clock.jump(unix);
            }
            Planned::Stop => {
                let mut state = self.state();
                state.stopped.get_or_insert(due);
                state.expect_grace();
                state.on_stop();
                drop(state);
                self.server.stop();
            }
            other => {
                self.state().step(due, &other);
            }
        }
        self.check_mailbox();
    }

    /// Checks that workers beyond their time limit were reported, and only those.
    fn check_workers(&self, due: u64) {
        let mut state = self.state();
        if state.stopped.is_some() {
            return;
        }
        // A loop that was blocked at the deadline has that much more time to notice.
        if state.now > due + 1 || state.blocked_until + SLACK > due {
            let again = state.now + SLACK;
            return state.plan(again, Planned::CheckWorkers);
        }
        state.totals.overdue += self.workers.overdue();
        if let Err(fault) = self.workers.check(state.now) {
            panic!("{fault}: {}", state.describe());
        }
    }

    fn check_mailbox(&self) {
        let mut state = self.state();
        if state.mailbox_is_ready() && !std::mem::replace(&mut state.mailbox_reported, true) {
            state.make_ready(ReadySource::Mailbox);
            state.progress += 1;
        }
    }

    /// Advances time to the next step or timer expiry.
    fn rest(&self) {
        let mut state = self.state();
        let next = state.plan.first_key_value().map(|((due, _), _)| *due);
        let Some(mut next) = next.into_iter().chain(state.timer).min() else {
            panic!("the loop waits, but no step is planned: {}", state.describe());
        };
        next = next.max(state.now);
        if state.random.below(2000) == 0 && state.stopped.is_none() {
            let most = [1_000, 60_000, 3_600_000, 100 * 3_600_000, 3000 * 3_600_000];
            let most = state.random.pick(&most);
            let pause = state.random.below(most);
            state.lost += pause;
            state.totals.suspensions += 1;
            next += pause;
            state.blocked_until = next;
        }
        state.check_idle(next);
        if next > state.now {
            state.idle_turns = 0;
        }
        self.move_to(&mut state, next);
        if state.timer.is_some_and(|due| due <= state.now) {
            state.timer = None;
            state.has_expired = true;
            state.totals.expiries += 1;
            state.make_ready(ReadySource::Timer);
        }
    }

    /// Checks that the turn that just ended did something.
    fn check_turn(&self) {
        let mut state = self.state();
        state.report_failure();
        state.totals.turns += 1;
        let has_expired = std::mem::take(&mut state.has_expired);
        if state.progress > state.progress_before {
            state.idle_turns = 0;
        } else {
            state.expiries += u64::from(has_expired);
            state.idle_turns += 1;
            assert!(
                state.idle_turns <= MOST_IDLE_TURNS,
                "{} consecutive turns did nothing: {}",
                state.idle_turns,
                state.describe()
            );
        }
        state.progress_before = state.progress;
    }
}

impl WorldState {
    pub(super) fn plan(&mut self, due: u64, step: Planned) {
        self.serial += 1;
        self.plan.insert((due.max(self.now), self.serial), step);
    }

    pub(super) fn add_client(&mut self, make: impl FnOnce(usize, &mut Random) -> Client) -> usize {
        let key = self.next_client;
        self.next_client += 1;
        let client = make(key, &mut self.random);
        self.clients.insert(key, client);
        key
    }

    pub(super) fn fail(&mut self, fault: String) {
        self.failure.get_or_insert(fault);
    }

    pub(super) fn report_failure(&self) {
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

    /// Makes a client's socket ready.
    pub(super) fn arrive(&mut self, key: usize) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        if client.watch.is_some() {
            self.make_ready(ReadySource::Client(key));
        }
    }

    fn make_ready(&mut self, source: ReadySource) {
        if !self.ready.contains(&source) {
            self.ready.push_back(source);
        }
        self.announced = true;
    }

    pub(super) fn connect(&mut self, key: usize) {
        if self.stopped.is_some() {
            self.clients.remove(&key);
            return;
        }
        self.queue.push_back(key);
        let due = self.now + MAX_ACCEPT_DELAY;
        self.plan(due, Planned::CheckAccept);
        if self.is_listening {
            self.make_ready(ReadySource::Listener);
        }
    }

    fn step(&mut self, due: u64, step: &Planned) {
        match *step {
            Planned::Act(key, serial) => self.act(key, serial),
            Planned::Read(key) => self.read(key),
            Planned::Expect(key, serial) => self.check_expected((key, serial), due),
            Planned::Burst => super::burst(self),
            Planned::CheckAccept => self.check_accept(due),
            _ => unreachable!("`World::step` handles the others"),
        }
    }

    /// Checks that clients do not wait while the server has room for them.
    fn check_accept(&mut self, due: u64) {
        if self.now > due + 1 {
            let again = self.now + MAX_ACCEPT_DELAY;
            return self.plan(again, Planned::CheckAccept);
        }
        let calm = self.exhausted_until + MAX_ACCEPT_DELAY <= self.now && self.stopped.is_none();
        let waited = self.queue.front().and_then(|key| self.clients.get(key));
        let waited = waited
            .map_or(0, |client| self.now.saturating_sub(client.connects_at.max(self.delayed())));
        let room =
            self.room_since.map_or(0, |since| self.now - since.max(self.delayed()).min(self.now));
        assert!(
            !(calm && waited >= MAX_ACCEPT_DELAY && room >= MAX_ACCEPT_DELAY),
            "a client waits although the server has room: {}",
            self.describe()
        );
    }

    /// When the loop was last blocked.
    fn delayed(&self) -> u64 {
        self.blocked_until
    }

    fn mailbox_is_ready(&self) -> bool {
        let Some(mailbox) = self.mailbox else { return false };
        // SAFETY: the mailbox is alive as long as its server, which the world holds.
        let mailbox = unsafe { BorrowedFd::borrow_raw(mailbox) };
        let mut polled = [PollFd::new(&mailbox, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())) == Ok(1)
    }

    /// Closes sockets that were accepted and got no transport: the loop turned them away.
    fn close_turned_away(&mut self) {
        for (socket, key) in std::mem::take(&mut self.without_transport) {
            self.sockets.remove(&socket);
            self.clients.remove(&key);
            self.totals.turned_away += 1;
        }
        self.note_room();
    }

    fn on_stop(&mut self) {
        // The loop accepts all waiting connections before it stops accepting for good.
        self.room_since = None;
    }

    /// Checks that without planned steps the timer expires only for deadlines.
    fn check_idle(&mut self, next: u64) {
        let rested = next - self.idle_since;
        let open = self.sockets.len();
        // Each connection causes one expiry per turn of the wheel, and one for each moved deadline.
        let most = 128 + 2 * self.open_time / 131_000;
        // A paused loop checks whether it can accept again.
        let paused = self.paused_time / 100;
        assert!(
            self.expiries <= most + paused,
            "{} expiries for nothing in {rested} ms with {open} connections: {}",
            self.expiries,
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

    /// Moves the events that are still ready into `batch`.
    fn collect(&mut self, batch: &mut Vec<epoll::Event>) {
        for _ in 0..self.ready.len() {
            if batch.len() == BATCH {
                return;
            }
            let Some(source) = self.ready.pop_front() else { return };
            let (data, flags, stays) = match source {
                ReadySource::Timer => (TIMER, EventFlags::IN, false),
                ReadySource::Mailbox if self.mailbox_is_ready() => {
                    self.mailbox_reported = false;
                    (MAILBOX, EventFlags::IN, true)
                }
                ReadySource::Listener if self.is_listening && !self.queue.is_empty() => {
                    (FIRST_LISTENER, EventFlags::IN, true)
                }
                ReadySource::Mailbox | ReadySource::Listener => continue,
                ReadySource::Client(key) => {
                    let Some(client) = self.clients.get(&key) else { continue };
                    let Some((token, flags)) = client.readiness() else { continue };
                    (token, flags, false)
                }
            };
            if stays {
                self.ready.push_back(source);
            }
            batch.push(epoll::Event { flags, data: EventData::new_u64(data) });
        }
    }

    /// The client of `socket`.
    pub(super) fn client(&mut self, socket: RawFd) -> &mut Client {
        let key = self.sockets[&socket];
        self.clients.get_mut(&key).expect("a client exists as long as its transport")
    }
}

/// The driver of a simulated loop.
pub(super) struct Simulated(pub(super) Rc<World>);

pub(super) struct SimulatedTimer(Rc<World>);

/// The server's side of a simulated connection. The descriptor only identifies the connection; no
/// bytes pass through it.
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
        state.is_listening = true;
        if !state.queue.is_empty() {
            state.make_ready(ReadySource::Listener);
        }
        Ok(())
    }

    fn forget_listener(&self, _listener: &Listener) {
        let mut state = self.0.state();
        state.is_listening = false;
        state.ready.retain(|source| *source != ReadySource::Listener);
    }

    fn accept(&self, listener: &Listener) -> io::Result<(OwnedFd, ClientAddress)> {
        let mut state = self.0.state();
        state.close_turned_away();
        if state.now < state.exhausted_until {
            state.progress += 1;
            return Err(Errno::MFILE.into());
        }
        let Some(key) = state.queue.pop_front() else { return Err(Errno::AGAIN.into()) };
        state.progress += 1;
        if state.random.below(100) == 0 {
            state.clients.remove(&key);
            return Err(Errno::CONNABORTED.into());
        }
        let socket = listener.as_fd().try_clone_to_owned()?;
        let peer = state.clients[&key].peer;
        state.sockets.insert(socket.as_raw_fd(), key);
        state.without_transport.push((socket.as_raw_fd(), key));
        state.note_room();
        Ok((socket, peer))
    }

    fn transport(&self, socket: OwnedFd, _session: Option<Box<Session>>) -> SimulatedTransport {
        let mut state = self.0.state();
        state
            .without_transport
            .retain(|(without_transport, _)| *without_transport != socket.as_raw_fd());
        let key = state.sockets[&socket.as_raw_fd()];
        state.accepted(key);
        SimulatedTransport { socket, world: Rc::clone(&self.0) }
    }

    fn stream(&self, _stream: MemoryTransport) -> SimulatedTransport {
        unreachable!("no client speaks HTTP/2");
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
        self.0.state().client(transport.socket.as_raw_fd()).watch = None;
    }

    fn wait(&self, batch: &mut Vec<epoll::Event>, wait: Wait) -> io::Result<()> {
        self.0.check_turn();
        loop {
            self.0.run_planned();
            self.0.state().collect(batch);
            let mut state = self.0.state();
            if !batch.is_empty() || wait == Wait::Never {
                return Ok(());
            }
            if state.random.below(1000) == 0 {
                // A signal interrupts the wait.
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

    fn depart(_link: SimulatedTransport, _peer: ClientAddress) {
        unreachable!("no client changes the protocol");
    }

    fn wire(
        _link: SimulatedTransport,
        _received: Vec<u8>,
        _space: ReceiveBuffer,
    ) -> io::Result<UpgradedConnection> {
        unreachable!("no client upgrades its connection");
    }
}

impl Nested for Simulated {
    type Ready<'n> = &'n Self;

    async fn readable(&self) -> io::Result<&Self> {
        /// Longer than any chain of tasks that wake each other.
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
            // Tasks run before time advances.
            if self.0.yields.get() >= ROUNDS {
                self.0.yields.set(0);
                self.0.run_planned();
                let mut state = self.0.state();
                let has_more = state.announced | std::mem::take(&mut state.tasks_woken);
                drop(state);
                if !has_more {
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
        // Setting the timer discards an expiry that was not reported yet (timerfd_settime(2)).
        state.ready.retain(|source| *source != ReadySource::Timer);
        Ok(())
    }
}

impl SimulatedTransport {
    fn watch(&self, token: Token, room: bool) {
        let mut state = self.world.state();
        let key = state.sockets[&self.socket.as_raw_fd()];
        let client = state.client(self.socket.as_raw_fd());
        client.watch = Some((token.bits(), room));
        if client.readiness().is_some() {
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
        let transfer = self.world.state().client(self.socket.as_raw_fd()).receive(space);
        self.moved(transfer)
    }

    fn send(&mut self, bytes: &[u8], _more: bool) -> Transfer {
        let transfer = self.world.state().receive_sent(self.socket.as_raw_fd(), bytes);
        self.moved(transfer)
    }

    fn send_file(&mut self, _file: BorrowedFd<'_>, _offset: u64, count: usize) -> Transfer {
        let transfer = self.world.state().receive_sent(self.socket.as_raw_fd(), &vec![b'f'; count]);
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
            state.ready.retain(|source| *source != ReadySource::Client(key));
            state.closed(key);
        }
        state.note_room();
    }
}
