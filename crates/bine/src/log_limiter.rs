//! Rate limiting for log messages of a persistent failure.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Passes each message once a second, and counts how often it is suppressed.
///
/// A full disk fails every write: one line for each would hide all other messages, and fill the
/// disk of the log.
pub(crate) struct LogLimiter {
    hasher: RandomState,
    /// The recent messages. A new one replaces the one that was logged first.
    recent: Mutex<Vec<RepeatedMessage>>,
}

struct RepeatedMessage {
    hash: u64,
    logged: Instant,
    suppressed: u64,
}

/// The shortest time between two entries of the same message.
const INTERVAL: Duration = Duration::from_secs(1);
/// The number of distinct messages that are tracked at a time.
const MOST: usize = 16;

impl LogLimiter {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), recent: Mutex::default() }
    }

    /// Decides whether to log this message now. Returns the number of entries suppressed since the
    /// last one.
    pub(crate) fn pass(&self, message: &str, now: Instant) -> Option<u64> {
        let hash = self.hasher.hash_one(message);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = recent.iter().position(|message| message.hash == hash) else {
            if recent.len() == MOST {
                recent.remove(0);
            }
            recent.push(RepeatedMessage { hash, logged: now, suppressed: 0 });
            return Some(0);
        };
        if now.duration_since(recent[place].logged) < INTERVAL {
            recent[place].suppressed += 1;
            return None;
        }
        let suppressed = recent.remove(place).suppressed;
        recent.push(RepeatedMessage { hash, logged: now, suppressed: 0 });
        Some(suppressed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_a_message_once_a_second_and_counts_the_rest() {
        let repeated = LogLimiter::new();
        let start = Instant::now();
        let pass = |message, milliseconds| {
            repeated.pass(message, start + Duration::from_millis(milliseconds))
        };
        assert_eq!(pass("full", 0), Some(0));
        assert_eq!((pass("full", 1), pass("full", 999)), (None, None));
        assert_eq!(pass("broken", 500), Some(0));
        assert_eq!(pass("full", 1000), Some(2));
        assert_eq!((pass("full", 1999), pass("full", 5000)), (None, Some(1)));
    }

    #[test]
    fn bounds_memory_for_many_different_messages() {
        let repeated = LogLimiter::new();
        let now = Instant::now();
        for number in 0..1000 {
            assert_eq!(repeated.pass(&number.to_string(), now), Some(0));
        }
        assert_eq!(repeated.recent.lock().unwrap().len(), MOST);
        assert_eq!(repeated.pass("999", now), None);
    }
}
