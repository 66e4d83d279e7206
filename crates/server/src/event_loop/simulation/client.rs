//! Simulated clients: what each does next, what it has received, and when the server must react.
//!
//! A client always knows what the server must do for it, a reply or a close, and the earliest and
//! latest moment. These follow from the documented meaning of each timeout, not from the deadlines
//! of the loop.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read;
use std::os::fd::RawFd;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;

use crate::address::ClientAddress;
use crate::event_loop::catch_up::LONG_GAP;
use crate::settings::Settings;
use crate::stages::GRACE;
use crate::system::Transfer;

use super::world::{COARSE, Planned, SLACK, WorldState};
use super::{HANDLER, Random};

/// The bytes that fit between the server and a client that does not read.
const ROOM: usize = 40_000;
/// An upper bound of the time for which a handler blocks its loop, in milliseconds.
const MAX_BLOCKED: u64 = 20_000;

pub(super) struct Client {
    key: usize,
    pub(super) peer: ClientAddress,
    /// When the client connects.
    pub(super) connects_at: u64,
    /// The settings with which its connection was accepted.
    settings: Option<Arc<Settings>>,
    phase: ClientPhase,
    /// The number of requests that it will still send.
    requests: u32,
    /// Bytes sent that the server has not received yet.
    inbox: VecDeque<u8>,
    has_finished: bool,
    has_reset: bool,
    /// How many bytes the server can send to it now.
    room: usize,
    reads: ReadRate,
    /// The registration with epoll: the event data, and whether it includes room to write.
    pub(super) watch: Option<(u64, bool)>,
    replies: ResponseReader,
    expectation: Expectation,
    act: u64,
    /// When the client last acted after its timeout, before the loop had noticed the timeout.
    acted_late_at: Option<u64>,
    /// When it sent its last request.
    requested_at: u64,
    /// How long the loop had been blocked before that request.
    lost: u64,
    /// Whether it stops in the middle of a request.
    stalls: bool,
    /// Whether its last request is for a worker.
    is_for_worker: bool,
    /// The kind of all its requests, if they are of one kind.
    request_kind: Option<u64>,
    /// Whether it follows the script of a test.
    is_scripted: bool,
    /// Its actions, each with the delay before it.
    script: VecDeque<(u64, Action)>,
}

/// An action that a test scripts.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Get(&'static str),
    Finish,
    Reset,
}

/// The outcome of a request or connection, for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Answered,
    Closed,
}

/// The state of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
enum ClientPhase {
    /// The server has not accepted it yet.
    Connecting,
    /// It follows the script of a test.
    Scripted,
    /// It is connected and has not sent a byte.
    First,
    /// Its last request was answered.
    Idle,
    /// It has sent part of a head. The rest is here.
    Head(Vec<u8>),
    /// It has sent part of a body: the number of missing bytes, and when the server times out.
    Body(usize, u64),
    /// It waits for a reply that arrives at once, or within a known time.
    Waiting,
    /// It reads a reply slowly. The server times out at this moment.
    Reading(Option<u64>),
    /// It waits for a suspended response.
    Held,
    /// It receives an endless response, with at least one part in each period of this many
    /// milliseconds.
    Feed(u64),
    /// The server has announced the close of the connection.
    Closing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadRate {
    All,
    /// This many bytes per this many milliseconds.
    Slowly(usize, u64),
    Nothing,
}

/// When the server must do something for the client.
#[derive(Clone, Copy, Debug, Default)]
struct Expectation {
    /// No timeout may occur before this moment.
    earliest: u64,
    latest: u64,
    /// How long the loop had been blocked when this expectation began.
    lost: u64,
    serial: u64,
}

/// Parses responses, to find where they end.
#[derive(Default)]
struct ResponseReader {
    head: Vec<u8>,
    /// The remaining content; `None` in a head.
    left: Option<RemainingContent>,
    /// The last bytes of chunked content.
    tail: VecDeque<u8>,
    closes: bool,
    status: u16,
    wanted: u32,
}

enum RemainingContent {
    Length(usize),
    Chunks,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "#{} {:?} requested_at {} wants {} fin {} rst {} room {} inbox {} reads {:?} {:?}",
            self.key,
            self.phase,
            self.requested_at,
            self.replies.wanted,
            self.has_finished,
            self.has_reset,
            self.room,
            self.inbox.len(),
            self.reads,
            self.expectation
        )
    }
}

impl Client {
    pub(super) fn new(key: usize, random: &mut Random, connects_at: u64) -> Self {
        // Few addresses, so that some exceed their quota.
        let address = [10, 0, 0, random.below(8) as u8];
        let port = 1024 + key as u16 % 60_000;
        Self {
            key,
            peer: ClientAddress::tcp((address, port).into()),
            connects_at,
            settings: None,
            phase: ClientPhase::Connecting,
            requests: random.below(8) as u32,
            inbox: VecDeque::new(),
            has_finished: false,
            has_reset: false,
            room: usize::MAX,
            reads: ReadRate::All,
            watch: None,
            replies: ResponseReader::default(),
            expectation: Expectation { latest: u64::MAX, ..Expectation::default() },
            act: 0,
            acted_late_at: None,
            requested_at: connects_at,
            lost: 0,
            stalls: false,
            is_for_worker: false,
            request_kind: None,
            is_scripted: false,
            script: VecDeque::new(),
        }
    }

    /// Lets the client send requests of one kind only.
    pub(super) const fn with(mut self, request_kind: Option<u64>) -> Self {
        self.request_kind = request_kind;
        self
    }

    /// Lets the client follow the script of a test, from an address with this last byte.
    pub(super) fn scripted(mut self, host: u8, script: &[(u64, Action)]) -> Self {
        self.script = script.iter().cloned().collect();
        let port = 1024 + self.key as u16;
        (self.is_scripted, self.peer) = (true, ClientAddress::tcp(([10, 0, 1, host], port).into()));
        self
    }

    /// The events that epoll would report, with the registered data.
    pub(super) fn readiness(&self) -> Option<(u64, EventFlags)> {
        let (data, watches_room) = self.watch?;
        let mut flags = EventFlags::empty();
        if !self.inbox.is_empty() || self.has_finished || self.has_reset {
            flags |= EventFlags::IN;
        }
        if self.has_finished || self.has_reset {
            flags |= EventFlags::RDHUP;
        }
        if self.has_reset {
            flags |= EventFlags::HUP | EventFlags::ERR;
        }
        if watches_room && self.room > 0 {
            flags |= EventFlags::OUT;
        }
        (!flags.is_empty()).then_some((data, flags))
    }

    /// The server receives.
    pub(super) fn receive(&mut self, space: &mut [u8]) -> Transfer {
        if self.has_reset {
            return Transfer::Broken;
        }
        match self.inbox.read(space) {
            Ok(count) if count > 0 => Transfer::Moved(count),
            _ if self.has_finished => Transfer::Ended,
            _ => Transfer::Again,
        }
    }

    /// Whether the loop may close the connection to make room.
    fn may_be_evicted(&self) -> bool {
        let is_slow = matches!(
            self.phase,
            ClientPhase::First
                | ClientPhase::Idle
                | ClientPhase::Head(_)
                | ClientPhase::Body(..)
                | ClientPhase::Reading(_)
        );
        !self.inbox.is_empty() || is_slow
    }

    /// Whether the client acted so late that the server may already have started to time it out.
    fn acted_late(&self, now: u64) -> bool {
        self.acted_late_at.is_some_and(|acted_late_at| now - acted_late_at < MAX_BLOCKED)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.inbox.extend(bytes);
    }

    fn timeout(&self, of: impl Fn(&Settings) -> std::time::Duration) -> u64 {
        let settings = self.settings.as_ref().expect("the connection was accepted");
        // Deadlines are never longer than this.
        (of(settings).as_millis() as u64).min(i32::MAX as u64)
    }
}

impl WorldState {
    /// The server must do something for client `key` by `latest`, and not before `earliest` if it
    /// is a timeout.
    fn expect(&mut self, key: usize, earliest: u64, latest: u64) {
        let lost = self.lost;
        // If the client was suspended too, it may be late itself.
        let latest = if latest <= self.now { self.now + SLACK } else { latest };
        let Some(client) = self.clients.get_mut(&key) else { return };
        let serial = client.expectation.serial + 1;
        client.expectation = Expectation { earliest, latest, lost, serial };
        if latest < u64::MAX {
            self.plan(latest + 1, Planned::Expect(key, serial));
        }
    }

    /// A timeout of `wait` milliseconds starts now.
    fn expect_timeout(&mut self, key: usize, wait: u64) {
        let now = self.now;
        self.expect(key, now + wait - wait.min(COARSE), now + wait + SLACK);
    }

    /// The server must react in this turn.
    fn expect_now(&mut self, key: usize) {
        let now = self.now;
        self.expect(key, u64::MAX, now + 1);
    }

    pub(super) fn check_expected(&mut self, (key, serial): (usize, u64), due: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        if client.expectation.serial != serial {
            return;
        }
        let lost = self.lost - client.expectation.lost;
        if lost > 0 || self.now > due {
            // The loop was blocked for this time, so it has that much more time.
            let mut again = self.now.max(due + lost.min(MAX_BLOCKED)) + SLACK;
            if client.is_for_worker && u128::from(lost) >= LONG_GAP.as_millis() {
                // After such a gap the loop makes passed deadlines due now. For a request in the
                // workers' queue this starts the time limit of the handler, which lasts in full
                // from then on.
                again += HANDLER.as_millis() as u64;
            }
            (client.expectation.lost, client.expectation.latest) = (self.lost, again);
            return self.plan(again, Planned::Expect(key, serial));
        }
        let late = format!("{:?}", self.clients.get(&key));
        panic!("the server is late for {late}: {}", self.describe());
    }

    fn act_in(&mut self, key: usize, wait: u64) {
        let due = self.now + wait;
        let Some(client) = self.clients.get_mut(&key) else { return };
        client.act += 1;
        let serial = client.act;
        self.plan(due, Planned::Act(key, serial));
    }

    /// The connection was accepted and has a transport.
    pub(super) fn accepted(&mut self, key: usize) {
        let settings = Arc::clone(&self.settings);
        let Some(client) = self.clients.get_mut(&key) else { return };
        client.settings = Some(settings);
        self.totals.connections += 1;
        if client.has_reset || client.has_finished {
            return self.expect_now(key);
        }
        client.phase = ClientPhase::First;
        if let Some((wait, _)) = client.script.front() {
            let wait = *wait;
            client.phase = ClientPhase::Scripted;
            return self.act_in(key, wait);
        }
        let first = client.timeout(|settings| settings.timeouts.first_byte);
        self.expect_timeout(key, first);
        let wait = self.pause();
        self.act_in(key, wait);
    }

    /// The delay between two actions of a client: mostly short, sometimes longer than any timeout.
    fn pause(&mut self) -> u64 {
        let most = [1, 1, 1, 5, 300, 3_000, 30_000, 200_000][self.random.below(8) as usize];
        self.random.below(most)
    }

    pub(super) fn act(&mut self, key: usize, serial: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        if client.act != serial || client.has_reset {
            return;
        }
        if client.expectation.earliest <= self.now {
            client.acted_late_at = Some(self.now);
        }
        match client.phase.clone() {
            ClientPhase::Connecting => self.connect(key),
            ClientPhase::Scripted => self.play(key),
            _ if self.random.below(40) == 0 => self.disconnect_at_random(key),
            ClientPhase::First | ClientPhase::Idle => self.begin(key),
            ClientPhase::Head(left) => self.continue_head(key, left),
            ClientPhase::Body(left, deadline) => self.continue_body(key, left, deadline),
            ClientPhase::Held if self.random.below(8) == 0 => {
                // Pipelines a request before the reply to this one.
                client.replies.wanted += 1;
                client.send(&get("page/10"));
                self.arrive(key);
            }
            ClientPhase::Waiting | ClientPhase::Reading(_) | ClientPhase::Closing
                if self.random.below(3) > 0 => {}
            ClientPhase::Held | ClientPhase::Feed(_) if self.random.below(2) > 0 => {
                let wait = self.pause();
                self.act_in(key, wait);
            }
            _ => self.disconnect_at_random(key),
        }
    }

    fn play(&mut self, key: usize) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        let Some((_, action)) = client.script.pop_front() else { return };
        let next = client.script.front().map(|(wait, _)| *wait);
        match action {
            Action::Get(path) => {
                client.send(&get(path));
                self.arrive(key);
            }
            Action::Finish => self.disconnect(key, false),
            Action::Reset => self.disconnect(key, true),
        }
        if let Some(wait) = next {
            self.act_in(key, wait);
        }
    }

    fn disconnect_at_random(&mut self, key: usize) {
        let resets = self.random.below(2) == 0;
        self.disconnect(key, resets);
    }

    /// The client closes its side, by a FIN or a reset.
    fn disconnect(&mut self, key: usize, resets: bool) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        if resets {
            client.has_reset = true;
            self.totals.resets += 1;
            self.expect_now(key);
        } else if !client.has_finished {
            client.has_finished = true;
            self.totals.ends += 1;
            // Only a reply that is already being sent is still completed.
            if !matches!(
                client.phase,
                ClientPhase::Waiting | ClientPhase::Reading(_) | ClientPhase::Closing
            ) {
                self.expect_now(key);
            }
        }
        self.arrive(key);
    }

    /// Sends the next request, or ends the connection.
    // long because each kind of request is one arm of the match.
    fn begin(&mut self, key: usize) {
        let now = self.now;
        let kind = self.random.below(18);
        let number = self.random.below(3000);
        let long = [10, 1_000, 20_000, 120_000, 700_000][self.random.below(5) as usize];
        let reads = match self.random.below(6) {
            0 => ReadRate::Nothing,
            1 => ReadRate::Slowly(
                1 + self.random.below(3_000) as usize,
                1 + self.random.below(4_000),
            ),
            2 => ReadRate::Slowly(60_000, 1 + self.random.below(20_000)),
            _ => ReadRate::All,
        };
        let lost = self.lost;
        let Some(client) = self.clients.get_mut(&key) else { return };
        (client.requested_at, client.lost) = (now, lost);
        if client.requests == 0 {
            if self.random.below(3) == 0 {
                self.disconnect_at_random(key);
            } else {
                self.totals.stalled += 1;
            }
            return;
        }
        client.requests -= 1;
        let kind = client.request_kind.unwrap_or(kind);
        client.replies.wanted = 1;
        client.phase = ClientPhase::Waiting;
        client.stalls = false;
        client.is_for_worker = matches!(kind, 6 | 7);
        self.totals.requests += 1;
        let handler = client.timeout(|settings| settings.timeouts.handler);
        let mut latest = now + 1;
        let mut earliest = u64::MAX;
        match kind {
            0 => {
                let count = 1 + number as u32 % 40;
                client.replies.wanted = count;
                client.send(&get("page/100").repeat(count as usize));
            }
            1 => client.send(&get(&format!("slow/{}", number % 100))),
            2 => client.send(&get("panic")),
            3 => client.send(&get("close")),
            4 | 5 => {
                (client.reads, client.phase) = (reads, ClientPhase::Reading(None));
                client.room = if reads == ReadRate::All { usize::MAX } else { ROOM };
                let path = if kind == 4 { "page" } else { "file" };
                client.send(&get(&format!("{path}/{long}")));
                if let ReadRate::Slowly(_, pause) = reads {
                    self.plan(now + pause, Planned::Read(key));
                }
            }
            6 | 7 => {
                let wait = if number < 2500 { number / 3 } else { number };
                let run = self.random.below([5, 500, 20_000, 100_000][number as usize % 4]);
                client.send(&get(&format!("work/{wait}/{run}")));
                latest = now + handler + SLACK;
                earliest = now + handler - handler.min(COARSE);
                let pause = self.pause();
                self.act_in(key, pause);
            }
            8 | 9 => {
                let wait = 1 + self.random.below(
                    [1_000, 60_000, 1_000_000, 90_000_000]
                        [kind as usize % 2 * 2 + number as usize % 2],
                );
                client.send(&get(&format!("hold/{wait}")));
                client.phase = ClientPhase::Held;
                latest = now + wait + SLACK;
                let pause = self.pause();
                self.act_in(key, pause);
            }
            10 => {
                let wait = 1 + self.random.below(100_000);
                client.send(&get(&format!("feed/{wait}")));
                client.phase = ClientPhase::Feed(wait);
                let pause = self.pause() + self.pause();
                self.act_in(key, pause);
            }
            11 => {
                let wait = self.random.below([10, 2_000, 60_000][number as usize % 3]);
                client.send(&get(&format!("later/{wait}")));
                latest = now + wait.min(handler) + SLACK;
                earliest = now + handler - handler.min(COARSE);
                let pause = self.pause();
                self.act_in(key, pause);
            }
            12 => {
                let wait = self.random.below([10, 2_000, 40_000][number as usize % 3]);
                client.send(&get(&format!("stream/{}/{wait}", 1 + number % 20)));
                latest = now + wait.min(handler) + SLACK;
                earliest = now + handler - handler.min(COARSE);
                let pause = self.pause();
                self.act_in(key, pause);
            }
            13 | 14 => {
                client.stalls = number.is_multiple_of(4);
                return self.continue_head(key, get("page/5"));
            }
            15 | 16 => {
                client.stalls = number.is_multiple_of(4);
                let length = long.min(120_000) + 1;
                client.send(&post(length));
                let body = client.timeout(|settings| settings.timeouts.body);
                client.phase = ClientPhase::Body(length, coarse_time(now) + body);
                self.expect_timeout(key, body);
                let wait = self.pause();
                if !self.clients[&key].stalls {
                    self.act_in(key, wait);
                }
                return self.arrive(key);
            }
            _ => client.send(&get(&format!("page/{number}"))),
        }
        self.expect(key, earliest, latest);
        self.arrive(key);
    }

    fn continue_head(&mut self, key: usize, mut left: Vec<u8>) {
        let count = 1 + self.random.below(left.len() as u64) as usize;
        let later = left.split_off(count);
        let wait = self.pause();
        let Some(client) = self.clients.get_mut(&key) else { return };
        let begins = !matches!(client.phase, ClientPhase::Head(_));
        client.send(&left);
        if later.is_empty() {
            client.phase = ClientPhase::Waiting;
            self.expect_now(key);
        } else {
            let (stalls, head) = (client.stalls, client.timeout(|settings| settings.timeouts.head));
            client.phase = ClientPhase::Head(later);
            if begins {
                self.expect_timeout(key, head);
            }
            if stalls {
                self.totals.stalled += 1;
            } else {
                self.act_in(key, wait);
            }
        }
        self.arrive(key);
    }

    fn continue_body(&mut self, key: usize, left: usize, deadline: u64) {
        let shown = coarse_time(self.now);
        let most = [100, 5_000, 200_000][self.random.below(3) as usize];
        let count = left.min(1 + self.random.below(most) as usize);
        let wait = self.pause();
        let Some(client) = self.clients.get_mut(&key) else { return };
        client.send(&vec![b'b'; count]);
        if count == left {
            client.phase = ClientPhase::Waiting;
            self.expect_now(key);
        } else {
            let body = client.timeout(|settings| settings.timeouts.body);
            let deadline = (deadline + client.time_for(count)).min(shown + body);
            client.phase = ClientPhase::Body(left - count, deadline);
            self.expect(key, deadline - deadline.min(COARSE), deadline + SLACK + COARSE);
            // Time for which the loop was blocked since the head extends the timeout.
            if let Some(client) = self.clients.get_mut(&key) {
                client.expectation.lost = client.lost;
            }
            self.act_in(key, wait);
        }
        self.arrive(key);
    }

    pub(super) fn read(&mut self, key: usize) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        let ReadRate::Slowly(bytes, pause) = client.reads else { return };
        let was_full = client.room == 0;
        client.room = (client.room + bytes).min(ROOM);
        let (phase, earliest) = (client.phase.clone(), client.expectation.earliest);
        let due = self.now + pause;
        self.plan(due, Planned::Read(key));
        if was_full && matches!(phase, ClientPhase::Reading(Some(_))) {
            // The reply has more bytes, and there is room for them again.
            let now = self.now;
            self.expect(key, earliest, now + 1);
        }
        self.arrive(key);
    }

    /// The server stops: only the grace period remains for idle connections.
    pub(super) fn expect_grace(&mut self) {
        let is_idle = |client: &Client| {
            client.watch.is_some()
                && client.inbox.is_empty()
                && matches!(client.phase, ClientPhase::First | ClientPhase::Idle)
        };
        let idle: Vec<usize> =
            self.clients.values().filter(|client| is_idle(client)).map(|one| one.key).collect();
        let latest = self.now + GRACE.as_millis() as u64 + SLACK;
        for key in idle {
            if self.clients[&key].expectation.latest > latest {
                self.expect(key, 0, latest);
            }
        }
    }

    /// An event occurred: the server must send it to all suspended responses in this turn.
    pub(super) fn expect_news(&mut self) {
        let waits = |client: &Client| {
            client.phase == ClientPhase::Held && client.inbox.is_empty() && !client.has_finished
        };
        let held: Vec<usize> =
            self.clients.values().filter(|client| waits(client)).map(|one| one.key).collect();
        for key in held {
            self.expect_now(key);
        }
    }

    /// The server sends.
    pub(super) fn receive_sent(&mut self, socket: RawFd, bytes: &[u8]) -> Transfer {
        let shown = coarse_time(self.now);
        let client = self.client(socket);
        let key = client.key;
        if client.has_reset {
            return Transfer::Broken;
        }
        let count = bytes.len().min(client.room);
        if client.room != usize::MAX {
            client.room -= count;
        }
        if let ClientPhase::Reading(deadline) = client.phase {
            let write = client.timeout(|settings| settings.timeouts.write);
            let until = deadline.unwrap_or(shown + write) + client.time_for(count);
            let until = if count == 0 {
                deadline.unwrap_or(shown + write)
            } else {
                until.min(shown + write)
            };
            client.phase = ClientPhase::Reading(Some(until));
            self.expect(key, until - until.min(COARSE), until + SLACK + COARSE);
        }
        if count == 0 {
            return Transfer::Again;
        }
        let mut rest = &bytes[..count];
        while !rest.is_empty() {
            let client = self.client(socket);
            let (used, is_whole) = client.replies.read(rest);
            rest = &rest[used..];
            if is_whole {
                self.on_reply(key);
            }
        }
        self.on_part(key);
        Transfer::Moved(count)
    }

    /// A part of a reply arrived.
    fn on_part(&mut self, key: usize) {
        let now = self.now;
        let Some(client) = self.clients.get_mut(&key) else { return };
        match client.phase {
            ClientPhase::Feed(wait) if !client.has_finished => {
                self.expect(key, u64::MAX, now + wait + SLACK);
            }
            ClientPhase::Waiting if client.replies.left.is_some() => {
                let handler = client.timeout(|settings| settings.timeouts.handler);
                self.expect(key, now + handler - COARSE, now + handler + SLACK);
            }
            _ => {}
        }
    }

    /// Whether the loop may close connections to make room.
    fn may_evict(&self) -> bool {
        self.full_at == self.now || self.now - self.made_room.min(self.now) < MAX_BLOCKED
    }

    fn on_reply(&mut self, key: usize) {
        let now = self.now;
        let is_stopping = self.stopped.is_some();
        let Some(client) = self.clients.get_mut(&key) else { return };
        let (status, closes) = (client.replies.status, client.replies.closes);
        self.totals.replies += 1;
        if matches!(status, 408 | 504) {
            self.totals.timeouts += 1;
            if now < client.expectation.earliest && !is_stopping && !client.acted_late(now) {
                let fault = format!("a {status} is early at {now}: {client:?}");
                self.fail(fault);
            }
        }
        let Some(client) = self.clients.get_mut(&key) else { return };
        client.replies.wanted = client.replies.wanted.saturating_sub(1);
        if client.is_scripted {
            self.outcomes.push((now, key, Outcome::Answered));
        }
        if closes {
            client.phase = ClientPhase::Closing;
            // The server need not react to anything after this reply.
            client.reads = ReadRate::All;
            client.room = usize::MAX;
            let linger = client.timeout(|settings| settings.timeouts.linger);
            self.expect(key, 0, now + linger + SLACK);
            let wait = self.pause();
            return self.act_in(key, wait);
        }
        if client.replies.wanted > 0 {
            client.phase = ClientPhase::Waiting;
            return self.expect_now(key);
        }
        client.phase = if client.is_scripted { ClientPhase::Scripted } else { ClientPhase::Idle };
        client.reads = ReadRate::All;
        client.room = usize::MAX;
        if client.has_finished {
            return self.expect_now(key);
        }
        if client.is_scripted {
            return;
        }
        let idle = client.timeout(|settings| settings.timeouts.idle);
        self.expect_timeout(key, idle);
        let wait = self.pause();
        self.act_in(key, wait);
    }

    /// The server has closed the connection.
    pub(super) fn closed(&mut self, key: usize) {
        let now = self.now;
        let Some(client) = self.clients.remove(&key) else { return };
        let is_allowed = client.has_reset
            || client.acted_late(now)
            || client.has_finished
            || client.phase == ClientPhase::Closing
            || self.stopped.is_some()
            || (self.may_evict() && client.may_be_evicted());
        if !is_allowed && now < client.expectation.earliest {
            self.fail(format!("a connection is closed early at {now}: {client:?}"));
        }
        if client.is_scripted {
            self.outcomes.push((now, key, Outcome::Closed));
        }
        self.totals.closed += 1;
    }
}

impl Client {
    /// The time that the minimum rate allows for these bytes.
    fn time_for(&self, bytes: usize) -> u64 {
        let rate = self.settings.as_ref().map_or(1, |settings| u64::from(settings.timeouts.rate));
        (bytes as u64 * 1000).div_ceil(rate)
    }
}

impl ResponseReader {
    /// Parses bytes. Returns how many, and whether a reply ends with them.
    fn read(&mut self, bytes: &[u8]) -> (usize, bool) {
        match &mut self.left {
            None => {
                let mut used = 0;
                for byte in bytes {
                    self.head.push(*byte);
                    used += 1;
                    if self.head.ends_with(b"\r\n\r\n") {
                        return (used, self.on_head());
                    }
                }
                (used, false)
            }
            Some(RemainingContent::Length(left)) => {
                let used = bytes.len().min(*left);
                *left -= used;
                let is_whole = *left == 0;
                if is_whole {
                    self.left = None;
                }
                (used, is_whole)
            }
            Some(RemainingContent::Chunks) => {
                for (used, byte) in bytes.iter().enumerate() {
                    self.tail.push_back(*byte);
                    if self.tail.len() > 7 {
                        self.tail.pop_front();
                    }
                    if self.tail == b"\r\n0\r\n\r\n" {
                        self.tail.clear();
                        self.left = None;
                        return (used + 1, true);
                    }
                }
                (bytes.len(), false)
            }
        }
    }

    fn on_head(&mut self) -> bool {
        let head = String::from_utf8(std::mem::take(&mut self.head)).expect("heads are ASCII");
        assert!(head.starts_with("HTTP/1.1 "), "no reply: {head}");
        self.status = head[9..12].parse().expect("a status");
        self.closes = head.contains("Connection: close");
        let length =
            head.split("Content-Length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        if head.contains("Transfer-Encoding: chunked") {
            self.left = Some(RemainingContent::Chunks);
            // The last chunk may follow the head directly.
            self.tail = b"\r\n".iter().copied().collect();
            return false;
        }
        let length = length.map_or(0, |length| length.parse().expect("a length"));
        self.left = (length > 0).then_some(RemainingContent::Length(length));
        length == 0
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

fn post(length: usize) -> Vec<u8> {
    format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

/// The time of the coarse clock at a moment.
const fn coarse_time(moment: u64) -> u64 {
    moment - moment % COARSE
}
