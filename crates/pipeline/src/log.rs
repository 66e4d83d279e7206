//! Decides how lines reach a log: through a writer thread, so that a slow disk, a full one or a
//! pipe that nobody reads never holds up a loop.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes that may wait for a writer; what comes on top is dropped and counted.
const PILE: usize = 1 << 20;
/// How long [`Writer::finish`] waits for the last lines.
const PATIENCE: Duration = Duration::from_secs(1);

/// A log with a thread of its own.
pub struct Writer {
    pile: Mutex<Pile>,
    changed: Condvar,
    /// The file, until its thread has it.
    target: Mutex<Option<File>>,
}

#[derive(Default)]
struct Pile {
    waiting: Vec<u8>,
    dropped: u64,
    writing: bool,
}

impl Writer {
    /// Will append to the file at `path`, which is opened now, and made if need be.
    pub fn to_file(path: &Path) -> io::Result<Arc<Self>> {
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot open the log {}: {error}", path.display()))
        })?;
        Ok(Arc::new(Self { target: Mutex::new(Some(file)), ..Self::stopped() }))
    }

    /// Starts the thread that writes. A thread keeps the rights it was born with, so this comes
    /// after those that open a log have been given up.
    pub fn start(self: &Arc<Self>) -> io::Result<()> {
        let target = self.target.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut target) = target else { return Ok(()) };
        let own = Arc::clone(self);
        thread::Builder::new()
            .name("bine log".to_owned())
            .spawn(move || own.run(|lines| target.write_all(lines)))?;
        Ok(())
    }

    /// A log without its thread: lines only gather. The base of the others, and a test double.
    pub(crate) fn stopped() -> Self {
        Self { pile: Mutex::default(), changed: Condvar::new(), target: Mutex::default() }
    }

    /// Adds whole lines, as many as there is room for. Never waits for the disk.
    pub fn append(&self, lines: &[u8]) {
        let mut pile = self.lock();
        let room = PILE.saturating_sub(pile.waiting.len());
        let (kept, dropped) = lines.split_at(whole_lines(lines, room));
        pile.dropped += dropped.split(|byte| *byte == b'\n').count() as u64 - 1;
        if kept.is_empty() {
            return;
        }
        let was_empty = pile.waiting.is_empty();
        pile.waiting.extend_from_slice(kept);
        drop(pile);
        if was_empty {
            self.changed.notify_all();
        }
    }

    /// Waits until everything appended so far is written, a second at most.
    pub fn finish(&self) {
        let pile = self.lock();
        let left = self
            .changed
            .wait_timeout_while(pile, PATIENCE, |pile| pile.writing || !pile.waiting.is_empty());
        drop(left.unwrap_or_else(PoisonError::into_inner));
    }

    fn run(&self, mut write: impl FnMut(&[u8]) -> io::Result<()>) {
        let mut lines = Vec::new();
        loop {
            let mut pile = self.lock();
            pile.writing = false;
            self.changed.notify_all();
            while pile.waiting.is_empty() {
                pile = self.changed.wait(pile).unwrap_or_else(PoisonError::into_inner);
            }
            std::mem::swap(&mut pile.waiting, &mut lines);
            pile.writing = true;
            let dropped = std::mem::take(&mut pile.dropped);
            drop(pile);
            if dropped > 0 {
                error(format_args!(
                    "{dropped} log lines were dropped: the log is slower than they came"
                ));
            }
            if let Err(fault) = write(&lines) {
                error(format_args!("a log cannot be written: {fault}"));
            }
            lines.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pile> {
        // A panic cannot leave a pile of bytes in a state worse than it was.
        self.pile.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Length of the lines at the front of `lines` that fit into `room`.
fn whole_lines(lines: &[u8], room: usize) -> usize {
    if lines.len() <= room {
        return lines.len();
    }
    lines[..room].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

/// Says that something is wrong, on standard error.
pub fn error(message: fmt::Arguments<'_>) {
    say("error", message);
}

/// Says that something should be looked at, on standard error.
pub fn warn(message: fmt::Arguments<'_>) {
    say("warning", message);
}

/// Waits until what was said is written, a second at most.
pub fn finish() {
    if let Some(writer) = STANDARD_ERROR.get() {
        writer.finish();
    }
}

static STANDARD_ERROR: OnceLock<Arc<Writer>> = OnceLock::new();

fn say(level: &str, message: fmt::Arguments<'_>) {
    let writer = STANDARD_ERROR.get_or_init(|| {
        let writer = Arc::new(Writer::stopped());
        let own = Arc::clone(&writer);
        // A thread that cannot be started costs us the messages, not the service.
        let _ = thread::Builder::new().name("bine errors".to_owned()).spawn(move || {
            // When standard error itself is gone there is nobody left to tell.
            own.run(|lines| {
                let _ = io::stderr().write_all(lines);
                Ok(())
            });
        });
        writer
    });
    writer.append(format!("bine: {level}: {message}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_is_in_the_file_when_finish_returns() {
        let path = std::env::temp_dir().join(format!("bine-log-{}", std::process::id()));
        let writer = Writer::to_file(&path).unwrap();
        writer.start().unwrap();
        for number in 0..1000 {
            writer.append(format!("line {number}\n").as_bytes());
        }
        writer.finish();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1000);
        assert!(text.ends_with("line 999\n"));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_pile_that_nobody_writes_stays_bounded_and_counts_what_it_drops() {
        let writer = Writer::stopped();
        for _ in 0..5 {
            writer.append(&b"0123456789abcde\n".repeat(PILE / 32));
        }
        let pile = writer.lock();
        assert_eq!(pile.waiting.len(), PILE);
        assert_eq!(pile.dropped, 3 * PILE as u64 / 32);
    }

    /// A batch that did not fit was dropped whole: a thread that had gathered a mebibyte lost all of
    /// it although the log was idle. What fits is kept.
    #[test]
    fn of_lines_that_do_not_all_fit_the_first_are_kept() {
        let writer = Writer::stopped();
        writer.append(&b"0123456789abcd\n".repeat(PILE / 10));
        let pile = writer.lock();
        assert_eq!(pile.waiting.len(), PILE / 15 * 15);
        assert!(pile.waiting.ends_with(b"d\n"));
        assert_eq!(pile.dropped as usize, PILE / 10 - PILE / 15);
    }
}
