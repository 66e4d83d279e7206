//! The context of one thread: what it keeps for all its connections together, one of which is at hand.

use std::mem::take;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use bine_http::HeadIndex;

use crate::address::Peer;
use crate::connection::busy::Busy;
use crate::connection::saved::{self, SavedContext};
use crate::discard::discard;
use crate::generation::{ConfigSnapshot, SnapshotId, ThreadConfig};
use crate::handler::{FilePart, Hold, LaterReply, Retained, RetainedPool, Waiters, Who, Work};
use crate::limits::{Budgets, Reservation};
use crate::metrics::Lent;
use crate::quota::Owner;
use crate::settings::Settings;
use crate::time::{Clock, Slowness};
use crate::tls::{Session, TlsBuffers};

/// What one thread keeps for all its connections: buffers that only one of them uses at a time.
pub(crate) struct ThreadContext {
    /// Settings, responder and access log of the connection at hand, and those of the others.
    pub(crate) config: ThreadConfig,
    pub(crate) clock: Rc<Clock>,
    /// Whose replies wait for something to happen, under whatever settings they came.
    pub(crate) waiters: Option<Box<dyn Waiters>>,
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
    pub(crate) saved_contexts: Vec<Box<SavedContext>>,
    pub(crate) tls_buffers: Rc<TlsBuffers>,
    pub(crate) budgets: Arc<Budgets>,
    /// Who is told when the connection at hand is to be dropped.
    pub(crate) owner: Owner,
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
pub(crate) const INTAKE: usize = 1 << 20;
/// At least this much is received at once.
const SCRATCH: usize = 64 * 1024;
/// Busy parts kept for use again; more than are ever busy at once on one loop bring nothing.
const SPARE: usize = 256;

impl ThreadContext {
    pub(crate) fn new(config: ThreadConfig, clock: Rc<Clock>) -> Self {
        let mut own = Self {
            config,
            clock,
            waiters: None,
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
            saved_contexts: Vec::new(),
            tls_buffers: Rc::default(),
            budgets: Arc::default(),
            owner: Owner::default(),
        };
        own.make_scratch_for(&Arc::clone(&own.config.settings));
        own
    }

    /// A thread's context for connections that keep `snapshot`.
    pub(crate) fn under(snapshot: &Arc<ConfigSnapshot>, clock: Rc<Clock>) -> Self {
        let mut own = Self::new(ThreadConfig::with_snapshot(snapshot, &clock), clock);
        own.budgets = Arc::clone(&snapshot.budgets);
        own
    }

    /// Puts `snapshot` in force for the connections to come. False: older ones hold every place, and
    /// nothing has changed.
    pub(crate) fn adopt(&mut self, snapshot: &Arc<ConfigSnapshot>) -> bool {
        let has_begun = self.config.adopt(snapshot, &self.clock);
        if has_begun {
            self.make_scratch_for(&snapshot.settings);
        }
        has_begun
    }

    /// The id here of the snapshot of a connection from another thread, which [leaves](ThreadConfig::leave) it
    /// once. `None`: other connections hold every place.
    pub(crate) fn enter_with(&mut self, snapshot: &Arc<ConfigSnapshot>) -> Option<SnapshotId> {
        let snapshot_id = self.config.enter_with(snapshot, &self.clock)?;
        self.make_scratch_for(&snapshot.settings);
        Some(snapshot_id)
    }

    /// What keeps `peer` secret, if it came where TLS is spoken.
    pub(crate) fn session(&self, peer: Peer) -> Option<Box<Session>> {
        if !peer.is_secure() {
            return None;
        }
        let tls = self.config.settings.tls.as_ref()?;
        let (tls, tls_buffers) = (Arc::clone(tls), Rc::clone(&self.tls_buffers));
        let handshakes = Arc::clone(&self.budgets.handshakes);
        Some(Box::new(Session::new(tls, tls_buffers, handshakes, peer.block())))
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

    /// Puts away what is known of the connection at hand, whose next stage is run later. Only for
    /// what stages return as another stage: an errand that is no [`Work`] is begun at once.
    pub(crate) fn save(&mut self) -> Box<SavedContext> {
        let mut saved = self.saved_contexts.pop().unwrap_or_default();
        saved.index = self.current.index.take();
        if saved.index.is_some() {
            saved.received.extend_from_slice(&self.scratch[self.current.head.clone()]);
        }
        saved.head = saved.received.len();
        saved.received.extend_from_slice(&self.scratch[take(&mut self.input)]);
        saved.who = take(&mut self.current.who);
        std::mem::swap(&mut saved.output, &mut self.output);
        saved.owed = take(&mut self.owed);
        saved.fresh = take(&mut self.fresh);
        (saved.drained, saved.slice, saved.intake) = (self.drained, self.slice, self.intake);
        saved.work = match self.errand.take() {
            Some(Errand::Work(work, request)) => Some((work, request)),
            other => {
                debug_assert!(other.is_none(), "an errand that was not begun");
                None
            }
        };
        saved
    }

    /// Goes on with a connection that keeps this snapshot where it was saved.
    pub(crate) fn restore(&mut self, mut saved: Box<SavedContext>, snapshot_id: SnapshotId) {
        debug_assert!(self.output.is_empty(), "replies of another connection");
        self.config.switch_to(snapshot_id);
        // Another thread may have had more room.
        self.make_scratch(saved.received.len() * 2);
        self.scratch[..saved.received.len()].copy_from_slice(&saved.received);
        self.current.head = 0..saved.head;
        self.current.index = saved.index.take();
        self.current.who = take(&mut saved.who);
        self.input = saved.head..saved.received.len();
        std::mem::swap(&mut saved.output, &mut self.output);
        self.owed = take(&mut saved.owed);
        self.fresh = saved.fresh;
        (self.drained, self.slice, self.intake) = (saved.drained, saved.slice, saved.intake);
        self.errand = saved.work.take().map(|(work, request)| Errand::Work(work, request));
        self.recycle_saved(saved);
    }

    /// Its connection is no more.
    pub(crate) fn recycle_saved(&mut self, mut saved: Box<SavedContext>) {
        saved.received.clear();
        saved.output.clear();
        saved.owed = Reservation::default();
        let fits = saved.received.capacity().max(saved.output.capacity()) <= saved::KEPT;
        if fits && self.saved_contexts.len() < saved::SPARE {
            (saved.index, saved.who, saved.work) = (None, Who::Anonymous, None);
            self.saved_contexts.push(saved);
        }
    }
}
