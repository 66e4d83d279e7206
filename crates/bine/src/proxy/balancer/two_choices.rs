//! The better of two random origins.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{BalancePolicy, BalancedRequest, OriginCandidate};

/// Chooses the less busy of two random origins (Mitzenmacher, "The Power of Two Choices in Randomized
/// Load Balancing", 2001). Several balancers that see different requests do not all choose the same
/// one.
#[derive(Debug, Default)]
pub struct TwoChoices {
    count: AtomicU64,
}

impl TwoChoices {
    /// A number below `count`, from the sequence of `SplitMix64`.
    fn random(&self, count: usize) -> usize {
        let mut number = self.count.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((number ^ number >> 31) % count.max(1) as u64) as usize
    }
}

impl BalancePolicy for TwoChoices {
    fn choose(&self, candidates: &[OriginCandidate<'_>], _request: &BalancedRequest<'_>) -> usize {
        if candidates.len() < 2 {
            return 0;
        }
        let one = self.random(candidates.len());
        let step = 1 + self.random(candidates.len() - 1);
        let other = (one + step) % candidates.len();
        if candidates[other].load() < candidates[one].load() { other } else { one }
    }
}
