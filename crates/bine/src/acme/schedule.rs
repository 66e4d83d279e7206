//! Decides when a certificate is to be had anew, and how long to wait after a failure.

use std::time::Duration;

use super::validity::Validity;

/// Between two looks at the certificates.
pub(super) const LOOK: Duration = Duration::from_hours(12);
/// However near the next renewal is, there is no look before that.
const LEAST: Duration = Duration::from_mins(1);
/// Behind the first failure, and doubled behind each that follows: so there are at most five attempts in an hour,
/// which is what a well-known authority grants for each host.
const PAUSE: Duration = Duration::from_mins(2);

/// Whether a third of the lifetime, or less, is left at `now`, in seconds since 1970.
pub(super) const fn is_due(validity: Validity, now: u64) -> bool {
    now >= due(validity)
}

/// How long to wait until somebody looks at this certificate again.
pub(super) fn look(validity: Validity, now: u64) -> Duration {
    Duration::from_secs(due(validity).saturating_sub(now)).clamp(LEAST, LOOK)
}

/// How long to wait behind the last of so many failures, at least 1. `random` spreads those who failed together, over
/// up to half as long again.
pub(super) fn pause(failures: u32, random: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let pause = PAUSE.saturating_mul(1 << doublings).min(LOOK);
    let spread = u32::from(random as u16);
    pause + pause / 2 * spread / u32::from(u16::MAX)
}

const fn due(validity: Validity) -> u64 {
    validity.until - validity.until.saturating_sub(validity.from) / 3
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: u64 = 86400;

    #[test]
    fn a_certificate_is_due_when_a_third_of_its_lifetime_is_left() {
        let validity = Validity { from: 1000 * DAY, until: 1090 * DAY };
        for (now, expected) in [
            (0, false),
            (1000 * DAY, false),
            (1060 * DAY - 1, false),
            (1060 * DAY, true),
            (1090 * DAY, true),
            (2000 * DAY, true),
        ] {
            assert_eq!(is_due(validity, now), expected, "{now}");
        }
        // One that ends before it begins is of no use.
        assert!(is_due(Validity { from: 10, until: 5 }, 6));
    }

    #[test]
    fn a_certificate_is_looked_at_twice_a_day_or_when_it_is_due() {
        let long = Validity { from: 0, until: 90 * DAY };
        let short = Validity { from: 0, until: DAY / 4 };
        assert_eq!(look(long, 0), LOOK);
        assert_eq!(look(short, 0), Duration::from_secs(DAY / 6));
        assert_eq!(look(short, DAY), LEAST);
    }

    #[test]
    fn no_more_than_five_attempts_fall_into_the_first_hour() {
        let mut at = Duration::ZERO;
        let mut attempts = 1;
        for failures in 1.. {
            at += pause(failures, 0);
            if at > Duration::from_hours(1) {
                break;
            }
            attempts += 1;
        }
        assert_eq!(attempts, 5);
    }

    proptest! {
        #[test]
        fn a_pause_grows_and_has_an_end(failures in 1u32.., random: u64) {
            let wait = pause(failures, random);
            prop_assert!(wait >= pause(failures, 0));
            prop_assert!(wait <= LOOK + LOOK / 2);
            prop_assert!(pause(failures.saturating_add(1), 0) >= pause(failures, 0));
        }
    }
}
