//! Signal handling. The first SIGTERM or SIGINT makes the server leave and stop; a second one, or a
//! drain that exceeds its time limit, ends the process even when loops are stuck. SIGUSR1 reopens
//! the log files.

use std::io::{self, ErrorKind, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bine_log as log;
use rustix::event::poll;
use rustix::time::Timespec;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::low_level::pipe;

use crate::server::{GRACE, Server, end_process};
use crate::stop_report::report_background_work;
use crate::watchdog::report_running_loops;

/// The time between two attempts to read, if the system refuses one.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Shuts `server` down on SIGTERM or SIGINT.
///
/// The shutdown does not wait for handlers that never return. The process ends with exit status 1
/// one second after the drain timeout, or immediately on a second signal.
///
/// # Errors
///
/// Returns the system's error when a handler or its thread cannot be installed.
pub fn stop_on_signals(server: &Arc<Server>) -> io::Result<()> {
    let (mut signals, sender) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        pipe::register(signal, sender.try_clone()?)?;
    }
    // A weak reference: this thread never ends and must not keep the server alive.
    let server = Arc::downgrade(server);
    thread::Builder::new().name("bine signals".to_owned()).spawn(move || {
        wait_for_signal(&mut signals, None);
        let mut time_limit = GRACE;
        if let Some(server) = server.upgrade() {
            time_limit = time_limit.saturating_add(server.time_to_stop());
            server.leave();
        }
        if wait_for_signal(&mut signals, Some(time_limit)) {
            log::warn(format_args!("second signal to stop: the process ends at once"));
        } else if server.strong_count() == 0 {
            // The server has ended, and its program continues with other work.
            wait_for_signal(&mut signals, None);
        } else {
            log::error(format_args!(
                "the server did not stop within {time_limit:?} of the signal; the process ends now"
            ));
            if let Some(server) = server.upgrade() {
                report_running_loops(&server);
                report_background_work(&server);
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
    let (mut signals, sender) = UnixStream::pair()?;
    pipe::register(SIGHUP, sender)?;
    let body = move || {
        while wait_for_signal(&mut signals, None) {
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
    let (mut signals, sender) = UnixStream::pair()?;
    pipe::register(SIGUSR1, sender)?;
    thread::Builder::new().name("bine reopen".to_owned()).spawn(move || {
        while wait_for_signal(&mut signals, None) {
            log::reopen_all();
        }
    })?;
    Ok(())
}

/// Waits for a signal, which arrives as a byte in the pipe. Returns `false` at the timeout.
fn wait_for_signal(signals: &mut UnixStream, within: Option<Duration>) -> bool {
    // The call fails only for a timeout of zero.
    let _ = signals.set_read_timeout(within);
    let begun = Instant::now();
    let pause = || {
        // The result is not needed: the pause is over, or a signal handler interrupted it.
        let _ = poll(&mut [], Some(&PAUSE));
        within.is_none_or(|within| begun.elapsed() < within)
    };
    await_byte(|| signals.read(&mut [0]), pause)
}

/// Reads until a byte arrives, which is a signal, or until the time is over. Any other failure, such
/// as a lack of memory in the kernel, is no signal: it must not stop the server. `pause` waits before
/// the next attempt, and returns whether time is left.
fn await_byte(
    mut read: impl FnMut() -> io::Result<usize>,
    mut pause: impl FnMut() -> bool,
) -> bool {
    loop {
        match read() {
            Ok(1..) => return true,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return false;
            }
            // A signal handler interrupted this thread.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => {
                if !pause() {
                    return false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! What a wait for a signal makes of each result of the system.

    use rustix::io::Errno;

    use super::*;

    /// The result of a wait whose reads have these results in turn, and its number of pauses, of
    /// which the fifth is the last within its time.
    fn wait(results: Vec<io::Result<usize>>) -> (bool, u32) {
        let (mut results, mut pauses) = (results.into_iter(), 0);
        let read = || results.next().expect("the wait ends with the last result");
        let is_signal = await_byte(read, || {
            pauses += 1;
            pauses < 5
        });
        assert!(results.next().is_none(), "the wait ended early");
        (is_signal, pauses)
    }

    #[test]
    fn takes_only_a_byte_for_a_signal() {
        assert_eq!(wait(vec![Ok(1)]), (true, 0));
        assert_eq!(wait(vec![Err(Errno::INTR.into()), Ok(1)]), (true, 0));
        let refusals = [Errno::NOMEM, Errno::NOBUFS, Errno::IO].map(|errno| Err(errno.into()));
        let refused: Vec<_> = refusals.into_iter().chain([Ok(0), Ok(1)]).collect();
        assert_eq!(wait(refused), (true, 4));
    }

    #[test]
    fn ends_without_a_signal_at_its_timeout() {
        assert_eq!(wait(vec![Err(Errno::NOMEM.into()), Err(Errno::AGAIN.into())]), (false, 1));
        let refusals = [Errno::NOMEM; 5].map(|errno| Err(errno.into()));
        assert_eq!(wait(refusals.into()), (false, 5), "failures do not extend it");
    }
}
