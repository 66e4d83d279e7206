//! Reads and writes RFC 3339 timestamps: in any time zone, with milliseconds. The store
//! validates the calendar date.

use crate::store::Time;

/// Microseconds of a millisecond.
const MILLISECOND: i64 = 1000;

/// Parses a timestamp such as `2026-11-20T21:00:00.5+01:00` into milliseconds since 1970.
pub(super) fn read(text: &str) -> Option<u64> {
    let (date, rest) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes()[10], b'T' | b't' | b' ') {
        return None;
    }
    let (clock, zone) = rest.split_at(rest.find(['Z', 'z', '+', '-'])?);
    let (clock, milliseconds) = match clock.split_once('.') {
        Some((clock, parts)) => {
            let is_number = !parts.is_empty() && parts.bytes().all(|digit| digit.is_ascii_digit());
            (clock, is_number.then(|| number(&format!("{parts:0<3}")[..3]))??)
        }
        None => (clock, 0),
    };
    // A leap second repeats the second before it.
    let clock = clock.strip_suffix(":60").map_or(clock.to_owned(), |minute| format!("{minute}:59"));
    let utc: Time = format!("{date}T{clock}Z").parse().ok()?;
    let ahead = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (number(zone.get(1..3)?)?, number(zone.get(4..6)?)?);
            let minutes = (hours <= 23 && minutes <= 59).then_some(hours * 60 + minutes)?;
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    u64::try_from(utc.0 / MILLISECOND + milliseconds - ahead * 60_000).ok()
}

/// Formats milliseconds since 1970, such as `2026-11-20T20:00:00.500Z`.
pub(super) fn write(time: u64) -> String {
    let (second, milliseconds) = (time / 1000, time % 1000);
    let second = i64::try_from(second).unwrap_or(i64::MAX).saturating_mul(1000 * MILLISECOND);
    // The store writes no fraction for a whole second, nor for its last representable moment.
    let whole = Time(second - second % (1000 * MILLISECOND)).to_string();
    format!("{}.{milliseconds:03}Z", whole.trim_end_matches('Z'))
}

/// Parses a number of digits only.
fn number(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{read, write};

    #[test]
    fn parses_timestamps_in_any_zone() {
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
            ("2025-01-01T00:00:00.5x1Z", None),
            ("2025-01-01T00:00:00.12399999999999999999999Z", Some(1_735_689_600_123)),
            ("2025-01-01t00:00:00z", Some(1_735_689_600_000)),
            ("+12025-01-01T00:00:00Z", None),
            ("-002025-01-01T00:00:00Z", None),
            ("not-a-timestamp", None),
        ] {
            assert_eq!(read(text), time, "{text}");
        }
    }

    #[test]
    fn formats_the_latest_timestamp() {
        assert_eq!(write(1_795_204_800_500), "2026-11-20T20:00:00.500Z");
        assert_eq!(write(u64::MAX), "+294247-01-10T04:00:54.615Z");
    }

    proptest! {
        #[test]
        fn formatted_timestamps_parse_to_the_same_time(time in 0_u64..253_402_300_800_000) {
            prop_assert_eq!(read(&write(time)), Some(time));
        }

        #[test]
        fn parses_arbitrary_text_without_panicking(text in "\\PC{0,40}|[0-9TZ:.+-]{0,40}") {
            let _ = read(&text);
        }
    }
}
