//! When to renew a certificate, and how long to wait after a failure.

use std::time::Duration;

use super::validity::Validity;

/// The longest time between two checks of the certificates.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_hours(12);
/// The shortest time between two checks.
const MIN_CHECK_INTERVAL: Duration = Duration::from_mins(1);
/// The wait after the first failure. It doubles after each further one, so that at most five
/// attempts fall into an hour: the limit of a well-known authority for each host.
const FIRST_PAUSE: Duration = Duration::from_mins(2);

/// Whether a third of the lifetime, or less, remains at `now`, in seconds since 1970.
pub(super) const fn is_due(validity: Validity, now: u64) -> bool {
    now >= due(validity)
}

/// The time until the next check of this certificate.
pub(super) fn look(validity: Validity, now: u64) -> Duration {
    Duration::from_secs(due(validity).saturating_sub(now)).clamp(MIN_CHECK_INTERVAL, CHECK_INTERVAL)
}

/// The wait after the given number of failures, at least 1. `random` adds up to half of the time,
/// so that hosts that failed together do not retry together.
pub(super) fn pause(failures: u32, random: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(CHECK_INTERVAL);
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
    fn renewal_is_due_in_the_last_third_of_the_lifetime() {
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
        // A certificate that ends before it begins is unusable.
        assert!(is_due(Validity { from: 10, until: 5 }, 6));
    }

    #[test]
    fn checks_certificates_twice_a_day_or_when_due() {
        let long = Validity { from: 0, until: 90 * DAY };
        let short = Validity { from: 0, until: DAY / 4 };
        assert_eq!(look(long, 0), CHECK_INTERVAL);
        assert_eq!(look(short, 0), Duration::from_secs(DAY / 6));
        assert_eq!(look(short, DAY), MIN_CHECK_INTERVAL);
    }

    #[test]
    fn attempts_in_the_first_hour_are_at_most_five() {
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
        fn pauses_grow_up_to_a_limit(failures in 1u32.., random: u64) {
            let wait = pause(failures, random);
            prop_assert!(wait >= pause(failures, 0));
            prop_assert!(wait <= CHECK_INTERVAL + CHECK_INTERVAL / 2);
            prop_assert!(pause(failures.saturating_add(1), 0) >= pause(failures, 0));
        }
    }
}
