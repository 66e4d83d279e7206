//! Dates in HTTP fields (RFC 9110 section 5.6.7).

/// The complete `Date` field line, such as `Date: Fri, 20 Nov 2026 21:00:00 GMT` with its CRLF.
///
/// The owner of the clock creates it once a second. Each response head copies it as one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date([u8; 37]);

const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

impl Date {
    /// Formats a time in Unix seconds. Times after the year 9999, where IMF-fixdate ends, become
    /// its last second.
    pub fn at(unix_seconds: u64) -> Self {
        const LAST: u64 = 253_402_300_799;
        let seconds = unix_seconds.min(LAST);
        let days = seconds / 86_400;
        let CivilDate { year, month, day } = civil_from_days(days);
        let of_day = seconds % 86_400;

        let mut line = *b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
        // 1 January 1970 was a Thursday.
        line[6..9].copy_from_slice(three_letters(b"ThuFriSatSunMonTueWed", days % 7));
        write_two_digits(&mut line[11..13], day);
        line[14..17].copy_from_slice(three_letters(MONTHS, month));
        write_two_digits(&mut line[18..20], year / 100);
        write_two_digits(&mut line[20..22], year % 100);
        write_two_digits(&mut line[23..25], of_day / 3600);
        write_two_digits(&mut line[26..28], of_day / 60 % 60);
        write_two_digits(&mut line[29..31], of_day % 60);
        Self(line)
    }

    /// Parses a date into Unix seconds. Accepts all three formats of RFC 9110 section 5.6.7. A year
    /// of two digits is one of the years from 1970 to 2069.
    pub fn parse(text: &str) -> Option<u64> {
        let bytes = text.as_bytes();
        let comma = bytes.iter().position(|&byte| byte == b',');
        let DateText { day, month_name, year, time } = match (comma, bytes.len()) {
            // `Sun, 06 Nov 1994 08:49:37 GMT`
            (Some(3), 29) => {
                let has_separators = [bytes[4], bytes[7], bytes[11], bytes[16]] == *b"    ";
                let year = two_digits(&bytes[12..14])? * 100 + two_digits(&bytes[14..16])?;
                (has_separators && text.ends_with(" GMT")).then_some(DateText {
                    day: two_digits(&bytes[5..7])?,
                    month_name: &bytes[8..11],
                    year,
                    time: &bytes[17..25],
                })?
            }
            // `Sunday, 06-Nov-94 08:49:37 GMT`
            (Some(6..=9), length) if length == comma? + 24 => {
                let rest = &bytes[comma? + 1..];
                let has_separators = [rest[0], rest[3], rest[7], rest[10]] == *b" -- ";
                let year = two_digits(&rest[8..10])?;
                let year = if year < 70 { 2000 + year } else { 1900 + year };
                (has_separators && text.ends_with(" GMT")).then_some(DateText {
                    day: two_digits(&rest[1..3])?,
                    month_name: &rest[4..7],
                    year,
                    time: &rest[11..19],
                })?
            }
            // `Sun Nov  6 08:49:37 1994`
            (None, 24) => {
                let has_separators = [bytes[3], bytes[7], bytes[10], bytes[19]] == *b"    ";
                let year = two_digits(&bytes[20..22])? * 100 + two_digits(&bytes[22..24])?;
                let day = match bytes[8] {
                    b' ' => two_digits(&[b'0', bytes[9]])?,
                    _ => two_digits(&bytes[8..10])?,
                };
                let (month_name, time) = (&bytes[4..7], &bytes[11..19]);
                has_separators.then_some(DateText { day, month_name, year, time })?
            }
            _ => return None,
        };
        let month = MONTHS.chunks(3).position(|name| name == month_name)? as u64;
        let hour = two_digits(&time[..2])?;
        let minute = two_digits(&time[3..5])?;
        let second = two_digits(&time[6..])?;
        // A leap second has the number 60. Unix time does not count it.
        let is_valid_time =
            time[2] == b':' && time[5] == b':' && hour < 24 && minute < 60 && second <= 60;
        if !is_valid_time || year < 1970 {
            return None;
        }
        let days = days_from_civil(year, month) + day.checked_sub(1)?;
        // Rejects a day that the month does not have: it converts back to a day of another month.
        (civil_from_days(days) == CivilDate { year, month, day })
            .then(|| days * 86_400 + hour * 3600 + minute * 60 + second.min(59))
    }

    /// Returns the field line, including CRLF.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the date alone, as `Last-Modified` and `Expires` use it (RFC 9110 section 5.6.7).
    pub fn as_str(&self) -> &str {
        // `at` writes only ASCII, so the fallback is unreachable.
        core::str::from_utf8(&self.0[6..35]).unwrap_or_default()
    }
}

/// The parts of a date as text, before validation.
struct DateText<'t> {
    day: u64,
    month_name: &'t [u8],
    year: u64,
    time: &'t [u8],
}

/// A day of the Gregorian calendar: `month` counts from 0, `day` from 1.
#[derive(PartialEq, Eq)]
struct CivilDate {
    year: u64,
    month: u64,
    day: u64,
}

/// Converts days since 1 January 1970 to a date.
///
/// Counts in years that begin in March, so that the leap day is the last day, within cycles of 400
/// years.
fn civil_from_days(days: u64) -> CivilDate {
    let since_march_0000 = days + 719_468;
    let cycle = since_march_0000 / 146_097;
    let of_cycle = since_march_0000 % 146_097;
    let year_of_cycle = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = cycle * 400 + year_of_cycle + u64::from(month < 2);
    CivilDate { year, month, day }
}

/// Returns the days from 1 January 1970 to the first day of a month (from 0). Inverse of
/// [`civil_from_days`].
const fn days_from_civil(year: u64, month: u64) -> u64 {
    let year = if month < 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 10) % 12) + 2) / 5;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

/// Parses a number of two digits.
fn two_digits(digits: &[u8]) -> Option<u64> {
    match digits {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(u64::from(tens - b'0') * 10 + u64::from(ones - b'0'))
        }
        _ => None,
    }
}

fn three_letters(names: &[u8], index: u64) -> &[u8] {
    let start = index as usize * 3;
    &names[start..start + 3]
}

fn write_two_digits(place: &mut [u8], number: u64) {
    place[0] = b'0' + (number / 10) as u8;
    place[1] = b'0' + (number % 10) as u8;
}

#[cfg(test)]
mod tests {
    use super::Date;

    fn check(unix_seconds: u64, expected: &str) {
        assert_eq!(Date::at(unix_seconds).as_str(), expected);
    }

    #[test]
    fn formats_epoch_and_leap_days() {
        check(0, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT");
        check(1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT");
        check(4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT");
        check(784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn clamps_to_year_9999() {
        check(u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn parses_formatted_dates() {
        for day in (0..3_000_000).step_by(37) {
            let moment = day * 86_400 + day % 86_400;
            let date = Date::at(moment);
            if moment < 253_402_300_799 {
                assert_eq!(Date::parse(date.as_str()), Some(moment), "{}", date.as_str());
            }
        }
    }

    #[test]
    fn parses_all_three_formats() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(Date::parse(text), Some(784_111_777), "{text}");
        }
        assert_eq!(Date::parse("Sunday, 06-Nov-22 00:00:00 GMT"), Some(1_667_692_800));
        assert_eq!(Date::parse("Thursday, 01-Jan-70 00:00:00 GMT"), Some(0));
        assert_eq!(Date::parse("Tuesday, 31-Dec-69 23:59:59 GMT"), Some(3_155_759_999));
        assert_eq!(Date::parse("Sun Nov 16 08:49:37 1994"), Some(784_111_777 + 864_000));
    }

    #[test]
    fn reads_leap_second_as_last_second_of_its_minute() {
        assert_eq!(
            Date::parse("Sat, 31 Dec 2016 23:59:60 GMT"),
            Date::parse("Sat, 31 Dec 2016 23:59:59 GMT")
        );
        assert_eq!(Date::parse("Sat, 31 Dec 2016 23:59:61 GMT"), None);
    }

    #[test]
    fn rejects_malformed_dates() {
        for text in [
            "",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08-49:37 GMT",
            "Sun, 06 Nov 1994 08:49-37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1969 08:49:37 GMT",
            "Sun, 06 Nov 19x4 08:49:37 GMT",
            "Sun; 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GM",
            "Sunday, 06-Nov-94 08:49:37 UTC GMT",
            "Sunday,",
            "\u{e4}\u{e4}\u{e4}, 06 Nov 94 08:49:37 GMT",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
    }

    #[test]
    fn field_line_includes_line_end() {
        assert_eq!(Date::at(1_795_208_400).as_bytes(), b"Date: Fri, 20 Nov 2026 21:00:00 GMT\r\n");
    }
}
