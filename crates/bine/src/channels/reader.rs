//! Decides what somebody who follows channels by a task or a thread is given next, and when it is woken for it.

use std::sync::Arc;
use std::task::{Context, Poll};

use bine_push::{GapPolicy, MessageBatch, Refused, Rest, Start};

use super::attendee::Attendee;
use super::audience::{CROWD, Moment, Waiting};
use super::clock::now;
use super::engine::Engine;
use super::seat::Seat;
use super::watch::Watch;

/// One who follows, and where it is. `None` in place of a page: the channels end.
pub(super) struct Reader {
    seat: Seat,
    watch: Watch,
    start: Start,
}

impl Reader {
    pub(super) fn new(engine: Arc<Engine>, watch: Watch, start: Start) -> Self {
        Self { seat: Seat::new(engine), watch, start }
    }

    /// Begins elsewhere.
    pub(super) fn seek(&mut self, start: Start) {
        self.seat.rise();
        self.start = start;
    }

    /// Follows other channels, from the same place on.
    ///
    /// # Errors
    ///
    /// They cannot be followed; it stays with those that it has.
    pub(super) fn switch(&mut self, names: Box<[Box<str>]>) -> Result<(), Refused> {
        self.seat.rise();
        let before = std::mem::replace(&mut self.watch.channels, names);
        if let Some((Err(refused), _)) = self.read() {
            self.watch.channels = before;
            return Err(refused);
        }
        Ok(())
    }

    /// Who is present by it from now on.
    pub(super) fn attend(&mut self, attendee: Option<Arc<Attendee>>) {
        self.watch.attendee = attendee;
    }

    /// What it follows.
    pub(super) const fn channels(&self) -> &[Box<str>] {
        &self.watch.channels
    }

    /// The name by which it is present, if it was given one.
    pub(super) fn new_session(&self) -> Option<&str> {
        self.watch.new_session()
    }

    /// Whether what it follows has begun, and it is somewhere in it.
    pub(super) fn has_place(&self) -> bool {
        matches!(self.start, Start::After(_))
    }

    /// What it is owed now, which may be nothing.
    pub(super) fn look(&mut self) -> Option<Result<MessageBatch, Refused>> {
        self.seat.rise();
        let (page, _) = self.read()?;
        Some(page.inspect(|page| self.go_on(page)))
    }

    /// What it is owed, once that is something: messages, a hole, an end. May be dropped and called again.
    pub(super) fn poll(
        &mut self,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<MessageBatch, Refused>>> {
        if self.seat.waits(task.waker()) {
            return Poll::Pending;
        }
        loop {
            let Some((page, moment)) = self.read() else { return Poll::Ready(None) };
            let page = match page {
                Ok(page) => page,
                Err(refused) => return Poll::Ready(Some(Err(refused))),
            };
            self.go_on(&page);
            let Rest::Wait(parking) = &page.rest else { return Poll::Ready(Some(Ok(page))) };
            if !page.messages.is_empty() || page.lost.is_some() {
                return Poll::Ready(Some(Ok(page)));
            }
            match self.seat.wait(parking, moment, task.waker()) {
                Waiting::Begun => return Poll::Pending,
                Waiting::Late => {}
                Waiting::Full => {
                    let (what, most) = ("those who follow channels", CROWD.waiters as u64);
                    return Poll::Ready(Some(Err(Refused::LimitExceeded {
                        quantity: what,
                        limit: most,
                    })));
                }
            }
        }
    }

    fn read(&self) -> Option<(Result<MessageBatch, Refused>, Moment)> {
        let engine = &self.seat.engine;
        if engine.is_over() {
            return None;
        }
        let names = self.watch.names();
        let subscription = self.watch.subscription(&names, self.start, self.watch.holes);
        engine.hub(|hub| {
            let moment = Moment { ring: hub.ring().position(), epoch: hub.watermark().epoch };
            (hub.read(&subscription, now()), moment)
        })
    }

    fn go_on(&mut self, page: &MessageBatch) {
        // Before its range begins it has no place: it looks again when something was published.
        if Watch::ahead(self.start, page, now()).is_some() {
            return;
        }
        self.start = Start::After(page.next);
        // From here on a hole is told with the messages behind it.
        self.watch.holes = GapPolicy::Allow;
    }
}
