//! Blocking calls from async handlers.

use crate::trace;

/// Runs `call`, which may block, on a blocking thread, and awaits its result.
///
/// At most one call per worker runs at a time; further calls wait in a queue. Dropping the future,
/// as [`timeout`](crate::timeout) does when the time is over, ends the wait but cannot stop a call
/// that has started: until it returns, it counts as [overdue](crate::overdue_calls) and occupies
/// its place. A panic in the call propagates to the awaiting task. Tables and signals that the call
/// reads count as read by the page: their changes re-render its regions.
///
/// # Panics
///
/// Panics outside a handler, where no runtime exists.
pub async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let trace = trace::current();
    let call = move || match trace {
        Some(trace) => trace::within(&trace, call),
        None => call(),
    };
    bine_server::blocking(call).await
}
