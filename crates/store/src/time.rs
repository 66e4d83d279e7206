//! Points in time, formatted and parsed as in RFC 3339.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time, in microseconds since 1970-01-01T00:00:00Z.
///
/// ```
/// use bine_store::Time;
///
/// let moment: Time = "2026-11-21T09:30:00.5Z".parse()?;
/// assert_eq!(moment.unix(), 1_795_253_400);
/// assert_eq!(moment.to_string(), "2026-11-21T09:30:00.500000Z");
/// # Ok::<(), bine_store::ParseTimeError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Time(pub i64);

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// Days of 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;
/// Days from the first of March of the year 0 to the beginning of 1970.
const BEFORE_1970: i64 = 719_468;

impl Time {
    /// The current time of the system's clock.
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// Whole seconds since 1970; 0 for earlier times.
    pub fn unix(self) -> u64 {
        u64::try_from(self.0.div_euclid(SECOND)).unwrap_or(0)
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        // The clock's range fits into the microseconds of an `i64`.
        let micros = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(since) => micros(since),
            Err(before) => -micros(before.duration()),
        })
    }
}

/// Formats the time as RFC 3339 does, in UTC; a year of more than four digits has a sign and six
/// digits, as in ECMAScript.
impl fmt::Display for Time {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, within) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let (year, month, day) = date(days);
        match year {
            0..=9999 => write!(to, "{year:04}")?,
            _ => write!(to, "{}{:06}", if year < 0 { '-' } else { '+' }, year.abs())?,
        }
        let (seconds, fraction) = (within / SECOND, within % SECOND);
        let hour = seconds / 3600;
        let (minute, second) = (seconds / 60 % 60, seconds % 60);
        write!(to, "-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if fraction != 0 {
            write!(to, ".{fraction:06}")?;
        }
        to.write_str("Z")
    }
}

/// The error for a text that is not a point in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseTimeError;

impl fmt::Display for ParseTimeError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a moment is written in UTC, like 2026-11-21T09:30:00Z")
    }
}

impl std::error::Error for ParseTimeError {}

impl FromStr for Time {
    type Err = ParseTimeError;

    /// Parses the displayed form, also with fewer digits of a second.
    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        read(text).ok_or(ParseTimeError)
    }
}

fn read(text: &str) -> Option<Time> {
    let (year, rest) = match text.as_bytes().first()? {
        b'+' | b'-' => (text.get(1..7)?, text.get(7..)?),
        _ => (text.get(..4)?, text.get(4..)?),
    };
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let year = sign * digits(year)?;
    // -MM-DDTHH:MM:SS
    let (rest, fraction) = (rest.get(..15)?, rest.get(15..)?.strip_suffix('Z')?);
    let marks = [0, 3, 6, 9, 12].map(|at| rest.as_bytes()[at]);
    if marks != *b"--T::" {
        return None;
    }
    let two_digits = |at: usize| rest.get(at..at + 2).and_then(digits);
    let (month, day) = (two_digits(1)?, two_digits(4)?);
    let hour = two_digits(7)?;
    let (minute, second) = (two_digits(10)?, two_digits(13)?);
    if !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days(year, month, day);
    if date(days) != (year, month, day) {
        return None;
    }
    let fraction = match fraction.strip_prefix('.') {
        Some(parts) if (1..=6).contains(&parts.len()) => digits(&format!("{parts:0<6}"))?,
        None if fraction.is_empty() => 0,
        _ => return None,
    };
    let within = ((hour * 60 + minute) * 60 + second) * SECOND + fraction;
    let all = i128::from(days) * i128::from(DAY) + i128::from(within);
    i64::try_from(all).ok().map(Time)
}

fn digits(text: &str) -> Option<i64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Year, month and day of a day since 1970. The algorithm counts years from March, so that the leap
/// day is the last day of a year (Howard Hinnant's `civil_from_days`).
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + BEFORE_1970;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// The inverse of `date`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let month = if month > 2 { month - 3 } else { month + 9 };
    let day = (153 * month + 2) / 5 + day - 1;
    era * ERA + year * 365 + year / 4 - year / 100 + day - BEFORE_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_clock_of_the_system() {
        let before = Time::from(SystemTime::now());
        let now = Time::now();
        assert!(before <= now && now <= Time::from(SystemTime::now()));
    }

    #[test]
    fn converts_times_before_and_after_1970() {
        let span = Duration::from_millis(1500);
        let (after, before) = (Time::from(UNIX_EPOCH + span), Time::from(UNIX_EPOCH - span));
        assert_eq!((after, after.unix()), (Time(1_500_000), 1));
        assert_eq!((before, before.unix()), (Time(-1_500_000), 0));
        assert_eq!(Time(-1).unix(), 0);
        assert_eq!(Time(2_000_000_000_000_000).unix(), 2_000_000_000);
    }

    /// The days of a month in the Gregorian calendar.
    fn length(year: i64, month: i64) -> i64 {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        match month {
            2 => 28 + i64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    #[test]
    fn counts_days_as_the_calendar_does() {
        assert_eq!((days(1970, 1, 1), days(2000, 3, 1), days(1969, 12, 31)), (0, 11_017, -1));
        // Each day before and after the year 0, around the exceptions of a century, and now.
        for years in [-401..=-398, -2..=5, 1899..=1905, 1968..=2030, 2099..=2101, 2399..=2401] {
            let mut number = days(*years.start(), 1, 1);
            for year in years {
                for month in 1..=12 {
                    for day in 1..=length(year, month) {
                        assert_eq!(days(year, month, day), number, "{year}-{month}-{day}");
                        assert_eq!(date(number), (year, month, day));
                        number += 1;
                    }
                }
            }
        }
    }

    #[test]
    fn formats_and_parses_the_same_moment() {
        for (text, moment) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.000001Z", 1),
            ("1969-12-31T23:59:59.999999Z", -1),
            ("1970-01-02T03:04:05Z", ((27 * 60 + 4) * 60 + 5) * SECOND),
            ("2026-11-21T09:30:00Z", 1_795_253_400 * SECOND),
            ("2000-02-29T23:59:59.5Z", 951_868_799 * SECOND + 500_000),
            ("0000-01-01T00:00:00Z", -719_528 * DAY),
            ("-000001-12-31T00:00:00Z", -719_529 * DAY),
            ("9999-12-31T00:00:00Z", 2_932_896 * DAY),
            ("+010000-01-01T00:00:00Z", 2_932_897 * DAY),
        ] {
            assert_eq!(text.parse(), Ok(Time(moment)), "{text}");
            let written = Time(moment).to_string();
            assert_eq!(written.replace(".500000Z", ".5Z"), text);
            assert_eq!(written.parse(), Ok(Time(moment)), "{written}");
        }
        for moment in [i64::MIN, i64::MAX] {
            assert_eq!(Time(moment).to_string().parse(), Ok(Time(moment)));
        }
    }

    #[test]
    fn accepts_one_to_six_digits_of_a_second() {
        for (fraction, micros) in
            [(".1", 100_000), (".12", 120_000), (".000001", 1), (".123456", 123_456), ("", 0)]
        {
            let text = format!("1970-01-01T00:00:00{fraction}Z");
            assert_eq!(text.parse(), Ok(Time(micros)), "{text}");
        }
    }

    #[test]
    fn rejects_what_is_no_moment() {
        for text in [
            "",
            "Z",
            "2026",
            "2026-11-21",
            "2026-11-21T09:30:00",
            "2026-11-21 09:30:00Z",
            "2026-11-21T09:30Z",
            "2026/11-21T09:30:00Z",
            "2026-11/21T09:30:00Z",
            "2026-11-21T09.30:00Z",
            "2026-11-21T09:30.00Z",
            "2026-00-21T09:30:00Z",
            "2026-13-21T09:30:00Z",
            "2026-11-00T09:30:00Z",
            "2026-11-31T09:30:00Z",
            "2026-02-29T09:30:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T09:60:00Z",
            "2026-11-21T09:30:60Z",
            "2026-11-21T09:30:00.Z",
            "2026-11-21T09:30:00.1234567Z",
            "2026-11-21T09:30:00.1x2Z",
            "2026-11-21T09:30:00.+1Z",
            "2026-11-21T09:30:001Z",
            "2026-11-21T+9:30:00Z",
            "+2026-11-21T09:30:00Z",
            "+00+026-11-21T09:30:00Z",
            "-+00026-11-21T09:30:00Z",
            "+999999-11-21T09:30:00Z",
            "2026-11-21T09:30:00\u{e4}Z",
        ] {
            assert_eq!(text.parse::<Time>(), Err(ParseTimeError), "{text}");
        }
    }
}
