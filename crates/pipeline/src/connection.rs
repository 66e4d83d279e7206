//! Decides what is remembered of a connection between two turns, and what a thread keeps for all
//! of its connections together.
//!
//! A connection that waits for its next request is a [`Connection`] and nothing more. Whatever it
//! needs besides, while something is under way, is in a pooled [`Busy`].

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use bine_http::{HeadIndex, Machine, Pieces};

use crate::access::{AccessLog, Leaving};
use crate::address::Peer;
use crate::aside::Aside;
use crate::budget::{Budgets, Reservation};
use crate::clock::{Clock, Tick};
use crate::discard::discard;
use crate::file_part::FilePart;
use crate::generation::{Era, Eras};
use crate::handler::{Responder, Work};
use crate::hold::{Hold, Waiters};
use crate::incoming::{Retained, RetainedPool};
use crate::link::Link;
use crate::next::Next;
use crate::outgoing::{Follow, LaterReply};
use crate::owner::Owner;
use crate::settings::Settings;
use crate::slowness::Slowness;
use crate::stream::Streaming;
use crate::tally::{Ending, Lent};
use crate::tls::{Desk, Session};
use crate::visitor::Who;
use crate::wire::Upgrade;

/// One connection, driven by the four [stages](crate::stages) over a link `L`, with a `B` while something is under way.
pub(crate) struct Connection<L, B = Box<Busy>> {
    pub(crate) link: L,
    pub(crate) machine: Machine,
    pub(crate) peer: Peer,
    /// When it must have come further; what happens then follows from `phase`.
    pub(crate) deadline: Tick,
    /// Bytes of an unwanted body, or of a peer being sent away, that may still be dropped.
    pub(crate) patience: u32,
    /// The settings it came under, which it keeps.
    pub(crate) era: Era,
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

/// What a connection needs only while something is under way.
#[derive(Default)]
pub(crate) struct Busy {
    /// Received, but not yet understood or not yet due.
    pub(crate) input: Vec<u8>,
    /// Replies that did not fit into the socket, from `sent` on.
    pub(crate) output: Vec<u8>,
    pub(crate) sent: usize,
    /// What `output` holds of the server's budget.
    pub(crate) owed: Reservation,
    /// A file behind `output`.
    pub(crate) file: Option<FilePart>,
    /// The file is in memory up to here, or was when somebody looked.
    pub(crate) warm_to: u64,
    /// Its next part is being brought there.
    pub(crate) warms_up: bool,
    /// Content behind `output` that is still being written.
    pub(crate) stream: Option<Streaming>,
    /// Takes the connection over behind `output`.
    pub(crate) upgrade: Option<Upgrade>,
    /// What the access log will tell of the reply that leaves.
    pub(crate) leaving: Option<Leaving>,
    /// The request whose body is being collected or whose handler is at work elsewhere.
    pub(crate) request: Option<Box<Retained>>,
    /// The most bytes of body to collect into `request`.
    pub(crate) collect: u64,
    /// What does not fit into memory goes to disk.
    pub(crate) on_disk: bool,
    /// A piece of the body is on its way to disk.
    pub(crate) storing: Option<Storing>,
    /// The request whose answer is being made is a HEAD.
    pub(crate) is_head: bool,
    /// The handler that is at work elsewhere, for the log.
    pub(crate) handler: &'static str,
    /// Drops the task of a handler that awaits.
    pub(crate) task: Option<tokio::task::AbortHandle>,
    /// The task is of no use once the client has closed its half.
    pub(crate) is_while_open: bool,
}

/// What comes behind a piece of a body that is being stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Storing {
    /// More of the body.
    Part,
    /// The handler.
    Last,
}

impl Busy {
    /// Buffers above this size are given back to the system rather than kept. A pool of them is as large as the
    /// worst moment was: with 16 KiB each, an hour of mixed use with such moments made it 300 KiB larger.
    const KEPT: usize = 4 * 1024;

    pub(crate) fn is_spent(&self) -> bool {
        self.input.is_empty()
            && self.output.len() == self.sent
            && self.file.is_none()
            && self.stream.is_none()
            && self.upgrade.is_none()
            && self.storing.is_none()
            && self.request.is_none()
            && self.leaving.is_none()
            && self.task.is_none()
            && !self.is_head
    }

    fn reset(&mut self) {
        let empty = |mut buffer: Vec<u8>| {
            buffer.clear();
            if buffer.capacity() > Self::KEPT { Vec::new() } else { buffer }
        };
        *self = Self {
            input: empty(std::mem::take(&mut self.input)),
            output: empty(std::mem::take(&mut self.output)),
            ..Self::default()
        };
    }
}

impl<L, B> Connection<L, B> {
    /// The same connection over what `link` makes of its link, and with what `busy` makes of its other part.
    pub(crate) fn map<M, C>(
        self,
        link: impl FnOnce(L) -> M,
        busy: impl FnOnce(B) -> C,
    ) -> Connection<M, C> {
        Connection {
            link: link(self.link),
            machine: self.machine,
            peer: self.peer,
            deadline: self.deadline,
            patience: self.patience,
            era: self.era,
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

impl<L: Link> Connection<L> {
    /// A connection under the newest settings. Whoever drops it has its era
    /// [left](Context::leave). `link` makes the link of the session that an address for TLS asks for.
    pub(crate) fn new(
        link: impl FnOnce(Option<Box<Session>>) -> L,
        peer: Peer,
        context: &mut Context,
    ) -> Self {
        let era = context.enter();
        let link = link(context.session(peer));
        context.tally.accepted.add(1);
        let timeouts = &context.settings.timeouts;
        let (phase, wait) = if link.is_shaking_hands() {
            (Phase::Handshake, timeouts.handshake)
        } else {
            (Phase::First, timeouts.first_byte)
        };
        Self {
            link,
            machine: Machine::new(),
            peer,
            deadline: context.clock.now().after(wait),
            patience: 0,
            era,
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
    pub(crate) fn busy(&mut self, context: &mut Context) -> &mut Busy {
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
        self.busy.as_deref().is_some_and(is_unsent) || self.link.holds_back()
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
    pub(crate) fn follow(&mut self, follow: Follow, context: &mut Context) {
        match follow {
            Follow::File(part) => {
                let busy = self.busy(context);
                (busy.file, busy.warm_to) = (Some(part), 0);
            }
            Follow::Stream(stream) => {
                self.closing |= stream.pieces().close();
                // For HEAD nothing is written at all.
                if stream.pieces() != Pieces::Nothing {
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
    pub(crate) fn end_exchange(&mut self, context: &mut Context) {
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
    pub(crate) fn rest(&mut self, context: &mut Context) {
        if self.busy.as_ref().is_some_and(|busy| busy.is_spent())
            && let Some(busy) = self.busy.take()
        {
            context.recycle(busy);
        }
    }
}

/// What one thread keeps for all its connections: buffers that only one of them uses at a time.
pub(crate) struct Context {
    /// Settings, responder and access log are those of the connection at hand.
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: Rc<Clock>,
    pub(crate) responder: Box<dyn Responder>,
    /// Whose replies wait for something to happen, under whatever settings they came.
    pub(crate) waiters: Option<Box<dyn Waiters>>,
    pub(crate) access: AccessLog,
    pub(crate) tally: Lent,
    /// Where everything is received. Requests are understood right here.
    pub(crate) scratch: Box<[u8]>,
    /// What of `scratch` is received and not yet consumed.
    pub(crate) input: Range<usize>,
    /// `input` holds bytes that the machine has not judged yet.
    pub(crate) fresh: bool,
    /// The last receive emptied the socket, so another would only say "not now".
    pub(crate) drained: bool,
    /// Replies of the connection at hand.
    pub(crate) output: Vec<u8>,
    /// What they hold of the server's budget.
    pub(crate) owed: Reservation,
    /// Requests that the connection at hand may still begin in this turn.
    pub(crate) slice: u32,
    /// Bytes that the connection at hand may still receive in this turn.
    pub(crate) intake: usize,
    /// Bytes of long replies that may still be sent in this turn, to all connections together: a
    /// thousand who ask for large files at once must not keep the others from being heard.
    pub(crate) allowance: u64,
    /// The request between its stages.
    pub(crate) current: Current,
    /// What the response stage could not do itself.
    pub(crate) errand: Option<Errand>,
    pub(crate) slowness: Rc<Slowness>,
    /// This thread has many connections, and must not wait for a disk.
    pub(crate) warms_files: bool,
    /// The server is stopping: each reply is the last of its connection.
    pub(crate) stopping: bool,
    #[expect(clippy::vec_box, reason = "a connection keeps one pointer, not the whole")]
    spare: Vec<Box<Busy>>,
    pub(crate) retained: RetainedPool,
    /// Where connections are put between two stages, for use again.
    #[expect(clippy::vec_box, reason = "they travel to other threads, as one pointer")]
    pub(crate) asides: Vec<Box<Aside>>,
    pub(crate) desk: Rc<Desk>,
    pub(crate) budgets: Arc<Budgets>,
    /// Who is told when the connection at hand is to be dropped.
    pub(crate) owner: Owner,
    /// What connections have that came under other settings.
    pub(crate) eras: Eras,
}

/// Where the head that the request stage found lies in the scratch buffer.
pub(crate) struct Current {
    pub(crate) head: Range<usize>,
    pub(crate) index: Option<HeadIndex>,
    pub(crate) who: Who,
}

/// Work that the response stage hands out.
pub(crate) enum Errand {
    /// Run this where it may block.
    Work(Arc<dyn Work>, Box<Retained>),
    /// Let it be a waiter; the request is kept for the access log only.
    Hold(Hold, Option<Box<Retained>>),
    /// Wait for this; the request is kept for the access log only.
    Later(LaterReply, Option<Box<Retained>>),
    /// The same, until the client closes its half.
    WhileOpen(LaterReply, Option<Box<Retained>>),
    /// Bring this part of the file that is being sent into memory.
    WarmUp(FilePart),
}

/// Requests of one connection in one turn; then the others have theirs (DESIGN: slices).
pub(crate) const SLICE: u32 = 16;
/// A body of any length is received in slices of this size, as a file is sent.
const INTAKE: usize = 1 << 20;
/// At least this much is received at once.
const SCRATCH: usize = 64 * 1024;
/// Busy parts kept for use again; more than are ever busy at once on one loop bring nothing.
const SPARE: usize = 256;

impl Context {
    pub(crate) fn new(
        settings: Arc<Settings>,
        clock: Rc<Clock>,
        responder: Box<dyn Responder>,
        access: AccessLog,
    ) -> Self {
        let mut own = Self {
            settings,
            clock,
            responder,
            waiters: None,
            access,
            tally: Lent::unread(),
            scratch: Box::default(),
            input: 0..0,
            fresh: false,
            drained: false,
            output: Vec::with_capacity(16 * 1024),
            owed: Reservation::default(),
            slice: SLICE,
            intake: INTAKE,
            allowance: u64::MAX,
            current: Current { head: 0..0, index: None, who: Who::Anonymous },
            errand: None,
            slowness: Rc::default(),
            warms_files: false,
            stopping: false,
            spare: Vec::new(),
            retained: RetainedPool::default(),
            asides: Vec::new(),
            desk: Rc::default(),
            budgets: Arc::default(),
            owner: Owner::default(),
            eras: Eras::new(),
        };
        own.make_scratch_for(&Arc::clone(&own.settings));
        own
    }

    /// What keeps `peer` secret, if it came where TLS is spoken.
    fn session(&self, peer: Peer) -> Option<Box<Session>> {
        if !peer.is_secure() {
            return None;
        }
        let tls = self.settings.tls.as_ref()?;
        let (tls, desk) = (Arc::clone(tls), Rc::clone(&self.desk));
        let handshakes = Arc::clone(&self.budgets.handshakes);
        Some(Box::new(Session::new(tls, desk, handshakes, peer.block())))
    }

    /// Room for the largest head that `settings` allow. It never becomes less: connections under
    /// older settings may need it.
    pub(crate) fn make_scratch_for(&mut self, settings: &Settings) {
        // A head that is not yet whole must fit, with room to receive behind it.
        self.make_scratch(SCRATCH.max(settings.limits.head as usize * 2));
    }

    /// Room for `size` received bytes.
    pub(crate) fn make_scratch(&mut self, size: usize) {
        if size > self.scratch.len() {
            debug_assert!(self.input.is_empty(), "received bytes of a connection");
            self.scratch = vec![0; size].into_boxed_slice();
        }
    }

    /// Makes the thread's buffers and settings those of `connection`: what it had received earlier comes first.
    pub(crate) fn take_up<L>(&mut self, connection: &mut Connection<L>) {
        debug_assert!(self.output.is_empty(), "replies of another connection");
        self.owed = Reservation::default();
        self.turn_to(connection.era);
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
    pub(crate) fn put_down<L: Link>(&mut self, connection: &mut Connection<L>) {
        if !self.input.is_empty() {
            let kept = self.input.clone();
            let mut input = std::mem::take(&mut connection.busy(self).input);
            input.extend_from_slice(&self.scratch[kept]);
            connection.busy(self).input = input;
            self.input = 0..0;
        }
        connection.rest(self);
    }

    /// One that nothing is in, with buffers, perhaps, that were used before.
    pub(crate) fn spare_busy(&mut self) -> Box<Busy> {
        self.spare.pop().unwrap_or_default()
    }

    pub(crate) fn recycle(&mut self, mut busy: Box<Busy>) {
        discard((busy.stream.take(), busy.upgrade.take()));
        if self.spare.len() < SPARE {
            busy.reset();
            self.spare.push(busy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        // The budget is 128 bytes of user memory (DESIGN section 3), slab and timer links included.
        let size = size_of::<Connection<crate::link::Nonblocking>>();
        assert!(size <= 96, "{size}");
    }
}
