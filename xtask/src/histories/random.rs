//! Random numbers with reproducible sequences.

/// Splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
#[derive(Clone)]
pub(super) struct Random(u64);

impl Random {
    /// An independent sequence for each pair: neighboring seeds give unrelated sequences.
    pub(super) fn of(seed: u64, number: u64) -> Self {
        let mut first = Self(seed);
        Self(first.next() ^ Self(number).next().rotate_left(32))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// A number in `from..=to`.
    pub(super) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    /// True with this chance in percent.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items, which must not be empty.
    pub(super) fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_the_sequence_of_a_seed() {
        let sequence = |seed, number| {
            let mut random = Random::of(seed, number);
            [(); 8].map(|()| random.between(3, 9))
        };
        assert_eq!(sequence(1, 2), sequence(1, 2));
        assert_ne!(sequence(1, 2), sequence(1, 3));
        assert_ne!(sequence(1, 2), sequence(2, 2));
        assert!(sequence(7, 7).iter().all(|number| (3..=9).contains(number)));
    }
}
