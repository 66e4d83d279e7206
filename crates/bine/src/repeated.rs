//! How often a failure that happens over and over is logged.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lets each message be logged once a second, and counts how often it is held back.
///
/// A disk that is full fails every request that changes something: one line for each would hide all others, and fill
/// the disk of the log.
pub(crate) struct Repeated {
    hasher: RandomState,
    /// The messages of late. A new one takes the place of the one that was logged first.
    recent: Mutex<Vec<Message>>,
}

struct Message {
    hash: u64,
    logged: Instant,
    held_back: u64,
}

/// A message is logged once in this time.
const INTERVAL: Duration = Duration::from_secs(1);
/// Messages that are told apart at one time.
const MOST: usize = 16;

impl Repeated {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), recent: Mutex::default() }
    }

    /// Whether to log this message now, and if so, how often it was held back since it was logged last.
    pub(crate) fn pass(&self, message: &str, now: Instant) -> Option<u64> {
        let hash = self.hasher.hash_one(message);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = recent.iter().position(|message| message.hash == hash) else {
            if recent.len() == MOST {
                recent.remove(0);
            }
            recent.push(Message { hash, logged: now, held_back: 0 });
            return Some(0);
        };
        if now.duration_since(recent[place].logged) < INTERVAL {
            recent[place].held_back += 1;
            return None;
        }
        let held_back = recent.remove(place).held_back;
        recent.push(Message { hash, logged: now, held_back: 0 });
        Some(held_back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_logged_once_a_second_with_the_count_of_those_held_back() {
        let repeated = Repeated::new();
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
    fn many_different_messages_take_bounded_memory() {
        let repeated = Repeated::new();
        let now = Instant::now();
        for number in 0..1000 {
            assert_eq!(repeated.pass(&number.to_string(), now), Some(0));
        }
        assert_eq!(repeated.recent.lock().unwrap().len(), MOST);
        assert_eq!(repeated.pass("999", now), None);
    }
}
