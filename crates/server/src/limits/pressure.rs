//! Decides from how much on there is too little left of something, and from how much on there is enough again.

/// How far something has run out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Pressure {
    /// There is enough.
    #[default]
    Calm,
    /// There is little: strangers make room.
    Tight,
    /// There is next to nothing: nobody comes in.
    Out,
}

impl Pressure {
    pub(crate) const fn from_byte(byte: u8) -> Self {
        match byte {
            0 => Self::Calm,
            1 => Self::Tight,
            _ => Self::Out,
        }
    }
}

/// Idle connections that are to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// So many.
    pub(crate) count: usize,
    /// When there are no strangers, those of known visitors too.
    pub(crate) known_too: bool,
}

/// What is used of what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub(crate) used: u64,
    pub(crate) most: u64,
}

impl Share {
    /// Thousandths, at most all of them. Of nothing, all is used.
    pub(crate) fn permille(self) -> u64 {
        if self.most == 0 {
            return 1000;
        }
        (u128::from(self.used) * 1000 / u128::from(self.most)).min(1000) as u64
    }

    pub(crate) fn percent(self) -> u64 {
        self.permille() / 10
    }

    /// How much must go for so many thousandths to be left in use.
    pub(crate) fn above(self, permille: u64) -> usize {
        let rest = u128::from(self.most) * u128::from(permille) / 1000;
        usize::try_from(u128::from(self.used).saturating_sub(rest)).unwrap_or(usize::MAX)
    }
}

/// A share must fall this many thousandths below its bound to be well again, or a connection more or less would change
/// it back and forth.
const SLACK: u64 = 20;

/// From how many thousandths on it is [`Tight`](Pressure::Tight) and [`Out`](Pressure::Out); `None`: never.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    tight: Option<u64>,
    out: Option<u64>,
}

impl Bounds {
    /// From so many percent on.
    pub(crate) fn of(tight: Option<u8>, out: Option<u8>) -> Self {
        let permille = |percent: u8| u64::from(percent) * 10;
        Self { tight: tight.map(permille), out: out.map(permille) }
    }

    /// Tight from so many percent on, and out half-way from there to all.
    pub(crate) fn until_full(tight: u8) -> Self {
        let tight = u64::from(tight) * 10;
        Self { tight: Some(tight), out: Some(tight.midpoint(1000)) }
    }

    /// Where it is well again.
    pub(crate) fn relief(self) -> u64 {
        self.tight.map_or(1000, |tight| tight.saturating_sub(SLACK))
    }

    /// What follows from `share`, after what `was`.
    pub(crate) fn judge(self, was: Pressure, share: Share) -> Pressure {
        let holds = |bound: Option<u64>, pressure: Pressure| {
            let slack = if was >= pressure { SLACK } else { 0 };
            bound.is_some_and(|bound| share.permille() > bound.saturating_sub(slack + 1))
        };
        if holds(self.out, Pressure::Out) {
            Pressure::Out
        } else if holds(self.tight, Pressure::Tight) {
            Pressure::Tight
        } else {
            Pressure::Calm
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judged(shares: &[u64]) -> Vec<Pressure> {
        let bounds = Bounds::until_full(90);
        let judge = |was: &mut Pressure, used: &u64| {
            *was = bounds.judge(*was, Share { used: *used, most: 1000 });
            Some(*was)
        };
        shares.iter().scan(Pressure::Calm, judge).collect()
    }

    #[test]
    fn it_is_well_again_a_little_below_where_it_began() {
        use Pressure::{Calm, Out, Tight};
        assert_eq!(
            judged(&[899, 900, 899, 880, 879, 899]),
            [Calm, Tight, Tight, Tight, Calm, Calm]
        );
        assert_eq!(judged(&[950, 930, 929, 949]), [Out, Out, Tight, Tight]);
        assert_eq!(judged(&[1000, 0]), [Out, Calm]);
    }

    #[test]
    fn what_has_no_bound_is_calm() {
        let all = Share { used: 5, most: 0 };
        assert_eq!(Bounds::of(None, None).judge(Pressure::Out, all), Pressure::Calm);
        assert_eq!(Bounds::of(None, Some(100)).judge(Pressure::Calm, all), Pressure::Out);
    }

    proptest! {
        #[test]
        fn more_in_use_is_never_less_pressure(
            least in 0u64..2000, more in 0u64..2000, most in 0u64..2000, tight in 0u8..=100, was in 0u8..3,
        ) {
            let bounds = Bounds::until_full(tight);
            let was = Pressure::from_byte(was);
            let judge = |used| bounds.judge(was, Share { used, most });
            prop_assert!(judge(least) <= judge(least + more));
        }

        #[test]
        fn what_is_above_makes_it_well(used in 0u64..100_000, most in 1u64..100_000, tight in 2u8..=100) {
            let bounds = Bounds::until_full(tight);
            let gone = Share { used, most }.above(bounds.relief()) as u64;
            let left = Share { used: used - gone, most };
            prop_assert!(left.permille() <= bounds.relief());
        }
    }
}
