//! Decides how the connections of one loop go through the stages together, where the scheduler
//! wishes that: all who are ready through one stage, then those who come to the next.
//!
//! Who has come is only noted. When the events of a turn are through, or enough have come, the
//! cohort runs to its end: until each of its connections waits for something. So whatever else a
//! loop does never finds a connection between two stages.

use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bine_log as log;

use crate::connection::SavedContext;
use crate::event_loop::defense::is_unwelcome;
use crate::event_loop::driver::Driver;
use crate::event_loop::{Entry, EventLoop};
use crate::next::{Kind, Next};
use crate::scheduling::Place;
use crate::slab::Token;
use crate::stages;

/// As many go through the stages together. What each takes along between two stages, some hundreds
/// of bytes, should still be in the cache when its turn comes.
const MOST: usize = 64;

/// In the order in which a cohort goes through them.
const STAGES: [Next; 4] =
    [Next::Request, Next::Response(Kind::Static), Next::Response(Kind::Dynamic), Next::Reply];

/// Connections on their way through the stages; empty between two turns.
pub(super) struct Cohort {
    /// The scheduler wishes it.
    pub(super) gathers: bool,
    /// At rest, with something to receive or to understand.
    coming: Vec<Token>,
    /// Before each of the [`STAGES`].
    waiting: [Vec<Member>; 4],
    /// The list of those who are at their stage, kept for its memory.
    running: Vec<Member>,
}

struct Member {
    token: Token,
    saved: Box<SavedContext>,
}

impl Cohort {
    pub(super) fn new(gathers: bool) -> Self {
        Self { gathers, coming: Vec::new(), waiting: Default::default(), running: Vec::new() }
    }
}

impl<D: Driver> EventLoop<D> {
    /// Lets a connection at rest go through the stages with the others.
    pub(super) fn gather(&mut self, token: Token) {
        self.cohort.coming.push(token);
        if self.cohort.coming.len() == MOST {
            self.run_cohort();
        }
    }

    /// Runs all who have come until each of them waits for something.
    pub(super) fn run_cohort(&mut self) {
        if self.cohort.coming.is_empty() {
            return;
        }
        let mut coming = take(&mut self.cohort.coming);
        for token in coming.drain(..) {
            // It may have gone since its event.
            let Some(Entry { connection, .. }) = self.slab.get(token) else { continue };
            self.context.make_current(connection);
            self.go_through(token, Next::Request);
        }
        self.cohort.coming = coming;
        // Pipelined requests make another round; a slice bounds how many.
        while self.cohort.waiting.iter().any(|members| !members.is_empty()) {
            for (place, stage) in STAGES.into_iter().enumerate() {
                self.run_one(place, stage);
            }
        }
    }

    /// Has all who wait for `stage` go through it.
    fn run_one(&mut self, place: usize, stage: Next) {
        let empty = take(&mut self.cohort.running);
        let mut members = std::mem::replace(&mut self.cohort.waiting[place], empty);
        for Member { token, saved } in members.drain(..) {
            let Some(Entry { connection, .. }) = self.slab.get(token) else {
                self.context.recycle_saved(saved);
                continue;
            };
            self.context.restore(saved, connection.snapshot_id);
            self.go_through(token, stage);
        }
        self.cohort.running = members;
    }

    /// A fault where nobody expects one costs this connection alone.
    fn go_through(&mut self, token: Token, stage: Next) {
        if catch_unwind(AssertUnwindSafe(|| self.run_stage(token, stage))).is_err() {
            log::error(format_args!("a connection was closed by a fault of the server"));
            self.context.deferred_work = None;
            self.remove(token);
        }
    }

    fn run_stage(&mut self, token: Token, stage: Next) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let context = &mut self.context;
        context.owner.token = token;
        let mut next = match stage {
            Next::Response(Kind::Static) => stages::response(connection, context),
            Next::Response(Kind::Dynamic)
                if is_unwelcome(&self.server, &self.view, connection, context) =>
            {
                stages::reject_deferred(connection, context)
            }
            Next::Response(Kind::Dynamic) => {
                if !connection.is_storing() {
                    self.server.admission().answered();
                }
                stages::dynamic(connection, context)
            }
            Next::Reply => stages::reply(connection, context),
            _ => stages::request(connection, context),
        };
        if next == Next::Request
            && context.is_socket_empty
            && !context.has_new_input
            && context.output.is_empty()
        {
            // There is nothing to understand: all that it does is to note what is waited for.
            next = stages::request(connection, context);
        }
        let place = STAGES.iter().position(|stage| *stage == next);
        match place {
            Some(place) if self.scheduler.stage(next) == Place::Gathered => {
                let saved = self.context.save();
                self.cohort.waiting[place].push(Member { token, saved });
            }
            _ => self.run_stages(token, next),
        }
    }
}
