//! The writer of a log: a bounded queue and a thread, so that a slow disk, a full disk or a pipe
//! without a reader never blocks an event loop.

use std::fmt;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::level::Level;
use crate::log_file::{LogFile, Sink, WriteError};

/// The settings of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogSettings {
    /// The file to append to, or a named pipe.
    pub path: PathBuf,
    /// The policy for lines that do not fit into the queue.
    pub when_full: WhenFull,
    /// The capacity of the queue in bytes. The minimum is 64 KiB.
    pub queue: usize,
}

impl LogSettings {
    /// Creates the settings of the log at `path`, with a queue of 4 MiB that drops lines when it is
    /// full.
    ///
    /// 4 MiB are a quarter of a second at full speed. The queue uses memory only while lines wait
    /// in it.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), when_full: WhenFull::Drop, queue: 4 << 20 }
    }
}

/// The policy for lines that do not fit into the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenFull {
    /// The writer drops the lines, counts them, and writes the count to the log.
    #[default]
    Drop,
    /// The calling thread waits for room, and so do all its connections. After one second the
    /// writer drops the lines, and no thread waits again until the log makes progress: a dead disk
    /// must not block an event loop.
    Wait,
}

/// A log and its thread.
///
/// The thread starts with the first line, and restarts after a panic. When the last handle has been
/// dropped, it writes the remaining lines and stops.
pub struct Writer(Arc<Shared>);

/// Appends a line that states the number of lines dropped at this place of the log.
pub type Gap = fn(&mut Vec<u8>, u64);
/// Reports a fault of a writer, or its end.
pub(super) type Report = fn(Level, fmt::Arguments<'_>);

/// The state that the handles and the thread share.
struct Shared {
    name: String,
    when_full: WhenFull,
    /// The capacity of the queue in bytes.
    capacity: usize,
    /// How long the first line of a batch waits for further lines.
    linger: Duration,
    /// How long [`Writer::finish`] waits for the last lines, and [`WhenFull::Wait`] for room.
    max_wait: Duration,
    report: Report,
    queue: Mutex<Queue>,
    /// Signals work to the thread.
    work: Condvar,
    /// Signals progress to threads that wait for room or for [`Writer::finish`].
    progress: Condvar,
    /// Only the thread locks it, while it writes.
    sink: Mutex<Box<dyn Sink>>,
}

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent signals between the handles and the thread"
)]
struct Queue {
    lines: Vec<u8>,
    /// Dropped lines that the log itself does not state yet.
    unmarked_drops: u64,
    /// Dropped lines that are not reported to the error log yet.
    unreported_drops: u64,
    has_thread: bool,
    /// Whether the thread holds lines that are not written yet.
    is_writing: bool,
    should_reopen: bool,
    /// Whether [`Writer::finish`] waits for the lines in the queue.
    should_flush: bool,
    /// Whether a wait for room timed out. No thread waits again until the thread of the log takes
    /// lines.
    has_timed_out: bool,
    is_closed: bool,
}

/// The thread writes a batch when it has this many bytes, or after the linger time.
const BATCH: usize = 64 * 1024;
/// An upper bound for the length of the line that a [`Gap`] writes.
const MAX_GAP: usize = 256;
/// Long enough to avoid most wakeups and writes, short enough for a person who watches a log.
pub(crate) const LINGER: Duration = Duration::from_millis(20);
/// How long a thread waits for a log, unless the writer is told otherwise.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// The interval at which dropped lines are reported.
const DROP_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after the first failure. Each further failure doubles it, up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// The interval at which a lasting fault is reported again.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

impl Writer {
    pub(super) fn open_with(
        settings: LogSettings,
        linger: Duration,
        report: Report,
    ) -> io::Result<Arc<Self>> {
        let LogSettings { path, when_full, queue } = settings;
        let file = LogFile::open(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot open the log {}: {error}", path.display()))
        })?;
        let shared = Shared {
            when_full,
            capacity: queue.max(BATCH),
            linger,
            ..Shared::new(name_of(&path), Box::new(file), report)
        };
        Ok(Arc::new(Self::register(shared)))
    }

    /// Creates a writer for a sink that is not a file, without a linger time.
    pub(super) fn for_sink(name: &str, sink: Box<dyn Sink>, report: Report) -> Arc<Self> {
        Arc::new(Self::register(Shared::new(name.to_owned(), sink, report)))
    }

    /// Adds the log to the list that [`reopen_all`] uses.
    fn register(shared: Shared) -> Self {
        let shared = Arc::new(shared);
        let mut open = lock(&OPEN);
        open.retain(|each| each.strong_count() > 0);
        open.push(Arc::downgrade(&shared));
        Self(shared)
    }

    /// Reopens the file before the next line, for a program that has moved the old file.
    ///
    /// Without this call the thread notices a moved file too, but checks at most once per second.
    pub fn reopen(&self) {
        self.0.request_reopen();
    }

    /// Waits until all lines appended so far are written, for one second at most.
    pub fn finish(&self) {
        let mut queue = self.0.lock();
        queue.should_flush = true;
        self.0.work.notify_one();
        let is_unwritten = |queue: &mut Queue| queue.is_writing || !queue.lines.is_empty();
        let waited = self.0.progress.wait_timeout_while(queue, self.0.max_wait, is_unwritten);
        let (queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(queue);
        if timeout.timed_out() {
            self.0.report_error(format_args!(
                "the last lines of {} are not written yet",
                self.0.name
            ));
        }
    }

    /// Appends whole lines to the queue, as many as fit.
    ///
    /// Never waits for the disk itself. `gap` writes the line about lines that were dropped before.
    pub fn append(&self, lines: &[u8], gap: Gap) {
        let shared = &*self.0;
        let mut queue = shared.lock();
        let mut rest = lines;
        loop {
            rest = shared.enqueue(&mut queue, rest, gap);
            // Room for one more line, and for the line about dropped lines before it.
            let line = rest.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let needed = line + MAX_GAP;
            let may_wait = shared.when_full == WhenFull::Wait && !queue.has_timed_out;
            if line == 0 || needed > shared.capacity || !may_wait {
                break;
            }
            let is_full = |queue: &mut Queue| {
                !queue.has_timed_out && queue.lines.len() + needed > shared.capacity
            };
            let waited = shared.progress.wait_timeout_while(queue, shared.max_wait, is_full);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.has_timed_out |= timeout.timed_out();
        }
        let dropped = count_lines(rest) as u64;
        queue.unmarked_drops += dropped;
        queue.unreported_drops += dropped;
        if !queue.has_thread && !queue.lines.is_empty() {
            queue.has_thread = spawn_thread(&self.0);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.work.notify_one();
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({})", self.0.name)
    }
}

/// Reopens every log of this process, as [`Writer::reopen`] does.
pub fn reopen_all() {
    for shared in lock(&OPEN).iter().filter_map(Weak::upgrade) {
        shared.request_reopen();
    }
}

/// All logs of this process.
static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Starts the thread of a log and returns whether that succeeded. If not, the next line tries
/// again.
fn spawn_thread(shared: &Arc<Shared>) -> bool {
    let own = Arc::clone(shared);
    thread::Builder::new().name("bine log".to_owned()).spawn(move || own.run()).is_ok()
}

impl Shared {
    fn new(name: String, sink: Box<dyn Sink>, report: Report) -> Self {
        Self {
            name,
            when_full: WhenFull::Drop,
            capacity: 4 << 20,
            linger: Duration::ZERO,
            max_wait: MAX_WAIT,
            report,
            queue: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
            sink: Mutex::new(sink),
        }
    }

    /// Appends the lines that fit, and returns the rest.
    ///
    /// Wakes the thread only for the first line and for a full batch, because a wakeup is a system
    /// call.
    fn enqueue<'l>(&self, queue: &mut Queue, lines: &'l [u8], gap: Gap) -> &'l [u8] {
        let before = queue.lines.len();
        if queue.unmarked_drops > 0 {
            gap(&mut queue.lines, queue.unmarked_drops);
            if queue.lines.len() < self.capacity {
                queue.unmarked_drops = 0;
            } else {
                queue.lines.truncate(before);
            }
        }
        let room = self.capacity.saturating_sub(queue.lines.len());
        // While the line about dropped lines does not fit, no line may follow the gap.
        let room = if queue.unmarked_drops > 0 { 0 } else { room };
        let (kept, rest) = lines.split_at(whole_lines(lines, room));
        queue.lines.extend_from_slice(kept);
        if needs_wakeup(before, queue.lines.len()) {
            self.work.notify_one();
        }
        rest
    }

    fn request_reopen(self: &Arc<Self>) {
        let mut queue = self.lock();
        queue.should_reopen = true;
        if !queue.has_thread {
            queue.has_thread = spawn_thread(self);
        }
        self.work.notify_one();
    }

    /// Runs the thread: writes until the log is closed, and continues after a panic.
    fn run(&self) {
        let mut batch = Batch::default();
        let mut state = FaultState::default();
        while let Err(_panic) =
            catch_unwind(AssertUnwindSafe(|| self.write(&mut batch, &mut state)))
        {
            // It is unknown which lines of this batch were written. The lines in the queue are
            // safe.
            let lost = batch.remaining_lines();
            batch.clear();
            let name = &self.name;
            self.report_error(format_args!(
                "the writer of {name} failed and was restarted; {lost} lines may be lost"
            ));
            self.pause(&mut state);
        }
    }

    fn write(&self, batch: &mut Batch, state: &mut FaultState) {
        while self.take_batch(batch, state) {
            while !batch.rest().is_empty() {
                // A separate statement, so that the lock is released before the thread pauses.
                let outcome = lock(&self.sink).write(batch.rest());
                match outcome {
                    Ok(()) => {
                        batch.clear();
                        self.on_success(state);
                    }
                    Err(WriteError { written, error }) => {
                        batch.written += written;
                        self.on_failure(state, &error);
                        let remaining = batch.remaining_lines();
                        if remaining == 0 {
                            break;
                        }
                        if self.lock().is_closed {
                            let name = &self.name;
                            self.report_error(format_args!(
                                "{remaining} lines of {name} are lost: {error}"
                            ));
                            return;
                        }
                        if error.kind() != ErrorKind::WouldBlock {
                            self.pause(state);
                        }
                    }
                }
            }
            batch.clear();
        }
    }

    /// Waits for lines and moves them all into `batch`. Returns false when the log is closed and
    /// the queue is empty.
    fn take_batch(&self, batch: &mut Batch, state: &mut FaultState) -> bool {
        let mut queue = self.lock();
        queue.is_writing = false;
        self.progress.notify_all();
        let waited = self.work.wait_while(queue, |queue| queue.is_idle());
        queue = waited.unwrap_or_else(PoisonError::into_inner);
        if !self.linger.is_zero() {
            let may_linger = |queue: &mut Queue| queue.may_linger();
            let lingered = self.work.wait_timeout_while(queue, self.linger, may_linger);
            queue = lingered.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut queue.lines, &mut batch.lines);
        let is_last = queue.is_closed && batch.lines.is_empty();
        queue.is_writing = true;
        queue.should_flush = false;
        queue.has_timed_out = false;
        let should_reopen = std::mem::take(&mut queue.should_reopen);
        // Drops are reported once per second, and when the log is closed.
        let was_reported = state.drops_reported_at.is_some_and(|at| at.elapsed() < DROP_INTERVAL);
        let dropped =
            if was_reported && !is_last { 0 } else { std::mem::take(&mut queue.unreported_drops) };
        drop(queue);
        self.progress.notify_all();
        if dropped > 0 {
            state.drops_reported_at = Some(Instant::now());
            let name = &self.name;
            self.report_error(format_args!(
                "dropped {dropped} lines of {name}: they arrived faster than they could be written"
            ));
        }
        if should_reopen {
            let reopened = lock(&self.sink).reopen();
            if let Err(error) = reopened {
                self.on_failure(state, &error);
            }
        }
        !is_last
    }

    fn on_success(&self, state: &mut FaultState) {
        if state.fault_reported_at.is_some() {
            (self.report)(Level::Notice, format_args!("{} can be written again", self.name));
        }
        state.failures = 0;
        state.fault_reported_at = None;
    }

    fn on_failure(&self, state: &mut FaultState, error: &io::Error) {
        if state.fault_reported_at.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL) {
            state.fault_reported_at = Some(Instant::now());
            self.report_error(format_args!("{} cannot be written: {error}", self.name));
        }
    }

    /// Pauses before the next attempt, longer after each failure. A request to reopen or close the
    /// log ends the pause.
    fn pause(&self, state: &mut FaultState) {
        let pause = pause_after(state.failures);
        state.failures += 1;
        let queue = self.lock();
        let waited = self.work.wait_timeout_while(queue, pause, |queue| queue.may_pause());
        waited.unwrap_or_else(PoisonError::into_inner).0.should_reopen = false;
    }

    fn report_error(&self, message: fmt::Arguments<'_>) {
        (self.report)(Level::Error, message);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

impl Queue {
    /// Whether the thread is idle.
    const fn is_idle(&self) -> bool {
        self.lines.is_empty() && !self.should_reopen && !self.is_closed
    }

    /// Whether the thread may wait before it writes again after a failure.
    const fn may_pause(&self) -> bool {
        !self.should_reopen && !self.is_closed
    }

    /// Whether the thread may wait for further lines before it writes these.
    const fn may_linger(&self) -> bool {
        let is_urgent = self.should_flush || self.should_reopen || self.is_closed;
        self.lines.len() < BATCH && !is_urgent
    }
}

/// The lines that the thread has taken from the queue.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    /// The number of bytes already written.
    written: usize,
}

impl Batch {
    /// A buffer that a burst made larger than this is freed.
    const MAX_KEPT: usize = 4 * BATCH;

    fn rest(&self) -> &[u8] {
        &self.lines[self.written..]
    }

    fn remaining_lines(&self) -> usize {
        count_lines(self.rest())
    }

    fn clear(&mut self) {
        self.written = 0;
        self.lines.clear();
        if self.lines.capacity() > Self::MAX_KEPT {
            self.lines = Vec::new();
        }
    }
}

/// The faults of a log, and when they were reported to the error log.
#[derive(Default)]
struct FaultState {
    /// The number of consecutive failures.
    failures: u32,
    /// When the present fault was last reported.
    fault_reported_at: Option<Instant>,
    /// When dropped lines were last reported.
    drops_reported_at: Option<Instant>,
}

/// Whether the thread must wake when the queue grows from `before` to `after` bytes.
const fn needs_wakeup(before: usize, after: usize) -> bool {
    (before == 0 && after > 0) || (before < BATCH && after >= BATCH)
}

/// The pause after a number of earlier consecutive failures.
fn pause_after(failures: u32) -> Duration {
    MIN_PAUSE.saturating_mul(1 << failures.min(16)).min(MAX_PAUSE)
}

fn name_of(path: &Path) -> String {
    format!("the log {}", path.display())
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic can make this data inconsistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count_lines(lines: &[u8]) -> usize {
    lines.split(|byte| *byte == b'\n').count() - 1
}

/// Returns the length of the whole lines at the start of `lines` that fit into `room`.
fn whole_lines(lines: &[u8], room: usize) -> usize {
    if lines.len() <= room {
        return lines.len();
    }
    lines[..room].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests;
