//! Decides when a loop with nothing to do wakes: one kernel timer among its other events, so that
//! a wait is the same system call whether or not anything is due later.
//!
//! A wait with a time-out of its own would read a clock and set up a timer in the kernel each time;
//! this one is set anew only when something is due earlier than it rings.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::time::Tick;

pub(super) struct Alarm<T> {
    timer: T,
    rings: Option<Tick>,
}

/// Expires once, after the time it was last set to.
pub(crate) trait Timer {
    fn set(&self, wait: Duration) -> io::Result<()>;
}

/// A timerfd.
pub(crate) struct KernelTimer(OwnedFd);

/// Our ticks come from a clock that may lag by one step of the kernel's (4 ms at 250 Hz): a timer
/// that rang on the dot would find its moment not yet come.
const LAG: Duration = Duration::from_millis(5);

impl<T: Timer> Alarm<T> {
    pub(super) const fn new(timer: T) -> Self {
        Self { timer, rings: None }
    }

    /// Rings at `moment` at the latest.
    pub(super) fn ring_by(&mut self, moment: Tick, now: Tick) {
        if self.rings.is_some_and(|rings| !moment.is_before(rings)) {
            return;
        }
        // The arguments are in range and the descriptor is ours: the call has no way to fail.
        if self.timer.set(moment.since(now) + LAG).is_ok() {
            self.rings = Some(moment);
        }
    }

    /// It rang, or nothing needs it any more.
    pub(super) const fn rang(&mut self) {
        self.rings = None;
    }
}

impl KernelTimer {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, flags)?))
    }
}

impl Timer for KernelTimer {
    fn set(&self, wait: Duration) -> io::Result<()> {
        let it_value = Timespec {
            tv_sec: wait.as_secs().cast_signed(),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

impl AsFd for KernelTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
