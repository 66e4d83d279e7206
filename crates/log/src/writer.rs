//! Decides how lines reach a log: through a thread of its own and a bounded queue, so that a slow
//! disk, a full one or a pipe that nobody reads never holds up a loop.

use std::fmt;
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::level::Level;
use crate::log_file::{Cut, LogFile, Outlet};

/// What a log's writer is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogSettings {
    /// The file to append to, or a pipe with a name.
    pub path: PathBuf,
    /// What happens to lines that find the queue full.
    pub when_full: WhenFull,
    /// Bytes of lines that may wait to be written; at least 64 KiB are allowed.
    pub queue: usize,
}

impl LogSettings {
    /// The log at `path`, which drops what a queue of 4 MiB cannot hold: a quarter of a second at
    /// full speed. The queue takes memory only while something waits in it.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), when_full: WhenFull::Drop, queue: 4 << 20 }
    }
}

/// What happens to lines that find the queue full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenFull {
    /// They are dropped and counted; the count goes into the log.
    #[default]
    Drop,
    /// Their thread waits, and with it every connection it has. After a second they are dropped,
    /// and nobody waits again before the log moves on: a dead disk must not stop a loop.
    Wait,
}

/// A log with a thread of its own, which begins with the first line, survives its own faults, and
/// ends when the last handle is gone and all is written.
pub struct Writer(Arc<Shared>);

/// Writes into a log what tells that lines are missing at this place, and how many.
pub type Gap = fn(&mut Vec<u8>, u64);
/// Where a writer tells of its own troubles.
pub(super) type Troubles = fn(Level, fmt::Arguments<'_>);

/// What handles and thread share.
struct Shared {
    name: String,
    when_full: WhenFull,
    /// Bytes that may wait.
    queue: usize,
    /// The first line of a batch waits this long for company.
    linger: Duration,
    troubles: Troubles,
    pile: Mutex<Pile>,
    /// The thread waits for this.
    work: Condvar,
    /// Whoever waits for room, or for the end, waits for this.
    progress: Condvar,
    /// Locked by the thread alone, while it writes.
    outlet: Mutex<Box<dyn Outlet>>,
}

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is said by one thread and heard by another"
)]
struct Pile {
    waiting: Vec<u8>,
    /// Lines dropped, as the log itself has still to tell.
    missing: u64,
    /// Lines dropped, as the error log has still to tell.
    untold: u64,
    has_thread: bool,
    /// The thread has lines that are not written yet.
    writing: bool,
    reopen: bool,
    /// Somebody waits for the end of these lines.
    hurry: bool,
    /// A wait for room was in vain; the next waits when there was room again.
    gave_up: bool,
    closed: bool,
}

/// A batch is written when it has this size, or has lingered.
const BATCH: usize = 64 * 1024;
/// More than a [`Gap`] writes.
const MARGIN: usize = 256;
/// Long enough to spare most of the wake-ups and writes, short enough for whoever watches a log.
pub(crate) const LINGER: Duration = Duration::from_millis(20);
/// How long [`Writer::finish`] waits for the last lines, and [`WhenFull::Wait`] for room.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause after a first failure; each further one doubles it.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);
/// A trouble that lasts is told again this often.
const REMINDER: Duration = Duration::from_mins(1);

impl Writer {
    pub(super) fn open_for(
        settings: LogSettings,
        linger: Duration,
        troubles: Troubles,
    ) -> io::Result<Arc<Self>> {
        let LogSettings { path, when_full, queue } = settings;
        let target = LogFile::open(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot open the log {}: {error}", path.display()))
        })?;
        let mut shared = Shared::new(name_of(&path), Box::new(target), troubles);
        (shared.when_full, shared.queue, shared.linger) = (when_full, queue.max(BATCH), linger);
        Ok(Arc::new(Self::of(shared)))
    }

    /// The same for something that is no file, without lingering.
    pub(super) fn to(name: &str, outlet: Box<dyn Outlet>, troubles: Troubles) -> Arc<Self> {
        Arc::new(Self::of(Shared::new(name.to_owned(), outlet, troubles)))
    }

    fn of(shared: Shared) -> Self {
        let shared = Arc::new(shared);
        let mut open = lock(&OPEN);
        open.retain(|each| each.strong_count() > 0);
        open.push(Arc::downgrade(&shared));
        Self(shared)
    }

    /// Opens the file anew, before the next line: the old one was moved away, and whoever did it
    /// wants to have it now. A file that is found moved once a second is reopened unasked.
    pub fn reopen(&self) {
        self.0.ask_to_reopen();
    }

    /// Waits until everything appended so far is written, a second at most.
    pub fn finish(&self) {
        let mut pile = self.0.lock();
        pile.hurry = true;
        self.0.work.notify_one();
        let unwritten = |pile: &mut Pile| pile.writing || !pile.waiting.is_empty();
        let waited = self.0.progress.wait_timeout_while(pile, PATIENCE, unwritten);
        let (pile, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(pile);
        if timeout.timed_out() {
            self.0.tell(format_args!("the last lines of {} are not written yet", self.0.name));
        }
    }

    /// Adds whole lines, as many as there is room for. Never waits for the disk itself; `gap` tells
    /// of lines that had to be dropped before.
    pub fn append(&self, lines: &[u8], gap: Gap) {
        let shared = &*self.0;
        let mut pile = shared.lock();
        let mut rest = lines;
        loop {
            rest = shared.pile_up(&mut pile, rest, gap);
            // Room for one line more, and for what may have to be told before it.
            let line = rest.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let needed = line + MARGIN;
            let waits = shared.when_full == WhenFull::Wait && !pile.gave_up;
            if line == 0 || needed > shared.queue || !waits {
                break;
            }
            let full =
                |pile: &mut Pile| !pile.gave_up && pile.waiting.len() + needed > shared.queue;
            let waited = shared.progress.wait_timeout_while(pile, PATIENCE, full);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            pile = woken;
            pile.gave_up |= timeout.timed_out();
        }
        let dropped = count(rest) as u64;
        pile.missing += dropped;
        pile.untold += dropped;
        if !pile.has_thread && !pile.waiting.is_empty() {
            pile.has_thread = start(&self.0);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_one();
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({})", self.0.name)
    }
}

/// Has every log of this process opened anew, as [`Writer::reopen`] does.
pub fn reopen_all() {
    for shared in lock(&OPEN).iter().filter_map(Weak::upgrade) {
        shared.ask_to_reopen();
    }
}

static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

fn start(shared: &Arc<Shared>) -> bool {
    let own = Arc::clone(shared);
    // If it cannot be started now, the next line tries again.
    thread::Builder::new().name("bine log".to_owned()).spawn(move || own.run()).is_ok()
}

impl Shared {
    fn new(name: String, outlet: Box<dyn Outlet>, troubles: Troubles) -> Self {
        Self {
            name,
            when_full: WhenFull::Drop,
            queue: 4 << 20,
            linger: Duration::ZERO,
            troubles,
            pile: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
            outlet: Mutex::new(outlet),
        }
    }

    /// Adds what there is room for, and returns the rest. The thread is woken for the first line
    /// and for a full batch: each time is a system call.
    fn pile_up<'l>(&self, pile: &mut Pile, lines: &'l [u8], gap: Gap) -> &'l [u8] {
        let before = pile.waiting.len();
        if pile.missing > 0 {
            gap(&mut pile.waiting, pile.missing);
            if pile.waiting.len() < self.queue {
                pile.missing = 0;
            } else {
                pile.waiting.truncate(before);
            }
        }
        let room = self.queue.saturating_sub(pile.waiting.len());
        // Behind a gap that cannot be told yet nothing may follow.
        let room = if pile.missing > 0 { 0 } else { room };
        let (kept, rest) = lines.split_at(whole_lines(lines, room));
        pile.waiting.extend_from_slice(kept);
        let after = pile.waiting.len();
        if (before == 0 && after > 0) || (before < BATCH && after >= BATCH) {
            self.work.notify_one();
        }
        rest
    }

    fn ask_to_reopen(self: &Arc<Self>) {
        let mut pile = self.lock();
        pile.reopen = true;
        if !pile.has_thread {
            pile.has_thread = start(self);
        }
        self.work.notify_one();
    }

    /// The thread: writes until the log is closed, whatever happens meanwhile.
    fn run(&self) {
        let mut batch = Batch::default();
        let mut state = Condition::default();
        while let Err(_panic) =
            catch_unwind(AssertUnwindSafe(|| self.write(&mut batch, &mut state)))
        {
            // What of these lines is written nobody knows; the others are safe.
            let lost = batch.lines_left();
            batch.clear();
            let name = &self.name;
            self.tell(format_args!(
                "the writer of {name} failed and was restarted; {lost} lines may be lost"
            ));
            self.pause(&mut state);
        }
    }

    fn write(&self, batch: &mut Batch, state: &mut Condition) {
        while self.fetch(batch, state) {
            while !batch.rest().is_empty() {
                // Bound here, so that it is unlocked while the thread pauses.
                let written = lock(&self.outlet).write(batch.rest());
                match written {
                    Ok(()) => {
                        batch.clear();
                        self.on_success(state);
                    }
                    Err(Cut { written, error }) => {
                        batch.done += written;
                        self.on_failure(state, &error);
                        let left = batch.lines_left();
                        if left == 0 {
                            break;
                        }
                        if self.lock().closed {
                            let name = &self.name;
                            self.tell(format_args!("{left} lines of {name} are lost: {error}"));
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

    /// Waits for lines and takes them all. `false`: none will come any more.
    fn fetch(&self, batch: &mut Batch, state: &mut Condition) -> bool {
        let mut pile = self.lock();
        pile.writing = false;
        self.progress.notify_all();
        let nothing = |pile: &mut Pile| pile.waiting.is_empty() && !pile.reopen && !pile.closed;
        pile = self.work.wait_while(pile, nothing).unwrap_or_else(PoisonError::into_inner);
        let may_wait = |pile: &mut Pile| {
            pile.waiting.len() < BATCH && !pile.hurry && !pile.reopen && !pile.closed
        };
        if !self.linger.is_zero() {
            let lingered = self.work.wait_timeout_while(pile, self.linger, may_wait);
            pile = lingered.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut pile.waiting, &mut batch.lines);
        let ends = pile.closed && batch.lines.is_empty();
        pile.writing = true;
        (pile.hurry, pile.gave_up) = (false, false);
        let reopen = std::mem::take(&mut pile.reopen);
        let told = state.told_gap.is_some_and(|told| told.elapsed() < PATIENCE) && !ends;
        let dropped = if told { 0 } else { std::mem::take(&mut pile.untold) };
        drop(pile);
        self.progress.notify_all();
        if dropped > 0 {
            state.told_gap = Some(Instant::now());
            let name = &self.name;
            self.tell(format_args!(
                "{dropped} lines of {name} were dropped: they came quicker than it takes them"
            ));
        }
        if reopen {
            let reopened = lock(&self.outlet).reopen();
            if let Err(error) = reopened {
                self.on_failure(state, &error);
            }
        }
        !ends
    }

    fn on_success(&self, state: &mut Condition) {
        if state.told.is_some() {
            (self.troubles)(Level::Notice, format_args!("{} is written again", self.name));
        }
        (state.failures, state.told) = (0, None);
    }

    fn on_failure(&self, state: &mut Condition, error: &io::Error) {
        if state.told.is_none_or(|told| told.elapsed() >= REMINDER) {
            state.told = Some(Instant::now());
            self.tell(format_args!("{} cannot be written: {error}", self.name));
        }
    }

    /// Lets some time pass before the next attempt, more each time, unless the log is to be opened
    /// anew or closed.
    fn pause(&self, state: &mut Condition) {
        let pause = SHORTEST.saturating_mul(1 << state.failures.min(16)).min(LONGEST);
        state.failures += 1;
        let pile = self.lock();
        let nothing = |pile: &mut Pile| !pile.reopen && !pile.closed;
        let passed = self.work.wait_timeout_while(pile, pause, nothing);
        passed.unwrap_or_else(PoisonError::into_inner).0.reopen = false;
    }

    fn tell(&self, trouble: fmt::Arguments<'_>) {
        (self.troubles)(Level::Error, trouble);
    }

    fn lock(&self) -> MutexGuard<'_, Pile> {
        lock(&self.pile)
    }
}

/// Lines that the thread has taken.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    /// So many bytes of them are written.
    done: usize,
}

impl Batch {
    /// A buffer above this size, which a burst has left, is given back to the system.
    const KEPT: usize = 4 * BATCH;

    fn rest(&self) -> &[u8] {
        &self.lines[self.done..]
    }

    fn lines_left(&self) -> usize {
        count(self.rest())
    }

    fn clear(&mut self) {
        self.done = 0;
        self.lines.clear();
        if self.lines.capacity() > Self::KEPT {
            self.lines = Vec::new();
        }
    }
}

/// How the thread's log has been doing.
#[derive(Default)]
struct Condition {
    /// In a row.
    failures: u32,
    /// When the error log was last told of the trouble that lasts.
    told: Option<Instant>,
    /// When it was last told of lines dropped.
    told_gap: Option<Instant>,
}

fn name_of(path: &Path) -> String {
    format!("the log {}", path.display())
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves nothing in here in a state worse than it was.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count(lines: &[u8]) -> usize {
    lines.split(|byte| *byte == b'\n').count() - 1
}

/// Length of the lines at the front of `lines` that fit into `room`.
fn whole_lines(lines: &[u8], room: usize) -> usize {
    if lines.len() <= room {
        return lines.len();
    }
    lines[..room].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests;
