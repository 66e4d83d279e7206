//! Child processes whose output has the name of the process before each line, and that start again
//! after a crash.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use super::relay;

/// A process that ran for a shorter time starts again after a delay.
const MIN_RUN_TIME: Duration = Duration::from_secs(1);
/// The first delay; each further one is twice the previous one.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(5);
/// The time for the last output of processes that have ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// Events that wait for the main thread.
const MAX_EVENTS: usize = 256;
/// The longest line that is printed in one piece, in bytes.
const MAX_LINE: u64 = 64 << 10;

/// An event of a process or of this one.
pub(super) enum Event {
    /// A signal asks to stop.
    Stop,
    /// A child process has changed its state.
    Child,
    /// The process with this index has printed its address.
    Listening(usize, String),
    /// An output of a process has ended.
    EndOfOutput,
    /// The time is over.
    Timeout,
}

/// How the output of a process is shown.
#[derive(Clone, Copy)]
pub(super) enum Output {
    /// Every line, each with the name of the process.
    All,
    /// Lines that this function accepts.
    Only(fn(&[u8]) -> bool),
}

/// A program that runs as a child process.
pub(super) struct Process {
    pub(super) name: String,
    program: OsString,
    arguments: Vec<OsString>,
    output: Output,
    child: Option<Child>,
    started: Instant,
    delay: Duration,
    /// The time at which it starts again.
    due: Option<Instant>,
}

/// The end of a process.
pub(super) struct Ended {
    pub(super) index: usize,
    pub(super) status: ExitStatus,
}

/// All processes, in the order of their start.
pub(super) struct Processes {
    all: Vec<Process>,
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    /// Outputs that have not ended.
    open_outputs: usize,
}

impl Process {
    pub(super) fn new(
        name: String,
        program: OsString,
        arguments: Vec<OsString>,
        output: Output,
    ) -> Self {
        let (child, due, delay) = (None, None, Duration::ZERO);
        Self { name, program, arguments, output, child, started: Instant::now(), delay, due }
    }

    /// The process id, while it runs.
    pub(super) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
}

impl Processes {
    /// Watches signals. Call it from the main thread.
    ///
    /// # Errors
    ///
    /// The system cannot watch signals or start a thread.
    pub(super) fn new() -> io::Result<Self> {
        let (sender, events) = mpsc::sync_channel(MAX_EVENTS);
        watch_signals(&[SIGTERM, SIGINT, SIGHUP], &sender, || Event::Stop)?;
        watch_signals(&[SIGCHLD], &sender, || Event::Child)?;
        Ok(Self { all: Vec::new(), events, sender, open_outputs: 0 })
    }

    /// Starts a process, which is the last one. Returns its index.
    ///
    /// # Errors
    ///
    /// The system cannot start it.
    pub(super) fn start(&mut self, process: Process) -> io::Result<usize> {
        self.all.push(process);
        let index = self.all.len() - 1;
        self.spawn(index)?;
        Ok(index)
    }

    /// Waits for an event, at most for `limit`.
    pub(super) fn wait(&mut self, limit: Duration) -> Event {
        let event = self.events.recv_timeout(limit).unwrap_or(Event::Timeout);
        if let Event::EndOfOutput = event {
            self.open_outputs = self.open_outputs.saturating_sub(1);
        }
        event
    }

    /// Returns the processes that have ended since the last call.
    ///
    /// # Errors
    ///
    /// The system cannot query a process.
    pub(super) fn ended(&mut self) -> io::Result<Vec<Ended>> {
        let mut ended = Vec::new();
        for (index, process) in self.all.iter_mut().enumerate() {
            if let Some(child) = &mut process.child
                && let Some(status) = child.try_wait()?
            {
                process.child = None;
                ended.push(Ended { index, status });
            }
        }
        Ok(ended)
    }

    /// Starts a process again, at once or after a delay that grows with each crash shortly after a
    /// start.
    pub(super) fn schedule_restart(&mut self, index: usize) {
        let process = &mut self.all[index];
        process.delay = next_delay(process.delay, process.started.elapsed() < MIN_RUN_TIME);
        process.due = Some(Instant::now() + process.delay);
    }

    /// Starts the processes that are due. Returns the time until the next one.
    ///
    /// # Errors
    ///
    /// The system cannot start a process.
    pub(super) fn start_due(&mut self) -> io::Result<Option<Duration>> {
        let now = Instant::now();
        for index in 0..self.all.len() {
            if self.all[index].due.is_some_and(|due| due <= now) {
                self.all[index].due = None;
                self.spawn(index)?;
            }
        }
        let next = self.all.iter().filter_map(|process| process.due).min();
        Ok(next.map(|due| due.saturating_duration_since(now)))
    }

    /// Whether a process runs or is due.
    pub(super) fn is_any_alive(&self, which: &[usize]) -> bool {
        let mut chosen = which.iter().map(|index| &self.all[*index]);
        chosen.any(|process| process.child.is_some() || process.due.is_some())
    }

    pub(super) fn get(&self, index: usize) -> &Process {
        &self.all[index]
    }

    /// Asks processes to stop, and kills those that still run after `limit` or at a second signal.
    pub(super) fn stop(&mut self, which: &[usize], limit: Duration) {
        for index in which {
            self.all[*index].due = None;
            self.signal(*index, Signal::TERM);
        }
        let deadline = Instant::now() + limit;
        loop {
            // A process that cannot be queried is killed below.
            if self.ended().is_err() || !self.is_any_alive(which) {
                break;
            }
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() || matches!(self.wait(rest), Event::Stop) {
                break;
            }
        }
        for index in which {
            if let Some(mut child) = self.all[*index].child.take() {
                let name = &self.all[*index].name;
                say_error(&format!("{name} does not stop and is killed"));
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }

    /// Waits for the last output of processes that have ended.
    pub(super) fn finish_output(&mut self) {
        let deadline = Instant::now() + OUTPUT_TIMEOUT;
        while self.open_outputs > 0 {
            let rest = deadline.saturating_duration_since(Instant::now());
            if let Event::Timeout = self.wait(rest) {
                return;
            }
        }
    }

    fn signal(&self, index: usize, signal: Signal) {
        if let Some(child) = &self.all[index].child {
            // A process that has just exited needs no signal.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    fn spawn(&mut self, index: usize) -> io::Result<()> {
        let process = &mut self.all[index];
        let mut command = relay::command(&process.program);
        command.args(&process.arguments);
        // Its own process group: otherwise Ctrl-C would stop the NATS server before the nodes.
        command.process_group(0).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // What a service manager passes is meant for this process.
        command.env_remove("NOTIFY_SOCKET").env_remove("LISTEN_FDS").env_remove("LISTEN_PID");
        let mut child = command.spawn()?;
        process.started = Instant::now();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        process.child = Some(child);
        let (name, shown) = (process.name.clone(), process.output);
        if let Some(stdout) = stdout {
            self.copy(CopiedOutput { index, name: name.clone(), shown, is_error: false }, stdout)?;
        }
        if let Some(stderr) = stderr {
            self.copy(CopiedOutput { index, name, shown, is_error: true }, stderr)?;
        }
        Ok(())
    }

    fn copy(&mut self, output: CopiedOutput, from: impl Read + Send + 'static) -> io::Result<()> {
        let sender = self.sender.clone();
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            output.copy(from, &sender);
            // The receiver is gone at the end of this process.
            let _ = sender.send(Event::EndOfOutput);
        })?;
        self.open_outputs += 1;
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for mut child in self.all.iter_mut().filter_map(|process| process.child.take()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// One of the two outputs of a process.
struct CopiedOutput {
    index: usize,
    name: String,
    shown: Output,
    is_error: bool,
}

impl CopiedOutput {
    /// Copies lines until the output ends.
    fn copy(&self, from: impl Read, events: &SyncSender<Event>) {
        const MARK: &[u8] = b"listening on ";
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            line.clear();
            line.extend_from_slice(format!("{} | ", self.name).as_bytes());
            let start = line.len();
            if !matches!(from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line), Ok(1..)) {
                return;
            }
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            let text = &line[start..];
            let is_shown = match self.shown {
                Output::All => true,
                Output::Only(accepts) => accepts(text),
            };
            let address = text.strip_prefix(MARK).filter(|_| !self.is_error);
            let address = address.map(|rest| String::from_utf8_lossy(rest).trim().to_owned());
            if is_shown {
                // Nobody may read the output any more; the process must not wait for its pipe.
                let _ = if self.is_error {
                    io::stderr().lock().write_all(&line)
                } else {
                    io::stdout().lock().write_all(&line)
                };
            }
            if let Some(address) = address {
                let _ = events.send(Event::Listening(self.index, address));
            }
        }
    }
}

/// Prints a line to standard error. A closed one is ignored.
pub(super) fn say_error(text: &str) {
    let _ = io::stderr().lock().write_all(format!("bine dev: {text}\n").as_bytes());
}

/// Describes how a process has ended.
pub(super) fn describe(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("by signal {signal}"),
        None => format!("with exit status {}", status.code().unwrap_or_default()),
    }
}

/// The delay before the next start, after a start with this delay.
fn next_delay(delay: Duration, ended_early: bool) -> Duration {
    if ended_early { (delay * 2).clamp(FIRST_DELAY, MAX_DELAY) } else { Duration::ZERO }
}

/// Sends an event for each signal.
fn watch_signals(
    signals: &[i32],
    events: &SyncSender<Event>,
    event: fn() -> Event,
) -> io::Result<()> {
    let (mut source, sender) = UnixStream::pair()?;
    for signal in signals {
        pipe::register(*signal, sender.try_clone()?)?;
    }
    let events = events.clone();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut byte = [0];
        while source.read_exact(&mut byte).is_ok() {
            // The receiver is gone at the end of this process.
            if events.send(event()).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_the_restart_of_a_process_that_ends_early() {
        let mut delay = Duration::ZERO;
        let mut next = |ended_early| {
            delay = next_delay(delay, ended_early);
            delay.as_millis()
        };
        let delays: Vec<_> = (0..8).map(|_| next(true)).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!([next(false), next(true)], [0, 100]);
    }

    #[test]
    fn reports_the_address_of_a_node_and_reads_lines_without_end() {
        let long = b"x".repeat(200_000);
        let text = [b"a\nlistening on http://[::1]:1/\n".as_slice(), &long].concat();
        let (sender, events) = mpsc::sync_channel(9);
        let shown = Output::Only(|line| {
            assert!(line.len() as u64 <= MAX_LINE + 1);
            false
        });
        let output = CopiedOutput { index: 7, name: "node-8".into(), shown, is_error: false };
        output.copy(&text[..], &sender);
        drop(sender);
        let events: Vec<Event> = events.iter().collect();
        assert!(matches!(&events[..], [Event::Listening(7, url)] if url == "http://[::1]:1/"));
    }
}
