//! Decides how a loop waits: in its own epoll while nothing awaits, else inside the runtime. Here
//! live the rules of the nested loop, each measured (docs/decisions/0005).

use std::future::{Future, poll_fn};
use std::io;
use std::mem::take;
use std::pin::pin;
use std::task::Poll;

use tokio::runtime::Handle;

use crate::event_loop::driver::{Driver, Nested, Wait};
use crate::event_loop::{BATCH, EventLoop};

/// What to do with the runtime's readiness after a turn inside it.
#[derive(PartialEq, Eq, Debug)]
enum After {
    /// Nothing is left in our epoll: sleep until the runtime hears from it again.
    Clear,
    /// More is waiting: come back at once, after the runtime's timers and tasks had their turn.
    Yield,
}

/// Rule 2. Cleared after a full batch, the rest of the events would never be announced: edges come
/// once. Yielding after a short batch costs 1.11 x and brings nothing, and never yielding while
/// busy starves timers: a 10 ms sleep did not fire in 4 s of flood. A listener with more than its
/// slice is no new event for the runtime either.
const fn after(batch: usize, more: bool, crowded: bool) -> After {
    if batch < BATCH && !more && !crowded { After::Clear } else { After::Yield }
}

impl<D: Driver> EventLoop<D> {
    /// Turn after turn, until the server stops.
    pub(super) async fn turns(&mut self) -> io::Result<()> {
        let runtime = Handle::current().metrics();
        let nested = self.driver.nest()?;
        let mut batch = Vec::with_capacity(BATCH);
        // A stop may have come before this loop listened for it.
        self.look();
        while !self.is_over() {
            // Rule 3: with no task alive nothing can happen but in our epoll, and waiting there
            // costs what a bare loop costs.
            if runtime.num_alive_tasks() == 0 {
                // The last task may have ended in the runtime's turn and left its reply.
                let rests = !self.has_more() && self.returns.is_empty();
                let wait = if rests { Wait::Long } else { Wait::Never };
                if rests {
                    // A store a wait; the next turn ends it.
                    self.context.tally.rests();
                }
                let events = self.poll(&mut batch, wait)?;
                self.guarded_turn(events);
                continue;
            }
            let readiness = self.readiness(&nested).await?;
            let events = self.poll(&mut batch, Wait::Never)?;
            let count = events.len();
            self.guarded_turn(events);
            match after(count, self.has_more(), take(&mut self.door.is_crowded)) {
                After::Clear => {
                    if let Some(readiness) = readiness {
                        D::Nested::clear(readiness);
                    }
                }
                // The readiness is kept: what is left will not be announced again.
                After::Yield => tokio::task::yield_now().await,
            }
        }
        Ok(())
    }

    /// Something is to be done that no descriptor will announce.
    fn has_more(&self) -> bool {
        !self.ready.is_empty() || self.has_news || self.has_due
    }

    /// Sleeps in the runtime until our epoll has something, or a task has brought a reply back.
    async fn readiness<'n>(
        &self,
        nested: &'n D::Nested,
    ) -> io::Result<Option<<D::Nested as Nested>::Ready<'n>>> {
        if self.has_more() {
            return Ok(None);
        }
        let mut readable = pin!(nested.readable());
        poll_fn(|task| {
            if self.returns.is_waiting(task.waker()) {
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
    fn readiness_is_cleared_only_when_nothing_is_left() {
        assert_eq!(after(0, false, false), After::Clear);
        assert_eq!(after(BATCH - 1, false, false), After::Clear);
        assert_eq!(after(BATCH, false, false), After::Yield);
        assert_eq!(after(1, true, false), After::Yield);
        assert_eq!(after(1, false, true), After::Yield);
    }
}
