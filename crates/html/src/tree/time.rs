//! Date and time values of `<time>` elements, and their formats in feeds.

use alloc::format;
use alloc::string::String;

/// A time of the Gregorian calendar with its offset from UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Time {
    year: u16,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
    /// Minutes ahead of UTC.
    offset: i16,
}

/// The start of 1970.
impl Default for Time {
    fn default() -> Self {
        Self { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0, offset: 0 }
    }
}

impl Time {
    /// Parses a date, or a date and a time, as in HTML (2.3.5). Fractions of a second are dropped.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let (date, clock) = text.split_at_checked(10)?;
        let [year, month, day] = fields(date, '-')?;
        if !(1..=12).contains(&month) {
            return None;
        }
        let (month, day) = (month as u8, day as u8);
        if !(1..=length(year, month)).contains(&day) {
            return None;
        }
        let date = Self { year, month, day, ..Self::default() };
        if clock.is_empty() {
            return Some(date);
        }
        let clock = clock.strip_prefix(['T', ' '])?;
        let zone = clock.find(['Z', '+', '-']).unwrap_or(clock.len());
        let (clock, zone) = clock.split_at(zone);
        let clock = clock.split_once('.').map_or(clock, |(whole, _)| whole);
        let [hour, minute, second] = match clock.len() {
            5 => fields(&format!("{clock}:00"), ':')?,
            8 => fields(clock, ':')?,
            _ => return None,
        };
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        Some(Self {
            hour: hour as u8,
            minute: minute as u8,
            second: second as u8,
            offset: offset(zone)?,
            ..date
        })
    }

    /// Seconds since 1970, UTC.
    pub(super) fn second(&self) -> i64 {
        let clock = i64::from(self.hour) * 60 + i64::from(self.minute) - i64::from(self.offset);
        self.days() * 86_400 + clock * 60 + i64::from(self.second)
    }

    /// The format of Atom (RFC 3339).
    pub(super) fn rfc3339(&self) -> String {
        let Self { year, month, day, hour, minute, second, .. } = self;
        let zone = if self.offset == 0 { "Z".into() } else { self.zone(":") };
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
    }

    /// The format of RSS (RFC 822 with four-digit years).
    pub(super) fn rfc822(&self) -> String {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let Self { year, day, hour, minute, second, .. } = self;
        let weekday = DAYS[self.days().rem_euclid(7) as usize];
        let month = MONTHS[usize::from(self.month) - 1];
        let zone = self.zone("");
        format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} {zone}")
    }

    fn zone(&self, between: &str) -> String {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let ahead = self.offset.unsigned_abs();
        format!("{sign}{:02}{between}{:02}", ahead / 60, ahead % 60)
    }

    /// Days since 1970, computed with years that begin in March.
    fn days(&self) -> i64 {
        let (month, year) =
            (i64::from(self.month), i64::from(self.year) - i64::from(self.month < 3));
        let day = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(self.day) - 1;
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day
            - 719_468
    }
}

/// Parses three numbers; the last two must have two digits.
fn fields(text: &str, between: char) -> Option<[u16; 3]> {
    let mut fields = text.split(between);
    let mut number = |has_two_digits: bool| {
        let field = fields.next()?;
        let is_right = field.bytes().all(|byte| byte.is_ascii_digit());
        if is_right && (field.len() == 2 || !has_two_digits) { field.parse().ok() } else { None }
    };
    let three = [number(false)?, number(true)?, number(true)?];
    fields.next().is_none().then_some(three)
}

fn offset(zone: &str) -> Option<i16> {
    if zone.is_empty() || zone == "Z" {
        return Some(0);
    }
    let (sign, ahead) = zone.split_at(1);
    let (hours, minutes) = match ahead.len() {
        4 => ahead.split_at_checked(2)?,
        5 => ahead.split_once(':')?,
        _ => return None,
    };
    let [hours, minutes, _] = fields(&format!("{hours}:{minutes}:00"), ':')?;
    let ahead = (hours < 24 && minutes < 60).then_some((hours * 60 + minutes).cast_signed())?;
    Some(if sign == "-" { -ahead } else { ahead })
}

fn length(year: u16, month: u8) -> u8 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, rfc3339: &str, rfc822: &str, second: i64) {
        let time = Time::read(text).expect(text);
        assert_eq!((&*time.rfc3339(), &*time.rfc822(), time.second()), (rfc3339, rfc822, second));
    }

    #[test]
    fn formats_times_for_each_feed() {
        check("1970-01-01", "1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 +0000", 0);
        check(
            "1994-11-06T08:49:37Z",
            "1994-11-06T08:49:37Z",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            784_111_777,
        );
        check(
            "2024-02-29 23:30+0130",
            "2024-02-29T23:30:00+01:30",
            "Thu, 29 Feb 2024 23:30:00 +0130",
            1_709_244_000,
        );
        check(
            "2000-03-01T00:00:00.25-08:00",
            "2000-03-01T00:00:00-08:00",
            "Wed, 01 Mar 2000 00:00:00 -0800",
            951_897_600,
        );
    }

    #[test]
    fn rejects_malformed_times() {
        for text in [
            "",
            "2026",
            "2026-13-01",
            "2026-00-01",
            "2026-02-29",
            "2026-11-31",
            "2026-1-1",
            "26-11-2100",
            "26-11-0257",
            "2026-11-21T",
            "2026-11-21T24:00",
            "2026-11-21T10:60",
            "2026-11-21T10",
            "2026-11-21x10:00",
            "2026-11-21T10:00+25:00",
            "2026-11-21T10:00+1",
            "+026-11-21",
            "2026-11-2\u{e4}",
        ] {
            assert_eq!(Time::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn parses_or_rejects_any_time(text in "[0-9TZ:+. -]{0,30}|.{0,20}") {
            if let Some(time) = Time::read(&text) {
                prop_assert_eq!(Time::read(&time.rfc3339()), Some(time));
            }
        }
    }
}
