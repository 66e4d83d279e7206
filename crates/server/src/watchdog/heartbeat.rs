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
        Self::within(limit, take_heartbeat(), std::env::var("WATCHDOG_PID").ok().as_deref())
    }

    /// Returns the heartbeat for the limit of the service manager. `meant` is the process that the
    /// limit applies to; a supervisor passes the heartbeats of its server on.
    fn within(
        limit: Duration,
        supervisor: Option<UnixStream>,
        meant: Option<&str>,
    ) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn beats_four_times_within_the_limit_if_the_limit_applies_to_this_process() {
        let (limit, own) = (Duration::from_secs(20), std::process::id().to_string());
        let interval = |meant: Option<&str>, supervisor| {
            Heartbeat::within(limit, supervisor, meant).map(|heartbeat| heartbeat.interval())
        };
        let quarter = Some(Duration::from_secs(5));
        assert_eq!(interval(None, None), quarter);
        assert_eq!(interval(Some(&own), None), quarter);
        assert_eq!(interval(Some("1"), None), None);
        // The limit applies to the supervisor.
        assert_eq!(interval(Some("1"), Some(UnixStream::pair().unwrap().0)), quarter);
    }

    #[test]
    fn sends_a_byte_to_the_supervisor_for_each_beat() {
        let (own, mut supervisor) = UnixStream::pair().unwrap();
        let mut heartbeat = Heartbeat::within(Duration::from_secs(20), Some(own), None).unwrap();
        heartbeat.beat();
        heartbeat.beat();
        drop(heartbeat);
        let mut bytes = Vec::new();
        supervisor.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [0, 0]);
    }
}
