//! Blocking calls in async handlers: the call runs on another thread, and the handler may stop
//! waiting.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};

/// The number of calls that run although their futures were dropped.
static OVERDUE: AtomicUsize = AtomicUsize::new(0);
/// The limit of concurrent calls, for the whole process.
static PERMITS: OnceLock<Arc<Semaphore>> = OnceLock::new();
/// The default limit, if no server has set one.
const DEFAULT_PERMITS: usize = 16;

/// Runs `call`, which may block, on a thread for blocking calls, and waits for it.
///
/// The limit of concurrent calls is the number of workers of the first server of the process;
/// further calls wait. Dropping the future, as [`timeout`](crate::timeout()) does at its deadline,
/// ends the wait but cannot end a running call: that counts as [overdue](overdue_calls) and keeps
/// its place until it returns. A panic of the call propagates to the code that awaits it.
///
/// # Panics
///
/// Outside a handler, where no runtime exists.
pub async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let permits = PERMITS.get_or_init(|| Arc::new(Semaphore::new(DEFAULT_PERMITS)));
    // The semaphore is never closed; without a permit, one call too many would run.
    let permit = Arc::clone(permits).acquire_owned().await.ok();
    let first_event = Arc::new(FirstEvent::default());
    // Dropped at the end of the call in each case: return, panic, or a call that never starts.
    let running = RunningCall { first_event: Arc::clone(&first_event), _permit: permit };
    let call = spawn_blocking(move || {
        let value = call();
        drop(running);
        value
    });
    CallFuture { call, first_event }.await
}

/// The number of overdue blocking calls of the whole process.
pub fn overdue_calls() -> usize {
    OVERDUE.load(Ordering::Relaxed)
}

/// Sets the limit of concurrent calls, unless it was set before.
pub(crate) fn set_limit(permits: usize) {
    PERMITS.get_or_init(|| Arc::new(semaphore(permits)));
}

fn semaphore(permits: usize) -> Semaphore {
    Semaphore::new(permits.clamp(1, Semaphore::MAX_PERMITS))
}

/// The wait for a call that has a permit.
struct CallFuture<T> {
    call: JoinHandle<T>,
    first_event: Arc<FirstEvent>,
}

/// Records which happens first: the end of the wait or the end of the call.
#[derive(Debug, Default)]
struct FirstEvent(AtomicBool);

impl FirstEvent {
    /// True for the first of the two events.
    fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

struct RunningCall {
    first_event: Arc<FirstEvent>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if !self.first_event.is_first() {
            OVERDUE.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<T> Drop for CallFuture<T> {
    fn drop(&mut self) {
        // A call that still waits for its thread never starts.
        self.call.abort();
        // Incremented before the event is recorded; otherwise the call could decrement first and
        // wrap the counter.
        OVERDUE.fetch_add(1, Ordering::Relaxed);
        if !self.first_event.is_first() {
            OVERDUE.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<T> Future for CallFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.call).poll(task)) {
            Ok(value) => Poll::Ready(value),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Aborted by our own drop or by the end of the runtime; in both cases the future is
                // no longer polled.
                Err(_) => Poll::Pending,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::mpsc;
    use std::time::Duration;

    use bine_log::test_support::is_alone;

    use super::*;
    use crate::time::timeout;

    #[test]
    fn limits_permits_to_the_range_of_the_semaphore() {
        let permits = [0, 7, usize::MAX].map(|permits| semaphore(permits).available_permits());
        assert_eq!(permits, [1, 7, Semaphore::MAX_PERMITS]);
    }

    /// In a process of its own, because permits and counter belong to the process.
    #[test]
    fn counts_a_call_as_overdue_until_it_returns() {
        if !is_alone("blocking::tests::counts_a_call_as_overdue_until_it_returns") {
            return;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            assert_eq!(blocking(|| 7).await, 7);
            assert_eq!(overdue_calls(), 0);

            let permits =
                PERMITS.get().expect("the first call created the semaphore").available_permits();
            let (let_go, gate) = mpsc::channel::<()>();
            let (begun, mut has_begun) = tokio::sync::oneshot::channel();
            let (returned, has_returned) = tokio::sync::oneshot::channel::<()>();
            let mut call = Box::pin(blocking(move || {
                let _ = begun.send(());
                let _ = gate.recv();
                let _returned = returned;
                "in time"
            }));
            // A call that has not begun at the timeout would never begin.
            poll_fn(|task| {
                assert!(call.as_mut().poll(task).is_pending(), "it waits for the gate");
                Pin::new(&mut has_begun).poll(task)
            })
            .await
            .unwrap();
            let result = timeout(Duration::from_millis(1), call, async || "otherwise").await;
            assert_eq!((result, overdue_calls()), ("otherwise", 1));
            let left = PERMITS.get().expect("the semaphore is never removed").available_permits();
            assert_eq!(left, permits - 1, "an overdue call keeps its permit");
            let_go.send(()).unwrap();
            // The call drops the sender a moment before its guard.
            assert!(has_returned.await.is_err());
            while overdue_calls() > 0 {
                tokio::task::yield_now().await;
            }
        });
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            runtime.block_on(blocking(|| panic!("the call's own")));
        }));
        assert_eq!(failed.unwrap_err().downcast_ref(), Some(&"the call's own"));
        assert_eq!(overdue_calls(), 0);
    }
}
