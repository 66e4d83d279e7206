//! The state that one thread keeps for all its connections. It runs one of them at a time: the
//! current connection.

use std::mem::take;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use crate::address::ClientAddress;
use crate::connection::busy::Busy;
use crate::connection::current_request::CurrentRequest;
use crate::connection::saved::{self, SavedContext};
use crate::discard::discard;
use crate::generation::{ConfigSnapshot, SnapshotId, ThreadConfig};
use crate::handler::page_cache::CachedParts;
use crate::handler::{
    FilePart, ReplyFuture, Retained, RetainedPool, SuspendedResponse, Waiters, Work,
};
use crate::limits::{Budgets, Reservation};
use crate::metrics::TallyLease;
use crate::quota::Owner;
use crate::settings::Settings;
use crate::time::{Clock, Slowness};
use crate::tls::{Session, TlsBuffers};

/// The state that one thread keeps for all its connections. Only the current connection uses the
/// buffers.
pub(crate) struct ThreadContext {
    /// The settings, responder and access log of the current connection, and of all other snapshots
    /// that the thread's connections keep.
    pub(crate) config: ThreadConfig,
    pub(crate) clock: Rc<Clock>,
    /// The suspended responses of the thread, under all settings.
    pub(crate) waiters: Option<Box<dyn Waiters>>,
    pub(crate) tally: TallyLease,
    /// The receive buffer of all connections. The parser reads requests directly from it.
    pub(crate) scratch: Box<[u8]>,
    /// The part of `scratch` that contains received and not yet consumed bytes.
    pub(crate) input: Range<usize>,
    /// Whether `input` contains bytes that the parser has not seen.
    pub(crate) has_new_input: bool,
    /// Whether the last receive emptied the socket, so that a second one would return `Again`.
    pub(crate) is_socket_empty: bool,
    /// Replies of the current connection.
    pub(crate) output: Vec<u8>,
    /// The bytes that `output` holds of the server's budget.
    pub(crate) output_reservation: Reservation,
    /// The number of requests that the current connection may still begin in this turn.
    pub(crate) requests_left: u32,
    /// The number of bytes that the current connection may still receive in this turn.
    pub(crate) receive_allowance: usize,
    /// The number of bytes of long replies that all connections together may still send in this
    /// turn. Without this limit, a thousand downloads of large files would delay all other
    /// connections.
    pub(crate) send_allowance: u64,
    /// The request between its stages.
    pub(crate) current: CurrentRequest,
    /// Work that the response stage could not do itself.
    pub(crate) deferred_work: Option<DeferredWork>,
    pub(crate) slowness: Rc<Slowness>,
    /// What is known of the page cache, if this thread has many connections and must not wait for a
    /// disk.
    pub(crate) cached_parts: Option<CachedParts>,
    /// Whether this thread can run connections of HTTP/2.
    pub(crate) runs_http2: bool,
    /// Whether the server is stopping: each reply is the last of its connection.
    pub(crate) stopping: bool,
    /// Whether the server leaves: each reply to a new request is the last of its connection.
    pub(crate) is_leaving: bool,
    #[expect(clippy::vec_box, reason = "a connection keeps one pointer, not the whole")]
    spare: Vec<Box<Busy>>,
    pub(crate) retained: RetainedPool,
    /// Unused values for connections that are saved between two stages.
    #[expect(clippy::vec_box, reason = "they move to other threads as one pointer")]
    pub(crate) saved_contexts: Vec<Box<SavedContext>>,
    pub(crate) tls_buffers: Rc<TlsBuffers>,
    pub(crate) budgets: Arc<Budgets>,
    /// Notified when the current connection is to be dropped.
    pub(crate) owner: Owner,
}

/// Work that the response stage hands to its driver.
pub(crate) enum DeferredWork {
    /// Run this on a thread that may block.
    Work(Arc<dyn Work>, Box<Retained>),
    /// Suspend the response; the request is kept for the access log only.
    Suspend(SuspendedResponse, Option<Box<Retained>>),
    /// Poll this; the request is kept for the access log only.
    Later(ReplyFuture, Option<Box<Retained>>),
    /// Like `Later`, until the client closes its sending half.
    WhileOpen(ReplyFuture, Option<Box<Retained>>),
    /// Read this part of the file that is being sent into the page cache.
    WarmUp(FilePart),
}

/// The number of requests of one connection in one turn; then other connections run.
pub(crate) const MAX_REQUESTS: u32 = 16;
/// The number of bytes that one connection receives in one turn, for a body of any length. Files
/// are sent in slices of the same size.
pub(crate) const RECEIVE_ALLOWANCE: usize = 1 << 20;
/// The minimum size of the receive buffer.
const SCRATCH: usize = 64 * 1024;
/// The number of unused busy parts to keep. More than the peak number on one loop would be useless.
const MAX_SPARE: usize = 256;

impl ThreadContext {
    pub(crate) fn new(config: ThreadConfig, clock: Rc<Clock>, budgets: Arc<Budgets>) -> Self {
        let mut context = Self {
            config,
            clock,
            waiters: None,
            tally: TallyLease::unregistered(),
            scratch: Box::default(),
            input: 0..0,
            has_new_input: false,
            is_socket_empty: false,
            output: Vec::with_capacity(16 * 1024),
            output_reservation: Reservation::default(),
            requests_left: MAX_REQUESTS,
            receive_allowance: RECEIVE_ALLOWANCE,
            send_allowance: u64::MAX,
            current: CurrentRequest::default(),
            deferred_work: None,
            slowness: Rc::default(),
            cached_parts: None,
            runs_http2: false,
            stopping: false,
            is_leaving: false,
            spare: Vec::new(),
            retained: RetainedPool::default(),
            saved_contexts: Vec::new(),
            tls_buffers: Rc::default(),
            budgets,
            owner: Owner::default(),
        };
        context.make_scratch_for(&Arc::clone(&context.config.settings));
        context
    }

    /// The context of a thread whose connections keep `snapshot`.
    pub(crate) fn under(snapshot: &Arc<ConfigSnapshot>, clock: Rc<Clock>) -> Self {
        let config = ThreadConfig::with_snapshot(snapshot, &clock);
        Self::new(config, clock, Arc::clone(&snapshot.budgets))
    }

    /// Uses `snapshot` for new connections. Returns false and changes no state if older snapshots
    /// use all places.
    pub(crate) fn adopt(&mut self, snapshot: &Arc<ConfigSnapshot>) -> bool {
        let has_begun = self.config.adopt(snapshot, &self.clock);
        if has_begun {
            self.make_scratch_for(&snapshot.settings);
        }
        has_begun
    }

    /// The id on this thread of the snapshot of a connection from another thread. The connection
    /// [leaves](ThreadConfig::leave) the snapshot once. Returns `None` if all places are in use.
    pub(crate) fn enter_with(&mut self, snapshot: &Arc<ConfigSnapshot>) -> Option<SnapshotId> {
        let snapshot_id = self.config.enter_with(snapshot, &self.clock)?;
        self.make_scratch_for(&snapshot.settings);
        Some(snapshot_id)
    }

    /// Whether connections with the current settings may speak HTTP/2 on this thread.
    pub(crate) fn offers_http2(&self) -> bool {
        self.runs_http2 && self.config.settings.http2
    }

    /// A new TLS session for `peer`, if it connected to an address with TLS.
    pub(crate) fn session(&self, peer: ClientAddress) -> Option<Box<Session>> {
        if !peer.is_secure() {
            return None;
        }
        let tls = self.config.settings.tls.as_ref()?;
        let (tls, tls_buffers) = (Arc::clone(tls), Rc::clone(&self.tls_buffers));
        let handshakes = Arc::clone(&self.budgets.handshakes);
        let tls = (tls, self.offers_http2());
        Some(Box::new(Session::new(tls, tls_buffers, handshakes, peer.block())))
    }

    /// Makes the scratch buffer large enough for the largest head that `settings` allow. The buffer
    /// never shrinks: connections under older settings may need its size.
    pub(crate) fn make_scratch_for(&mut self, settings: &Settings) {
        // An incomplete head must fit, with room to receive more.
        self.make_scratch(SCRATCH.max(settings.limits.head as usize * 2));
    }

    /// Makes the scratch buffer at least `size` bytes long.
    pub(crate) fn make_scratch(&mut self, size: usize) {
        if size > self.scratch.len() {
            debug_assert!(self.input.is_empty(), "the buffer contains unconsumed input");
            self.scratch = vec![0; size].into_boxed_slice();
        }
    }

    /// An empty busy part, possibly with reused buffers.
    pub(crate) fn spare_busy(&mut self) -> Box<Busy> {
        self.spare.pop().unwrap_or_default()
    }

    pub(crate) fn recycle(&mut self, mut busy: Box<Busy>) {
        discard((busy.stream.take(), busy.upgrade.take()));
        if self.spare.len() < MAX_SPARE {
            busy.reset();
            self.spare.push(busy);
        }
    }

    /// Saves the state of the current connection, whose next stage runs later. Only for stages that
    /// returned another stage: deferred work that is not [`Work`] starts at once.
    pub(crate) fn save(&mut self) -> Box<SavedContext> {
        let mut saved = self.saved_contexts.pop().unwrap_or_default();
        saved.current = take(&mut self.current);
        if saved.current.index.is_some() {
            saved.received.extend_from_slice(&self.scratch[saved.current.head.clone()]);
        }
        saved.current.head = 0..saved.received.len();
        saved.received.extend_from_slice(&self.scratch[take(&mut self.input)]);
        std::mem::swap(&mut saved.output, &mut self.output);
        saved.output_reservation = take(&mut self.output_reservation);
        saved.has_new_input = take(&mut self.has_new_input);
        saved.is_socket_empty = self.is_socket_empty;
        saved.requests_left = self.requests_left;
        saved.receive_allowance = self.receive_allowance;
        saved.work = match self.deferred_work.take() {
            Some(DeferredWork::Work(work, request)) => Some((work, request)),
            other => {
                debug_assert!(other.is_none(), "deferred work was not started");
                None
            }
        };
        saved
    }

    /// Restores the saved state of a connection with this snapshot.
    pub(crate) fn restore(&mut self, mut saved: Box<SavedContext>, snapshot_id: SnapshotId) {
        debug_assert!(self.output.is_empty(), "unsent output of a different connection");
        self.config.switch_to(snapshot_id);
        // The buffer of the previous thread may have been larger.
        self.make_scratch(saved.received.len() * 2);
        self.scratch[..saved.received.len()].copy_from_slice(&saved.received);
        self.current = take(&mut saved.current);
        self.input = self.current.head.end..saved.received.len();
        std::mem::swap(&mut saved.output, &mut self.output);
        self.output_reservation = take(&mut saved.output_reservation);
        self.has_new_input = saved.has_new_input;
        self.is_socket_empty = saved.is_socket_empty;
        self.requests_left = saved.requests_left;
        self.receive_allowance = saved.receive_allowance;
        self.deferred_work =
            saved.work.take().map(|(work, request)| DeferredWork::Work(work, request));
        self.recycle_saved(saved);
    }

    /// Reuses the buffers of a connection that is closed.
    pub(crate) fn recycle_saved(&mut self, mut saved: Box<SavedContext>) {
        saved.received.clear();
        saved.output.clear();
        saved.output_reservation = Reservation::default();
        let fits = saved.received.capacity().max(saved.output.capacity()) <= saved::MAX_BUFFER;
        if fits && self.saved_contexts.len() < saved::MAX_SPARE {
            saved.current = CurrentRequest::default();
            saved.work = None;
            self.saved_contexts.push(saved);
        }
    }
}

#[cfg(test)]
mod tests {
    use bine_http::Limits;

    use super::*;
    use crate::handler::Identity;
    use crate::test_support::{connection, context, request, server};

    fn new_context() -> ThreadContext {
        context(&server(Settings::default()))
    }

    /// Between two stages, the state of a connection moves from one context to another.
    #[test]
    fn restores_the_saved_state_in_another_context() {
        let server = server(Settings::default());
        let (mut old, mut new) = (context(&server), context(&server));
        let request = request("/saved");
        let end = 10 + request.head.len();
        old.scratch[10..end].copy_from_slice(&request.head);
        old.scratch[end..end + 4].copy_from_slice(b"next");
        (old.current.head, old.current.index) = (10..end, Some(request.index));
        (old.input, old.has_new_input, old.is_socket_empty) = (end..end + 4, true, true);
        (old.requests_left, old.receive_allowance) = (3, 77);
        old.current.identity = Identity::named("ann");
        let peer = ClientAddress::tcp("192.0.2.1:50000".parse().unwrap());
        old.current.peer = peer;
        old.output.extend_from_slice(b"reply");
        let saved = old.save();
        assert!(old.input.is_empty() && old.output.is_empty() && !old.has_new_input);
        let snapshot_id = new.config.enter();
        new.restore(saved, snapshot_id);
        assert_eq!(&new.scratch[new.current.head.clone()], &*request.head);
        assert_eq!(&new.scratch[new.input.clone()], b"next");
        assert_eq!((&*new.output, new.current.index), (&b"reply"[..], Some(request.index)));
        assert!(new.has_new_input && new.is_socket_empty && new.deferred_work.is_none());
        assert_eq!((new.requests_left, new.receive_allowance), (3, 77));
        assert_eq!((new.current.identity.user(), new.current.peer), (Some("ann"), peer));
        assert_eq!(new.saved_contexts.len(), 1);
    }

    #[test]
    fn saves_no_head_that_was_answered() {
        let mut context = new_context();
        context.scratch[..8].copy_from_slice(b"headnext");
        (context.current.head, context.input) = (0..4, 4..8);
        let saved = context.save();
        assert_eq!((&*saved.received, saved.current.head), (&b"next"[..], 0..0));
    }

    #[test]
    fn keeps_a_bounded_number_of_spare_values() {
        let mut context = new_context();
        (0..MAX_SPARE + 5).for_each(|_| context.recycle(Box::default()));
        assert_eq!(context.spare.len(), MAX_SPARE);
        (0..saved::MAX_SPARE + 5).for_each(|_| context.recycle_saved(Box::default()));
        assert_eq!(context.saved_contexts.len(), saved::MAX_SPARE);
    }

    #[test]
    fn reuses_saved_values_with_small_buffers_only() {
        let mut context = new_context();
        let sized = |received, output| {
            let (received, output) = (Vec::with_capacity(received), Vec::with_capacity(output));
            Box::new(SavedContext { received, output, ..SavedContext::default() })
        };
        context.recycle_saved(sized(saved::MAX_BUFFER + 1, 0));
        context.recycle_saved(sized(0, saved::MAX_BUFFER + 1));
        assert_eq!(context.saved_contexts.len(), 0);
        let mut used = sized(saved::MAX_BUFFER, saved::MAX_BUFFER);
        used.received.extend_from_slice(b"left");
        used.output.extend_from_slice(b"left");
        used.current.identity = Identity::named("ann");
        context.recycle_saved(used);
        let reused = &context.saved_contexts[0];
        assert!(reused.received.is_empty() && reused.output.is_empty());
        assert!(matches!(reused.current.identity, Identity::Anonymous));
    }

    #[test]
    fn fits_its_buffer_to_the_longest_head_and_never_shrinks_it() {
        let mut context = new_context();
        assert_eq!(context.scratch.len(), SCRATCH);
        let limited = |head| {
            let limits = Limits { head, ..Limits::default() };
            Settings { limits, ..Settings::default() }
        };
        context.make_scratch_for(&limited(SCRATCH as u32 / 2));
        assert_eq!(context.scratch.len(), SCRATCH);
        context.make_scratch_for(&limited(SCRATCH as u32));
        assert_eq!(context.scratch.len(), 2 * SCRATCH);
        context.make_scratch_for(&limited(10));
        assert_eq!(context.scratch.len(), 2 * SCRATCH);
    }

    #[test]
    fn has_no_tls_session_without_a_certificate() {
        let mut context = new_context();
        assert!(context.session(ClientAddress::UNIX).is_none());
        assert!(context.session(ClientAddress::UNIX.secured()).is_none());
        assert!(connection(&mut context).0.busy.is_none());
    }
}
