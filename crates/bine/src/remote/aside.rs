//! Decides how a thread that may block waits for a call: one thread of the process makes them for all of those.

use std::sync::{Mutex, PoisonError, mpsc};
use std::{future, io, thread};

use tokio::runtime::{Builder, Handle};

/// Of the thread, once it is needed.
static HANDLE: Mutex<Option<Handle>> = Mutex::new(None);

/// Runs `work` on that thread, and waits for it here. `None`: it panicked there, and has been reported.
///
/// # Errors
///
/// No thread can be had.
pub(super) fn wait<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<Option<T>> {
    let (answer, answers) = mpsc::sync_channel(1);
    // Nobody is left to hear it if this thread has gone, which it cannot before it was answered.
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
