//! Signal handling. The first SIGTERM or SIGINT starts a graceful shutdown; a second one, or a
//! drain that exceeds its time limit, ends the process even when loops are stuck. SIGUSR1 reopens
//! the log files.

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

/// Shuts `server` down on SIGTERM or SIGINT.
///
/// The shutdown does not wait for handlers that never return. The process ends with exit status 1
/// one second after the drain timeout, or immediately on a second signal.
///
/// # Errors
///
/// Returns the system's error when a handler or its thread cannot be installed.
pub fn stop_on_signals(server: &Arc<Server>) -> io::Result<()> {
    let (mut signals, bell) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        pipe::register(signal, bell.try_clone()?)?;
    }
    // A weak reference: this thread never ends and must not keep the server alive.
    let server = Arc::downgrade(server);
    thread::Builder::new().name("bine signals".to_owned()).spawn(move || {
        heard(&mut signals, None);
        let mut patience = GRACE;
        if let Some(server) = server.upgrade() {
            patience = patience.saturating_add(server.generation().settings.timeouts.drain);
            server.stop();
        }
        if heard(&mut signals, Some(patience)) {
            log::warn(format_args!("second signal to stop: the process ends at once"));
        } else if server.strong_count() == 0 {
            // The server has ended, and its program continues with other work.
            heard(&mut signals, None);
        } else {
            log::error(format_args!(
                "the server did not stop within {patience:?} of the signal; the process ends now"
            ));
            if let Some(server) = server.upgrade() {
                report_running_loops(&server);
            }
        }
        end_process(server.upgrade().as_deref(), 1);
    })?;
    Ok(())
}

/// Runs `action` on its own thread on every SIGHUP.
///
/// # Errors
///
/// Returns the system's error when the handler or its thread cannot be installed.
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

/// Reopens every log of this process on SIGUSR1, for log rotation.
///
/// # Errors
///
/// Returns the system's error when the handler or its thread cannot be installed.
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

/// Waits for a signal, which arrives as a byte in the pipe. Returns `false` at the timeout.
fn heard(signals: &mut UnixStream, within: Option<Duration>) -> bool {
    // The call fails only for a timeout of zero.
    let _ = signals.set_read_timeout(within);
    loop {
        match signals.read(&mut [0]) {
            // A signal handler interrupted this thread.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome.is_ok(),
        }
    }
}
