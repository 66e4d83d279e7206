//! Decides what is done by chance, the same for the same seed.

/// Xorshift (Marsaglia 2003). The seed must not be zero.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence_within_the_bound() {
        let sequence = |seed| {
            let mut random = Random(seed);
            std::array::from_fn::<u64, 100, _>(|_| random.below(401))
        };
        assert_eq!(sequence(7), sequence(7));
        assert_ne!(sequence(7), sequence(8));
        assert!(sequence(7).iter().all(|&value| value < 401));
    }
}
