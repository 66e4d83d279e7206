//! Decides what the service manager is told: that the server is ready, reloads, or is alive (`sd_notify(3)`).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Tells the service manager, if there is one that wants to know. Who does not listen misses it.
pub fn notify(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) else { return };
    // A manager that has stopped reading must not hold up a thread, nor the end of the process.
    let _ = socket.set_nonblocking(true);
    let _ = socket.send_to_addr(state.as_bytes(), &address);
}

/// How soon the service manager wants to hear again of a process it watches (`sd_watchdog_enabled(3)`); `None` when it
/// watches none. Which process it means is in `WATCHDOG_PID`.
pub(crate) fn watchdog_limit() -> Option<Duration> {
    let microseconds = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    (microseconds > 0).then(|| Duration::from_micros(microseconds))
}

/// Tells that the configuration is being read again; [`notify`] `READY=1` ends it. With the time, as
/// `Type=notify-reload` asks.
pub fn notify_reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
    notify(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
}
