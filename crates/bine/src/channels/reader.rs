//! Reads channels for a task or thread, and wakes it for new messages.

use std::sync::Arc;
use std::task::{Context, Poll};

use bine_push::{GapPolicy, MessageBatch, Refused, Rest, Start};

use super::async_waiter::AsyncWaiter;
use super::async_waiters::{RingPosition, WAITER_LIMITS, WaitOutcome};
use super::clock::now;
use super::engine::Engine;
use super::presence_guard::PresenceGuard;
use super::subscription::SubscriptionSpec;

/// A subscription and its position. Its reads return `None` when the channels end.
pub(super) struct Reader {
    waiter: AsyncWaiter,
    spec: SubscriptionSpec,
    start: Start,
}

impl Reader {
    pub(super) fn new(engine: Arc<Engine>, spec: SubscriptionSpec, start: Start) -> Self {
        Self { waiter: AsyncWaiter::new(engine), spec, start }
    }

    /// Changes the position.
    pub(super) fn seek(&mut self, start: Start) {
        self.waiter.cancel();
        self.start = start;
    }

    /// Follows other channels from the same position.
    ///
    /// # Errors
    ///
    /// The channels cannot be followed; the reader keeps the previous ones.
    pub(super) fn switch(&mut self, names: Box<[Box<str>]>) -> Result<(), Refused> {
        self.waiter.cancel();
        let before = std::mem::replace(&mut self.spec.channels, names);
        if let Some((Err(refused), _)) = self.read() {
            self.spec.channels = before;
            return Err(refused);
        }
        Ok(())
    }

    /// Replaces the session that is present through this reader.
    pub(super) fn attend(&mut self, presence_guard: Option<Arc<PresenceGuard>>) {
        self.spec.presence_guard = presence_guard;
    }

    /// The followed channels.
    pub(super) const fn channels(&self) -> &[Box<str>] {
        &self.spec.channels
    }

    /// The session name, if the server chose it.
    pub(super) fn new_session(&self) -> Option<&str> {
        self.spec.new_session()
    }

    /// Whether the requested range has begun, so that the reader has a cursor.
    pub(super) fn has_cursor(&self) -> bool {
        matches!(self.start, Start::After(_))
    }

    /// Reads the next batch, which may be empty.
    pub(super) fn look(&mut self) -> Option<Result<MessageBatch, Refused>> {
        self.waiter.cancel();
        let (batch, _) = self.read()?;
        Some(batch.inspect(|batch| self.go_on(batch)))
    }

    /// Waits until there are messages, a gap or an end, and reads them. The caller may drop the
    /// future and poll again.
    pub(super) fn poll(
        &mut self,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<MessageBatch, Refused>>> {
        if self.waiter.is_waiting(task.waker()) {
            return Poll::Pending;
        }
        loop {
            let Some((batch, moment)) = self.read() else { return Poll::Ready(None) };
            let batch = match batch {
                Ok(batch) => batch,
                Err(refused) => return Poll::Ready(Some(Err(refused))),
            };
            self.go_on(&batch);
            let Rest::Wait(wait_point) = &batch.rest else { return Poll::Ready(Some(Ok(batch))) };
            if !batch.messages.is_empty() || batch.lost.is_some() {
                return Poll::Ready(Some(Ok(batch)));
            }
            match self.waiter.wait(wait_point, moment, task.waker()) {
                WaitOutcome::Registered => return Poll::Pending,
                WaitOutcome::Stale => {}
                WaitOutcome::Full => {
                    let (what, most) = ("those who follow channels", WAITER_LIMITS.waiters as u64);
                    return Poll::Ready(Some(Err(Refused::LimitExceeded {
                        quantity: what,
                        limit: most,
                    })));
                }
            }
        }
    }

    fn read(&self) -> Option<(Result<MessageBatch, Refused>, RingPosition)> {
        let engine = &self.waiter.engine;
        if engine.is_over() {
            return None;
        }
        let names = self.spec.names();
        let subscription = self.spec.subscription(&names, self.start, self.spec.holes);
        engine.hub(|hub| {
            let moment = RingPosition { ring: hub.ring().position(), epoch: hub.watermark().epoch };
            (engine.read(hub, &subscription).0, moment)
        })
    }

    fn go_on(&mut self, batch: &MessageBatch) {
        // Before its range begins the reader has no cursor; it checks again after each publication.
        if SubscriptionSpec::ahead(self.start, batch, now()).is_some() {
            return;
        }
        self.start = Start::After(batch.next);
        // A later gap is reported along with the messages that follow it.
        self.spec.holes = GapPolicy::Allow;
    }
}
