//! Random delays: before a retry, and between regular requests of many nodes.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// The delays between the attempts of one task. They double from 50 ms to 2 s, and each is random
/// between the half and the whole, so that many nodes do not retry at the same moment.
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { next: FIRST }
    }

    /// Begins with short delays again, after a success.
    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.delay()).await;
    }

    fn delay(&mut self) -> Duration {
        let delay = self.next.mul_f64(0.5 + random() / 2.0);
        self.next = (self.next * 2).min(LONGEST);
        delay
    }
}

/// Changes a duration at random by up to a tenth.
pub(crate) fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(0.9 + random() / 5.0)
}

/// A number from 0 up to 1. A new `RandomState` has new keys, so the hash of an empty input is random.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_delays_up_to_a_bound() {
        let mut backoff = Backoff::new();
        for millis in [50, 100, 200, 400, 800, 1600, 2000, 2000] {
            let longest = Duration::from_millis(millis);
            let delay = backoff.delay();
            assert!(delay >= longest / 2 && delay <= longest, "{delay:?} of {longest:?}");
        }
        backoff.reset();
        assert!(backoff.delay() <= FIRST);
    }

    #[test]
    fn spreads_by_a_tenth() {
        let second = Duration::from_secs(1);
        let all: Vec<Duration> = (0..100).map(|_| jittered(second)).collect();
        assert!(all.iter().all(|one| *one >= second * 9 / 10 && *one <= second * 11 / 10));
        assert!(all.iter().any(|one| *one < second) && all.iter().any(|one| *one > second));
    }
}
