//! Decides what a signal does: the first to stop asks the server to finish; the second, or a drain that
//! does not come to its end, ends the process whatever its loops do. SIGUSR1 has the logs opened anew.

use std::io::{self, ErrorKind, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bine_log as log;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::low_level::pipe;

use crate::server::{GRACE, Server, end_process};
use crate::watchdog::report_running_loops;

/// Lets SIGTERM and SIGINT stop `server`.
///
/// What a handler holds up for ever is not waited for: when the drain has been over for a second,
/// and on a second signal at once, the process ends with exit status 1.
///
/// # Errors
///
/// The system's, when a handler cannot be installed or its thread not be started.
pub fn stop_on_signals(server: &Arc<Server>) -> io::Result<()> {
    let (mut signals, bell) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        pipe::register(signal, bell.try_clone()?)?;
    }
    // Weakly, or this thread, which never ends, would keep the server for ever.
    let server = Arc::downgrade(server);
    thread::Builder::new().name("bine signals".to_owned()).spawn(move || {
        heard(&mut signals, None);
        let mut patience = GRACE;
        if let Some(server) = server.upgrade() {
            patience = patience.saturating_add(server.generation().settings.timeouts.drain);
            server.stop();
        }
        if heard(&mut signals, Some(patience)) {
            log::warn(format_args!("told to stop a second time: the process ends at once"));
        } else if server.strong_count() == 0 {
            // It came to its end; its program has something else to do.
            heard(&mut signals, None);
        } else {
            log::error(format_args!(
                "still held up {patience:?} after the signal to stop; the process ends here"
            ));
            if let Some(server) = server.upgrade() {
                report_running_loops(&server);
            }
        }
        end_process(server.upgrade().as_deref(), 1);
    })?;
    Ok(())
}

/// Runs `action` on a thread of its own each time that SIGHUP comes.
///
/// # Errors
///
/// The system's, when a handler cannot be installed or its thread not be started.
pub fn on_hangup(mut action: impl FnMut() + Send + 'static) -> io::Result<()> {
    let (mut signals, bell) = UnixStream::pair()?;
    pipe::register(SIGHUP, bell)?;
    let body = move || {
        while heard(&mut signals, None) {
            action();
        }
    };
    thread::Builder::new().name("bine hangup".to_owned()).spawn(body)?;
    Ok(())
}

/// Lets SIGUSR1 open every log of this process anew: whoever moves them away sends it then.
///
/// # Errors
///
/// The system's, when the handler cannot be installed or its thread not be started.
pub fn reopen_logs_on_signal() -> io::Result<()> {
    let (mut signals, bell) = UnixStream::pair()?;
    pipe::register(SIGUSR1, bell)?;
    thread::Builder::new().name("bine reopen".to_owned()).spawn(move || {
        while heard(&mut signals, None) {
            log::reopen_all();
        }
    })?;
    Ok(())
}

/// Waits for a signal, which is a byte in the pipe; `false` when none came within that time.
fn heard(signals: &mut UnixStream, within: Option<Duration>) -> bool {
    // It refuses a time of zero alone.
    let _ = signals.set_read_timeout(within);
    loop {
        match signals.read(&mut [0]) {
            // The handler of a signal ran on this very thread.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome.is_ok(),
        }
    }
}
