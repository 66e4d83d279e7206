//! Date and time formats in attributes (HTML 2.3.5).

/// The formats, each with its name in the table and an example for messages.
pub(crate) const FORMATS: [(&str, &str); 10] = [
    ("date", "a date, `2026-11-21`"),
    ("duration", "a duration, `PT1H30M` or `1h 30m`"),
    ("global", "a date and time with its zone, `2026-11-21T08:30Z`"),
    ("local", "a date and time, `2026-11-21T08:30`"),
    ("month", "a month, `2026-11`"),
    ("time", "a time, `08:30`"),
    ("week", "a week, `2026-W47`"),
    ("year", "a year, `2026`"),
    ("yearless", "a day of each year, `11-21`"),
    ("zone", "a time zone, `+01:00`"),
];

/// Returns whether a value has the format with this name.
pub(crate) fn has_format(format: &str, value: &str) -> bool {
    match format {
        "date" => is_date(value),
        "duration" => is_duration(value),
        "global" => split_time(value).is_some_and(|(date, time)| {
            let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
            is_date(date) && is_time(&time[..zone]) && is_zone(&time[zone..])
        }),
        "local" => split_time(value).is_some_and(|(date, time)| is_date(date) && is_time(time)),
        "month" => parse_month(value).is_some(),
        "time" => is_time(value),
        "week" => value.split_once("-W").is_some_and(|(year, week)| {
            parse_year(year).is_some_and(|year| in_range(week, 1, weeks_in_year(year)))
        }),
        "year" => parse_year(value).is_some(),
        // Without a year, 29 February is valid.
        "yearless" => value
            .strip_prefix("--")
            .unwrap_or(value)
            .split_once('-')
            .is_some_and(|(month, day)| is_day(day, 4, month)),
        "zone" => is_zone(value),
        _ => false,
    }
}

/// Parses a year: at least four digits, not all zero. Returns the last four digits.
fn parse_year(text: &str) -> Option<u32> {
    let is_year = text.len() >= 4
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte != b'0');
    // The calendar repeats every 400 years, and 400 divides 10 000.
    is_year.then(|| text[text.len() - 4..].parse().ok()).flatten()
}

fn parse_month(text: &str) -> Option<(u32, &str)> {
    let (year, month) = text.split_once('-')?;
    in_range(month, 1, 12).then_some((parse_year(year)?, month))
}

fn is_date(text: &str) -> bool {
    text.rsplit_once('-').is_some_and(|(before, day)| {
        parse_month(before).is_some_and(|(year, month)| is_day(day, year, month))
    })
}

fn is_day(day: &str, year: u32, month: &str) -> bool {
    let days = match month {
        "02" if is_leap(year) => 29,
        "02" => 28,
        "04" | "06" | "09" | "11" => 30,
        _ => 31,
    };
    in_range(month, 1, 12) && in_range(day, 1, days)
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(400) || year.is_multiple_of(4) && !year.is_multiple_of(100)
}

/// Returns the number of weeks in a year. A year has 53 weeks if its first day is a Thursday, or a
/// Wednesday in a leap year (HTML 2.3.5.8).
fn weeks_in_year(year: u32) -> u32 {
    const WEDNESDAY: u32 = 2;
    let before = (year + 399) % 400;
    let first_day = (before * 365 + before / 4 - before / 100 + before / 400) % 7;
    let is_long = first_day == WEDNESDAY + 1 || first_day == WEDNESDAY && is_leap(year);
    if is_long { 53 } else { 52 }
}

/// Splits a date and a time at a `T` or a space.
fn split_time(text: &str) -> Option<(&str, &str)> {
    text.split_once(['T', ' '])
}

/// Hours and minutes, and optionally seconds with up to three digits after the point.
fn is_time(text: &str) -> bool {
    let mut parts = text.split(':');
    let hour = parts.next();
    let minute = parts.next();
    let second = parts.next();
    let is_second = |text: &str| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        in_range(whole, 0, 59)
            && (1..=3).contains(&fraction.len())
            && fraction.bytes().all(|byte| byte.is_ascii_digit())
    };
    hour.is_some_and(|hour| in_range(hour, 0, 23))
        && minute.is_some_and(|minute| in_range(minute, 0, 59))
        && second.is_none_or(is_second)
        && parts.next().is_none()
}

/// `Z`, or hours and minutes with a sign and an optional colon.
fn is_zone(text: &str) -> bool {
    text == "Z"
        || text.strip_prefix(['+', '-']).is_some_and(|time| {
            let (hour, minute) =
                time.split_once(':').or_else(|| time.split_at_checked(2)).unwrap_or_default();
            in_range(hour, 0, 23) && in_range(minute, 0, 59)
        })
}

/// Returns whether the text has two digits within the bounds.
fn in_range(text: &str, least: u32, most: u32) -> bool {
    text.len() == 2
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse().is_ok_and(|number| (least..=most).contains(&number))
}

/// `P`, days, `T`, hours, minutes and seconds, with at least one part; or any of `w d h m s`, each
/// at most once.
fn is_duration(text: &str) -> bool {
    let Some(text) = text.strip_prefix('P') else { return is_list_of_units(text) };
    let (days, times) = match text.split_once('T') {
        None => (text, None),
        Some((days, times)) => (days, Some(times)),
    };
    let are_days_valid = days.is_empty() && times.is_some() || is_unit_sequence(days, "D");
    are_days_valid && times.is_none_or(|times| is_unit_sequence(times, "HMS"))
}

/// One or more numbers, each followed by a unit, in the order of `units`. Only seconds have a
/// fraction.
fn is_unit_sequence(mut text: &str, units: &str) -> bool {
    let mut units = units.chars();
    let has_units = !text.is_empty();
    while let Some((number, unit, rest)) = first_unit(text) {
        if !units.any(|one| one == unit) || !is_number_for_unit(number, unit) {
            return false;
        }
        text = rest;
    }
    has_units && text.is_empty()
}

fn is_list_of_units(text: &str) -> bool {
    let mut rest = text.trim_ascii();
    let mut seen = [false; 5];
    let has_units = !rest.is_empty();
    while let Some((number, unit, after)) = first_unit(rest) {
        let unit = unit.to_ascii_lowercase();
        match "wdhms".find(unit) {
            Some(place) if !seen[place] && is_number_for_unit(number.trim_ascii_end(), unit) => {
                seen[place] = true;
            }
            _ => return false,
        }
        rest = after.trim_ascii_start();
    }
    has_units && rest.is_empty()
}

/// Splits the text into the part before the first letter, the letter, and the rest.
fn first_unit(text: &str) -> Option<(&str, char, &str)> {
    let (place, unit) = text.char_indices().find(|(_, char)| char.is_ascii_alphabetic())?;
    Some((&text[..place], unit, &text[place + 1..]))
}

/// Digits. Seconds may have a fraction of up to three digits.
fn is_number_for_unit(number: &str, unit: char) -> bool {
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match number.split_once('.') {
        None => are_digits(number),
        Some((whole, fraction)) => {
            unit.eq_ignore_ascii_case(&'s')
                && are_digits(whole)
                && are_digits(fraction)
                && fraction.len() <= 3
        }
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;

    use proptest::prelude::*;

    use super::{FORMATS, has_format, weeks_in_year};

    #[track_caller]
    fn check(format: &str, right: &[&str], wrong: &[&str]) {
        assert!(FORMATS.iter().any(|(name, _)| *name == format), "{format}");
        for value in right {
            assert!(has_format(format, value), "{format} {value}");
        }
        for value in wrong {
            assert!(!has_format(format, value), "{format} {value}");
        }
    }

    #[test]
    fn accepts_days_of_the_calendar() {
        let wrong =
            ["2026-02-29", "2100-02-29", "2026-13-01", "26-11-21", "2026-1-2", "0000-01-01"];
        check("date", &["2026-11-21", "2024-02-29", "2000-02-29", "12026-01-31"], &wrong);
        check("date", &[], &["2026/11/21", "21.11.2026", "2026-11-21 ", "", "--", "2026-11"]);
        check("month", &["2026-11"], &["2026-00", "2026", "2026-1", "11-2026"]);
        check("year", &["2026", "0001", "10000"], &["0000", "999", "MMXX"]);
        check("yearless", &["11-21", "--02-29"], &["02-30", "-11-21", "1-2"]);
        check("week", &["2026-W53", "2025-W52"], &["2025-W53", "2026-W00", "2026-53"]);
    }

    #[test]
    fn checks_times_and_zones() {
        check("time", &["00:00", "23:59:59", "08:30:00.5"], &["24:00", "8:30", "08:60", "08"]);
        check("time", &[], &["08:30:60", "08:30:00.", "08:30:00.1234", "08:30Z", "08:30:00:00"]);
        check("zone", &["Z", "+0100", "-08:00"], &["z", "01:00", "+1", "+24:00", "+", "\u{e9}"]);
        check("local", &["2026-11-21T08:30", "2026-11-21 08:30:00"], &["2026-11-21", "T08:30"]);
        check("local", &[], &["2026-11-21T08:30Z", "2026-11-21  08:30"]);
        check("global", &["2026-11-21T08:30Z", "2026-11-21 08:30:00.25+01:00"], &[]);
        check("global", &[], &["2026-11-21T08:30", "2026-11-21Z", "2026-11-21T08:30 Z"]);
    }

    #[test]
    fn accepts_both_duration_formats() {
        check("duration", &["PT4H18M3S", "P2D", "P1DT30M", "PT0.25S"], &["P", "PT", "P1H", "PT1D"]);
        check(
            "duration",
            &["4h 18m 3s", "1W 2d", " 90 s ", "1.5s"],
            &["4h 4h", "4", "1.5h", "h", ""],
        );
        check("duration", &[], &["PT3S4H", "P1D2D", "-1d", "1y"]);
    }

    #[test]
    fn counts_weeks_of_years() {
        let long: std::vec::Vec<u32> =
            (2000..2033).filter(|year| weeks_in_year(*year) == 53).collect();
        assert_eq!(long, [2004, 2009, 2015, 2020, 2026, 2032]);
    }

    proptest! {
        #[test]
        fn checks_any_text(value in any::<String>(), alike in "[-PTZWdhms0-9:. +]{0,24}") {
            for (format, _) in FORMATS {
                has_format(format, &value);
                has_format(format, &alike);
            }
        }

        #[test]
        fn accepts_every_day_and_second(
            (year, month, day) in (1u32..20_000, 1u32..13, 1u32..29),
            (hour, minute, second) in (0u32..24, 0u32..60, 0u32..60),
        ) {
            let date = format!("{year:04}-{month:02}-{day:02}");
            let time = format!("{hour:02}:{minute:02}:{second:02}");
            prop_assert!(has_format("date", &date) && has_format("time", &time));
            let (local, zoned) = (format!("{date}T{time}"), format!("{date} {time}Z"));
            prop_assert!(has_format("local", &local) && has_format("global", &zoned));
            let offset = format!("{local}-08:00");
            prop_assert!(has_format("global", &offset) && !has_format("local", &offset));
        }
    }
}
