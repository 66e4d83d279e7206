//! The origin with the fewest outstanding requests.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{BalancePolicy, BalancedRequest, OriginCandidate};

/// Chooses the origin with the fewest outstanding requests for its weight, and among equals the next
/// one in turn.
#[derive(Debug, Default)]
pub struct LeastOutstanding {
    turn: AtomicUsize,
}

impl BalancePolicy for LeastOutstanding {
    fn choose(&self, candidates: &[OriginCandidate<'_>], _request: &BalancedRequest<'_>) -> usize {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let places = (0..candidates.len()).map(|step| (first + step) % candidates.len());
        let better = |one: &usize, other: &usize| {
            candidates[*one].load().total_cmp(&candidates[*other].load())
        };
        // Of equal elements, `min_by` returns the first.
        places.min_by(better).unwrap_or(0)
    }
}
