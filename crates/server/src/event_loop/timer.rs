//! The timer that wakes an idle loop for its next deadline.
//!
//! It is one kernel timer among the loop's other events. A wait with a timeout would read a clock
//! and set up a timer in the kernel for each wait; this timer is set again only when a deadline is
//! earlier than the one it is set for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::time::Tick;

/// A [`Timer`] and the deadline for which it is set.
pub(super) struct LoopTimer<T> {
    timer: T,
    armed_for: Option<Tick>,
}

/// A one-shot timer. Setting it again replaces the previous time.
pub(crate) trait Timer {
    fn set(&self, wait: Duration) -> io::Result<()>;
}

/// How a timer is opened: a read does not block, and child processes do not inherit it.
const FLAGS: TimerfdFlags = TimerfdFlags::CLOEXEC.union(TimerfdFlags::NONBLOCK);

/// A timerfd.
pub(crate) struct KernelTimer(OwnedFd);

/// Ticks are read from a clock that may be late by one kernel tick (4 ms at 250 Hz). If the timer
/// expired exactly at the deadline, the loop could read a time before it.
const LAG: Duration = Duration::from_millis(5);

impl<T: Timer> LoopTimer<T> {
    pub(super) const fn new(timer: T) -> Self {
        Self { timer, armed_for: None }
    }

    /// Makes the timer expire at `deadline` or earlier.
    pub(super) fn arm(&mut self, deadline: Tick, now: Tick) {
        if self.armed_for.is_some_and(|armed_for| !deadline.is_before(armed_for)) {
            return;
        }
        // The call cannot fail: its arguments are in range and the descriptor is valid.
        if self.timer.set(deadline.since(now) + LAG).is_ok() {
            self.armed_for = Some(deadline);
        }
    }

    /// Records that the timer has expired.
    pub(super) const fn expired(&mut self) {
        self.armed_for = None;
    }
}

impl KernelTimer {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, FLAGS)?))
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
