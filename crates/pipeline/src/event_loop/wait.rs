//! Decides how a loop waits: in its own epoll while nothing awaits, else inside the runtime. Here
//! live the rules of the nested loop, each measured (docs/decisions/0005).

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

use crate::event_loop::{BATCH, EventLoop};

/// Timers are looked at this often at least, whatever the wheel says, because ticks wrap.
const LONGEST: Duration = Duration::from_secs(60);

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
/// busy starves timers: a 10 ms sleep did not fire in 4 s of flood.
const fn after(batch: usize, ready: usize) -> After {
    if batch < BATCH && ready == 0 { After::Clear } else { After::Yield }
}

impl EventLoop {
    /// Turn after turn, until the server stops.
    pub(super) async fn turns(&mut self) -> io::Result<()> {
        let runtime = Handle::current().metrics();
        // SAFETY: the descriptor behind the `Rc` is the same at every call, and stays open as long
        // as the registration holds its share of it.
        let nested =
            unsafe { AsyncFd::register_with_interest(Rc::clone(&self.epoll), Interest::READABLE)? };
        let mut batch = Vec::with_capacity(BATCH);
        // A stop may have come before this loop listened for it.
        self.look();
        while !self.is_over() {
            self.context.clock.turn();
            let patience = self.patience();
            // Rule 3: with no task alive nothing can happen but in our epoll, and waiting there
            // costs what a bare loop costs.
            if runtime.num_alive_tasks() == 0 {
                let events = Self::poll(self.descriptor(), &mut batch, Some(patience))?;
                self.guarded_turn(events);
                continue;
            }
            let guard = {
                let mut readable = pin!(nested.readable());
                let mut timer = pin!(tokio::time::sleep(patience));
                poll_fn(|task| {
                    if self.returns.is_waiting(task.waker()) {
                        return Poll::Ready(Ok(None));
                    }
                    if let Poll::Ready(guard) = readable.as_mut().poll(task) {
                        return Poll::Ready(guard.map(Some));
                    }
                    timer.as_mut().poll(task).map(|()| Ok(None))
                })
                .await?
            };
            let events = Self::poll(self.descriptor(), &mut batch, Some(Duration::ZERO))?;
            let count = events.len();
            self.guarded_turn(events);
            match after(count, self.ready.len()) {
                After::Clear => {
                    if let Some(mut guard) = guard {
                        guard.clear_ready();
                    }
                }
                After::Yield => {
                    drop(guard);
                    tokio::task::yield_now().await;
                }
            }
        }
        Ok(())
    }

    /// How long nothing is due without an event.
    fn patience(&self) -> Duration {
        if !self.ready.is_empty() {
            return Duration::ZERO;
        }
        let now = self.context.clock.now();
        let last_call = self.last_call.map(|moment| moment.since(now));
        [self.wheel.next(now), self.door_opens_in(), last_call]
            .into_iter()
            .flatten()
            .fold(LONGEST, Duration::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_is_cleared_only_when_nothing_is_left() {
        assert_eq!(after(0, 0), After::Clear);
        assert_eq!(after(BATCH - 1, 0), After::Clear);
        assert_eq!(after(BATCH, 0), After::Yield);
        assert_eq!(after(1, 1), After::Yield);
    }
}
