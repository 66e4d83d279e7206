//! The overload behavior of a loop: whether it accepts, the idle or slow connections that it
//! closes, and the requests that it rejects.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::address::AddressBlock;
use crate::connection::{Connection, DeferredWork, Phase, ThreadContext};
use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::limits::Room;
use crate::mailbox::Letter;
use crate::metrics::Ending;
use crate::server::{Server, View};
use crate::settings::{Settings, Timeouts};
use crate::slab::Token;
use crate::stages;
use crate::time::{Tick, monotonic_milliseconds};
use crate::transport::Transport;

/// A connection that has been silent for a shorter time is not closed: its client may be about to
/// send.
const MIN_SILENCE: Duration = Duration::from_secs(1);

impl<D: Driver> EventLoop<D> {
    /// Whether the guards and the workers' queue allow new connections.
    pub(super) fn may_accept(&self) -> bool {
        let settings = &self.view.generation.settings;
        run_guards(&self.server, settings);
        // With admission of sessions the loop accepts all connections: admission rejects clients
        // without a session by a reply, and a client with a session may open further connections.
        let has_backpressure = settings.guards.back_pressure && !self.server.admission().is_on();
        let is_overloaded = has_backpressure && self.scheduler.is_overloaded();
        self.server.guard.note_queue(is_overloaded);
        !is_overloaded && !self.server.guard.pauses()
    }

    /// Closes connections that are idle, or slow to send or to read.
    ///
    /// Connections of unknown clients are closed first. The next one is always the slowest of the
    /// address block that uses the largest part of its quota of connections. The server sends no
    /// reply before the close. A client whose next request was on its way repeats it, as after
    /// every idle timeout (RFC 9110 section 9.2.2).
    pub(super) fn make_room(&mut self, Room { count, known_too }: Room) {
        let mut slow = self.slow_connections(Duration::ZERO, |_| true);
        if !known_too {
            slow.retain(|each| !each.is_known);
        }
        self.evict(slow, count);
    }

    /// Whether the server has its maximum of connections.
    ///
    /// If so, the loop first closes a few slow or idle connections of the address blocks that have
    /// more than 1/16 of all connections.
    pub(super) fn is_full(&mut self) -> bool {
        if self.server.census.has_room() {
            return false;
        }
        let crowds = self.server.census.crowds();
        if !crowds.is_empty() {
            let slow = self.slow_connections(MIN_SILENCE, |block| crowds.contains(&block));
            let count = self.slab.len() / 64 + 1;
            self.evict(slow, count);
        }
        !self.server.census.has_room()
    }

    /// Closes a connection whose memory other connections need, if it still holds that memory. A
    /// client that sends a body gets an error response.
    pub(super) fn drop_evicted(&mut self, token: Token) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        if connection.phase == Phase::Body && connection.has_evicted_body() {
            self.context.make_current(connection);
            let next = stages::reject_over_budget(connection, &mut self.context);
            self.advance(token, next);
        } else if connection.has_evicted_reply() || connection.transport.is_evicted() {
            connection.end(Ending::Load);
            self.remove(token);
        }
    }

    /// The silent connections of the blocks that `is_selected` accepts; idle ones only if they have
    /// been idle for at least `idle`.
    fn slow_connections(
        &mut self,
        idle: Duration,
        is_selected: impl Fn(AddressBlock) -> bool,
    ) -> Vec<Candidate> {
        let now = self.context.clock.now();
        let mut slow = Vec::new();
        for token in self.slab.tokens() {
            let Some(Entry { connection, .. }) = self.slab.get(token) else { continue };
            // The deadline follows from the settings with which the connection was accepted.
            let Some(snapshot) = self.context.config.snapshot(connection.snapshot_id) else {
                continue;
            };
            let block = connection.peer.block();
            let least = if connection.phase == Phase::Idle { idle } else { MIN_SILENCE };
            if let Some(Silence { lasted, part }) =
                silence(connection, &snapshot.settings.timeouts, now)
                && lasted >= least
                && is_selected(block)
            {
                let target = Target::Connection(token);
                slow.push(Candidate { is_known: !is_unknown(connection), block, part, target });
            }
        }
        for each in self.task_results.idle_http2.list() {
            let silence = Silence::of(each.lasted, each.allowed);
            if silence.lasted >= idle && is_selected(each.block) {
                let (block, part) = (each.block, silence.part);
                let target = Target::Http2(each.id);
                slow.push(Candidate { is_known: false, block, part, target });
            }
        }
        slow
    }

    fn evict(&mut self, slow: Vec<Candidate>, count: usize) {
        let candidates = slow.into_iter().map(|each| (each.block, each)).collect();
        let mut order = self.server.census.eviction_order(candidates, |slow| slow.part);
        order.sort_by_key(|slow| slow.is_known);
        order.truncate(count);
        self.server.guard.note_closed(order.len());
        for Candidate { target, .. } in order {
            let token = match target {
                Target::Connection(token) => token,
                Target::Http2(id) => {
                    self.task_results.idle_http2.close(id);
                    continue;
                }
            };
            if let Some(Entry { connection, .. }) = self.slab.get(token) {
                connection.end(Ending::Load);
            }
            self.remove(token);
        }
    }
}

/// A connection that the loop may close to make room.
struct Candidate {
    is_known: bool,
    block: AddressBlock,
    /// The elapsed part of the timeout, in millionths.
    part: u64,
    target: Target,
}

/// What is closed.
enum Target {
    Connection(Token),
    /// An idle connection of HTTP/2, by its id.
    Http2(u64),
}

/// How long a client has been silent.
struct Silence {
    lasted: Duration,
    /// The elapsed part of the timeout, in millionths.
    part: u64,
}

impl Silence {
    /// A silence of `lasted`, of which `allowed` is permitted.
    fn of(lasted: Duration, allowed: Duration) -> Self {
        let part = lasted.as_millis() * 1_000_000 / allowed.as_millis().max(1);
        Self { lasted, part: part as u64 }
    }
}

/// How long the client of `connection` has been silent, or below the minimum rate, by these
/// timeouts. `None`: the connection waits for the server.
fn silence<L: Transport>(
    connection: &Connection<L>,
    timeouts: &Timeouts,
    now: Tick,
) -> Option<Silence> {
    let allowed = match connection.phase {
        // The connection waits for its turn of the loop.
        _ if connection.wants_turn || connection.transport.awaits_turn() => None,
        Phase::Idle if !connection.has_unsent() => Some(timeouts.idle),
        Phase::First => Some(timeouts.first_byte),
        Phase::Handshake => Some(timeouts.handshake),
        Phase::Head => Some(timeouts.head),
        Phase::Body => Some(timeouts.body),
        // The connection waits for a worker that reads the file, not for the client.
        Phase::Writing if !connection.busy.as_ref().is_some_and(|busy| busy.warms_up) => {
            Some(timeouts.write)
        }
        Phase::Lingering => Some(timeouts.linger),
        _ => None,
    }?;
    Some(Silence::of(allowed.saturating_sub(connection.deadline.since(now)), allowed))
}

/// Whether the program has not identified the client of this connection, and no session began on
/// it.
const fn is_unknown<L>(connection: &Connection<L>) -> bool {
    !connection.is_known && !connection.has_begun
}

/// Whether to reject the current request, because memory is short and the client is unknown.
pub(super) fn should_reject<L>(
    server: &Server,
    view: &View,
    connection: &Connection<L>,
    context: &ThreadContext,
) -> bool {
    if !server.guard.refuses() || !is_unknown(connection) {
        return false;
    }
    // Usually an accept runs the guards, but there may be no further accept.
    run_guards(server, &view.generation.settings);
    let is_new = matches!(
        context.deferred_work,
        Some(DeferredWork::Work(..) | DeferredWork::Later(..) | DeferredWork::WhileOpen(..))
    );
    let is_rejected = is_new && server.guard.refuses();
    if is_rejected {
        server.guard.note_stranger();
    }
    is_rejected
}

/// Runs the guards if they are due. Asks each loop to close its share of the connections that the
/// guards want closed.
fn run_guards(server: &Server, settings: &Settings) {
    if !server.guard.is_due(monotonic_milliseconds()) {
        return;
    }
    let Some(Room { count, known_too }) = server.judge(settings) else {
        return;
    };
    let connections = server.census.share().used.max(1) as usize;
    for each in &server.loops {
        let in_loop = each.connections.load(Ordering::Relaxed);
        let count = count.saturating_mul(in_loop).div_ceil(connections);
        if count > 0 {
            each.mailbox.post(Letter::MakeRoom(Room { count, known_too }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::rc::Rc;
    use std::sync::Arc;

    use bine_http::Head;

    use super::*;
    use crate::access::AccessLog;
    use crate::address::ClientAddress;
    use crate::generation::ThreadConfig;
    use crate::handler::{Answer, Identity, Incoming, Outgoing, Responder};
    use crate::time::Clock;
    use crate::transport::Blocking;

    struct Silent;

    impl Responder for Silent {
        fn identify(&mut self, _head: &Head<'_>, _peer: ClientAddress) -> Identity {
            Identity::Anonymous
        }

        fn respond(&mut self, _request: &Incoming<'_>, _out: &mut Outgoing<'_>) -> Answer {
            unreachable!("this test sends no request")
        }

        fn last(&self) -> &'static str {
            "silent"
        }
    }

    fn connection() -> (Connection<Blocking>, Rc<Clock>) {
        let clock = Rc::new(Clock::told(0));
        let (settings, log) = (Arc::new(Settings::default()), AccessLog::new(None));
        let mut context = ThreadContext::new(
            ThreadConfig::new(settings, Box::new(Silent), log),
            Rc::clone(&clock),
            Arc::default(),
        );
        let (server_end, _) = UnixStream::pair().unwrap();
        let transport = |_| Blocking::new(server_end.into(), None);
        (Connection::new(transport, ClientAddress::UNIX, &mut context), clock)
    }

    /// Symptom: a streamed response was cut when the server had its maximum of connections (seed
    /// 1465514 of the simulation). Cause: a connection that waited for its turn of a busy loop
    /// counted as one whose client did not read. Fix: a connection that waits for its turn is not
    /// slow.
    #[test]
    fn treats_a_connection_waiting_for_its_turn_as_not_slow() {
        let (mut connection, clock) = connection();
        let timeouts = Timeouts { write: Duration::from_secs(131), ..Timeouts::default() };
        for phase in [
            Phase::Handshake,
            Phase::First,
            Phase::Head,
            Phase::Body,
            Phase::Writing,
            Phase::Lingering,
            Phase::Idle,
        ] {
            connection.phase = phase;
            connection.deadline = clock.now().after(Duration::from_secs(3));
            connection.wants_turn = true;
            assert!(silence(&connection, &timeouts, clock.now()).is_none());
            connection.wants_turn = false;
            assert!(silence(&connection, &timeouts, clock.now()).is_some());
        }
    }

    #[test]
    fn treats_a_connection_waiting_for_the_disk_as_not_slow() {
        let (mut connection, clock) = connection();
        let timeouts = Timeouts::default();
        connection.phase = Phase::Writing;
        connection.deadline = clock.now().after(Duration::from_secs(3));
        let mut busy = Box::<crate::connection::Busy>::default();
        busy.warms_up = true;
        connection.busy = Some(busy);
        assert!(silence(&connection, &timeouts, clock.now()).is_none());
        connection.busy.as_mut().unwrap().warms_up = false;
        assert!(silence(&connection, &timeouts, clock.now()).is_some());
        // An idle connection with unsent bytes waits for its next turn.
        connection.phase = Phase::Idle;
        assert!(silence(&connection, &timeouts, clock.now()).is_some());
        connection.busy.as_mut().unwrap().output.push(b'x');
        assert!(silence(&connection, &timeouts, clock.now()).is_none());
        for phase in [Phase::Queued, Phase::Handler, Phase::Streaming, Phase::Held] {
            connection.phase = phase;
            assert!(silence(&connection, &timeouts, clock.now()).is_none(), "{phase:?}");
        }
    }

    #[test]
    fn measures_silence_as_a_fraction_of_the_timeout() {
        let (mut connection, clock) = connection();
        let timeouts = Timeouts { head: Duration::from_secs(10), ..Timeouts::default() };
        connection.phase = Phase::Head;
        connection.deadline = clock.now().after(Duration::from_secs(4));
        let Silence { lasted, part } = silence(&connection, &timeouts, clock.now()).unwrap();
        assert_eq!((lasted, part), (Duration::from_secs(6), 600_000));
    }

    #[test]
    fn compares_the_silence_of_each_phase_with_its_own_timeout() {
        let (mut connection, clock) = connection();
        let timeouts = Timeouts {
            handshake: Duration::from_secs(11),
            first_byte: Duration::from_secs(12),
            head: Duration::from_secs(13),
            body: Duration::from_secs(14),
            write: Duration::from_secs(15),
            linger: Duration::from_secs(16),
            idle: Duration::from_secs(17),
            ..Timeouts::default()
        };
        connection.deadline = clock.now().after(Duration::from_secs(10));
        let silent = [
            Phase::Handshake,
            Phase::First,
            Phase::Head,
            Phase::Body,
            Phase::Writing,
            Phase::Lingering,
            Phase::Idle,
        ]
        .map(|phase| {
            connection.phase = phase;
            silence(&connection, &timeouts, clock.now()).unwrap().lasted.as_secs()
        });
        assert_eq!(silent, [1, 2, 3, 4, 5, 6, 7]);
    }
}
