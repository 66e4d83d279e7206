//! Cohort scheduling: a loop runs one stage for all ready connections, then the next stage.
//!
//! The loop only collects the tokens of ready connections. After the events of a turn, or when the
//! cohort is full, it runs the cohort until each of its connections waits. So no other code of the
//! loop sees a connection between two stages.

use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bine_log as log;

use crate::connection::SavedContext;
use crate::event_loop::driver::Driver;
use crate::event_loop::overload::should_reject;
use crate::event_loop::{Entry, EventLoop, run_dynamic};
use crate::next::{Next, ResponseKind};
use crate::scheduling::Placement;
use crate::slab::Token;
use crate::stages;

/// The largest number of connections in a cohort. Each saves a few hundred bytes between two
/// stages, which should still be in the CPU cache when the next stage runs.
const MAX_SIZE: usize = 64;

/// The stages in the order in which a cohort runs them.
const STAGES: [Next; 4] = [
    Next::Request,
    Next::Response(ResponseKind::Static),
    Next::Response(ResponseKind::Dynamic),
    Next::Reply,
];

/// The connections that run through the stages together. Empty between two turns.
pub(super) struct ConnectionCohort {
    /// Whether the scheduler asks for cohorts.
    pub(super) gathers: bool,
    /// Connections that are not in a stage and have bytes to receive or to parse.
    arrivals: Vec<Token>,
    /// The connections that wait for each of the [`STAGES`].
    waiting: [Vec<Member>; 4],
    /// An empty list, reused so that no stage allocates.
    spare: Vec<Member>,
}

struct Member {
    token: Token,
    saved: Box<SavedContext>,
}

impl ConnectionCohort {
    pub(super) fn new(gathers: bool) -> Self {
        Self { gathers, arrivals: Vec::new(), waiting: Default::default(), spare: Vec::new() }
    }
}

impl<D: Driver> EventLoop<D> {
    /// Adds a connection that is not in a stage to the cohort.
    pub(super) fn enqueue(&mut self, token: Token) {
        self.cohort.arrivals.push(token);
        if self.cohort.arrivals.len() == MAX_SIZE {
            self.run_cohort();
        }
    }

    /// Runs the cohort until each of its connections waits.
    pub(super) fn run_cohort(&mut self) {
        if self.cohort.arrivals.is_empty() {
            return;
        }
        let mut arrivals = take(&mut self.cohort.arrivals);
        for token in arrivals.drain(..) {
            // The connection may have closed since its event.
            let Some(Entry { connection, .. }) = self.slab.get(token) else { continue };
            self.context.make_current(connection);
            self.run_guarded(token, Next::Request);
        }
        self.cohort.arrivals = arrivals;
        // Each pipelined request needs another round. The limit of requests per turn bounds them.
        while self.cohort.waiting.iter().any(|members| !members.is_empty()) {
            for (index, stage) in STAGES.into_iter().enumerate() {
                self.run_members(index, stage);
            }
        }
    }

    /// Runs `stage`, number `index` of [`STAGES`], for all connections that wait for it.
    fn run_members(&mut self, index: usize, stage: Next) {
        let spare = take(&mut self.cohort.spare);
        let mut members = std::mem::replace(&mut self.cohort.waiting[index], spare);
        for Member { token, saved } in members.drain(..) {
            let Some(Entry { connection, .. }) = self.slab.get(token) else {
                self.context.recycle_saved(saved);
                continue;
            };
            self.context.restore(saved, connection.snapshot_id);
            self.run_guarded(token, stage);
        }
        self.cohort.spare = members;
    }

    /// Runs a stage. A panic in the server closes only this connection.
    fn run_guarded(&mut self, token: Token, stage: Next) {
        if catch_unwind(AssertUnwindSafe(|| self.run_stage(token, stage))).is_err() {
            log::error(format_args!("the server panicked and closed one connection"));
            self.context.deferred_work = None;
            self.remove(token);
        }
    }

    fn run_stage(&mut self, token: Token, stage: Next) {
        let Some(Entry { connection, .. }) = self.slab.get(token) else { return };
        let context = &mut self.context;
        context.owner.token = token;
        let mut next = match stage {
            Next::Response(ResponseKind::Static) => stages::response(connection, context),
            Next::Response(ResponseKind::Dynamic)
                if should_reject(&self.server, &self.view, connection, context) =>
            {
                stages::reject_deferred(connection, context)
            }
            Next::Response(ResponseKind::Dynamic) => run_dynamic(&self.server, connection, context),
            Next::Reply => stages::reply(connection, context),
            _ => stages::request(connection, context),
        };
        if next == Next::Request
            && context.is_socket_empty
            && !context.has_new_input
            && context.output.is_empty()
        {
            // There are no bytes to parse: the stage only sets the phase and the deadline.
            next = stages::request(connection, context);
        }
        let index = STAGES.iter().position(|stage| *stage == next);
        match index {
            Some(index) if self.scheduler.stage(next) == Placement::Batched => {
                let saved = self.context.save();
                self.cohort.waiting[index].push(Member { token, saved });
            }
            _ => self.run_stages(token, next),
        }
    }
}
