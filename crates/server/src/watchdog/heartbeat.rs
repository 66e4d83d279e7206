//! Heartbeats: how a service manager learns that the loops of this process turn.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::system::{notify, take_heartbeat, watchdog_limit};

/// Tells the service manager, or a supervisor that passes it on, that the loops turn (`sd_watchdog_enabled(3)`).
pub(super) struct Heartbeat {
    interval: Duration,
    /// Where the supervisor listens; `None`: the service manager itself does.
    supervisor: Option<UnixStream>,
}

impl Heartbeat {
    /// `None` when nobody expects one of this process.
    pub(super) fn of_environment() -> Option<Self> {
        let limit = watchdog_limit()?;
        let supervisor = take_heartbeat();
        let meant = std::env::var("WATCHDOG_PID").ok();
        let is_meant = meant.is_none_or(|meant| meant == std::process::id().to_string());
        (supervisor.is_some() || is_meant).then_some(Self { interval: limit / 4, supervisor })
    }

    /// The longest time that may pass between two beats.
    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    pub(super) fn beat(&mut self) {
        match &mut self.supervisor {
            // A supervisor that has fallen so far behind needs no further beat.
            Some(supervisor) => _ = supervisor.write(&[0]),
            None => notify("WATCHDOG=1"),
        }
    }
}
