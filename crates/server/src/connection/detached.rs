//! Moves a connection to another thread between two stages.
//!
//! Most of a connection's state is independent of its thread. The rest is taken from the old thread
//! and set up again on the new one: the buffers of the TLS session, the id of the snapshot, the
//! buffer that contains the request. A connection with state that cannot move stays on its thread:
//! a handshake in progress, a suspended response, a reply that is written while it is sent. (An
//! async handler is not a stage: its thread waits for it.)

use std::mem::take;
use std::rc::Rc;
use std::sync::Arc;

use crate::access::PendingEntry;
use crate::connection::busy::{Busy, Storing};
use crate::connection::context::ThreadContext;
use crate::connection::saved::SavedContext;
use crate::connection::{AnsweredRequest, Connection, NO_HOLD};
use crate::generation::ConfigSnapshot;
use crate::handler::{FilePart, Retained, Upgrade};
use crate::limits::Reservation;
use crate::next::Next;
use crate::transport::{Blocking, DetachedTransport, Transport as _};

/// A connection between two stages, which any thread may continue.
pub(crate) struct DetachedConnection {
    /// Its snapshot id is the one that it had on the old thread.
    connection: Connection<DetachedTransport, DetachedBusy>,
    snapshot: Arc<ConfigSnapshot>,
    saved: Box<SavedContext>,
    next: Next,
}

/// The part of a [`Busy`] that moves.
struct DetachedBusy {
    input: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
    output_reservation: Reservation,
    file: Option<FilePart>,
    warm_to: u64,
    upgrade: Option<Upgrade>,
    pending_entry: Option<PendingEntry>,
    request: Option<Box<Retained>>,
    collect: u64,
    on_disk: bool,
    storing: Option<Storing>,
    is_head: bool,
    answered: AnsweredRequest,
    handler: &'static str,
}

impl DetachedConnection {
    /// Whether no state of `connection` is bound to its thread.
    pub(crate) fn can_detach(connection: &Connection<Blocking>, next: Next) -> bool {
        let stays = |busy: &Busy| busy.stream.is_some() || busy.task.is_some();
        matches!(next, Next::Request | Next::Response(_) | Next::Reply)
            && connection.hold == NO_HOLD
            && !connection.transport.is_shaking_hands()
            && !connection.busy.as_deref().is_some_and(stays)
    }

    /// Detaches `connection`, whose buffers this thread has, before the stage `next`.
    ///
    /// # Errors
    ///
    /// The connection, if it must stay on this thread.
    #[expect(clippy::result_large_err, reason = "both results move the connection")]
    pub(crate) fn detach(
        mut connection: Connection<Blocking>,
        context: &mut ThreadContext,
        next: Next,
    ) -> Result<Self, Connection<Blocking>> {
        if !Self::can_detach(&connection, next) {
            return Err(connection);
        }
        let Some(snapshot) = context.config.snapshot(connection.snapshot_id).map(Arc::clone) else {
            return Err(connection);
        };
        connection.rest(context);
        let saved = context.save();
        context.config.leave(connection.snapshot_id);
        let connection = connection.map(Blocking::detach, |mut busy| {
            let detached = DetachedBusy::take(&mut busy);
            context.recycle(busy);
            detached
        });
        Ok(Self { connection, snapshot, saved, next })
    }

    /// Attaches it to this thread, which then has its buffers. Returns `None` if connections under
    /// other settings use all places for snapshots; then it is closed.
    pub(crate) fn attach(
        self,
        context: &mut ThreadContext,
    ) -> Option<(Connection<Blocking>, Next)> {
        let snapshot_id = context.enter_with(&self.snapshot)?;
        let tls_buffers = Rc::clone(&context.tls_buffers);
        let mut connection = self.connection.map(
            |transport| transport.attach(&tls_buffers),
            |detached| {
                let mut busy = context.spare_busy();
                detached.put(&mut busy);
                busy
            },
        );
        connection.snapshot_id = snapshot_id;
        context.restore(self.saved, snapshot_id);
        Some((connection, self.next))
    }

    /// The stage before which it was detached.
    pub(crate) const fn next(&self) -> Next {
        self.next
    }
}

impl DetachedBusy {
    fn take(busy: &mut Busy) -> Self {
        Self {
            input: take(&mut busy.input),
            output: take(&mut busy.output),
            sent: take(&mut busy.sent),
            output_reservation: take(&mut busy.output_reservation),
            file: busy.file.take(),
            warm_to: busy.warm_to,
            upgrade: busy.upgrade.take(),
            pending_entry: busy.pending_entry.take(),
            request: busy.request.take(),
            collect: busy.collect,
            on_disk: busy.on_disk,
            storing: busy.storing.take(),
            is_head: busy.is_head,
            answered: take(&mut busy.answered),
            handler: busy.handler,
        }
    }

    fn put(self, busy: &mut Busy) {
        let Self {
            input,
            output,
            sent,
            output_reservation,
            file,
            warm_to,
            upgrade,
            pending_entry,
            request,
            collect,
            on_disk,
            storing,
            is_head,
            answered,
            handler,
        } = self;
        *busy = Busy {
            input,
            output,
            sent,
            output_reservation,
            file,
            warm_to,
            warms_up: false,
            stream: None,
            upgrade,
            pending_entry,
            request,
            collect,
            on_disk,
            storing,
            is_head,
            answered,
            handler,
            body_flow: None,
            task: None,
            is_while_open: false,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use bine_http::BodyFraming;

    use super::*;
    use crate::connection::Phase;
    use crate::handler::{Follow, Stream};
    use crate::next::ResponseKind;
    use crate::settings::Settings;
    use crate::system::Transfer;
    use crate::test_support::{connection, context, request, server};

    #[test]
    fn moves_only_between_two_stages_of_a_request() {
        let mut context = context(&server(Settings::default()));
        let (mut connection, _client) = connection(&mut context);
        let (fixed, dynamic) = (ResponseKind::Static, ResponseKind::Dynamic);
        for (next, expected) in [
            (Next::Request, true),
            (Next::Response(fixed), true),
            (Next::Response(dynamic), true),
            (Next::Reply, true),
            (Next::Idle, false),
            (Next::Park, false),
            (Next::Held, false),
            (Next::Closed, false),
        ] {
            assert_eq!(DetachedConnection::can_detach(&connection, next), expected, "{next:?}");
        }
        connection.hold = 1;
        assert!(!DetachedConnection::can_detach(&connection, Next::Reply), "it is suspended");
        connection.hold = NO_HOLD;
        let stream = Stream::new(BodyFraming::Chunked, |_sender| Box::pin(async { Ok(()) }));
        connection.follow(Follow::Stream(stream), &mut context);
        assert!(!DetachedConnection::can_detach(&connection, Next::Reply), "it is written");
        let connection = DetachedConnection::detach(connection, &mut context, Next::Reply).err();
        let mut connection = connection.unwrap();
        connection.busy(&mut context).stream = None;
        assert!(DetachedConnection::can_detach(&connection, Next::Reply));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let task = runtime.spawn(std::future::pending::<()>());
        connection.busy(&mut context).task = Some(task.abort_handle());
        assert!(!DetachedConnection::can_detach(&connection, Next::Reply), "a task runs");
    }

    #[test]
    fn continues_on_another_thread_with_its_whole_state() {
        let server = server(Settings::default());
        let (mut old, mut new) = (context(&server), context(&server));
        let (mut connection, mut client) = connection(&mut old);
        connection.phase = Phase::Body;
        let busy = connection.busy(&mut old);
        (busy.input, busy.output, busy.sent) = (b"in".to_vec(), b"output".to_vec(), 2);
        (busy.warm_to, busy.collect, busy.on_disk, busy.is_head) = (9, 44, true, true);
        (busy.request, busy.storing) = (Some(request("/a")), Some(Storing::Last));
        busy.handler = "handler";
        let Ok(detached) = DetachedConnection::detach(connection, &mut old, Next::Request) else {
            panic!("it can move");
        };
        assert_eq!(detached.next(), Next::Request);
        let (mut connection, next) = detached.attach(&mut new).unwrap();
        assert_eq!((next, connection.phase), (Next::Request, Phase::Body));
        let busy = connection.busy.as_ref().unwrap();
        assert_eq!((&*busy.input, &*busy.output, busy.sent), (&b"in"[..], &b"output"[..], 2));
        assert_eq!((busy.warm_to, busy.collect, busy.handler), (9, 44, "handler"));
        assert!(busy.on_disk && busy.is_head && !busy.warms_up);
        assert_eq!((busy.storing, busy.request.is_some()), (Some(Storing::Last), true));
        client.write_all(b"more").unwrap();
        let mut space = [0; 8];
        assert!(matches!(connection.transport.receive(&mut space), Transfer::Moved(4)));
        // Each thread counts the connections of its snapshots.
        new.config.leave(connection.snapshot_id);
        assert_eq!((old.config.snapshot_count(), new.config.snapshot_count()), (1, 1));
    }
}
