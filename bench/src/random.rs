//! A random number generator with reproducible sequences.

/// Xorshift (Marsaglia 2003). The seed must not be zero.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// An independent sequence by number (splitmix64, Steele 2014): neighboring seeds give
    /// unrelated sequences.
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        let mut mixed =
            seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)).max(1))
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number above 0 and below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_the_sequence_of_a_seed_within_the_bound() {
        let sequence = |seed| {
            let mut random = Random(seed);
            std::array::from_fn::<u64, 100, _>(|_| random.below(401))
        };
        assert_eq!(sequence(7), sequence(7));
        assert_ne!(sequence(7), sequence(8));
        assert!(sequence(7).iter().all(|&value| value < 401));
    }

    #[test]
    fn spreads_first_fractions_of_neighboring_seeds_evenly() {
        let firsts: Vec<f64> = (0..10_000).map(|each| Random::of(1, each).fraction()).collect();
        assert!(firsts.iter().all(|each| *each > 0.0 && *each < 1.0));
        for tenth in 0..10 {
            let (from, to) = (f64::from(tenth) / 10.0, f64::from(tenth + 1) / 10.0);
            let count = firsts.iter().filter(|each| **each >= from && **each < to).count();
            assert!((900..1100).contains(&count), "{count} from {from} to {to}");
        }
    }
}
