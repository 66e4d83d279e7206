//! Decides how an async handler waits for a call that blocks: on another thread, and no longer
//! than it wants to.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::task::{JoinHandle, spawn_blocking};

/// Calls that nobody waits for any more and that have not returned.
static OVERDUE: AtomicUsize = AtomicUsize::new(0);

/// Runs `call`, which may block, on another thread.
///
/// The call starts at once. Dropping the future, as [`timeout`](crate::timeout) does when the time
/// is over, ends the wait but cannot end the call: it counts as [overdue](overdue_calls) until it
/// returns. A panic of the call passes through to whoever awaits it.
///
/// # Panics
///
/// Outside a handler, where no runtime is.
pub fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    let fate = Arc::new(Fate::default());
    // It notes the return however the call ends, a panic and never being begun included.
    let returning = Returning(Arc::clone(&fate));
    let call = spawn_blocking(move || {
        let value = call();
        drop(returning);
        value
    });
    Blocking { call, fate }
}

/// How many blocking calls are overdue at this moment, over the whole process.
pub fn overdue_calls() -> usize {
    OVERDUE.load(Ordering::Relaxed)
}

/// The wait for a blocking call.
#[derive(Debug)]
#[must_use = "the call runs, but nobody sees its result"]
pub struct Blocking<T> {
    call: JoinHandle<T>,
    fate: Arc<Fate>,
}

/// Which came first, the end of the wait or the end of the call.
#[derive(Debug, Default)]
struct Fate(AtomicBool);

impl Fate {
    /// True for the first of the two.
    fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

struct Returning(Arc<Fate>);

impl Drop for Returning {
    fn drop(&mut self) {
        if !self.0.is_first() {
            OVERDUE.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<T> Drop for Blocking<T> {
    fn drop(&mut self) {
        // A call that still waits for its thread is not begun at all.
        self.call.abort();
        if self.fate.is_first() {
            OVERDUE.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<T> Future for Blocking<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.call).poll(task)) {
            Ok(value) => Poll::Ready(value),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Only our own drop aborts it, or the end of the runtime: then nobody polls.
                Err(_) => Poll::Pending,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::timeout::timeout;

    /// One test for all of it: the count is the process's.
    #[test]
    fn a_call_is_overdue_from_the_end_of_its_wait_to_its_return() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            assert_eq!(blocking(|| 7).await, 7);
            assert_eq!(overdue_calls(), 0);

            let (let_go, gate) = mpsc::channel::<()>();
            let (returned, has_returned) = tokio::sync::oneshot::channel::<()>();
            let call = blocking(move || {
                let _ = gate.recv();
                let _returned = returned;
                "in time"
            });
            let told = timeout(Duration::from_millis(1), call, async || "otherwise").await;
            assert_eq!((told, overdue_calls()), ("otherwise", 1));
            let_go.send(()).unwrap();
            // The sender goes with the call, a moment before its guard.
            assert!(has_returned.await.is_err());
            while overdue_calls() > 0 {
                tokio::task::yield_now().await;
            }
        });
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(async { blocking(|| panic!("the call's own")).await });
        }));
        assert_eq!(failed.unwrap_err().downcast_ref(), Some(&"the call's own"));
        assert_eq!(overdue_calls(), 0);
    }
}
