//! Decides who wins, an action or its time (document 002 section 4).

use std::future::Future;
use std::time::Duration;

/// Runs `action`; when it has not ended after `duration`, drops it and runs `otherwise`.
///
/// In time, the result is there at once. A failure of either, a panic included, passes through.
/// There is no other effect, so timeouts nest in any order: an outer one that comes first drops the
/// inner one with everything it holds.
///
/// An action that blocks its thread cannot be dropped. Write such a handler as a plain `fn`: it runs
/// on a worker, its reply is replaced when the handler's timeout comes, and the worker returns
/// when the call does.
pub async fn timeout<A, O, T>(duration: Duration, action: A, otherwise: O) -> T
where
    A: Future<Output = T>,
    O: AsyncFnOnce() -> T,
{
    match tokio::time::timeout(duration, action).await {
        Ok(value) => value,
        // The action is gone by now: it was moved into the timer's future.
        Err(_) => otherwise().await,
    }
}
