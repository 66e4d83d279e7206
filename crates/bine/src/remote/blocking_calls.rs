//! Runs calls for blocking callers: one thread of the process makes them all.

use std::sync::{Mutex, PoisonError, mpsc};
use std::{future, io, thread};

use tokio::runtime::{Builder, Handle};

/// The runtime of that thread, once it was started.
static HANDLE: Mutex<Option<Handle>> = Mutex::new(None);

/// Runs `work` on that thread and waits for its result. `None`: it panicked, which was logged.
///
/// # Errors
///
/// The thread cannot be started.
pub(super) fn wait<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<Option<T>> {
    let (answer, answers) = mpsc::sync_channel(1);
    // The receiver is alive: this thread waits below.
    handle()?.spawn(async move { answer.send(work.await).unwrap_or_default() });
    Ok(answers.recv().ok())
}

fn handle() -> io::Result<Handle> {
    let mut handle = HANDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*handle {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let own = handle.insert(runtime.handle().clone()).clone();
    let ran = thread::Builder::new()
        .name("remote calls".to_owned())
        .spawn(move || runtime.block_on(future::pending::<()>()));
    if let Err(error) = ran {
        *handle = None;
        return Err(error);
    }
    Ok(own)
}
