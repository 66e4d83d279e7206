//! Decides who wins, an action or its time (document 002 section 4).

use std::future::Future;
use std::time::Duration;

/// Runs `action`; when it has not ended after `duration`, drops it and runs `otherwise`.
///
/// In time, the result is there at once. A failure of either, a panic included, passes through.
/// There is no other effect, so timeouts nest in any order: an outer one that comes first drops the
/// inner one with everything it holds.
///
/// A call that blocks its thread cannot be dropped. Give it as [`blocking`](crate::blocking()): when
/// the time is over the result is `otherwise`'s, and the call counts as overdue until it returns.
/// A plain `fn` handler cannot be dropped either: under `hybrid` its peer is answered when the
/// handler timeout of the settings is over, under `event` and `pool` it is waited for.
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
