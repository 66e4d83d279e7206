//! A combinator that limits the running time of a future (Marlow, "Developing a High-Performance
//! Web Server in Concurrent Haskell", 2002, section 4).

use std::future::Future;
use std::time::Duration;

/// Runs `action`; when it has not finished after `duration`, drops it and runs `otherwise`.
///
/// An `action` that finishes in time returns its result immediately. Errors and panics of both
/// futures pass through. `timeout` has no other effect, so timeouts nest in any order: when an
/// outer timeout expires first, it drops the inner one with everything it holds.
///
/// A call that blocks its thread cannot be dropped. Pass it as [`blocking`](crate::blocking()): at
/// the timeout the result is that of `otherwise`, and the call counts as overdue until it returns.
/// A plain `fn` handler cannot be dropped either. Under `hybrid` the server answers the client when
/// the handler timeout of the settings expires; under `event` and `pool` it waits for the handler.
pub async fn timeout<A, O, T>(duration: Duration, action: A, otherwise: O) -> T
where
    A: Future<Output = T>,
    O: AsyncFnOnce() -> T,
{
    match tokio::time::timeout(duration, action).await {
        Ok(value) => value,
        // The timer's future owned the action, and has dropped it.
        Err(_) => otherwise().await,
    }
}
