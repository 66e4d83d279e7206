//! Decides what is remembered of a connection between two turns, and what a thread keeps for all
//! of its connections together.
//!
//! A connection that waits for its next request is a [`Connection`] and nothing more. Whatever it
//! needs besides, while something is under way, is in a pooled [`Busy`].

mod busy;
mod context;
mod detached;
pub(crate) mod saved;

use bine_http::{BodyFraming, RequestParser};

use crate::address::Peer;
use crate::generation::SnapshotId;
use crate::handler::{Follow, Retained, Streaming};
use crate::limits::Reservation;
use crate::metrics::Ending;
use crate::next::Next;
use crate::time::Tick;
use crate::tls::Session;
use crate::transport::Transport;
use context::INTAKE;

pub(crate) use busy::{Busy, Storing};
pub(crate) use context::{Errand, SLICE, ThreadContext};
pub(crate) use detached::DetachedConnection;
pub(crate) use saved::SavedContext;

/// One connection, driven by the four [stages](crate::stages) over a transport `L`, with a `B` while something is under way.
pub(crate) struct Connection<L, B = Box<Busy>> {
    pub(crate) transport: L,
    pub(crate) machine: RequestParser,
    pub(crate) peer: Peer,
    /// When it must have come further; what happens then follows from `phase`.
    pub(crate) deadline: Tick,
    /// Bytes of an unwanted body, or of a peer being sent away, that may still be dropped.
    pub(crate) patience: u32,
    /// The settings it came under, which it keeps.
    pub(crate) snapshot_id: SnapshotId,
    pub(crate) phase: Phase,
    /// Nothing may follow the replies under way.
    pub(crate) closing: bool,
    /// The peer was at fault: read what it still sends before closing, or it loses our answer
    /// (RFC 9112 section 9.6).
    pub(crate) lingers: bool,
    /// Why it ends, once that is decided.
    pub(crate) ending: Option<Ending>,
    /// The peer has closed its half; receive until the end of the stream is seen.
    pub(crate) hung_up: bool,
    /// It has more to do without waiting for its socket, and wants another turn.
    pub(crate) wants_turn: bool,
    /// Its socket had something to receive while it rested.
    pub(crate) spoke: bool,
    /// Who asked last is known to the program.
    pub(crate) is_known: bool,
    /// Something that begins a session was answered here.
    pub(crate) has_begun: bool,
    /// Its waiter's key, or [`NO_HOLD`].
    pub(crate) hold: u32,
    pub(crate) busy: Option<B>,
}

/// No reply of the connection waits for something to happen.
pub(crate) const NO_HOLD: u32 = u32::MAX;

/// What a connection is waiting for, which decides how it ends when that does not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Accepted, and not yet agreed how to be secret.
    Handshake,
    /// Accepted, and silent so far.
    First,
    /// Between two requests.
    Idle,
    /// Inside a head.
    Head,
    /// Inside a body.
    Body,
    /// For a worker.
    Queued,
    /// For its handler.
    Handler,
    /// For its peer to read.
    Writing,
    /// For its handler to write more.
    Streaming,
    /// For something to happen that its waiter is told of.
    Held,
    /// For its peer to notice that this is the end.
    Lingering,
}

impl<L, B> Connection<L, B> {
    /// The same connection over what `transport` makes of its transport, and with what `busy` makes of its other part.
    pub(crate) fn map<M, C>(
        self,
        transport: impl FnOnce(L) -> M,
        busy: impl FnOnce(B) -> C,
    ) -> Connection<M, C> {
        Connection {
            transport: transport(self.transport),
            machine: self.machine,
            peer: self.peer,
            deadline: self.deadline,
            patience: self.patience,
            snapshot_id: self.snapshot_id,
            phase: self.phase,
            closing: self.closing,
            lingers: self.lingers,
            hung_up: self.hung_up,
            wants_turn: self.wants_turn,
            spoke: self.spoke,
            has_begun: self.has_begun,
            is_known: self.is_known,
            hold: self.hold,
            ending: self.ending,
            busy: self.busy.map(busy),
        }
    }
}

impl<L: Transport> Connection<L> {
    /// A connection under the newest settings. The code that drops it has its snapshot
    /// [left](crate::generation::ThreadConfig::leave). `transport` makes the transport of the session that an address for TLS asks for.
    pub(crate) fn new(
        transport: impl FnOnce(Option<Box<Session>>) -> L,
        peer: Peer,
        context: &mut ThreadContext,
    ) -> Self {
        let snapshot_id = context.config.enter();
        let transport = transport(context.session(peer));
        context.tally.accepted.add(1);
        let timeouts = &context.config.settings.timeouts;
        let (phase, wait) = if transport.is_shaking_hands() {
            (Phase::Handshake, timeouts.handshake)
        } else {
            (Phase::First, timeouts.first_byte)
        };
        Self {
            transport,
            machine: RequestParser::new(),
            peer,
            deadline: context.clock.now().after(wait),
            patience: 0,
            snapshot_id,
            phase,
            closing: false,
            lingers: false,
            ending: None,
            hung_up: false,
            wants_turn: false,
            spoke: false,
            is_known: false,
            has_begun: false,
            hold: NO_HOLD,
            busy: None,
        }
    }

    /// The part that exists only while something is under way.
    pub(crate) fn busy(&mut self, context: &mut ThreadContext) -> &mut Busy {
        self.busy.get_or_insert_with(|| context.spare_busy())
    }

    /// What is to be done is to store a piece of a body, and no answer.
    pub(crate) fn is_storing(&self) -> bool {
        self.busy.as_deref().is_some_and(|busy| busy.storing.is_some())
    }

    /// It collects a body that holds bytes of a budget.
    pub(crate) fn has_reserved_body(&self) -> bool {
        let request = self.busy.as_deref().and_then(|busy| busy.request.as_deref());
        request.is_some_and(|request| request.reserved.is_some())
    }

    /// It has a reply that its peer does not read while others need the bytes.
    pub(crate) fn has_evicted_reply(&self) -> bool {
        self.busy.as_deref().is_some_and(|busy| busy.owed.is_evicted())
    }

    /// It collects a body whose bytes others need.
    pub(crate) fn has_evicted_body(&self) -> bool {
        let request = self.busy.as_deref().and_then(|busy| busy.request.as_deref());
        request.is_some_and(Retained::is_evicted)
    }

    /// A reply is not whole in the socket, written or not.
    pub(crate) fn has_unsent(&self) -> bool {
        let is_unsent = |busy: &Busy| {
            busy.sent < busy.output.len() || busy.file.is_some() || busy.stream.is_some()
        };
        self.busy.as_deref().is_some_and(is_unsent) || self.transport.holds_back()
    }

    /// Ends it, for this reason if there was none before.
    pub(crate) fn end(&mut self, ending: Ending) -> Next {
        self.ending.get_or_insert(ending);
        Next::Closed
    }

    /// Why it has ended, as far as is known when nobody has said so.
    pub(crate) fn ended(&self, stopping: bool) -> Ending {
        let otherwise = if self.hung_up {
            Ending::Peer
        } else if stopping {
            Ending::Drain
        } else {
            Ending::Fault
        };
        self.ending.unwrap_or(otherwise)
    }

    /// Somebody takes it over when its last reply has left.
    pub(crate) fn is_leaving(&self) -> bool {
        self.busy.as_ref().is_some_and(|busy| busy.upgrade.is_some())
    }

    /// Something follows the head that was just written.
    pub(crate) fn follow(&mut self, follow: Follow, context: &mut ThreadContext) {
        match follow {
            Follow::File(part) => {
                let busy = self.busy(context);
                (busy.file, busy.warm_to) = (Some(part), 0);
            }
            Follow::Stream(stream) => {
                self.closing |= stream.pieces().closes_connection();
                // For HEAD nothing is written at all.
                if stream.pieces() != BodyFraming::Empty {
                    self.busy(context).stream = Some(Streaming::new(stream));
                }
            }
            Follow::Upgrade(upgrade) => self.busy(context).upgrade = Some(upgrade),
            Follow::Hold(_) => debug_assert!(false, "the response stage parks it"),
        }
    }

    /// A worker is at its handler, as far as this thread knows.
    pub(crate) fn is_with_worker(&self) -> bool {
        self.phase == Phase::Handler && self.busy.as_ref().is_none_or(|busy| busy.task.is_none())
    }

    /// Ends the exchange: everything is sent, and the next request may come.
    pub(crate) fn end_exchange(&mut self, context: &mut ThreadContext) {
        // A reply that leaves while the body of a later request is collected ends the earlier exchange only.
        if let Some(busy) = &mut self.busy
            && busy.request.is_none()
            && busy.storing.is_none()
        {
            busy.is_head = false;
        }
        self.rest(context);
    }

    /// Gives the busy part back when nothing is left in it.
    pub(crate) fn rest(&mut self, context: &mut ThreadContext) {
        if self.busy.as_ref().is_some_and(|busy| busy.is_spent())
            && let Some(busy) = self.busy.take()
        {
            context.recycle(busy);
        }
    }
}

// Here and not beside `Context`, which knows no connections.
impl ThreadContext {
    /// Makes the thread's buffers and settings those of `connection`: what it had received earlier comes first.
    pub(crate) fn take_up<L>(&mut self, connection: &mut Connection<L>) {
        debug_assert!(self.output.is_empty(), "replies of another connection");
        self.owed = Reservation::default();
        self.config.switch_to(connection.snapshot_id);
        self.slice = SLICE;
        self.intake = INTAKE;
        self.drained = false;
        self.input = 0..0;
        self.fresh = false;
        if let Some(busy) = &mut connection.busy
            && !busy.input.is_empty()
        {
            self.scratch[..busy.input.len()].copy_from_slice(&busy.input);
            self.input = 0..busy.input.len();
            self.fresh = true;
            busy.input.clear();
        }
    }

    /// Leaves with `connection` what it has received and not yet used.
    pub(crate) fn put_down<L: Transport>(&mut self, connection: &mut Connection<L>) {
        if !self.input.is_empty() {
            let kept = self.input.clone();
            let mut input = std::mem::take(&mut connection.busy(self).input);
            input.extend_from_slice(&self.scratch[kept]);
            connection.busy(self).input = input;
            self.input = 0..0;
        }
        connection.rest(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        // The budget is 128 bytes of user memory (DESIGN section 3), slab and timer links included.
        let size = size_of::<Connection<crate::transport::Nonblocking>>();
        assert!(size <= 96, "{size}");
    }
}
