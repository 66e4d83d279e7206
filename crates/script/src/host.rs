//! The host's functions for an instance: time, random bytes, and a place for messages.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use crate::error::ScriptError;

/// The clock of an instance. The engine reads no other, except that `Date` reads the system's.
pub trait Clock {
    /// The time since some fixed instant. It never decreases.
    fn now(&self) -> Duration;

    /// The processor time of the current thread, which does not pass while the system runs other
    /// programs. The engine reads it only after [`now`](Self::now) is past a limit of run time.
    ///
    /// A host on Linux reads the clock `CLOCK_THREAD_CPUTIME_ID`:
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use rustix::time::{ClockId, clock_gettime};
    ///
    /// fn thread_time() -> Duration {
    ///     let time = clock_gettime(ClockId::ThreadCPUTime);
    ///     Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
    /// }
    ///
    /// let begun = thread_time();
    /// assert!((0..1000).map(|number| number * 2).sum::<u64>() > 0);
    /// assert!(thread_time() >= begun);
    /// ```
    ///
    /// The default is [`now`](Self::now), which gives a script twice the limit of run time, however
    /// busy the machine is.
    fn thread_time(&self) -> Duration {
        self.now()
    }

    /// Completes at the given time of this clock.
    fn sleep_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// The source of `crypto.getRandomValues` and `crypto.randomUUID`.
pub trait Randomness {
    /// Fills `bytes` with bytes that an attacker cannot predict.
    fn fill(&self, bytes: &mut [u8]);
}

/// Receives what scripts write to `console`, and failures that no caller waits for.
pub trait Messages {
    /// A script has called `console.log` or one of its siblings.
    fn log(&self, level: Level, text: &str);

    /// A timer's function has thrown, or a promise was rejected without a handler.
    fn report(&self, error: &ScriptError);
}

/// The method of `console` that a script has called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `console.debug`.
    Debug,
    /// `console.log` and `console.info`.
    Info,
    /// `console.warn`.
    Warning,
    /// `console.error`.
    Error,
}

/// The host of one instance.
pub struct Host {
    /// The clock.
    pub clock: Box<dyn Clock>,
    /// The source of random bytes.
    pub randomness: Box<dyn Randomness>,
    /// The receiver of messages.
    pub messages: Box<dyn Messages>,
}

/// A start of the system's monotonic clock, for implementations of [`Clock`].
#[derive(Clone, Copy, Debug)]
pub struct MonotonicStart(Instant);

impl MonotonicStart {
    /// Begins at the current instant.
    #[expect(clippy::new_without_default, reason = "two starts differ, so none is the default")]
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// The instant at a time of this clock.
    pub fn at(self, time: Duration) -> Instant {
        self.0 + time
    }
}
