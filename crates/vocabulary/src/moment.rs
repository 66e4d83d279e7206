//! Decides what forms a date or a time has in an attribute (HTML 2.3.5).

/// The forms, each with its name in the table and an example for a message.
pub(crate) const FORMS: [(&str, &str); 10] = [
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

/// Whether a value has the form of that name.
pub(crate) fn has_form(form: &str, value: &str) -> bool {
    match form {
        "date" => is_date(value),
        "duration" => is_duration(value),
        "global" => split_time(value).is_some_and(|(date, time)| {
            let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
            is_date(date) && is_time(&time[..zone]) && is_zone(&time[zone..])
        }),
        "local" => split_time(value).is_some_and(|(date, time)| is_date(date) && is_time(time)),
        "month" => month(value).is_some(),
        "time" => is_time(value),
        "week" => value.split_once("-W").is_some_and(|(year, week)| {
            year_of(year).is_some_and(|year| in_range(week, 1, weeks_of(year)))
        }),
        "year" => year_of(value).is_some(),
        // Of no year, so the 29th of February is a day.
        "yearless" => value
            .strip_prefix("--")
            .unwrap_or(value)
            .split_once('-')
            .is_some_and(|(month, day)| is_day(day, 4, month)),
        "zone" => is_zone(value),
        _ => false,
    }
}

/// At least four digits, not all of them zero; of what is too large for a number, the last digits.
fn year_of(text: &str) -> Option<u32> {
    let is_year = text.len() >= 4
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte != b'0');
    // The calendar repeats itself every 400 years, which divides 10 000.
    is_year.then(|| text[text.len() - 4..].parse().ok()).flatten()
}

fn month(text: &str) -> Option<(u32, &str)> {
    let (year, month) = text.split_once('-')?;
    in_range(month, 1, 12).then_some((year_of(year)?, month))
}

fn is_date(text: &str) -> bool {
    text.rsplit_once('-').is_some_and(|(before, day)| {
        month(before).is_some_and(|(year, month)| is_day(day, year, month))
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

/// A year has 53 weeks if its first day is a Thursday, or a Wednesday before a leap day (HTML 2.3.5.8).
fn weeks_of(year: u32) -> u32 {
    const WEDNESDAY: u32 = 2;
    let before = (year + 399) % 400;
    let first_day = (before * 365 + before / 4 - before / 100 + before / 400) % 7;
    let is_long = first_day == WEDNESDAY + 1 || first_day == WEDNESDAY && is_leap(year);
    if is_long { 53 } else { 52 }
}

/// A date and a time, with a `T` or a space between.
fn split_time(text: &str) -> Option<(&str, &str)> {
    text.split_once(['T', ' '])
}

/// Hours and minutes, and maybe seconds with up to three digits after the point.
fn is_time(text: &str) -> bool {
    let mut parts = text.split(':');
    let (hour, minute, second) = (parts.next(), parts.next(), parts.next());
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

/// `Z`, or hours and minutes with a sign, with a colon between or not.
fn is_zone(text: &str) -> bool {
    text == "Z"
        || text.strip_prefix(['+', '-']).is_some_and(|time| {
            let (hour, minute) =
                time.split_once(':').or_else(|| time.split_at_checked(2)).unwrap_or_default();
            in_range(hour, 0, 23) && in_range(minute, 0, 59)
        })
}

/// Two digits between two bounds.
fn in_range(text: &str, least: u32, most: u32) -> bool {
    text.len() == 2
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse().is_ok_and(|number| (least..=most).contains(&number))
}

/// `P`, days, `T`, hours, minutes and seconds, of which there is one at least; or any of `w d h m s`, each once.
fn is_duration(text: &str) -> bool {
    let Some(text) = text.strip_prefix('P') else { return is_list_of_units(text) };
    let (days, times) = match text.split_once('T') {
        None => (text, None),
        Some((days, times)) => (days, Some(times)),
    };
    let days_fit = days.is_empty() && times.is_some() || are_units(days, "D");
    days_fit && times.is_none_or(|times| are_units(times, "HMS"))
}

/// Numbers, each before one of the units, in the order of these; one at least. Only seconds have a fraction.
fn are_units(mut text: &str, units: &str) -> bool {
    let mut units = units.chars();
    let is_there = !text.is_empty();
    while let Some((number, unit, rest)) = first_unit(text) {
        if !units.any(|one| one == unit) || !is_amount(number, unit) {
            return false;
        }
        text = rest;
    }
    is_there && text.is_empty()
}

fn is_list_of_units(text: &str) -> bool {
    let mut rest = text.trim_ascii();
    let mut seen = [false; 5];
    let is_there = !rest.is_empty();
    while let Some((number, unit, after)) = first_unit(rest) {
        let unit = unit.to_ascii_lowercase();
        match "wdhms".find(unit) {
            Some(place) if !seen[place] && is_amount(number.trim_ascii_end(), unit) => {
                seen[place] = true;
            }
            _ => return false,
        }
        rest = after.trim_ascii_start();
    }
    is_there && rest.is_empty()
}

/// What stands before the first letter, the letter, and the rest.
fn first_unit(text: &str) -> Option<(&str, char, &str)> {
    let (place, unit) = text.char_indices().find(|(_, char)| char.is_ascii_alphabetic())?;
    Some((&text[..place], unit, &text[place + 1..]))
}

/// Digits; of seconds, with up to three more after a point.
fn is_amount(number: &str, unit: char) -> bool {
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

    use super::{FORMS, has_form, weeks_of};

    #[track_caller]
    fn check(form: &str, right: &[&str], wrong: &[&str]) {
        assert!(FORMS.iter().any(|(name, _)| *name == form), "{form}");
        for value in right {
            assert!(has_form(form, value), "{form} {value}");
        }
        for value in wrong {
            assert!(!has_form(form, value), "{form} {value}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
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
    fn times_have_two_digits_each_and_zones_a_sign() {
        check("time", &["00:00", "23:59:59", "08:30:00.5"], &["24:00", "8:30", "08:60", "08"]);
        check("time", &[], &["08:30:60", "08:30:00.", "08:30:00.1234", "08:30Z", "08:30:00:00"]);
        check("zone", &["Z", "+0100", "-08:00"], &["z", "01:00", "+1", "+24:00", "+", "\u{e9}"]);
        check("local", &["2026-11-21T08:30", "2026-11-21 08:30:00"], &["2026-11-21", "T08:30"]);
        check("local", &[], &["2026-11-21T08:30Z", "2026-11-21  08:30"]);
        check("global", &["2026-11-21T08:30Z", "2026-11-21 08:30:00.25+01:00"], &[]);
        check("global", &[], &["2026-11-21T08:30", "2026-11-21Z", "2026-11-21T08:30 Z"]);
    }

    #[test]
    fn durations_are_written_in_either_way() {
        check("duration", &["PT4H18M3S", "P2D", "P1DT30M", "PT0.25S"], &["P", "PT", "P1H", "PT1D"]);
        check(
            "duration",
            &["4h 18m 3s", "1W 2d", " 90 s ", "1.5s"],
            &["4h 4h", "4", "1.5h", "h", ""],
        );
        check("duration", &[], &["PT3S4H", "P1D2D", "-1d", "1y"]);
    }

    #[test]
    fn a_year_has_the_weeks_that_it_has() {
        let long: std::vec::Vec<u32> = (2000..2033).filter(|year| weeks_of(*year) == 53).collect();
        assert_eq!(long, [2004, 2009, 2015, 2020, 2026, 2032]);
    }

    proptest! {
        #[test]
        fn any_text_is_judged(value in any::<String>(), alike in "[-PTZWdhms0-9:. +]{0,24}") {
            for (form, _) in FORMS {
                has_form(form, &value);
                has_form(form, &alike);
            }
        }

        #[test]
        fn every_day_is_a_date_and_every_second_a_time(
            (year, month, day) in (1u32..20_000, 1u32..13, 1u32..29),
            (hour, minute, second) in (0u32..24, 0u32..60, 0u32..60),
        ) {
            let date = format!("{year:04}-{month:02}-{day:02}");
            let time = format!("{hour:02}:{minute:02}:{second:02}");
            prop_assert!(has_form("date", &date) && has_form("time", &time));
            let (local, zoned) = (format!("{date}T{time}"), format!("{date} {time}Z"));
            prop_assert!(has_form("local", &local) && has_form("global", &zoned));
            let offset = format!("{local}-08:00");
            prop_assert!(has_form("global", &offset) && !has_form("local", &offset));
        }
    }
}
