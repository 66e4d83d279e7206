//! Levels of pressure on a resource, and the thresholds between them, with hysteresis.

/// The level of pressure on a resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Pressure {
    /// Sufficient.
    #[default]
    Calm,
    /// Short: clients without a session make room.
    Tight,
    /// Almost exhausted: the server accepts no connections.
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

/// The idle connections to close.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// Number of connections to close.
    pub(crate) count: usize,
    /// Whether clients with a session lose idle connections too, when closing the rest does not
    /// suffice.
    pub(crate) known_too: bool,
}

/// The used amount of a resource and its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub(crate) used: u64,
    pub(crate) most: u64,
}

impl Share {
    /// Returns the used share in thousandths, at most 1000. With a limit of zero the share is 1000.
    pub(crate) fn permille(self) -> u64 {
        if self.most == 0 {
            return 1000;
        }
        (u128::from(self.used) * 1000 / u128::from(self.most)).min(1000) as u64
    }

    pub(crate) fn percent(self) -> u64 {
        self.permille() / 10
    }

    /// Returns the amount to release so that at most `permille` thousandths stay in use.
    pub(crate) fn above(self, permille: u64) -> usize {
        let rest = u128::from(self.most) * u128::from(permille) / 1000;
        usize::try_from(u128::from(self.used).saturating_sub(rest)).unwrap_or(usize::MAX)
    }
}

/// Hysteresis: the pressure ends only when the share falls this many thousandths below its
/// threshold. Otherwise a single connection more or less would switch the state back and forth.
const SLACK: u64 = 20;

/// The thresholds of [`Tight`](Pressure::Tight) and [`Out`](Pressure::Out) in thousandths. A state
/// whose threshold is `None` never occurs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    tight: Option<u64>,
    out: Option<u64>,
}

impl Bounds {
    /// Creates thresholds from percentages.
    pub(crate) fn of(tight: Option<u8>, out: Option<u8>) -> Self {
        let permille = |percent: u8| u64::from(percent) * 10;
        Self { tight: tight.map(permille), out: out.map(permille) }
    }

    /// Sets the threshold of `Tight` to `tight` percent, and of `Out` half-way between that and
    /// 100.
    pub(crate) fn until_full(tight: u8) -> Self {
        let tight = u64::from(tight) * 10;
        Self { tight: Some(tight), out: Some(tight.midpoint(1000)) }
    }

    /// Returns the share, in thousandths, at which the pressure is relieved.
    pub(crate) fn relief(self) -> u64 {
        self.tight.map_or(1000, |tight| tight.saturating_sub(SLACK))
    }

    /// Computes the pressure of `share`, given the previous pressure.
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
    fn relieves_the_pressure_slightly_below_its_threshold() {
        use Pressure::{Calm, Out, Tight};
        assert_eq!(
            judged(&[899, 900, 899, 880, 879, 899]),
            [Calm, Tight, Tight, Tight, Calm, Calm]
        );
        assert_eq!(judged(&[950, 930, 929, 949]), [Out, Out, Tight, Tight]);
        assert_eq!(judged(&[1000, 0]), [Out, Calm]);
    }

    #[test]
    fn stays_calm_without_a_threshold() {
        let all = Share { used: 5, most: 0 };
        assert_eq!(Bounds::of(None, None).judge(Pressure::Out, all), Pressure::Calm);
        assert_eq!(Bounds::of(None, Some(100)).judge(Pressure::Calm, all), Pressure::Out);
    }

    proptest! {
        #[test]
        fn pressure_never_falls_with_rising_use(
            least in 0u64..2000, more in 0u64..2000, most in 0u64..2000, tight in 0u8..=100, was in 0u8..3,
        ) {
            let bounds = Bounds::until_full(tight);
            let was = Pressure::from_byte(was);
            let judge = |used| bounds.judge(was, Share { used, most });
            prop_assert!(judge(least) <= judge(least + more));
        }

        #[test]
        fn releasing_the_excess_relieves_the_pressure(used in 0u64..100_000, most in 1u64..100_000, tight in 2u8..=100) {
            let bounds = Bounds::until_full(tight);
            let gone = Share { used, most }.above(bounds.relief()) as u64;
            let left = Share { used: used - gone, most };
            prop_assert!(left.permille() <= bounds.relief());
        }
    }

    #[test]
    fn converts_percentages_to_thousandths() {
        let bounds = Bounds::of(Some(85), Some(95));
        assert_eq!(bounds, Bounds { tight: Some(850), out: Some(950) });
        assert_eq!((bounds.relief(), Bounds::of(None, Some(95)).relief()), (830, 1000));
        assert_eq!(Bounds::until_full(80), Bounds { tight: Some(800), out: Some(900) });
    }
}
