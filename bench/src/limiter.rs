//! Limits a server to a part of core 0, so that visitors on one core can overload it.
//!
//! A static file costs the server less than the client: with one core each, the visitors would be
//! the limit, and a server of thousands of sessions per second would need more sockets in the ten
//! seconds of a client's patience than exist. So a thread with real-time priority keeps core 0 busy
//! for most of each two milliseconds. It slows all servers equally, whatever their number of
//! threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::tools::{move_to_core_0, pause, take_priority};

const PERIOD: Duration = Duration::from_millis(2);
/// The smallest share of each period for the server, in percent. With less, the kernel would
/// throttle the real-time thread.
pub(crate) const LEAST: u64 = 6;

/// Keeps core 0 busy until it is dropped.
pub(crate) struct CoreLimiter {
    is_running: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CoreLimiter {
    /// Reserves `percent` of the core for other threads; has no effect at 100.
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not grant real-time priority, which needs root.
    pub(crate) fn leaving(percent: u64) -> Result<Self> {
        ensure!((LEAST..=100).contains(&percent), "a share of {percent} %: use {LEAST} to 100");
        let is_running = Arc::new(AtomicBool::new(percent < 100));
        if percent == 100 {
            return Ok(Self { is_running, thread: None });
        }
        let (sender, ready) = std::sync::mpsc::channel();
        let flag = Arc::clone(&is_running);
        let thread = std::thread::Builder::new().name("limiter".to_owned()).spawn(move || {
            let is_ready = move_to_core_0().and_then(|()| take_priority());
            let works = is_ready.is_ok();
            if sender.send(is_ready).is_ok() && works {
                burn(percent, &flag);
            }
        })?;
        let limiter = Self { is_running, thread: Some(thread) };
        ready
            .recv()?
            .context("the limit needs real-time priority: run as root, or use --share 100")?;
        Ok(limiter)
    }
}

impl Drop for CoreLimiter {
    fn drop(&mut self) {
        self.is_running.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread cannot fail.
            let _ = thread.join();
        }
    }
}

fn burn(percent: u64, is_running: &AtomicBool) {
    let busy = PERIOD.mul_f64(1.0 - percent as f64 / 100.0);
    let mut begins = Instant::now();
    while is_running.load(Ordering::Relaxed) {
        while begins.elapsed() < busy {
            std::hint::spin_loop();
        }
        // A late wake-up does not shorten the server's share: the next period begins on schedule.
        begins += PERIOD;
        pause(begins.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_shares_below_the_limit_and_needs_no_thread_for_a_whole_core() {
        assert!(CoreLimiter::leaving(LEAST - 1).is_err());
        assert!(CoreLimiter::leaving(101).is_err());
        assert!(CoreLimiter::leaving(100).is_ok_and(|none| none.thread.is_none()));
    }
}
