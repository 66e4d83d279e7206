//! Decides how a moment is read and written in the form of RFC 3339.

/// A day's milliseconds.
const DAY: u64 = 86_400_000;

/// Reads a date with a time, such as `2026-11-20T21:00:00.5+01:00`, as milliseconds since 1970.
pub(super) fn read(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let shape = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    let is_shaped = shape.iter().all(|&(at, mark)| bytes.get(at) == Some(&mark));
    if !text.is_ascii() || !is_shaped || !matches!(bytes[10], b'T' | b't' | b' ') {
        return None;
    }
    let (year, month, day) =
        (number(text.get(..4)?)?, number(text.get(5..7)?)?, number(text.get(8..10)?)?);
    let (hour, minute, second) =
        (number(text.get(11..13)?)?, number(text.get(14..16)?)?, number(text.get(17..19)?)?);
    let is_leap_second = second == 60;
    let is_date = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (milliseconds, zone) = match text[19..].strip_prefix('.') {
        Some(rest) => {
            let end = rest.bytes().position(|byte| !byte.is_ascii_digit())?;
            let digits = (end > 0).then(|| format!("{:0<3}", &rest[..end]))?;
            (number(&digits[..3])?, &rest[end..])
        }
        None => (0, &text[19..]),
    };
    let behind = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (number(&zone[1..3])?, number(&zone[4..6])?);
            let minutes = (hours <= 23 && minutes <= 59).then_some(hours * 60 + minutes)?;
            let minutes = minutes.cast_signed();
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    let second = if is_leap_second { 59 } else { second };
    let of_day = ((hour * 60 + minute) * 60 + second) * 1000 + milliseconds;
    (days_before(year, month) + day - 1)
        .checked_mul(DAY)?
        .checked_add(of_day)?
        .checked_add_signed(-behind * 60_000)
}

/// Writes milliseconds since 1970, such as `2026-11-20T20:00:00.500Z`.
pub(super) fn write(time: u64) -> String {
    let mut days = time / DAY;
    let mut year = 1970;
    loop {
        let length = days_before(year + 1, 1) - days_before(year, 1);
        if days < length || year == 9999 {
            break;
        }
        days -= length;
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    let (second, milliseconds) = (time % DAY / 1000, time % 1000);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let day = days + 1;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Digits alone.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + is_leap(year) as u64,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to the first of a month.
fn days_before(year: u64, month: u64) -> u64 {
    let past = year - 1;
    let leaps = (past / 4 - past / 100 + past / 400) - (1969 / 4 - 1969 / 100 + 1969 / 400);
    (year - 1970) * 365 + leaps + (1..month).map(|month| days_of(year, month)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{read, write};

    #[test]
    fn a_moment_is_read_in_any_zone() {
        for (text, time) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00.25Z", Some(951_825_600_250)),
            ("2026-11-20T21:00:00+01:00", Some(1_795_204_800_000)),
            ("2026-11-20T18:30:00-01:30", Some(1_795_204_800_000)),
            ("2016-12-31T23:59:60Z", Some(1_483_228_799_000)),
            ("1970-01-01T00:00:00+00:01", None),
            ("2025-02-29T00:00:00Z", None),
            ("2025-01-01T24:00:00Z", None),
            ("2025-01-01T00:00:00", None),
            ("2025-01-01T00:00:00.Z", None),
            ("2025-01-01", None),
            ("not-a-timestamp", None),
        ] {
            assert_eq!(read(text), time, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(time in 0_u64..253_402_300_800_000) {
            prop_assert_eq!(read(&write(time)), Some(time));
        }

        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,40}|[0-9TZ:.+-]{0,40}") {
            let _ = read(&text);
        }
    }
}
