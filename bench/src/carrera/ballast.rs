//! Decides how a server gets a part of its core only, so that one core of visitors is enough to overload it.
//!
//! A file costs a server less than it costs who asks for it: with a core each, the visitors would be the limit, and a
//! server that can serve thousands of sessions a second needs more sockets in ten seconds of patience than there are.
//! So a thread that comes before all others keeps core 0 busy for most of each two milliseconds. All servers are slowed
//! alike, however many threads they have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::tools::{come_first, pause, take_core_0};

const PERIOD: Duration = Duration::from_millis(2);
/// Of each period for the server, in percent. With less the kernel would stop the ballast now and then.
pub(super) const LEAST: u64 = 6;

/// Keeps core 0 busy until it is dropped.
pub(super) struct Ballast {
    goes_on: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ballast {
    /// Leaves so many percent of the core to others; of 100 it does nothing.
    ///
    /// # Errors
    ///
    /// The kernel does not let it come first, which it grants to root.
    pub(super) fn leaving(percent: u64) -> Result<Self> {
        ensure!((LEAST..=100).contains(&percent), "a share of {percent} %: from {LEAST} to 100");
        let goes_on = Arc::new(AtomicBool::new(percent < 100));
        if percent == 100 {
            return Ok(Self { goes_on, thread: None });
        }
        let (told, ready) = std::sync::mpsc::channel();
        let flag = Arc::clone(&goes_on);
        let thread = std::thread::Builder::new().name("ballast".to_owned()).spawn(move || {
            let is_ready = take_core_0().and_then(|()| come_first());
            let works = is_ready.is_ok();
            if told.send(is_ready).is_ok() && works {
                burn(percent, &flag);
            }
        })?;
        let ballast = Self { goes_on, thread: Some(thread) };
        ready.recv()?.context("a server gets a part of its core: run as root, or --share 100")?;
        Ok(ballast)
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        self.goes_on.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does nothing that could fail.
            let _ = thread.join();
        }
    }
}

fn burn(percent: u64, goes_on: &AtomicBool) {
    let busy = PERIOD.mul_f64(1.0 - percent as f64 / 100.0);
    let mut begins = Instant::now();
    while goes_on.load(Ordering::Relaxed) {
        while begins.elapsed() < busy {
            std::hint::spin_loop();
        }
        // A wake-up that comes late takes nothing from the server: the next period begins when it should have.
        begins += PERIOD;
        pause(begins.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_the_kernel_would_not_keep_is_refused_and_all_of_a_core_needs_nobody() {
        assert!(Ballast::leaving(LEAST - 1).is_err());
        assert!(Ballast::leaving(101).is_err());
        assert!(Ballast::leaving(100).is_ok_and(|none| none.thread.is_none()));
    }
}
