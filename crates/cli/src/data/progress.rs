//! Reports the progress of an operation that takes longer than a second.

use std::io::{self, IsTerminal, Read, Write};
use std::time::{Duration, Instant};

/// Prints progress to standard error: on a terminal it redraws one line, elsewhere it prints a line
/// every few seconds.
pub(super) struct ProgressMeter {
    verb: &'static str,
    /// The expected number of bytes, if known.
    total: Option<u64>,
    is_terminal: bool,
    /// The earliest time of the next report.
    due: Instant,
    is_shown: bool,
}

/// The duration after which the first report appears.
const FIRST_REPORT: Duration = Duration::from_secs(1);
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const LINE_INTERVAL: Duration = Duration::from_secs(5);

impl ProgressMeter {
    /// Creates a meter; `verb` describes the operation on the bytes: read or written.
    pub(super) fn new(verb: &'static str, total: Option<u64>) -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self { verb, total, is_terminal, due: Instant::now() + FIRST_REPORT, is_shown: false }
    }

    /// Reports `done` bytes of `total` (if known), unless the last report is too recent.
    pub(super) fn show(&mut self, done: u64, total: Option<u64>) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        let text = progress_text(done, total.or(self.total), self.verb);
        if self.is_terminal {
            // Overwrites the line.
            eprint!("\r{text}\x1b[K");
            self.due = now + REDRAW_INTERVAL;
        } else {
            eprintln!("bine: {text}");
            self.due = now + LINE_INTERVAL;
        }
        self.is_shown = true;
    }
}

impl Drop for ProgressMeter {
    fn drop(&mut self) {
        if self.is_shown && self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}

/// A reader or writer that reports its bytes.
pub(super) struct Counted<I> {
    inner: I,
    meter: ProgressMeter,
    done: u64,
}

impl<I> Counted<I> {
    pub(super) const fn new(inner: I, meter: ProgressMeter) -> Self {
        Self { inner, meter, done: 0 }
    }

    fn count(&mut self, bytes: usize) -> usize {
        self.done += bytes as u64;
        self.meter.show(self.done, None);
        bytes
    }
}

impl<I: Read> Read for Counted<I> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(to)?;
        Ok(self.count(read))
    }
}

impl<I: Write> Write for Counted<I> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        Ok(self.count(written))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn progress_text(done: u64, total: Option<u64>, verb: &str) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    match total.filter(|total| *total > 0) {
        None => format!("{:.1} MB {verb}", megabytes(done)),
        Some(total) => {
            // A file may grow while it is read.
            let share = (done as f64 / total as f64 * 100.0).min(100.0);
            format!("{:.1} of {:.1} MB {verb}, {share:.0} %", megabytes(done), megabytes(total))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_percentage_if_total_is_known() {
        assert_eq!(progress_text(1_500_000, Some(6_000_000), "read"), "1.5 of 6.0 MB read, 25 %");
        assert_eq!(progress_text(7_000_000, Some(6_000_000), "read"), "7.0 of 6.0 MB read, 100 %");
        assert_eq!(progress_text(0, Some(0), "read"), "0.0 MB read");
        assert_eq!(progress_text(1_500_000, None, "written"), "1.5 MB written");
    }

    #[test]
    fn counts_bytes_read() {
        let mut counted = Counted::new(&b"hops"[..], ProgressMeter::new("read", None));
        assert_eq!(io::read_to_string(&mut counted).unwrap(), "hops");
        assert_eq!(counted.done, 4);
    }

    #[test]
    fn reports_only_when_due() {
        let mut meter = ProgressMeter::new("read", None);
        meter.due += Duration::from_hours(1);
        meter.show(1, None);
        assert!(!meter.is_shown);
        meter.due = Instant::now();
        meter.show(2, None);
        assert!(meter.is_shown);
    }
}
