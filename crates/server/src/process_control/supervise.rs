//! The supervisor: a parent process that owns the listening sockets and restarts the server after a
//! crash. Meanwhile, new connections wait in the kernel's queue (Marlow, "Developing a
//! High-Performance Web Server in Concurrent Haskell", 2002, section 1).

use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bine_log as log;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, kill_process};
use rustix::time::Timespec;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::low_level::pipe;

use crate::listener::Listener;
use crate::settings::Listen;
use crate::system::{HEARTBEAT, NOTICES, SOCKETS, STUCK, name, notify, watchdog_limit};

/// A server that ran for a shorter time has failed to start.
const MIN_RUN_TIME: Duration = Duration::from_secs(1);
/// The first delay before a restart after a failed start. Each further delay is twice the previous
/// one.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// The longest notice, in bytes.
const MAX_NOTICE: usize = 128;

/// Exit status of a usage error, which a restart does not correct.
const USAGE: i32 = 2;

/// Runs the server `command` with sockets for all of `requested`, restarts it after each crash, and
/// forwards signals to it. Returns the server's exit status when the server stops on request or
/// fails its first start.
///
/// # Errors
///
/// Returns the system's error when an address, process or descriptor is not available.
pub fn supervise(requested: &[Listen], command: &mut Command) -> io::Result<i32> {
    let listeners = requested
        .iter()
        .map(|listen| Listener::open(listen, &Arc::default()))
        .collect::<io::Result<Vec<_>>>()?;
    let mut descriptors = getpid().as_raw_nonzero().to_string();
    for (listen, listener) in requested.iter().zip(&listeners) {
        // The server must inherit the listener.
        fcntl_setfd(listener, FdFlags::empty())?;
        let number = listener.as_fd().as_raw_fd();
        // A write into a String cannot fail.
        let _ = write!(descriptors, "\n{number} {}", name(&listen.address));
    }
    let mut supervisor = Supervisor::new()?;
    // The supervisor keeps the server's end too, for the next server.
    let heartbeat = watchdog_limit().map(|_| supervisor.listen_for_heartbeat()).transpose()?;
    if let Some(heartbeat) = &heartbeat {
        let _ = write!(descriptors, "\n{} {HEARTBEAT}", heartbeat.as_raw_fd());
    }
    // As with the heartbeat. Without a service manager no process reads notices.
    let has_manager = std::env::var_os("NOTIFY_SOCKET").is_some();
    let notices = has_manager.then(|| supervisor.listen_for_notices()).transpose()?;
    if let Some(notices) = &notices {
        let _ = write!(descriptors, "\n{} {NOTICES}", notices.as_raw_fd());
    }
    // The server has its own process group; otherwise it would receive Ctrl-C twice.
    command.env(SOCKETS, descriptors).env_remove("NOTIFY_SOCKET").process_group(0);
    let outcome = supervisor.watch(command);
    listeners.iter().for_each(Listener::remove_file);
    outcome
}

struct Supervisor {
    /// The pipes that the supervisor polls, and the meaning of a byte in each.
    sources: Vec<(UnixStream, SupervisorEvent)>,
    stop_requested: bool,
}

/// An event for the supervisor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SupervisorEvent {
    /// The server exited.
    Exit,
    /// A signal to forward to the server.
    Signal(Signal),
    /// A heartbeat of the server.
    Heartbeat,
    /// A notice of the server for the service manager.
    Notice,
}

impl Supervisor {
    fn new() -> io::Result<Self> {
        let signals = [
            (SIGCHLD, SupervisorEvent::Exit),
            (SIGTERM, SupervisorEvent::Signal(Signal::TERM)),
            (SIGINT, SupervisorEvent::Signal(Signal::INT)),
            (SIGHUP, SupervisorEvent::Signal(Signal::HUP)),
            (SIGUSR1, SupervisorEvent::Signal(Signal::USR1)),
        ];
        let register = |(number, event)| {
            let (source, sender) = UnixStream::pair()?;
            source.set_nonblocking(true)?;
            pipe::register(number, sender)?;
            Ok((source, event))
        };
        let sources = signals.into_iter().map(register).collect::<io::Result<_>>()?;
        Ok(Self { sources, stop_requested: false })
    }

    /// Creates the heartbeat socket and returns the server's end.
    fn listen_for_heartbeat(&mut self) -> io::Result<UnixStream> {
        let (source, server) = UnixStream::pair()?;
        source.set_nonblocking(true)?;
        server.set_nonblocking(true)?;
        fcntl_setfd(&server, FdFlags::empty())?;
        self.sources.push((source, SupervisorEvent::Heartbeat));
        Ok(server)
    }

    /// Creates the socket for notices and returns the server's end.
    fn listen_for_notices(&mut self) -> io::Result<UnixDatagram> {
        let (source, server) = UnixDatagram::pair()?;
        source.set_nonblocking(true)?;
        server.set_nonblocking(true)?;
        fcntl_setfd(&server, FdFlags::empty())?;
        // A read of a datagram socket returns one datagram.
        self.sources.push((OwnedFd::from(source).into(), SupervisorEvent::Notice));
        Ok(server)
    }

    fn watch(&mut self, command: &mut Command) -> io::Result<i32> {
        let mut delay = Duration::ZERO;
        let mut is_first = true;
        loop {
            let began = Instant::now();
            let mut child = command.spawn()?;
            let status = self.wait_for_exit(&mut child)?;
            let code = status.code();
            let failed_early = began.elapsed() < MIN_RUN_TIME;
            let was_stuck = code == Some(STUCK);
            let failed_to_start = is_first && failed_early && code.is_some() && !was_stuck;
            if self.stop_requested || failed_to_start || matches!(code, Some(0 | USAGE)) {
                return Ok(code.unwrap_or(1));
            }
            is_first = false;
            delay = next_delay(delay, failed_early);
            if was_stuck {
                log::error(format_args!("the server had a stuck event loop; starting it again"));
            } else {
                log::error(format_args!(
                    "the server crashed ({}); starting it again",
                    describe(status)
                ));
            }
            let until = Instant::now() + delay;
            while !self.stop_requested && Instant::now() < until {
                self.handle_events(Some(until.saturating_duration_since(Instant::now())), None)?;
            }
            if self.stop_requested {
                return Ok(0);
            }
        }
    }

    /// Waits until `child` exits, and forwards signals to it.
    fn wait_for_exit(&mut self, child: &mut Child) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            self.handle_events(None, Some(Pid::from_child(child)))?;
        }
    }

    /// Waits for events until the timeout `wait`.
    fn handle_events(&mut self, wait: Option<Duration>, child: Option<Pid>) -> io::Result<()> {
        let mut sources: Vec<PollFd<'_>> =
            self.sources.iter().map(|(source, _)| PollFd::new(source, PollFlags::IN)).collect();
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        match poll(&mut sources, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for (source, event) in &mut self.sources {
            let mut bytes = [0; MAX_NOTICE];
            let Ok(count @ 1..) = source.read(&mut bytes) else { continue };
            let signal = match *event {
                SupervisorEvent::Exit => continue,
                SupervisorEvent::Heartbeat => {
                    notify("WATCHDOG=1");
                    continue;
                }
                SupervisorEvent::Notice => {
                    // The server is ready, or reloads; its start and its end are the supervisor's.
                    let passed = ["READY=1", "RELOADING=1"];
                    if let Ok(state) = str::from_utf8(&bytes[..count])
                        && passed.iter().any(|start| state.starts_with(start))
                    {
                        notify(state);
                    }
                    continue;
                }
                SupervisorEvent::Signal(signal) => signal,
            };
            self.stop_requested |= signal == Signal::TERM || signal == Signal::INT;
            // Two signals are forwarded as two: a second stop request ends a server immediately.
            for _ in 0..count.min(2) {
                if let Some(child) = child {
                    // A process that has just exited needs no signal.
                    let _ = kill_process(child, signal);
                }
            }
        }
        Ok(())
    }
}

/// The delay before the next start, after a start with this delay.
fn next_delay(delay: Duration, failed_early: bool) -> Duration {
    if failed_early { (delay * 2).clamp(FIRST_DELAY, MAX_DELAY) } else { Duration::ZERO }
}

fn describe(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit status {}", status.code().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_the_end_of_the_server() {
        let end =
            |script: &str| describe(Command::new("sh").args(["-c", script]).status().unwrap());
        assert_eq!(end("exit 3"), "exit status 3");
        assert_eq!(end("kill -9 $$"), "signal 9");
    }

    /// A supervisor whose events the test sends.
    fn supervisor(event: SupervisorEvent) -> (Supervisor, UnixStream) {
        let (source, sender) = UnixStream::pair().unwrap();
        source.set_nonblocking(true).unwrap();
        (Supervisor { sources: vec![(source, event)], stop_requested: false }, sender)
    }

    #[test]
    fn takes_only_some_signals_for_a_stop() {
        use std::io::Write as _;
        for (event, expected) in [
            (SupervisorEvent::Signal(Signal::TERM), true),
            (SupervisorEvent::Signal(Signal::INT), true),
            (SupervisorEvent::Signal(Signal::HUP), false),
            (SupervisorEvent::Signal(Signal::USR1), false),
            (SupervisorEvent::Exit, false),
            (SupervisorEvent::Heartbeat, false),
            (SupervisorEvent::Notice, false),
        ] {
            let (mut supervisor, mut sender) = supervisor(event);
            supervisor.handle_events(Some(Duration::ZERO), None).unwrap();
            assert!(!supervisor.stop_requested, "no event");
            sender.write_all(b"x").unwrap();
            supervisor.handle_events(None, None).unwrap();
            assert_eq!(supervisor.stop_requested, expected);
        }
    }

    #[test]
    fn forwards_signals_to_the_server() {
        use std::io::Write as _;
        let (mut supervisor, mut sender) = supervisor(SupervisorEvent::Signal(Signal::TERM));
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        sender.write_all(b"x").unwrap();
        supervisor.handle_events(None, Some(Pid::from_child(&child))).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(SIGTERM));
    }

    #[test]
    fn doubles_the_delay_after_each_failed_start_up_to_five_seconds() {
        let mut delay = Duration::ZERO;
        let mut next = |failed_early| {
            delay = next_delay(delay, failed_early);
            delay.as_millis()
        };
        let delays: Vec<_> = (0..9).map(|_| next(true)).collect();
        assert_eq!(delays, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!([next(false), next(true)], [0, 50]);
    }
}
