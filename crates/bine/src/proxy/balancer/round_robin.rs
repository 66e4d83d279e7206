//! Weighted round robin.

use std::sync::{Mutex, PoisonError};

use super::{BalancePolicy, BalancedRequest, OriginCandidate};

/// Chooses the origins in turn, each as often as its weight says. Turns of a heavy origin are spread
/// among those of the others.
#[derive(Debug, Default)]
pub struct RoundRobin {
    /// The credit of each origin.
    credits: Mutex<Vec<f64>>,
}

impl BalancePolicy for RoundRobin {
    fn choose(&self, candidates: &[OriginCandidate<'_>], _request: &BalancedRequest<'_>) -> usize {
        // The list is consistent after any panic.
        let mut credits = self.credits.lock().unwrap_or_else(PoisonError::into_inner);
        let count = candidates.iter().map(|one| one.index + 1).max().unwrap_or(0);
        if credits.len() < count {
            credits.resize(count, 0.0);
        }
        let mut total = 0.0;
        let mut best = 0;
        for (place, candidate) in candidates.iter().enumerate() {
            total += candidate.weight;
            credits[candidate.index] += candidate.weight;
            if credits[candidate.index] > credits[candidates[best].index] {
                best = place;
            }
        }
        if let Some(chosen) = candidates.get(best) {
            credits[chosen.index] -= total;
        }
        best
    }
}
