//! Decides how a server outlives its own death: a parent holds the listening sockets and starts the
//! server again at once, so that whoever connects meanwhile waits in the kernel's queue (document 002
//! section 1).

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

/// A server that lived less long has not come to serve.
const SOON: Duration = Duration::from_secs(1);
/// The first pause before a server that died soon is started again; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Exit status of wrong usage, which starting again does not make right.
const USAGE: i32 = 2;

/// Runs `command`, a server, with sockets for all of `wishes`, as often as it dies; signals to this
/// process go to the server. Returns the server's exit status when it ends because it was asked to,
/// or as it cannot even begin.
///
/// # Errors
///
/// Addresses, processes or descriptors that could not be had.
pub fn supervise(wishes: &[Listen], command: &mut Command) -> io::Result<i32> {
    let listeners = wishes.iter().map(Listener::open).collect::<io::Result<Vec<_>>>()?;
    let mut passed = getpid().as_raw_nonzero().to_string();
    for (wish, listener) in wishes.iter().zip(&listeners) {
        // The one program that this process starts is to have it.
        fcntl_setfd(listener, FdFlags::empty())?;
        let number = listener.as_fd().as_raw_fd();
        // Writing into a String cannot fail.
        let _ = write!(passed, "\n{number} {}", name(&wish.address));
    }
    let mut supervisor = Supervisor::new()?;
    // The server's end is kept here, for the one that is started after it.
    let heartbeat = watchdog_limit().map(|_| supervisor.listen_for_heartbeat()).transpose()?;
    if let Some(heartbeat) = &heartbeat {
        let _ = write!(passed, "\n{} {HEARTBEAT}", heartbeat.as_raw_fd());
    }
    // A group of its own, or a terminal's Ctrl-C would reach it twice.
    command.env(SOCKETS, passed).env_remove("NOTIFY_SOCKET").process_group(0);
    let outcome = supervisor.watch(command);
    listeners.iter().for_each(Listener::retire);
    outcome
}

struct Supervisor {
    /// Bytes that come here, and what each means.
    ears: Vec<(UnixStream, Heard)>,
    asked: bool,
}

/// What a supervisor hears of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// The server has ended.
    End,
    /// A signal that is passed on to the server.
    Signal(Signal),
    /// The server's loops turn.
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

    /// The end of a pair that the server writes its heartbeats to.
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
                log::error(format_args!("the server had a stuck loop; it is started again"));
            } else {
                log::error(format_args!("the server died ({}); it is started again", told(status)));
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

    /// Waits for the end of `child` and passes signals on to it meanwhile.
    fn outlast(&mut self, child: &mut Child) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            self.hear(None, Some(Pid::from_child(child)))?;
        }
    }

    /// Waits for signals, as long as `wait` says.
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
            // Each counts: a second wish to stop ends a server at once.
            for _ in 0..count.min(2) {
                if let Some(child) = child {
                    // One that has just died needs no signal.
                    let _ = kill_process(child, signal);
                }
            }
        }
        Ok(())
    }
}

fn told(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit status {}", status.code().unwrap_or_default()),
    }
}
