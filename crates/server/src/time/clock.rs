//! The clock of one thread, which reads the kernel once per turn of the loop, and its 4-byte
//! timestamps.

use core::cell::{Cell, RefCell};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use bine_http::Date;

/// A timestamp in milliseconds since its clock started.
///
/// It has 4 bytes because every connection stores one. It wraps after 49 days, so a comparison of
/// two ticks is only correct when they are at most 24 days apart. Every timeout of the server is
/// shorter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tick(u32);

impl Tick {
    /// Creates the tick `milliseconds` after the start of the clock.
    pub const fn at(milliseconds: u32) -> Self {
        Self(milliseconds)
    }

    /// Adds a duration to the tick. A duration longer than 24 days counts as 24 days.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        const LONGEST: u128 = i32::MAX as u128;
        Self(self.0.wrapping_add(duration.as_millis().min(LONGEST) as u32))
    }

    /// Whether the tick is at or before `now`.
    pub fn has_come(self, now: Self) -> bool {
        self.0.wrapping_sub(now.0).cast_signed() <= 0
    }

    /// Whether the tick is earlier than `other`.
    pub fn is_before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// Returns the time from `now` to this tick, or zero when the tick has passed.
    pub fn since(self, now: Self) -> Duration {
        let ahead = self.0.wrapping_sub(now.0).cast_signed();
        Duration::from_millis(u64::try_from(ahead).unwrap_or(0))
    }

    /// Returns the time from `earlier` to this tick, up to 49 days. `earlier` must not be later
    /// than this tick.
    pub(crate) fn elapsed_since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::from(self.0.wrapping_sub(earlier.0)))
    }

    /// Returns the earlier of two ticks.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        if self.is_before(other) { self } else { other }
    }

    pub(crate) const fn milliseconds(self) -> u32 {
        self.0
    }
}

/// The clock of one thread.
///
/// [`turn`](Self::turn) reads the kernel's coarse clocks; all other methods read cells. A batch of
/// requests therefore costs two clock readings (about 5 ns each) and formats one `Date`.
pub struct Clock {
    source: Source,
    /// Milliseconds from the start of the clock to the last reading.
    read: Cell<u64>,
    /// The tick at which `unix` was read.
    unix_read: Cell<Tick>,
    unix: Cell<u64>,
    date: RefCell<Date>,
}

enum Source {
    /// The monotonic clock in milliseconds when the process created its first clock.
    Kernel { origin: u64 },
    /// A clock that only [`Clock::advance`] moves, for tests.
    Told,
}

impl Clock {
    /// Creates a clock that follows the kernel's.
    pub fn kernel() -> Self {
        // All threads share one origin, because a connection keeps its deadline when it moves to
        // another thread.
        static ORIGIN: OnceLock<u64> = OnceLock::new();
        let unix = unix_seconds();
        Self {
            source: Source::Kernel { origin: *ORIGIN.get_or_init(monotonic_milliseconds) },
            read: Cell::new(0),
            unix_read: Cell::new(Tick(0)),
            unix: Cell::new(unix),
            date: RefCell::new(Date::at(unix)),
        }
    }

    /// Creates a test clock at `unix` seconds, which only [`advance`](Self::advance) moves.
    pub fn told(unix: u64) -> Self {
        Self {
            source: Source::Told,
            read: Cell::new(0),
            unix_read: Cell::new(Tick(0)),
            unix: Cell::new(unix),
            date: RefCell::new(Date::at(unix)),
        }
    }

    /// Reads the monotonic and the wall clock. The loop calls it once per turn.
    pub fn turn(&self) -> Tick {
        let now = self.glance();
        // Both coarse clocks advance together, every few milliseconds. Most turns are shorter, so
        // they skip the second reading.
        if self.unix_read.replace(now) != now && matches!(self.source, Source::Kernel { .. }) {
            self.set(unix_seconds());
        }
        now
    }

    /// Reads the monotonic clock only, to measure how long an operation took.
    pub fn glance(&self) -> Tick {
        if let Source::Kernel { origin } = self.source {
            self.read.set(monotonic_milliseconds().wrapping_sub(origin));
        }
        self.now()
    }

    /// Returns microseconds since an arbitrary origin, from the fine clock (about 20 ns), for
    /// measuring durations.
    pub(crate) fn microseconds(&self) -> u64 {
        match self.source {
            Source::Kernel { .. } => {
                let time = clock_gettime(ClockId::Monotonic);
                time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1000
            }
            Source::Told => self.read.get() * 1000,
        }
    }

    /// Advances a test clock.
    pub fn advance(&self, duration: Duration) {
        debug_assert!(matches!(self.source, Source::Told), "the kernel moves its own clock");
        let before = self.read.get();
        let total = before + duration.as_millis() as u64;
        self.set(self.unix.get() + total / 1000 - before / 1000);
        self.read.set(total);
    }

    /// Sets only the wall clock to `unix` seconds, which may be earlier than before.
    #[cfg(test)]
    pub(crate) fn jump(&self, unix: u64) {
        self.set(unix);
    }

    /// Returns the tick of the last reading.
    pub fn now(&self) -> Tick {
        Tick(self.read.get() as u32)
    }

    /// Returns the milliseconds from the start of the clock to the last reading. This count does
    /// not wrap.
    pub(crate) const fn milliseconds(&self) -> u64 {
        self.read.get()
    }

    /// Returns the seconds since 1970 at the last turn.
    pub fn unix(&self) -> u64 {
        self.unix.get()
    }

    /// Returns the `Date` header of the last turn.
    pub fn date(&self) -> Date {
        *self.date.borrow()
    }

    fn set(&self, unix: u64) {
        if self.unix.replace(unix) != unix {
            self.date.replace(Date::at(unix));
        }
    }
}

/// Returns milliseconds since an arbitrary origin that all threads share.
pub(crate) fn monotonic_milliseconds() -> u64 {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    time.tv_sec.cast_unsigned() * 1000 + time.tv_nsec.cast_unsigned() / 1_000_000
}

pub(crate) fn unix_seconds() -> u64 {
    // A clock before 1970 is not set; the epoch replaces it.
    u64::try_from(clock_gettime(ClockId::RealtimeCoarse).tv_sec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_time_of_the_system() {
        let system = || {
            let now = std::time::SystemTime::now();
            now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
        };
        let before = system();
        let read = Clock::kernel().unix();
        // The kernel updates the coarse clock a few hundred times a second.
        assert!((before - 1..=system()).contains(&read), "{before} {read}");
    }

    #[test]
    fn measures_in_microseconds() {
        let system = || {
            let time = clock_gettime(ClockId::Monotonic);
            time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1000
        };
        let before = system();
        let read = Clock::kernel().microseconds();
        assert!((before..=system()).contains(&read), "{before} {read}");
        let told = Clock::told(0);
        told.advance(Duration::from_millis(1500));
        assert_eq!(told.microseconds(), 1_500_000);
    }

    #[test]
    fn compares_ticks_across_the_wrap() {
        let before = Tick(u32::MAX - 10);
        let deadline = before.after(Duration::from_millis(20));
        assert_eq!(deadline, Tick(9));
        assert!(!deadline.has_come(before));
        assert!(deadline.has_come(Tick(9)));
        assert!(deadline.has_come(Tick(10)));
        assert!(before.is_before(deadline));
        assert!(!deadline.is_before(before) && !deadline.is_before(deadline));
        assert_eq!((before.earlier(deadline), deadline.earlier(before)), (before, before));
        assert_eq!(deadline.elapsed_since(before), Duration::from_millis(20));
        assert_eq!(deadline.since(before), Duration::from_millis(20));
        assert_eq!(before.since(deadline), Duration::ZERO);
    }

    #[test]
    fn advances_the_date_with_the_test_clock() {
        let clock = Clock::told(1_795_208_399);
        clock.advance(Duration::from_millis(600));
        assert_eq!(clock.unix(), 1_795_208_399);
        clock.advance(Duration::from_millis(600));
        assert_eq!((clock.unix(), clock.now()), (1_795_208_400, Tick(1200)));
        assert_eq!(clock.date().as_bytes(), Date::at(1_795_208_400).as_bytes());
    }

    #[test]
    fn keeps_the_time_of_a_test_clock_in_its_turns() {
        let clock = Clock::told(1000);
        clock.turn();
        clock.advance(Duration::from_secs(2));
        assert_eq!((clock.turn(), clock.unix()), (clock.now(), 1002));
    }
}
