//! Decides what is kept of a connection between two stages while its thread goes on with another.
//!
//! A thread runs the stages of one connection at a time, so what is known between them (the head
//! in the scratch buffer, replies that are not sent yet) is the thread's, not the connection's. A
//! scheduler that does something else in between has it set aside here.

use std::mem::take;
use std::sync::Arc;

use bine_http::HeadIndex;

use crate::budget::Reservation;
use crate::connection::{Context, Errand};
use crate::generation::Era;
use crate::handler::Work;
use crate::incoming::Retained;
use crate::visitor::Who;

/// What a thread knows of one connection between two stages. Used again, for its buffers.
#[derive(Default)]
pub(crate) struct Aside {
    /// The head of the request that is to be answered, then what was received behind it.
    received: Vec<u8>,
    /// Where in `received` the head ends.
    head: usize,
    index: Option<HeadIndex>,
    who: Who,
    /// Replies made and not sent.
    output: Vec<u8>,
    owed: Reservation,
    fresh: bool,
    drained: bool,
    slice: u32,
    intake: usize,
    work: Option<(Arc<dyn Work>, Box<Retained>)>,
}

/// Buffers above this size are given back to the system rather than kept.
const KEPT: usize = 16 * 1024;
/// Kept for use again: as many as go through the stages together, and a few.
const SPARE: usize = 80;

impl Context {
    /// Puts away what is known of the connection at hand, whose next stage is run later. Only for
    /// what stages return as another stage: an errand that is no [`Work`] is begun at once.
    pub(crate) fn set_aside(&mut self) -> Box<Aside> {
        let mut aside = self.asides.pop().unwrap_or_default();
        aside.index = self.current.index.take();
        if aside.index.is_some() {
            aside.received.extend_from_slice(&self.scratch[self.current.head.clone()]);
        }
        aside.head = aside.received.len();
        aside.received.extend_from_slice(&self.scratch[take(&mut self.input)]);
        aside.who = take(&mut self.current.who);
        std::mem::swap(&mut aside.output, &mut self.output);
        aside.owed = take(&mut self.owed);
        aside.fresh = take(&mut self.fresh);
        (aside.drained, aside.slice, aside.intake) = (self.drained, self.slice, self.intake);
        aside.work = match self.errand.take() {
            Some(Errand::Work(work, request)) => Some((work, request)),
            other => {
                debug_assert!(other.is_none(), "an errand that was not begun");
                None
            }
        };
        aside
    }

    /// Goes on with a connection of this era where it was set aside.
    pub(crate) fn take_back(&mut self, mut aside: Box<Aside>, era: Era) {
        debug_assert!(self.output.is_empty(), "replies of another connection");
        self.turn_to(era);
        // Another thread may have had more room.
        self.make_scratch(aside.received.len() * 2);
        self.scratch[..aside.received.len()].copy_from_slice(&aside.received);
        self.current.head = 0..aside.head;
        self.current.index = aside.index.take();
        self.current.who = take(&mut aside.who);
        self.input = aside.head..aside.received.len();
        std::mem::swap(&mut aside.output, &mut self.output);
        self.owed = take(&mut aside.owed);
        self.fresh = aside.fresh;
        (self.drained, self.slice, self.intake) = (aside.drained, aside.slice, aside.intake);
        self.errand = aside.work.take().map(|(work, request)| Errand::Work(work, request));
        self.keep_aside(aside);
    }

    /// Its connection is no more.
    pub(crate) fn keep_aside(&mut self, mut aside: Box<Aside>) {
        aside.received.clear();
        aside.output.clear();
        aside.owed = Reservation::default();
        let fits = aside.received.capacity().max(aside.output.capacity()) <= KEPT;
        if fits && self.asides.len() < SPARE {
            (aside.index, aside.who, aside.work) = (None, Who::Anonymous, None);
            self.asides.push(aside);
        }
    }
}
