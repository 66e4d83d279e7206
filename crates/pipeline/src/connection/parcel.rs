//! Decides what a connection takes along when another thread goes on with it between two stages.
//!
//! Most of a connection belongs to nobody in particular. What belongs to its thread is left there
//! and found again at the other's: the desk of its TLS session, the era of its settings, the buffer
//! in which its request was found. What can neither go along nor be found again keeps the
//! connection where it is: a handshake under way, a held reply, a reply that is written while it is
//! sent. (A handler that awaits is no stage: its thread waits for it.)

use std::mem::take;
use std::rc::Rc;
use std::sync::Arc;

use crate::access::Leaving;
use crate::connection::aside::Aside;
use crate::connection::busy::{Busy, Storing};
use crate::connection::context::Context;
use crate::connection::{Connection, NO_HOLD};
use crate::generation::Charter;
use crate::handler::{FilePart, Retained, Upgrade};
use crate::limits::Reservation;
use crate::link::{Blocking, Link as _, Stowed};
use crate::next::Next;

/// A connection between two stages, which any thread may go on with.
pub(crate) struct Parcel {
    /// With the era that it had on the thread it left.
    connection: Connection<Stowed, Load>,
    charter: Arc<Charter>,
    aside: Box<Aside>,
    next: Next,
}

/// What goes along of a [`Busy`].
struct Load {
    input: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
    owed: Reservation,
    file: Option<FilePart>,
    warm_to: u64,
    upgrade: Option<Upgrade>,
    leaving: Option<Leaving>,
    request: Option<Box<Retained>>,
    collect: u64,
    on_disk: bool,
    storing: Option<Storing>,
    is_head: bool,
    handler: &'static str,
}

impl Parcel {
    /// Whether nothing of `connection` belongs to its thread for good.
    pub(crate) fn may_hold(connection: &Connection<Blocking>, next: Next) -> bool {
        let stays = |busy: &Busy| busy.stream.is_some() || busy.task.is_some();
        matches!(next, Next::Request | Next::Response(_) | Next::Reply)
            && connection.hold == NO_HOLD
            && !connection.link.is_shaking_hands()
            && !connection.busy.as_deref().is_some_and(stays)
    }

    /// Takes `connection` off this thread, whose buffers it has, before the stage `next`.
    ///
    /// # Errors
    ///
    /// The connection, if it must go on here.
    #[expect(clippy::result_large_err, reason = "it is moved by both ways out alike")]
    pub(crate) fn pack(
        mut connection: Connection<Blocking>,
        context: &mut Context,
        next: Next,
    ) -> Result<Self, Connection<Blocking>> {
        if !Self::may_hold(&connection, next) {
            return Err(connection);
        }
        let Some(charter) = context.config.charter(connection.era).map(Arc::clone) else {
            return Err(connection);
        };
        connection.rest(context);
        let aside = context.set_aside();
        context.config.leave(connection.era);
        let connection = connection.map(Blocking::stow, |mut busy| {
            let load = Load::take(&mut busy);
            context.recycle(busy);
            load
        });
        Ok(Self { connection, charter, aside, next })
    }

    /// Makes it a connection of this thread, whose buffers it has then. `None`: connections under
    /// other settings hold every place, and it is closed.
    pub(crate) fn unpack(self, context: &mut Context) -> Option<(Connection<Blocking>, Next)> {
        let era = context.enter_under(&self.charter)?;
        let desk = Rc::clone(&context.desk);
        let mut connection = self.connection.map(
            |link| link.draw(&desk),
            |load| {
                let mut busy = context.spare_busy();
                load.put(&mut busy);
                busy
            },
        );
        connection.era = era;
        context.take_back(self.aside, era);
        Some((connection, self.next))
    }

    /// The stage before which it was packed.
    pub(crate) const fn next(&self) -> Next {
        self.next
    }
}

impl Load {
    fn take(busy: &mut Busy) -> Self {
        Self {
            input: take(&mut busy.input),
            output: take(&mut busy.output),
            sent: take(&mut busy.sent),
            owed: take(&mut busy.owed),
            file: busy.file.take(),
            warm_to: busy.warm_to,
            upgrade: busy.upgrade.take(),
            leaving: busy.leaving.take(),
            request: busy.request.take(),
            collect: busy.collect,
            on_disk: busy.on_disk,
            storing: busy.storing.take(),
            is_head: busy.is_head,
            handler: busy.handler,
        }
    }

    fn put(self, busy: &mut Busy) {
        let Self {
            input,
            output,
            sent,
            owed,
            file,
            warm_to,
            upgrade,
            leaving,
            request,
            collect,
            on_disk,
            storing,
            is_head,
            handler,
        } = self;
        *busy = Busy {
            input,
            output,
            sent,
            owed,
            file,
            warm_to,
            warms_up: false,
            stream: None,
            upgrade,
            leaving,
            request,
            collect,
            on_disk,
            storing,
            is_head,
            handler,
            task: None,
            is_while_open: false,
        };
    }
}
