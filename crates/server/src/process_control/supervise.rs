//! The supervisor: a parent process that owns the listening sockets and restarts the server after a
//! crash. Meanwhile, new connections wait in the kernel's queue (Marlow, "Developing a
//! High-Performance Web Server in Concurrent Haskell", 2002, section 1).

use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus};
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
use crate::system::{HEARTBEAT, SOCKETS, STUCK, name, notify, watchdog_limit};

/// A server that ran for a shorter time has failed to start.
const SOON: Duration = Duration::from_secs(1);
/// The first delay before a restart after a failed start. Each further delay is twice the previous
/// one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Exit status of a usage error, which a restart does not correct.
const USAGE: i32 = 2;

/// Runs the server `command` with sockets for all of `wishes`, restarts it after each crash, and
/// forwards signals to it. Returns the server's exit status when the server stops on request or
/// fails its first start.
///
/// # Errors
///
/// Returns the system's error when an address, process or descriptor is not available.
pub fn supervise(wishes: &[Listen], command: &mut Command) -> io::Result<i32> {
    let listeners = wishes.iter().map(Listener::open).collect::<io::Result<Vec<_>>>()?;
    let mut passed = getpid().as_raw_nonzero().to_string();
    for (wish, listener) in wishes.iter().zip(&listeners) {
        // The server must inherit the listener.
        fcntl_setfd(listener, FdFlags::empty())?;
        let number = listener.as_fd().as_raw_fd();
        // A write into a String cannot fail.
        let _ = write!(passed, "\n{number} {}", name(&wish.address));
    }
    let mut supervisor = Supervisor::new()?;
    // The supervisor keeps the server's end too, for the next server.
    let heartbeat = watchdog_limit().map(|_| supervisor.listen_for_heartbeat()).transpose()?;
    if let Some(heartbeat) = &heartbeat {
        let _ = write!(passed, "\n{} {HEARTBEAT}", heartbeat.as_raw_fd());
    }
    // The server has its own process group; otherwise it would receive Ctrl-C twice.
    command.env(SOCKETS, passed).env_remove("NOTIFY_SOCKET").process_group(0);
    let outcome = supervisor.watch(command);
    listeners.iter().for_each(Listener::remove_file);
    outcome
}

struct Supervisor {
    /// The pipes that the supervisor polls, and the meaning of a byte in each.
    ears: Vec<(UnixStream, Heard)>,
    asked: bool,
}

/// An event for the supervisor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// The server exited.
    End,
    /// A signal to forward to the server.
    Signal(Signal),
    /// A heartbeat of the server.
    Heartbeat,
}

impl Supervisor {
    fn new() -> io::Result<Self> {
        let known = [
            (SIGCHLD, Heard::End),
            (SIGTERM, Heard::Signal(Signal::TERM)),
            (SIGINT, Heard::Signal(Signal::INT)),
            (SIGHUP, Heard::Signal(Signal::HUP)),
            (SIGUSR1, Heard::Signal(Signal::USR1)),
        ];
        let hear = |(number, heard)| {
            let (ear, bell) = UnixStream::pair()?;
            ear.set_nonblocking(true)?;
            pipe::register(number, bell)?;
            Ok((ear, heard))
        };
        let ears = known.into_iter().map(hear).collect::<io::Result<_>>()?;
        Ok(Self { ears, asked: false })
    }

    /// Creates the heartbeat socket and returns the server's end.
    fn listen_for_heartbeat(&mut self) -> io::Result<UnixStream> {
        let (ear, server) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        server.set_nonblocking(true)?;
        fcntl_setfd(&server, FdFlags::empty())?;
        self.ears.push((ear, Heard::Heartbeat));
        Ok(server)
    }

    fn watch(&mut self, command: &mut Command) -> io::Result<i32> {
        let mut pause = Duration::ZERO;
        let mut is_first = true;
        loop {
            let began = Instant::now();
            let mut child = command.spawn()?;
            notify("READY=1");
            let status = self.outlast(&mut child)?;
            let code = status.code();
            let died_soon = began.elapsed() < SOON;
            let was_stuck = code == Some(STUCK);
            let could_not_begin = is_first && died_soon && code.is_some() && !was_stuck;
            if self.asked || could_not_begin || matches!(code, Some(0 | USAGE)) {
                return Ok(code.unwrap_or(1));
            }
            is_first = false;
            pause = if died_soon {
                (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE)
            } else {
                Duration::ZERO
            };
            if was_stuck {
                log::error(format_args!("the server had a stuck event loop; starting it again"));
            } else {
                log::error(format_args!(
                    "the server crashed ({}); starting it again",
                    describe(status)
                ));
            }
            let until = Instant::now() + pause;
            while !self.asked && Instant::now() < until {
                self.hear(Some(until.saturating_duration_since(Instant::now())), None)?;
            }
            if self.asked {
                return Ok(0);
            }
        }
    }

    /// Waits until `child` exits, and forwards signals to it.
    fn outlast(&mut self, child: &mut Child) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            self.hear(None, Some(Pid::from_child(child)))?;
        }
    }

    /// Waits for events until the timeout `wait`.
    fn hear(&mut self, wait: Option<Duration>, child: Option<Pid>) -> io::Result<()> {
        let mut ears: Vec<PollFd<'_>> =
            self.ears.iter().map(|(ear, _)| PollFd::new(ear, PollFlags::IN)).collect();
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        match poll(&mut ears, wait.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for (ear, heard) in &mut self.ears {
            let Ok(count @ 1..) = ear.read(&mut [0; 64]) else { continue };
            let signal = match *heard {
                Heard::End => continue,
                Heard::Heartbeat => {
                    notify("WATCHDOG=1");
                    continue;
                }
                Heard::Signal(signal) => signal,
            };
            self.asked |= signal == Signal::TERM || signal == Signal::INT;
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

fn describe(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit status {}", status.code().unwrap_or_default()),
    }
}
