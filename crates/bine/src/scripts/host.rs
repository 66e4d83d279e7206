//! The server's functions for an instance: time, random bytes, and the log.

use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use bine_log as log;
use bine_script::{Clock, Host, Level, Messages, MonotonicStart, Randomness, ScriptError};
use bine_server::thread_cpu_time;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::runtime::Handle;
use tokio::time::sleep_until;

/// The host of an instance of the application with this name.
pub(super) fn host(name: &str) -> Host {
    Host {
        clock: Box::new(ServerClock(MonotonicStart::new())),
        randomness: Box::new(SystemRandomness(SystemRandom::new())),
        messages: Box::new(ServerLog { name: name.to_owned() }),
    }
}

/// The monotonic clock, and the timers of the thread's runtime.
struct ServerClock(MonotonicStart);

impl Clock for ServerClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn thread_time(&self) -> Duration {
        thread_cpu_time()
    }

    fn sleep_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        let instant = self.0.at(time);
        // Each thread that runs handlers has a runtime; without one nothing could wait.
        match Handle::try_current() {
            Ok(_) => Box::pin(sleep_until(instant.into())),
            Err(_) => Box::pin(pending()),
        }
    }
}

struct SystemRandomness(SystemRandom);

impl Randomness for SystemRandomness {
    fn fill(&self, bytes: &mut [u8]) {
        self.0.fill(bytes).expect("the system has random bytes");
    }
}

/// The error log, in which each line names the application.
struct ServerLog {
    name: String,
}

impl Messages for ServerLog {
    fn log(&self, level: Level, text: &str) {
        let name = &self.name;
        match level {
            Level::Debug => log::debug(format_args!("{name}: {text}")),
            Level::Info => log::notice(format_args!("{name}: {text}")),
            Level::Warning => log::warn(format_args!("{name}: {text}")),
            Level::Error => log::error(format_args!("{name}: {text}")),
        }
    }

    fn report(&self, error: &ScriptError) {
        log::error(format_args!("{}: {error}", self.name));
    }
}
