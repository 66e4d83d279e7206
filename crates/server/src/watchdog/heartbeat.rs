//! Heartbeats, which inform a service manager that the event loops of this process make progress.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::system::{notify, take_heartbeat, watchdog_limit};

/// Sends heartbeats to the service manager, directly or through a supervisor
/// (`sd_watchdog_enabled(3)`).
pub(super) struct Heartbeat {
    interval: Duration,
    /// Connection to the supervisor; `None` when the service manager receives heartbeats directly.
    supervisor: Option<UnixStream>,
}

impl Heartbeat {
    /// Reads the environment. Returns `None` when no heartbeat is expected from this process.
    pub(super) fn of_environment() -> Option<Self> {
        let limit = watchdog_limit()?;
        let supervisor = take_heartbeat();
        let meant = std::env::var("WATCHDOG_PID").ok();
        let is_meant = meant.is_none_or(|meant| meant == std::process::id().to_string());
        (supervisor.is_some() || is_meant).then_some(Self { interval: limit / 4, supervisor })
    }

    /// Returns the maximum time between two heartbeats.
    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    pub(super) fn beat(&mut self) {
        match &mut self.supervisor {
            // The write fails when the supervisor has not read earlier heartbeats; then it needs no
            // further one.
            Some(supervisor) => _ = supervisor.write(&[0]),
            None => notify("WATCHDOG=1"),
        }
    }
}
