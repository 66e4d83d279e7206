//! Notifications to the service manager: ready, reloading, alive (`sd_notify(3)`).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use super::supervised::notices;

/// Sends `state` to the service manager that `NOTIFY_SOCKET` names, if any; a supervised server sends
/// it by its supervisor, from which alone the service manager accepts it. Errors are ignored.
pub fn notify(state: &str) {
    if let Some(supervisor) = notices() {
        // A full socket means that the supervisor is stopped.
        let _ = supervisor.send(state.as_bytes());
        return;
    }
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) else { return };
    // A service manager that has stopped reading must not block a thread or the exit of the
    // process.
    let _ = socket.set_nonblocking(true);
    let _ = socket.send_to_addr(state.as_bytes(), &address);
}

/// Returns the watchdog interval of the service manager (`sd_watchdog_enabled(3)`), or `None`
/// without a watchdog. `WATCHDOG_PID` has the process that the interval applies to.
pub(crate) fn watchdog_limit() -> Option<Duration> {
    let microseconds = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    (microseconds > 0).then(|| Duration::from_micros(microseconds))
}

/// Notifies the service manager of a reload, which [`notify`] `READY=1` ends. The message has the
/// time that `Type=notify-reload` requires.
pub fn notify_reloading() {
    notify(&reloading_at(clock_gettime(ClockId::Monotonic)));
}

fn reloading_at(now: Timespec) -> String {
    let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
    format!("RELOADING=1\nMONOTONIC_USEC={microseconds}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_time_of_a_reload_in_microseconds() {
        let state = reloading_at(Timespec { tv_sec: 12, tv_nsec: 34_567 });
        assert_eq!(state, "RELOADING=1\nMONOTONIC_USEC=12000034");
    }
}
