//! Decides what time it is: read once per turn, in ticks that cost one field to store.

use core::cell::{Cell, RefCell};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use bine_http::Date;

/// A moment in milliseconds since its clock began.
///
/// Four bytes, because every connection stores one. It wraps after 49 days, so two moments are
/// only comparable when they lie within 24 days of each other; every timeout here does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tick(u32);

impl Tick {
    /// The moment `milliseconds` after the clock's beginning.
    pub const fn at(milliseconds: u32) -> Self {
        Self(milliseconds)
    }

    /// This moment moved forward. Durations past 24 days are cut to 24 days.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        const LONGEST: u128 = i32::MAX as u128;
        Self(self.0.wrapping_add(duration.as_millis().min(LONGEST) as u32))
    }

    /// True when this moment has come at `now`.
    pub fn has_come(self, now: Self) -> bool {
        self.0.wrapping_sub(now.0).cast_signed() <= 0
    }

    /// True when this moment lies before `other`.
    pub fn is_before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// How long until this moment, zero when it has come.
    pub fn since(self, now: Self) -> Duration {
        let ahead = self.0.wrapping_sub(now.0).cast_signed();
        Duration::from_millis(u64::try_from(ahead).unwrap_or(0))
    }

    /// How much time has passed since `earlier`, which no moment here is later than: up to 49 days.
    pub(crate) fn elapsed_since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::from(self.0.wrapping_sub(earlier.0)))
    }

    /// The earlier of two moments.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        if self.is_before(other) { self } else { other }
    }

    pub(crate) const fn milliseconds(self) -> u32 {
        self.0
    }
}

/// One thread's clock. [`turn`](Self::turn) reads the kernel's coarse clocks, everything else
/// reads cells, so that a batch of requests costs two readings (about 5 ns each) and one `Date`.
pub struct Clock {
    source: Source,
    /// Milliseconds since its beginning at the last reading.
    read: Cell<u64>,
    /// When `unix` was read.
    unix_read: Cell<Tick>,
    unix: Cell<u64>,
    date: RefCell<Date>,
}

enum Source {
    /// Milliseconds of the monotonic clock at the beginning of the first.
    Kernel { origin: u64 },
    /// Moves only when told to; for tests.
    Told,
}

impl Clock {
    /// A clock that follows the kernel's.
    pub fn kernel() -> Self {
        // One beginning for all: a connection takes its deadline along from thread to thread.
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

    /// A clock that stands at `unix` seconds until [`advance`](Self::advance) moves it.
    pub fn told(unix: u64) -> Self {
        Self {
            source: Source::Told,
            read: Cell::new(0),
            unix_read: Cell::new(Tick(0)),
            unix: Cell::new(unix),
            date: RefCell::new(Date::at(unix)),
        }
    }

    /// Reads the kernel's clocks; called once per turn.
    pub fn turn(&self) -> Tick {
        let now = self.glance();
        // The coarse clocks move together, every few milliseconds; most turns are shorter.
        if self.unix_read.replace(now) != now && matches!(self.source, Source::Kernel { .. }) {
            self.set(unix_seconds());
        }
        now
    }

    /// Reads only the monotonic clock: how long did that take?
    pub fn glance(&self) -> Tick {
        if let Source::Kernel { origin } = self.source {
            self.read.set(monotonic_milliseconds().wrapping_sub(origin));
        }
        self.now()
    }

    /// Microseconds since some beginning, read from the fine clock (about 20 ns): for whoever wants
    /// to know how long something took.
    pub(crate) fn microseconds(&self) -> u64 {
        match self.source {
            Source::Kernel { .. } => {
                let time = clock_gettime(ClockId::Monotonic);
                time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1000
            }
            Source::Told => self.read.get() * 1000,
        }
    }

    /// Moves a told clock forward.
    pub fn advance(&self, duration: Duration) {
        debug_assert!(matches!(self.source, Source::Told), "the kernel moves its own clock");
        let before = self.read.get();
        let total = before + duration.as_millis() as u64;
        self.set(self.unix.get() + total / 1000 - before / 1000);
        self.read.set(total);
    }

    /// Sets the wall clock alone, which may go back, to `unix` seconds.
    #[cfg(test)]
    pub(crate) fn jump(&self, unix: u64) {
        self.set(unix);
    }

    /// The moment of the last reading.
    pub fn now(&self) -> Tick {
        Tick(self.read.get() as u32)
    }

    /// Milliseconds between the clock's beginning and the last reading: does not wrap.
    pub(crate) const fn milliseconds(&self) -> u64 {
        self.read.get()
    }

    /// Seconds since 1970 at the last turn.
    pub fn unix(&self) -> u64 {
        self.unix.get()
    }

    /// The `Date` line of the last turn.
    pub fn date(&self) -> Date {
        *self.date.borrow()
    }

    fn set(&self, unix: u64) {
        if self.unix.replace(unix) != unix {
            self.date.replace(Date::at(unix));
        }
    }
}

/// Milliseconds since some beginning, the same for all threads.
pub(crate) fn monotonic_milliseconds() -> u64 {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    time.tv_sec.cast_unsigned() * 1000 + time.tv_nsec.cast_unsigned() / 1_000_000
}

pub(crate) fn unix_seconds() -> u64 {
    // Before 1970 the clock is plainly not set; the epoch is as good an answer as any.
    u64::try_from(clock_gettime(ClockId::RealtimeCoarse).tv_sec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_comes_even_when_the_tick_wraps() {
        let before = Tick(u32::MAX - 10);
        let deadline = before.after(Duration::from_millis(20));
        assert_eq!(deadline, Tick(9));
        assert!(!deadline.has_come(before));
        assert!(deadline.has_come(Tick(9)));
        assert!(deadline.has_come(Tick(10)));
        assert!(before.is_before(deadline));
        assert_eq!(deadline.since(before), Duration::from_millis(20));
        assert_eq!(before.since(deadline), Duration::ZERO);
    }

    #[test]
    fn a_told_clock_moves_its_date_with_its_ticks() {
        let clock = Clock::told(1_795_208_399);
        clock.advance(Duration::from_millis(600));
        assert_eq!(clock.unix(), 1_795_208_399);
        clock.advance(Duration::from_millis(600));
        assert_eq!((clock.unix(), clock.now()), (1_795_208_400, Tick(1200)));
        assert_eq!(clock.date().as_bytes(), Date::at(1_795_208_400).as_bytes());
    }
}
