//! Decides what a loop does for the server's guards: whether it accepts, which slow connections it closes, and whose
//! requests it refuses.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::address::AddressBlock;
use crate::connection::{Connection, Errand, Phase, ThreadContext};
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

/// A connection that has said nothing yet may be about to.
const JUST_COME: Duration = Duration::from_secs(1);

impl<D: Driver> EventLoop<D> {
    /// Whether connections may come in now, as the guards and the workers' queue have it.
    pub(super) fn may_accept(&self) -> bool {
        let settings = &self.view.generation.settings;
        mind(&self.server, settings);
        // Where sessions are admitted, strangers are told so, and who has begun may come with another connection.
        let is_held = settings.guards.back_pressure && !self.server.admission().is_on();
        let is_over = is_held && self.scheduler.is_overloaded();
        self.server.guard.note_queue(is_over);
        !is_over && !self.server.guard.pauses()
    }

    /// Closes connections that are idle, or slow to send or to read: strangers before visitors who are known, and
    /// always next the slowest of the block of addresses that has most of the places it may have. One whose next
    /// request is on its way is told nothing; its peer tries again, as it must after any idle time (RFC 9110 section
    /// 9.2.2).
    pub(super) fn make_room(&mut self, Room { count, known_too }: Room) {
        let mut slow = self.slow_connections(Duration::ZERO, |_| true);
        if !known_too {
            slow.retain(|each| !each.is_known);
        }
        self.evict(slow, count);
    }

    /// Whether every place is taken. Then the slow and idle connections of each block that has more than a
    /// sixteenth of the places give way, a few at a time.
    pub(super) fn lacks_room(&mut self) -> bool {
        if self.server.census.has_room() {
            return false;
        }
        let crowds = self.server.census.crowds();
        if !crowds.is_empty() {
            let slow = self.slow_connections(JUST_COME, |block| crowds.contains(&block));
            let count = self.slab.len() / 64 + 1;
            self.evict(slow, count);
        }
        !self.server.census.has_room()
    }

    /// Drops a connection whose bytes others need, if it still has them: one that sends a body is told so.
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

    /// The connections of these blocks that have been silent: idle ones for at least `idle`.
    fn slow_connections(
        &mut self,
        idle: Duration,
        whose: impl Fn(AddressBlock) -> bool,
    ) -> Vec<Slow> {
        let now = self.context.clock.now();
        let mut slow = Vec::new();
        for token in self.slab.tokens() {
            let Some(Entry { connection, .. }) = self.slab.get(token) else { continue };
            // The deadline was set by the settings under which the connection was accepted.
            let Some(snapshot) = self.context.config.snapshot(connection.snapshot_id) else {
                continue;
            };
            let (block, least) = (
                connection.peer.block(),
                if connection.phase == Phase::Idle { idle } else { JUST_COME },
            );
            if let Some(Silence { lasted, part }) =
                silence(connection, &snapshot.settings.timeouts, now)
                && lasted >= least
                && whose(block)
            {
                slow.push(Slow { is_known: !is_stranger(connection), block, part, token });
            }
        }
        slow
    }

    fn evict(&mut self, slow: Vec<Slow>, count: usize) {
        let candidates = slow.into_iter().map(|each| (each.block, each)).collect();
        let mut order = self.server.census.in_order_of_eviction(candidates, |slow| slow.part);
        order.sort_by_key(|slow| slow.is_known);
        order.truncate(count);
        self.server.guard.note_closed(order.len());
        for Slow { token, .. } in order {
            if let Some(Entry { connection, .. }) = self.slab.get(token) {
                connection.end(Ending::Load);
            }
            self.remove(token);
        }
    }
}

/// A connection that may be closed for want of room.
struct Slow {
    is_known: bool,
    block: AddressBlock,
    /// How much of the silence that it is allowed has passed, in parts of a million.
    part: u64,
    token: Token,
}

/// For how long a peer has been silent.
struct Silence {
    lasted: Duration,
    /// Of what it is allowed, in parts of a million.
    part: u64,
}

/// For how long the peer of `connection` has been silent, or has fallen behind the least rate, under these timeouts.
/// `None`: the connection waits for the server.
fn silence<L: Transport>(
    connection: &Connection<L>,
    timeouts: &Timeouts,
    now: Tick,
) -> Option<Silence> {
    let allowed = match connection.phase {
        // The loop has not come to it yet.
        _ if connection.wants_turn => None,
        Phase::Idle if !connection.has_unsent() => Some(timeouts.idle),
        Phase::First => Some(timeouts.first_byte),
        Phase::Handshake => Some(timeouts.handshake),
        Phase::Head => Some(timeouts.head),
        Phase::Body => Some(timeouts.body),
        // A worker reads the file from its disk: that is no fault of the peer.
        Phase::Writing if !connection.busy.as_ref().is_some_and(|busy| busy.warms_up) => {
            Some(timeouts.write)
        }
        Phase::Lingering => Some(timeouts.linger),
        _ => None,
    }?;
    let lasted = allowed.saturating_sub(connection.deadline.since(now));
    let part = lasted.as_millis() * 1_000_000 / allowed.as_millis().max(1);
    Some(Silence { lasted, part: part as u64 })
}

/// Whether the program knows nothing of who has this connection, and no session has begun over it.
const fn is_stranger<L>(connection: &Connection<L>) -> bool {
    !connection.is_known && !connection.has_begun
}

/// Whether the response that is to be made is for somebody for whom there is no memory.
pub(super) fn is_unwelcome<L>(
    server: &Server,
    view: &View,
    connection: &Connection<L>,
    context: &ThreadContext,
) -> bool {
    if !server.guard.refuses() || !is_stranger(connection) {
        return false;
    }
    // Nobody may come any more whose coming would have it looked at.
    mind(server, &view.generation.settings);
    let is_new = matches!(
        context.deferred_work,
        Some(Errand::Work(..) | Errand::Later(..) | Errand::WhileOpen(..))
    );
    let is_unwelcome = is_new && server.guard.refuses();
    if is_unwelcome {
        server.guard.note_stranger();
    }
    is_unwelcome
}

/// Has the guards look, and each loop make its part of the room that they want.
fn mind(server: &Server, settings: &Settings) {
    if !server.guard.is_due(monotonic_milliseconds()) {
        return;
    }
    let Some(Room { count, known_too }) = server.judge(settings) else {
        return;
    };
    let connections = server.census.share().used.max(1) as usize;
    for each in &server.loops {
        let own = each.connections.load(Ordering::Relaxed);
        let count = count.saturating_mul(own).div_ceil(connections);
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
    use crate::address::Peer;
    use crate::generation::ThreadConfig;
    use crate::handler::{Answer, Incoming, Outgoing, Responder, Who};
    use crate::time::Clock;
    use crate::transport::Blocking;

    struct Silent;

    impl Responder for Silent {
        fn admit(&mut self, _head: &Head<'_>, _peer: Peer) -> Who {
            Who::Anonymous
        }

        fn respond(&mut self, _request: &Incoming<'_>, _out: &mut Outgoing<'_>) -> Answer {
            unreachable!("nobody asks")
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
        );
        let (own, _) = UnixStream::pair().unwrap();
        let transport = |_| Blocking::new(own.into(), None);
        (Connection::new(transport, Peer::UNIX, &mut context), clock)
    }

    /// Symptom: a reply that was made piece by piece was cut when every place was taken (seed 1465514 of the
    /// simulation). Cause: a piece that waited for its turn of a busy loop was taken for one that its peer did not read.
    /// Fix: a connection that waits for its turn is not slow.
    #[test]
    fn a_connection_that_waits_for_its_turn_is_not_slow() {
        let (mut connection, clock) = connection();
        let timeouts = Timeouts { write: Duration::from_secs(131), ..Timeouts::default() };
        for phase in [Phase::Writing, Phase::Idle, Phase::Head, Phase::Body, Phase::First] {
            connection.phase = phase;
            connection.deadline = clock.now().after(Duration::from_secs(3));
            connection.wants_turn = true;
            assert!(silence(&connection, &timeouts, clock.now()).is_none());
            connection.wants_turn = false;
            assert!(silence(&connection, &timeouts, clock.now()).is_some());
        }
    }

    #[test]
    fn silence_is_counted_in_parts_of_what_is_allowed() {
        let (mut connection, clock) = connection();
        let timeouts = Timeouts { head: Duration::from_secs(10), ..Timeouts::default() };
        connection.phase = Phase::Head;
        connection.deadline = clock.now().after(Duration::from_secs(4));
        let Silence { lasted, part } = silence(&connection, &timeouts, clock.now()).unwrap();
        assert_eq!((lasted, part), (Duration::from_secs(6), 600_000));
    }
}
