//! Decides how one thread holds one connection from accept to close, blocking wherever the peer
//! lets it wait: what every scheduler with a thread per connection is made of.

use std::convert::identity;
use std::future::poll_fn;
use std::io;
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bine_log as log;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::arrival::{Arrival, Called, Entrance, Lobby, Looked, MakingRoom, NO_THREAD, Progress};
use crate::connection::{
    Busy, Connection, DetachedConnection, Errand, NO_HOLD, Phase, ThreadContext,
};
use crate::discard::discard;
use crate::handler::{Finished, LaterReply, Parting, Space, Terms, Why, Wire, failure, live};
use crate::lifecycle::State;
use crate::metrics::{Ending, count_panic};
use crate::next::{Kind, Next};
use crate::scheduling::{Place, Scheduler};
use crate::server::{Server, View};
use crate::stages::{self, GRACE};
use crate::system::Wakeup;
use crate::time::Tick;
use crate::transport::{Blocking, Nonblocking, Transport as _};

/// One thread's means to hold connections, one after the other.
pub struct Conversations<'s> {
    server: &'s Arc<Server>,
    view: View,
    scheduler: &'s dyn Scheduler,
    context: ThreadContext,
    entrance: Entrance,
    /// Where connections wait that another thread accepts; `None`: this one accepts itself.
    lobby: Option<&'s Lobby>,
    /// Somebody waited for a thread when this one looked last, which is believed until then.
    crowded_until: Option<Tick>,
    /// Accepted in place of an idle connection, and next to be held.
    newcomer: Option<Arrival>,
    /// The connection at hand leaves so that there is a place for somebody.
    makes_room: Option<MakingRoom>,
    /// Rings when something happens that a held reply of this thread waits for; made by the first.
    wakeup: Option<Arc<Wakeup>>,
    /// Where who has left HTTP receives; made for the first.
    space: Option<Space>,
    /// The scheduler has lent this thread to a held reply.
    holds: bool,
    /// Kept between waits for its memory.
    wanted: Vec<PollFd<'static>>,
}

/// Who spoke up during a wait for a request.
enum Watched {
    Peer,
    /// Somebody waits for a thread.
    Door,
}

/// At full load a kept connection has its thread this long for its next request (document 000
/// section 2.4), as exactly as the coarse clock is; then a newcomer may take it.
const KEPT: Duration = Duration::from_millis(1);
/// The same from accept to the first byte, which has a whole round trip to come.
const KEPT_SILENT: Duration = Duration::from_secs(1);
/// How often a thread that waits for a request looks whether the load has become full. Each look is
/// a system call; a quarter of a second is the most that it adds to a newcomer's first wait. To be told by a descriptor
/// instead would wake all idle threads at once each time that the last free one is taken.
const LOOK: Duration = Duration::from_millis(250);

impl<'s> Conversations<'s> {
    /// For connections that come to `server`. At full [load](Scheduler::load) of `scheduler` one that is
    /// idle gives way to a newcomer, who is [accepted](Self::accept) next.
    pub fn new(server: &'s Arc<Server>, scheduler: &'s dyn Scheduler) -> Self {
        Self::at(None, server, scheduler)
    }

    /// The same for connections that wait in `lobby`, which some other thread fills.
    pub(crate) fn behind(
        lobby: &'s Lobby,
        server: &'s Arc<Server>,
        scheduler: &'s dyn Scheduler,
    ) -> Self {
        Self::at(Some(lobby), server, scheduler)
    }

    fn at(lobby: Option<&'s Lobby>, server: &'s Arc<Server>, scheduler: &'s dyn Scheduler) -> Self {
        let view = server.view();
        let context = view.context();
        Self {
            server,
            scheduler,
            context,
            view,
            entrance: Entrance::new(server),
            lobby,
            crowded_until: None,
            newcomer: None,
            makes_room: None,
            wakeup: None,
            space: None,
            holds: false,
            wanted: Vec::new(),
        }
    }

    /// Waits for the next connection; `None` when the server stops.
    ///
    /// # Errors
    ///
    /// The system's, when it cannot wait.
    pub fn accept(&mut self) -> io::Result<Option<Arrival>> {
        if self.newcomer.is_some() {
            return Ok(self.newcomer.take());
        }
        loop {
            self.keep_up();
            let accepted = match self.lobby.map(Lobby::rest) {
                None => self.entrance.accept_within(None)?,
                Some(Called::To(arrival)) => Some(arrival),
                Some(Called::Look) => None,
                Some(Called::Off) => return Ok(None),
            };
            if accepted.is_some() || self.server.state() != State::Serving {
                return Ok(accepted);
            }
        }
    }

    /// Who has come meanwhile and took the place of the connection that was held last, if it gave way.
    pub fn take_newcomer(&mut self) -> Option<Arrival> {
        self.newcomer.take()
    }

    /// Holds the connection on this thread until it is over.
    pub fn hold(&mut self, arrival: Arrival) {
        self.run(arrival, false);
    }

    /// Holds the connection until it is over, or until its scheduler wishes the next stage
    /// [elsewhere](Place::Elsewhere) and it can go there: then here it is again.
    pub(crate) fn go_on(&mut self, arrival: Arrival) -> Option<Arrival> {
        self.run(arrival, true)
    }

    fn run(&mut self, arrival: Arrival, may_leave: bool) -> Option<Arrival> {
        let Arrival { progress, peer, counted } = arrival;
        self.context.clock.turn();
        // Looked at behind the accept: whoever comes after a change is served under it.
        self.keep_up();
        let (mut connection, next) = match progress {
            Progress::New(socket) => {
                let transport = |session| Blocking::new(socket, session);
                let mut connection = Connection::new(transport, peer, &mut self.context);
                self.context.take_up(&mut connection);
                (connection, Next::Request)
            }
            Progress::Between(detached) => detached.attach(&mut self.context)?,
        };
        let snapshot_id = connection.snapshot_id;
        // A fault of ours costs this connection and no other.
        let ended =
            catch_unwind(AssertUnwindSafe(|| self.converse(&mut connection, next, may_leave)));
        if let Ok(Some(next)) = ended {
            match DetachedConnection::detach(connection, &mut self.context, next) {
                Ok(detached) => {
                    self.context.config.access.flush();
                    let progress = Progress::Between(Box::new(detached));
                    return Some(Arrival { progress, peer, counted });
                }
                // It has no snapshot, which every connection of a server has.
                Err(same) => connection = same,
            }
        }
        self.context.put_down(&mut connection);
        let upgraded = connection.busy.take_if(|busy| busy.upgrade.is_some());
        let is_upgrade = upgraded.is_some() || connection.transport.departs();
        let stopping = self.context.stopping;
        let ending = if is_upgrade { Ending::Upgrade } else { connection.ended(stopping) };
        self.context.tally.closed(ending);
        stages::tell_of_leaving(&mut connection, &mut self.context);
        self.end_hold(&mut connection);
        if let (Some(busy), true) = (upgraded, ended.is_ok()) {
            self.live(connection.transport, busy);
        } else if connection.transport.departs() {
            connection.transport.depart(peer);
        } else {
            connection.transport.farewell();
            connection.busy.take().into_iter().for_each(|busy| self.context.recycle(busy));
            drop(connection);
        }
        // One that could not be begun is nobody else's.
        discard(self.context.errand.take());
        if ended.is_err() {
            log::error(format_args!("a connection was closed by a fault of the server"));
            self.context = self.view.context();
            self.wakeup = None;
        } else {
            self.context.config.leave(snapshot_id);
        }
        self.context.output.clear();
        self.context.config.access.flush();
        drop(counted);
        self.pass_place();
        None
    }

    /// Runs stages from `next` on. `Some`: this one is wished elsewhere.
    fn converse(
        &mut self,
        connection: &mut Connection<Blocking>,
        mut next: Next,
        may_leave: bool,
    ) -> Option<Next> {
        // A handler's first poll is in place, and may make timers and sockets there already.
        let background = self.server.background().map(tokio::runtime::Handle::enter);
        if let Err(error) = &background {
            log::error(format_args!("no runtime for handlers that await: {error}"));
        }
        let mut has_run = false;
        loop {
            if self.holds && connection.hold == NO_HOLD {
                self.end_hold(connection);
            }
            self.context.stopping = self.server.state() != State::Serving;
            if self.server.state() == State::Over {
                return None;
            }
            // One stage at least, or it would go from thread to thread and come no further.
            if std::mem::replace(&mut has_run, may_leave)
                && self.scheduler.stage(next) == Place::Elsewhere
                && DetachedConnection::may_hold(connection, next)
            {
                return Some(next);
            }
            next = match next {
                Next::Request => self.await_request(connection),
                Next::Response(Kind::Static) => stages::response(connection, &mut self.context),
                Next::Response(Kind::Dynamic) => {
                    // The work may keep this thread for long.
                    self.context.config.access.flush();
                    stages::dynamic(connection, &mut self.context)
                }
                Next::Reply => stages::reply(connection, &mut self.context),
                Next::Held => stages::held(connection, &mut self.context, Why::Room),
                Next::Park => self.await_handler(connection),
                Next::Idle => {
                    self.context.take_up(connection);
                    if connection.has_unsent() { Next::Reply } else { Next::Request }
                }
                Next::Depart | Next::Closed => return None,
            };
        }
    }

    /// Has a connection go that has waited too long for a thread: who is owed a reply is told so, without a wait.
    pub(crate) fn turn_away(&mut self, arrival: Arrival) {
        let Arrival { progress, peer, counted } = arrival;
        let detached = match progress {
            Progress::Between(detached) => detached,
            new @ Progress::New(_) => {
                return Arrival { progress: new, peer, counted }.refuse(NO_THREAD.told());
            }
        };
        self.context.clock.turn();
        self.keep_up();
        counted.count_refusal();
        let Some((connection, next)) = detached.attach(&mut self.context) else { return };
        let snapshot_id = connection.snapshot_id;
        let mut connection = connection.map(Nonblocking::from, identity);
        self.context.drained = false;
        // It may have said something meanwhile, and has replies, perhaps, that wait for those behind them.
        let next = match next {
            Next::Request => stages::request(&mut connection, &mut self.context),
            next => next,
        };
        let next = match next {
            Next::Response(_) | Next::Idle => stages::unheard(&mut connection, &mut self.context),
            next => next,
        };
        if next == Next::Reply {
            // What does not leave at once is not waited for.
            stages::reply(&mut connection, &mut self.context);
        }
        if connection.phase == Phase::Lingering {
            // What the peer has sent is taken, or the close would be a reset that may overtake the reply.
            stages::request(&mut connection, &mut self.context);
        }
        connection.transport.farewell();
        self.context.tally.closed(Ending::Load);
        stages::tell_of_leaving(&mut connection, &mut self.context);
        self.context.output.clear();
        self.context.input = 0..0;
        self.context.errand = None;
        self.context.config.leave(snapshot_id);
        self.context.config.access.flush();
    }

    /// Lets whoever takes the connection over live here, if this thread may wait for that.
    fn live(&mut self, transport: Blocking, mut busy: Box<Busy>) {
        let (upgrade, received, name) = (busy.upgrade.take(), take(&mut busy.input), busy.handler);
        self.context.config.access.flush();
        self.holds = self.scheduler.begin_hold();
        let terms = Terms {
            state: self.server.tidings(),
            parting: (!self.holds).then_some(Parting::NoThread),
            clock: Rc::clone(&self.context.clock),
            slowness: Rc::clone(&self.context.slowness),
            name,
        };
        let space = self.space.get_or_insert_with(Space::new).clone();
        let lived = catch_unwind(AssertUnwindSafe(|| {
            let background = self.server.background()?;
            let _inside = background.enter();
            let wire = Wire::new(transport.into(), received, space)?;
            if let Some(upgrade) = upgrade {
                background.block_on(live(upgrade, wire, terms));
            }
            Ok::<_, io::Error>(())
        }));
        match lived {
            Ok(Ok(())) => {}
            Ok(Err(error)) => log::error(format_args!("{name} cannot be awaited: {error}")),
            Err(_) => {
                count_panic();
                log::error(format_args!("{name} panicked; its connection was cut"));
            }
        }
        if take(&mut self.holds) {
            self.scheduler.end_hold();
        }
        self.context.recycle(busy);
        self.context.clock.turn();
    }

    fn await_request(&mut self, connection: &mut Connection<Blocking>) -> Next {
        let between = self.context.input.is_empty()
            && matches!(connection.phase, Phase::Handshake | Phase::First | Phase::Idle)
            && connection.machine.phase() == bine_http::Phase::Head;
        if between && !self.await_peer(connection) {
            return Next::Closed;
        }
        stages::request(connection, &mut self.context)
    }

    /// Waits until the peer says something. False: it did not in its time, which a stop shortens,
    /// or somebody else has its thread now.
    fn await_peer(&mut self, connection: &mut Connection<Blocking>) -> bool {
        self.context.config.access.flush();
        let mut now = self.context.clock.turn();
        let kept = if matches!(connection.phase, Phase::Handshake | Phase::First) {
            KEPT_SILENT
        } else {
            connection.deadline = now.after(self.context.config.settings.timeouts.idle);
            KEPT
        };
        let gives_way = now.after(kept);
        let mut stopping = false;
        while !connection.deadline.has_come(now) {
            if !stopping && self.server.state() != State::Serving {
                stopping = true;
                // Where others wait for the thread they would have to wait for all of the grace as well.
                let grace = if self.is_pressed() { KEPT } else { GRACE };
                connection.deadline = connection.deadline.earlier(now.after(grace));
            }
            if connection.transport.is_evicted() {
                connection.end(Ending::Load);
                return false;
            }
            let mut left = connection.deadline.since(now);
            let full = !stopping && self.is_full();
            self.keep_up();
            self.context.config.switch_to(connection.snapshot_id);
            // Nobody waits for a millisecond before somebody is there who waits for its end. A timer that runs out before
            // the kernel's next tick is set in hardware and, when the request comes, taken back: with it a request cost
            // half as much again (docs/measurements/schedulers.md, "A timer of a millisecond").
            let at_door = full && (gives_way.has_come(now) || !self.is_crowded(now));
            if full && !at_door {
                left = left.min(gives_way.since(now));
            } else if !stopping {
                left = left.min(LOOK);
            }
            match self.watch(&connection.transport, stopping, at_door, left) {
                Some(Watched::Peer) => return true,
                // A thread that has become free meanwhile is there for the newcomer.
                Some(Watched::Door)
                    if gives_way.has_come(now) && self.is_full() && self.give_way() =>
                {
                    connection.end(Ending::Load);
                    return false;
                }
                Some(Watched::Door) | None => {}
            }
            now = self.context.clock.turn();
        }
        connection.end(match connection.phase {
            _ if stopping => Ending::Drain,
            Phase::Idle => Ending::Idle,
            _ => Ending::Timeout,
        });
        false
    }

    /// Waits for the peer, for the stop unless that has come, and at the door if so wished.
    fn watch(
        &mut self,
        transport: &Blocking,
        stopping: bool,
        at_door: bool,
        left: Duration,
    ) -> Option<Watched> {
        let bell = self.server.stop_bell();
        // Every wait for a request comes here: nothing is allocated.
        let mut wanted = emptied(take(&mut self.wanted));
        wanted.push(PollFd::new(transport, PollFlags::IN));
        if at_door {
            wanted.extend(self.lobby.map(|lobby| PollFd::new(lobby, PollFlags::IN)));
            // Without a place nobody comes as far as the lobby.
            if self.lobby.is_none() || !self.server.census.has_room() {
                wanted.extend(self.entrance.doors());
            }
        }
        let behind_doors = wanted.len();
        // A stop that has come is heard for ever.
        if !stopping {
            wanted.push(PollFd::new(&bell, PollFlags::IN));
        }
        let left = Timespec::try_from(left).ok();
        // Interrupted or not, the descriptors say it all.
        let _ = poll(&mut wanted, left.as_ref());
        let spoke = |each: &PollFd<'_>| !each.revents().is_empty();
        let (has_peer, has_door) = (spoke(&wanted[0]), wanted[1..behind_doors].iter().any(spoke));
        self.wanted = emptied(wanted);
        if at_door {
            self.crowded_until = has_door.then(|| self.context.clock.now().after(LOOK));
        }
        if has_peer {
            return Some(Watched::Peer);
        }
        has_door.then_some(Watched::Door)
    }

    /// Goes over to the newest settings, if they have changed.
    pub(crate) fn keep_up(&mut self) {
        self.entrance.keep_up();
        self.view.keep_up(self.server, &mut self.context);
    }

    /// Somebody waits in the lobby whom no resting thread will take.
    fn is_pressed(&self) -> bool {
        self.lobby.is_some_and(Lobby::is_pressed)
    }

    /// Somebody waits for a thread, as far as this one knows.
    fn is_crowded(&self, now: Tick) -> bool {
        self.crowded_until.is_some_and(|until| !until.has_come(now))
    }

    fn is_full(&self) -> bool {
        self.scheduler.load() >= 1.0
    }

    /// Takes in a newcomer, who has the thread next. True too when one is kept out for want of what
    /// the connection at hand has: the [place](Self::pass_place) is the newcomer's when it has left.
    fn give_way(&mut self) -> bool {
        if let Some(lobby) = self.lobby {
            self.newcomer = lobby.take();
            // While there is a place the thread that accepts lets in who comes.
            if self.newcomer.is_some() || self.server.census.has_room() {
                return self.newcomer.is_some();
            }
        }
        let Some(turn) = MakingRoom::begin(self.server) else { return false };
        match self.entrance.look() {
            Looked::In(arrival) => self.newcomer = Some(arrival),
            // Somebody has come in meanwhile, perhaps, whom the wait had told of.
            Looked::NoRoom if self.entrance.is_somebody_there() => self.makes_room = Some(turn),
            Looked::NoRoom | Looked::Nobody => return false,
        }
        true
    }

    /// What the connection that gave way has left is for whom it left it.
    fn pass_place(&mut self) {
        if self.makes_room.is_some()
            && let Looked::In(arrival) = self.entrance.look()
        {
            self.newcomer = Some(arrival);
        }
        self.makes_room = None;
    }

    fn await_handler(&mut self, connection: &mut Connection<Blocking>) -> Next {
        self.context.config.access.flush();
        let (reply, request) = match self.context.errand.take() {
            Some(Errand::Later(reply, request) | Errand::WhileOpen(reply, request)) => {
                (reply, request)
            }
            Some(hold @ Errand::Hold(..)) => {
                self.context.errand = Some(hold);
                return self.begin_hold(connection);
            }
            _ if connection.hold != NO_HOLD => return self.await_news(connection),
            _ => return self.await_writer(connection),
        };
        if stages::park(connection, &mut self.context) == Next::Closed {
            return Next::Closed;
        }
        connection.busy(&mut self.context).handler = self.context.config.responder.last();
        let awaited = self.await_reply(reply);
        self.context.clock.turn();
        self.context.take_up(connection);
        match awaited {
            Some(mut finished) => {
                stages::finished(connection, &mut self.context, &mut finished, request)
            }
            None => stages::expire(connection, &mut self.context),
        }
    }

    /// The connection's reply is held, if this thread may wait for that.
    fn begin_hold(&mut self, connection: &mut Connection<Blocking>) -> Next {
        if self.wakeup.is_none() {
            match Wakeup::new() {
                Ok(wakeup) => {
                    let wakeup = Arc::new(wakeup);
                    let clock = &self.context.clock;
                    self.context.waiters = self.server.waiters(clock, Arc::clone(&wakeup));
                    self.wakeup = Some(wakeup);
                }
                Err(error) => {
                    log::error(format_args!("no descriptor for a bell: {error}"));
                    return Next::Closed;
                }
            }
        }
        let next = stages::hold(connection, &mut self.context, 0);
        self.holds = connection.hold != NO_HOLD && self.scheduler.begin_hold();
        if connection.hold != NO_HOLD && !self.holds {
            // What a feed begins with is on its way already, and nothing was put down.
            if next == Next::Park {
                self.context.take_up(connection);
            }
            return stages::held(connection, &mut self.context, Why::NoThread);
        }
        next
    }

    /// Waits until something happens that the connection's reply waits for.
    fn await_news(&mut self, connection: &mut Connection<Blocking>) -> Next {
        loop {
            let now = self.context.clock.turn();
            let is_stopping = self.server.state() != State::Serving;
            self.context.stopping = is_stopping;
            self.context.take_up(connection);
            if is_stopping || connection.deadline.has_come(now) {
                return stages::expire(connection, &mut self.context);
            }
            let Some(wakeup) = &self.wakeup else { return Next::Closed };
            let stop = self.server.stop_bell();
            let mut wanted = [
                PollFd::new(&stop, PollFlags::IN),
                PollFd::new(&**wakeup, PollFlags::IN),
                // Its next request may come before the reply to this one, and is not looked at.
                PollFd::new(&connection.transport, PollFlags::RDHUP),
            ];
            let left = Timespec::try_from(connection.deadline.since(now)).ok();
            // Interrupted or not, the descriptors say it all.
            let _ = poll(&mut wanted, left.as_ref());
            if !wanted[2].revents().is_empty() {
                return Next::Closed;
            }
            wakeup.clear();
            if wakeup.take_ring() {
                self.context.clock.turn();
                return stages::held(connection, &mut self.context, Why::Room);
            }
            self.context.put_down(connection);
        }
    }

    /// The connection waits for nothing any more.
    fn end_hold(&mut self, connection: &mut Connection<Blocking>) {
        if connection.hold != NO_HOLD
            && let Some(waiters) = &mut self.context.waiters
        {
            waiters.forget(std::mem::replace(&mut connection.hold, NO_HOLD));
        }
        if std::mem::take(&mut self.holds) {
            self.scheduler.end_hold();
        }
    }

    /// Runs the handler that writes its reply until there is something to send.
    fn await_writer(&mut self, connection: &mut Connection<Blocking>) -> Next {
        let left = connection.deadline.since(self.context.clock.now());
        let busy = connection.busy(&mut self.context);
        let name = busy.handler;
        let Some(stream) = &mut busy.stream else { return Next::Closed };
        if let Some(writing) = stream.begin(&self.context.clock, &self.context.slowness, name) {
            stream.runs_here(writing);
        }
        let background = match self.server.background() {
            Ok(background) => background,
            Err(error) => {
                log::error(format_args!("{name} cannot be awaited: {error}"));
                return Next::Closed;
            }
        };
        let more = poll_fn(|task| stream.poll(task));
        let awaited = background.block_on(async { tokio::time::timeout(left, more).await });
        self.context.clock.turn();
        self.context.take_up(connection);
        match awaited {
            Ok(()) => Next::Reply,
            Err(_late) => stages::expire(connection, &mut self.context),
        }
    }

    fn failed(&self) -> Finished {
        failure::failed(&self.context.clock, self.context.config.settings.security)
    }

    /// `None`: not in time.
    fn await_reply(&self, reply: LaterReply) -> Option<Finished> {
        let limit = self.context.config.settings.timeouts.handler;
        let name = self.context.config.responder.last();
        let awaited = catch_unwind(AssertUnwindSafe(|| {
            let background = self.server.background()?;
            // The timer must be made where the runtime is known, inside.
            Ok::<_, io::Error>(
                background.block_on(async { tokio::time::timeout(limit, reply).await }),
            )
        }));
        match awaited {
            Ok(Ok(Ok(finished))) => Some(finished),
            Ok(Ok(Err(_late))) => None,
            Ok(Err(error)) => {
                log::error(format_args!("{name} cannot be awaited: {error}"));
                Some(self.failed())
            }
            Err(_) => {
                count_panic();
                log::error(format_args!("{name} panicked; its peer got a 500"));
                Some(self.failed())
            }
        }
    }
}

/// A list of nothing, in the memory of another.
fn emptied<'f>(mut list: Vec<PollFd<'_>>) -> Vec<PollFd<'f>> {
    list.clear();
    // Collected in place.
    list.into_iter().map(|_| unreachable!("it is empty")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_what_is_wanted_keeps_its_memory() {
        let bell = std::io::stdin();
        let list = vec![PollFd::new(&bell, PollFlags::IN); 3];
        let memory = (list.as_ptr().addr(), list.capacity());
        let list = emptied(list);
        assert_eq!((list.as_ptr().addr(), list.capacity(), list.len()), (memory.0, memory.1, 0));
    }
}
