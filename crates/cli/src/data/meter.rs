//! Decides what somebody who waits for more than a second is told of how far it is.

use std::io::{self, IsTerminal, Read, Write};
use std::time::{Duration, Instant};

/// Tells on standard error how much has been done: on a terminal in one line, else in a line now and then.
pub(super) struct Meter {
    what: &'static str,
    /// Bytes there will be, if that is known.
    all: Option<u64>,
    is_terminal: bool,
    /// When it tells next.
    due: Instant,
    has_told: bool,
}

/// What takes no longer needs no telling.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAWN: Duration = Duration::from_millis(100);
const REPEATED: Duration = Duration::from_secs(5);

impl Meter {
    /// One of bytes that are `what`: read, written.
    pub(super) fn new(what: &'static str, all: Option<u64>) -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self { what, all, is_terminal, due: Instant::now() + PATIENCE, has_told: false }
    }

    /// Says so if it is time to: so many bytes are done, of so many if that is known.
    pub(super) fn show(&mut self, done: u64, all: Option<u64>) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        let text = told(done, all.or(self.all), self.what);
        if self.is_terminal {
            // Over what stood there, to the end of the line.
            eprint!("\r{text}\x1b[K");
            self.due = now + REDRAWN;
        } else {
            eprintln!("bine: {text}");
            self.due = now + REPEATED;
        }
        self.has_told = true;
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.has_told && self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}

/// A reader or writer whose bytes are told.
pub(super) struct Counted<I> {
    inner: I,
    meter: Meter,
    done: u64,
}

impl<I> Counted<I> {
    pub(super) const fn new(inner: I, meter: Meter) -> Self {
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

fn told(done: u64, all: Option<u64>, what: &str) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    match all.filter(|all| *all > 0) {
        None => format!("{:.1} MB {what}", megabytes(done)),
        Some(all) => {
            // A file may grow while it is read.
            let share = (done as f64 / all as f64 * 100.0).min(100.0);
            format!("{:.1} of {:.1} MB {what}, {share:.0} %", megabytes(done), megabytes(all))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_with_their_share_where_all_are_known() {
        assert_eq!(told(1_500_000, Some(6_000_000), "read"), "1.5 of 6.0 MB read, 25 %");
        assert_eq!(told(7_000_000, Some(6_000_000), "read"), "7.0 of 6.0 MB read, 100 %");
        assert_eq!(told(0, Some(0), "read"), "0.0 MB read");
        assert_eq!(told(1_500_000, None, "written"), "1.5 MB written");
    }

    #[test]
    fn bytes_that_pass_are_counted() {
        let mut counted = Counted::new(&b"hops"[..], Meter::new("read", None));
        assert_eq!(io::read_to_string(&mut counted).unwrap(), "hops");
        assert_eq!(counted.done, 4);
    }

    #[test]
    fn what_is_not_due_is_not_told() {
        let mut meter = Meter::new("read", None);
        meter.due += Duration::from_hours(1);
        meter.show(1, None);
        assert!(!meter.has_told);
        meter.due = Instant::now();
        meter.show(2, None);
        assert!(meter.has_told);
    }
}
