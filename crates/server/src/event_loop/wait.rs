//! How a loop waits: in the inner epoll while the runtime has no task, else in the runtime. The
//! rules of the nested loop and their measurements are in docs/decisions/0005.

use std::future::{Future, poll_fn};
use std::io;
use std::mem::take;
use std::pin::pin;
use std::task::Poll;

use tokio::runtime::Handle;

use crate::event_loop::driver::{Driver, Nested, Wait};
use crate::event_loop::{BATCH, EventLoop};

/// The action on the runtime's readiness after a turn.
#[derive(PartialEq, Eq, Debug)]
enum TurnEnd {
    /// The inner epoll has no more events: clear the readiness and sleep until the next event.
    Clear,
    /// The loop has more work: let the timers and tasks of the runtime run, then continue.
    Yield,
}

/// Rule 2. After a full batch, clearing the readiness would lose the remaining events, since
/// edge-triggered events are reported once.
///
/// Yielding after a short batch costs 11 % and has no benefit. A busy loop that never yields
/// starves timers: a sleep of 10 ms did not end during 4 s of load. The runtime also sees no new
/// event for a listener that had more connections than a slice.
const fn turn_end(batch: usize, has_more: bool, has_backlog: bool) -> TurnEnd {
    if batch < BATCH && !has_more && !has_backlog { TurnEnd::Clear } else { TurnEnd::Yield }
}

impl<D: Driver> EventLoop<D> {
    /// Runs turns until the server stops.
    pub(super) async fn turns(&mut self) -> io::Result<()> {
        let runtime = Handle::current().metrics();
        let nested = self.driver.nest()?;
        let mut batch = Vec::with_capacity(BATCH);
        // The server may have been stopped before this loop watched its mailbox.
        self.check_for_stop();
        while !self.is_over() {
            // Rule 3: without a live task, events arrive only in the inner epoll. A wait there
            // costs no more than in a loop without a runtime.
            if runtime.num_alive_tasks() == 0 {
                // The last task may have ended while the runtime ran, and queued its reply.
                let may_block = !self.has_more() && self.task_results.is_empty();
                let wait = if may_block { Wait::Long } else { Wait::Never };
                if may_block {
                    // One store for each wait. The next turn resets it.
                    self.context.tally.note_rest();
                }
                let events = self.poll(&mut batch, wait)?;
                self.guarded_turn(events);
                continue;
            }
            let readiness = self.readiness(&nested).await?;
            let events = self.poll(&mut batch, Wait::Never)?;
            let count = events.len();
            self.guarded_turn(events);
            match turn_end(count, self.has_more(), take(&mut self.acceptor.has_backlog)) {
                TurnEnd::Clear => {
                    if let Some(readiness) = readiness {
                        D::Nested::clear(readiness);
                    }
                }
                // Keeps the readiness: the remaining events are not reported again.
                TurnEnd::Yield => tokio::task::yield_now().await,
            }
        }
        Ok(())
    }

    /// Whether the loop has work that no descriptor will report.
    fn has_more(&self) -> bool {
        !self.ready.is_empty()
            || self.has_deliveries
            || self.has_due
            || !self.context.tls_buffers.queue().is_empty()
    }

    /// Waits in the runtime until the inner epoll has an event or a task has a result.
    async fn readiness<'n>(
        &self,
        nested: &'n D::Nested,
    ) -> io::Result<Option<<D::Nested as Nested>::Ready<'n>>> {
        if self.has_more() {
            return Ok(None);
        }
        let mut readable = pin!(nested.readable());
        poll_fn(|task| {
            if self.task_results.poll_ready(task.waker()) {
                return Poll::Ready(Ok(None));
            }
            readable.as_mut().poll(task).map(|guard| guard.map(Some))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clears_readiness_only_without_remaining_work() {
        assert_eq!(turn_end(0, false, false), TurnEnd::Clear);
        assert_eq!(turn_end(BATCH - 1, false, false), TurnEnd::Clear);
        assert_eq!(turn_end(BATCH, false, false), TurnEnd::Yield);
        assert_eq!(turn_end(1, true, false), TurnEnd::Yield);
        assert_eq!(turn_end(1, false, true), TurnEnd::Yield);
    }
}
