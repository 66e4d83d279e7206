//! Simulated peers: what each does next, what it was sent, and by when the server must react to it.
//!
//! A peer always knows what the server owes it: a reply or an end, no earlier and no later than at certain moments.
//! Those follow from the documented meaning of each timeout, not from the loop's own deadlines.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read;
use std::os::fd::RawFd;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;

use crate::address::Peer;
use crate::event_loop::catch_up::LONG_GAP;
use crate::settings::Settings;
use crate::stages::GRACE;
use crate::system::Transfer;

use super::world::{COARSE, SLACK, State, Step};
use super::{HANDLER, Random};

/// Bytes that fit between the server and a peer that does not read.
const ROOM: usize = 40_000;
/// Handlers hold their loop up for less.
const HELD_UP: u64 = 20_000;

pub(super) struct Remote {
    key: usize,
    pub(super) peer: Peer,
    /// When it came to the door.
    pub(super) came: u64,
    /// Those of its connection.
    settings: Option<Arc<Settings>>,
    mood: Mood,
    /// Requests that it still has in mind.
    requests: u32,
    /// Sent, and not yet received by the server.
    inbox: VecDeque<u8>,
    has_finished: bool,
    has_reset: bool,
    /// What can be sent to it now.
    room: usize,
    reads: Reads,
    /// What epoll knows of it: its data, and whether it is watched for room.
    pub(super) watch: Option<(u64, bool)>,
    replies: Replies,
    expects: Expects,
    act: u64,
    /// When it last did something although its time was over, which the loop had not noticed yet.
    raced: Option<u64>,
    /// The moment of its last request.
    asked: u64,
    /// How long the loop had been held up by then.
    lost: u64,
    /// It does not go on with what it began.
    stalls: bool,
    /// Its last request is for a worker.
    works: bool,
    /// What it asks for each time, if that is always the same.
    theme: Option<u64>,
    /// It does what a test says, and nothing else.
    is_scripted: bool,
    /// What it does, and after how long each.
    script: VecDeque<(u64, Deed)>,
}

/// What a test has a peer do.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    Get(&'static str),
    Finish,
    Reset,
}

/// What became of a peer, for a test that asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Answered,
    Closed,
}

/// What a peer is at.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Mood {
    /// Not accepted yet.
    Coming,
    /// Does as it was told by a test.
    Scripted,
    /// Connected, nothing said.
    First,
    /// Its last request was answered.
    Idle,
    /// Inside a head, with what is left of it.
    Head(Vec<u8>),
    /// Inside a body, with how much is left of it, and when the server loses patience.
    Body(usize, u64),
    /// For a reply that comes at once, or in a time that is known.
    Waiting,
    /// For a reply that it reads slowly, with when the server loses patience.
    Reading(Option<u64>),
    /// For something to happen.
    Held,
    /// For the pieces of a reply that never ends, of which there is one at least each so many milliseconds.
    Feed(u64),
    /// Was told that this is the end.
    Closing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reads {
    All,
    /// So many bytes each so many milliseconds.
    Slowly(usize, u64),
    Nothing,
}

/// When the server has to do something for the peer.
#[derive(Clone, Copy, Debug, Default)]
struct Expects {
    /// A timeout does not strike before.
    earliest: u64,
    latest: u64,
    /// How long the loop had been held up when this began.
    lost: u64,
    serial: u64,
}

/// Finds where replies end.
#[derive(Default)]
struct Replies {
    head: Vec<u8>,
    /// Of content; `None` in a head.
    left: Option<Content>,
    /// The last bytes of chunked content.
    tail: VecDeque<u8>,
    closes: bool,
    status: u16,
    wanted: u32,
}

enum Content {
    Length(usize),
    Chunks,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "#{} {:?} asked {} wants {} fin {} rst {} room {} inbox {} reads {:?} {:?}",
            self.key,
            self.mood,
            self.asked,
            self.replies.wanted,
            self.has_finished,
            self.has_reset,
            self.room,
            self.inbox.len(),
            self.reads,
            self.expects
        )
    }
}

impl Remote {
    pub(super) fn new(key: usize, random: &mut Random, came: u64) -> Self {
        // Few addresses, so that some have more than their share.
        let address = [10, 0, 0, random.below(8) as u8];
        let port = 1024 + key as u16 % 60_000;
        Self {
            key,
            peer: Peer::tcp((address, port).into()),
            came,
            settings: None,
            mood: Mood::Coming,
            requests: random.below(8) as u32,
            inbox: VecDeque::new(),
            has_finished: false,
            has_reset: false,
            room: usize::MAX,
            reads: Reads::All,
            watch: None,
            replies: Replies::default(),
            expects: Expects { latest: u64::MAX, ..Expects::default() },
            act: 0,
            raced: None,
            asked: came,
            lost: 0,
            stalls: false,
            works: false,
            theme: None,
            is_scripted: false,
            script: VecDeque::new(),
        }
    }

    /// One of many that ask for the same.
    pub(super) const fn with(mut self, theme: Option<u64>) -> Self {
        self.theme = theme;
        self
    }

    /// One that does as a test says, from an address with this last byte.
    pub(super) fn scripted(mut self, host: u8, script: &[(u64, Deed)]) -> Self {
        self.script = script.iter().cloned().collect();
        let port = 1024 + self.key as u16;
        (self.is_scripted, self.peer) = (true, Peer::tcp(([10, 0, 1, host], port).into()));
        self
    }

    /// What epoll would report: the mark of its connection, and the events.
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
    pub(super) fn give(&mut self, space: &mut [u8]) -> Transfer {
        if self.has_reset {
            return Transfer::Broken;
        }
        match self.inbox.read(space) {
            Ok(count) if count > 0 => Transfer::Moved(count),
            _ if self.has_finished => Transfer::Ended,
            _ => Transfer::Again,
        }
    }

    /// The loop may close it to make room.
    fn looks_silent(&self) -> bool {
        let is_slow = matches!(
            self.mood,
            Mood::First | Mood::Idle | Mood::Head(_) | Mood::Body(..) | Mood::Reading(_)
        );
        !self.inbox.is_empty() || is_slow
    }

    /// It did something at the last moment: the server may have been about to end it.
    fn has_raced(&self, now: u64) -> bool {
        self.raced.is_some_and(|raced| now - raced < HELD_UP)
    }

    fn say(&mut self, bytes: &[u8]) {
        self.inbox.extend(bytes);
    }

    fn timeout(&self, of: impl Fn(&Settings) -> std::time::Duration) -> u64 {
        let settings = self.settings.as_ref().expect("it was accepted");
        // Longer ones are cut.
        (of(settings).as_millis() as u64).min(i32::MAX as u64)
    }
}

impl State {
    /// The server must do something for peer `key` from `earliest`, if that is a timeout, to `latest`.
    fn expect(&mut self, key: usize, earliest: u64, latest: u64) {
        let lost = self.lost;
        // A peer that was suspended too may be late itself.
        let latest = if latest <= self.now { self.now + SLACK } else { latest };
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        let serial = remote.expects.serial + 1;
        remote.expects = Expects { earliest, latest, lost, serial };
        if latest < u64::MAX {
            self.plan(latest + 1, Step::Expect(key, serial));
        }
    }

    /// A timeout of so many milliseconds runs from now.
    fn expect_timeout(&mut self, key: usize, wait: u64) {
        let now = self.now;
        self.expect(key, now + wait - wait.min(COARSE), now + wait + SLACK);
    }

    /// It is answered in this turn.
    fn expect_now(&mut self, key: usize) {
        let now = self.now;
        self.expect(key, u64::MAX, now + 1);
    }

    pub(super) fn check_expected(&mut self, (key, serial): (usize, u64), due: u64) {
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        if remote.expects.serial != serial {
            return;
        }
        let lost = self.lost - remote.expects.lost;
        if lost > 0 || self.now > due {
            // The loop could not run: it has that much longer, and the time to notice.
            let mut again = self.now.max(due + lost.min(HELD_UP)) + SLACK;
            if remote.works && u128::from(lost) >= LONG_GAP.as_millis() {
                // It makes a deadline that passed in so long a rest due now. That of a request in the queue of the
                // workers is the beginning of its run, which has its whole time from then on.
                again += HANDLER.as_millis() as u64;
            }
            (remote.expects.lost, remote.expects.latest) = (self.lost, again);
            return self.plan(again, Step::Expect(key, serial));
        }
        let late = format!("{:?}", self.remotes.get(&key));
        panic!("the server is late for {late}: {}", self.describe());
    }

    fn act_in(&mut self, key: usize, wait: u64) {
        let due = self.now + wait;
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        remote.act += 1;
        let serial = remote.act;
        self.plan(due, Step::Act(key, serial));
    }

    /// Its connection was accepted and has a transport.
    pub(super) fn accepted(&mut self, key: usize) {
        let settings = Arc::clone(&self.settings);
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        remote.settings = Some(settings);
        self.seen.connections += 1;
        if remote.has_reset || remote.has_finished {
            return self.expect_now(key);
        }
        remote.mood = Mood::First;
        if let Some((wait, _)) = remote.script.front() {
            let wait = *wait;
            remote.mood = Mood::Scripted;
            return self.act_in(key, wait);
        }
        let first = remote.timeout(|settings| settings.timeouts.first_byte);
        self.expect_timeout(key, first);
        let wait = self.pause();
        self.act_in(key, wait);
    }

    /// Between two deeds of a peer: mostly nothing, now and then longer than any timeout.
    fn pause(&mut self) -> u64 {
        let most = [1, 1, 1, 5, 300, 3_000, 30_000, 200_000][self.random.below(8) as usize];
        self.random.below(most)
    }

    pub(super) fn act(&mut self, key: usize, serial: u64) {
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        if remote.act != serial || remote.has_reset {
            return;
        }
        if remote.expects.earliest <= self.now {
            remote.raced = Some(self.now);
        }
        match remote.mood.clone() {
            Mood::Coming => self.connect(key),
            Mood::Scripted => self.play(key),
            _ if self.random.below(40) == 0 => self.leave_somehow(key),
            Mood::First | Mood::Idle => self.begin(key),
            Mood::Head(left) => self.go_on_with_head(key, left),
            Mood::Body(left, patience) => self.go_on_with_body(key, left, patience),
            Mood::Held if self.random.below(8) == 0 => {
                // The next request comes before the reply to this one.
                remote.replies.wanted += 1;
                remote.say(&get("page/10"));
                self.arrive(key);
            }
            Mood::Waiting | Mood::Reading(_) | Mood::Closing if self.random.below(3) > 0 => {}
            Mood::Held | Mood::Feed(_) if self.random.below(2) > 0 => {
                let wait = self.pause();
                self.act_in(key, wait);
            }
            _ => self.leave_somehow(key),
        }
    }

    fn play(&mut self, key: usize) {
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        let Some((_, deed)) = remote.script.pop_front() else { return };
        let next = remote.script.front().map(|(wait, _)| *wait);
        match deed {
            Deed::Get(path) => {
                remote.say(&get(path));
                self.arrive(key);
            }
            Deed::Finish => self.leave(key, false),
            Deed::Reset => self.leave(key, true),
        }
        if let Some(wait) = next {
            self.act_in(key, wait);
        }
    }

    fn leave_somehow(&mut self, key: usize) {
        let resets = self.random.below(2) == 0;
        self.leave(key, resets);
    }

    /// Its side ends, gently or not.
    fn leave(&mut self, key: usize, resets: bool) {
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        if resets {
            remote.has_reset = true;
            self.seen.resets += 1;
            self.expect_now(key);
        } else if !remote.has_finished {
            remote.has_finished = true;
            self.seen.ends += 1;
            // A reply that is on its way still comes; nothing else does.
            if !matches!(remote.mood, Mood::Waiting | Mood::Reading(_) | Mood::Closing) {
                self.expect_now(key);
            }
        }
        self.arrive(key);
    }

    /// Its next request, or the end of what it has in mind.
    // long because each kind of request is one arm of the match.
    fn begin(&mut self, key: usize) {
        let now = self.now;
        let kind = self.random.below(18);
        let number = self.random.below(3000);
        let long = [10, 1_000, 20_000, 120_000, 700_000][self.random.below(5) as usize];
        let reads = match self.random.below(6) {
            0 => Reads::Nothing,
            1 => Reads::Slowly(1 + self.random.below(3_000) as usize, 1 + self.random.below(4_000)),
            2 => Reads::Slowly(60_000, 1 + self.random.below(20_000)),
            _ => Reads::All,
        };
        let lost = self.lost;
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        (remote.asked, remote.lost) = (now, lost);
        if remote.requests == 0 {
            if self.random.below(3) == 0 {
                self.leave_somehow(key);
            } else {
                self.seen.stalled += 1;
            }
            return;
        }
        remote.requests -= 1;
        let kind = remote.theme.unwrap_or(kind);
        remote.replies.wanted = 1;
        remote.mood = Mood::Waiting;
        remote.stalls = false;
        remote.works = matches!(kind, 6 | 7);
        self.seen.requests += 1;
        let handler = remote.timeout(|settings| settings.timeouts.handler);
        let mut latest = now + 1;
        let mut earliest = u64::MAX;
        match kind {
            0 => {
                let count = 1 + number as u32 % 40;
                remote.replies.wanted = count;
                remote.say(&get("page/100").repeat(count as usize));
            }
            1 => remote.say(&get(&format!("slow/{}", number % 100))),
            2 => remote.say(&get("panic")),
            3 => remote.say(&get("close")),
            4 | 5 => {
                (remote.reads, remote.mood) = (reads, Mood::Reading(None));
                remote.room = if reads == Reads::All { usize::MAX } else { ROOM };
                let path = if kind == 4 { "page" } else { "file" };
                remote.say(&get(&format!("{path}/{long}")));
                if let Reads::Slowly(_, pause) = reads {
                    self.plan(now + pause, Step::Read(key));
                }
            }
            6 | 7 => {
                let wait = if number < 2500 { number / 3 } else { number };
                let run = self.random.below([5, 500, 20_000, 100_000][number as usize % 4]);
                remote.say(&get(&format!("work/{wait}/{run}")));
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
                remote.say(&get(&format!("hold/{wait}")));
                remote.mood = Mood::Held;
                latest = now + wait + SLACK;
                let pause = self.pause();
                self.act_in(key, pause);
            }
            10 => {
                let wait = 1 + self.random.below(100_000);
                remote.say(&get(&format!("feed/{wait}")));
                remote.mood = Mood::Feed(wait);
                let pause = self.pause() + self.pause();
                self.act_in(key, pause);
            }
            11 => {
                let wait = self.random.below([10, 2_000, 60_000][number as usize % 3]);
                remote.say(&get(&format!("later/{wait}")));
                latest = now + wait.min(handler) + SLACK;
                earliest = now + handler - handler.min(COARSE);
                let pause = self.pause();
                self.act_in(key, pause);
            }
            12 => {
                let wait = self.random.below([10, 2_000, 40_000][number as usize % 3]);
                remote.say(&get(&format!("stream/{}/{wait}", 1 + number % 20)));
                latest = now + wait.min(handler) + SLACK;
                earliest = now + handler - handler.min(COARSE);
                let pause = self.pause();
                self.act_in(key, pause);
            }
            13 | 14 => {
                remote.stalls = number.is_multiple_of(4);
                return self.go_on_with_head(key, get("page/5"));
            }
            15 | 16 => {
                remote.stalls = number.is_multiple_of(4);
                let length = long.min(120_000) + 1;
                remote.say(&post(length));
                let body = remote.timeout(|settings| settings.timeouts.body);
                remote.mood = Mood::Body(length, shown(now) + body);
                self.expect_timeout(key, body);
                let wait = self.pause();
                if !self.remotes[&key].stalls {
                    self.act_in(key, wait);
                }
                return self.arrive(key);
            }
            _ => remote.say(&get(&format!("page/{number}"))),
        }
        self.expect(key, earliest, latest);
        self.arrive(key);
    }

    fn go_on_with_head(&mut self, key: usize, mut left: Vec<u8>) {
        let count = 1 + self.random.below(left.len() as u64) as usize;
        let later = left.split_off(count);
        let wait = self.pause();
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        let begins = !matches!(remote.mood, Mood::Head(_));
        remote.say(&left);
        if later.is_empty() {
            remote.mood = Mood::Waiting;
            self.expect_now(key);
        } else {
            let (stalls, head) = (remote.stalls, remote.timeout(|settings| settings.timeouts.head));
            remote.mood = Mood::Head(later);
            if begins {
                self.expect_timeout(key, head);
            }
            if stalls {
                self.seen.stalled += 1;
            } else {
                self.act_in(key, wait);
            }
        }
        self.arrive(key);
    }

    fn go_on_with_body(&mut self, key: usize, left: usize, patience: u64) {
        let shown = shown(self.now);
        let most = [100, 5_000, 200_000][self.random.below(3) as usize];
        let count = left.min(1 + self.random.below(most) as usize);
        let wait = self.pause();
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        remote.say(&vec![b'b'; count]);
        if count == left {
            remote.mood = Mood::Waiting;
            self.expect_now(key);
        } else {
            let body = remote.timeout(|settings| settings.timeouts.body);
            let patience = (patience + remote.bought(count)).min(shown + body);
            remote.mood = Mood::Body(left - count, patience);
            self.expect(key, patience - patience.min(COARSE), patience + SLACK + COARSE);
            // Whatever held the loop up since the head came delays the end of its patience.
            if let Some(remote) = self.remotes.get_mut(&key) {
                remote.expects.lost = remote.lost;
            }
            self.act_in(key, wait);
        }
        self.arrive(key);
    }

    pub(super) fn read(&mut self, key: usize) {
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        let Reads::Slowly(bytes, pause) = remote.reads else { return };
        let was_full = remote.room == 0;
        remote.room = (remote.room + bytes).min(ROOM);
        let (mood, earliest) = (remote.mood.clone(), remote.expects.earliest);
        let due = self.now + pause;
        self.plan(due, Step::Read(key));
        if was_full && matches!(mood, Mood::Reading(Some(_))) {
            // There is more, and now room for it.
            let now = self.now;
            self.expect(key, earliest, now + 1);
        }
        self.arrive(key);
    }

    /// The server stops: connections on which nothing is under way have a moment left.
    pub(super) fn hurry(&mut self) {
        let is_idle = |remote: &Remote| {
            remote.watch.is_some()
                && remote.inbox.is_empty()
                && matches!(remote.mood, Mood::First | Mood::Idle)
        };
        let idle: Vec<usize> =
            self.remotes.values().filter(|remote| is_idle(remote)).map(|one| one.key).collect();
        let latest = self.now + GRACE.as_millis() as u64 + SLACK;
        for key in idle {
            if self.remotes[&key].expects.latest > latest {
                self.expect(key, 0, latest);
            }
        }
    }

    /// Something happened that peers wait for: all are told in this turn.
    pub(super) fn tell_waiters(&mut self) {
        let waits = |remote: &Remote| {
            remote.mood == Mood::Held && remote.inbox.is_empty() && !remote.has_finished
        };
        let held: Vec<usize> =
            self.remotes.values().filter(|remote| waits(remote)).map(|one| one.key).collect();
        for key in held {
            self.expect_now(key);
        }
    }

    /// The server sends.
    pub(super) fn take_sent(&mut self, socket: RawFd, bytes: &[u8]) -> Transfer {
        let shown = shown(self.now);
        let remote = self.remote(socket);
        let key = remote.key;
        if remote.has_reset {
            return Transfer::Broken;
        }
        let count = bytes.len().min(remote.room);
        if remote.room != usize::MAX {
            remote.room -= count;
        }
        if let Mood::Reading(patience) = remote.mood {
            let write = remote.timeout(|settings| settings.timeouts.write);
            let until = patience.unwrap_or(shown + write) + remote.bought(count);
            let until = if count == 0 {
                patience.unwrap_or(shown + write)
            } else {
                until.min(shown + write)
            };
            remote.mood = Mood::Reading(Some(until));
            self.expect(key, until - until.min(COARSE), until + SLACK + COARSE);
        }
        if count == 0 {
            return Transfer::Again;
        }
        let mut rest = &bytes[..count];
        while !rest.is_empty() {
            let remote = self.remote(socket);
            let (used, is_whole) = remote.replies.read(rest);
            rest = &rest[used..];
            if is_whole {
                self.on_reply(key);
            }
        }
        self.on_piece(key);
        Transfer::Moved(count)
    }

    /// A part of a reply came.
    fn on_piece(&mut self, key: usize) {
        let now = self.now;
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        match remote.mood {
            Mood::Feed(wait) if !remote.has_finished => {
                self.expect(key, u64::MAX, now + wait + SLACK);
            }
            Mood::Waiting if remote.replies.left.is_some() => {
                let handler = remote.timeout(|settings| settings.timeouts.handler);
                self.expect(key, now + handler - COARSE, now + handler + SLACK);
            }
            _ => {}
        }
    }

    /// Connections may be closed for others.
    fn makes_room(&self) -> bool {
        self.full_at == self.now || self.now - self.made_room.min(self.now) < HELD_UP
    }

    fn on_reply(&mut self, key: usize) {
        let now = self.now;
        let is_stopping = self.stopped.is_some();
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        let (status, closes) = (remote.replies.status, remote.replies.closes);
        self.seen.replies += 1;
        if matches!(status, 408 | 504) {
            self.seen.timeouts += 1;
            if now < remote.expects.earliest && !is_stopping && !remote.has_raced(now) {
                let fault = format!("a {status} is early at {now}: {remote:?}");
                self.fail(fault);
            }
        }
        let Some(remote) = self.remotes.get_mut(&key) else { return };
        remote.replies.wanted = remote.replies.wanted.saturating_sub(1);
        if remote.is_scripted {
            self.outcomes.push((now, key, Outcome::Answered));
        }
        if closes {
            remote.mood = Mood::Closing;
            // Nothing is owed behind it.
            remote.reads = Reads::All;
            remote.room = usize::MAX;
            let linger = remote.timeout(|settings| settings.timeouts.linger);
            self.expect(key, 0, now + linger + SLACK);
            let wait = self.pause();
            return self.act_in(key, wait);
        }
        if remote.replies.wanted > 0 {
            remote.mood = Mood::Waiting;
            return self.expect_now(key);
        }
        remote.mood = if remote.is_scripted { Mood::Scripted } else { Mood::Idle };
        remote.reads = Reads::All;
        remote.room = usize::MAX;
        if remote.has_finished {
            return self.expect_now(key);
        }
        if remote.is_scripted {
            return;
        }
        let idle = remote.timeout(|settings| settings.timeouts.idle);
        self.expect_timeout(key, idle);
        let wait = self.pause();
        self.act_in(key, wait);
    }

    /// The server has closed the connection.
    pub(super) fn closed(&mut self, key: usize) {
        let now = self.now;
        let Some(remote) = self.remotes.remove(&key) else { return };
        let may = remote.has_reset
            || remote.has_raced(now)
            || remote.has_finished
            || remote.mood == Mood::Closing
            || self.stopped.is_some()
            || (self.makes_room() && remote.looks_silent());
        if !may && now < remote.expects.earliest {
            self.fail(format!("a connection is closed early at {now}: {remote:?}"));
        }
        if remote.is_scripted {
            self.outcomes.push((now, key, Outcome::Closed));
        }
        self.seen.closed += 1;
    }
}

impl Remote {
    /// The time that bytes buy at the least rate.
    fn bought(&self, bytes: usize) -> u64 {
        let rate = self.settings.as_ref().map_or(1, |settings| u64::from(settings.timeouts.rate));
        (bytes as u64 * 1000).div_ceil(rate)
    }
}

impl Replies {
    /// Reads on: how many bytes, and whether a reply ends with them.
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
            Some(Content::Length(left)) => {
                let used = bytes.len().min(*left);
                *left -= used;
                let is_whole = *left == 0;
                if is_whole {
                    self.left = None;
                }
                (used, is_whole)
            }
            Some(Content::Chunks) => {
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
            self.left = Some(Content::Chunks);
            // The end may follow the head at once.
            self.tail = b"\r\n".iter().copied().collect();
            return false;
        }
        let length = length.map_or(0, |length| length.parse().expect("a length"));
        self.left = (length > 0).then_some(Content::Length(length));
        length == 0
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

fn post(length: usize) -> Vec<u8> {
    format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

/// What the clock shows at a moment.
const fn shown(moment: u64) -> u64 {
    moment - moment % COARSE
}
