//! Decides how an async handler waits for a call that blocks, as a part of itself.

use crate::trace;

/// Runs `call`, which may block, on another thread, and waits for it.
///
/// As many calls run at one time as the server has workers; others wait their turn. Dropping the future, as
/// [`timeout`](crate::timeout) does when the time is over, ends the wait but cannot end a call that has begun: it counts
/// as [overdue](crate::overdue_calls), and keeps its place, until it returns. A panic of the call passes through to whoever
/// awaits it. What the call reads of tables and signals moves the regions of its page as if it were read in the page.
///
/// # Panics
///
/// Outside a handler, where no runtime is.
pub async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let trace = trace::current();
    let call = move || match trace {
        Some(trace) => trace::within(&trace, call),
        None => call(),
    };
    bine_server::blocking(call).await
}
