//! Decides how a moment stands in a `Date` field.

/// The whole field line, such as `Date: Fri, 20 Nov 2026 21:00:00 GMT` and its CRLF.
///
/// Made once a second by whoever owns the clock and copied into every head as one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date([u8; 37]);

impl Date {
    /// The line for a moment in Unix seconds; past the year 9999, where IMF-fixdate ends, its last second.
    pub fn at(unix_seconds: u64) -> Self {
        const LAST: u64 = 253_402_300_799;
        let seconds = unix_seconds.min(LAST);
        let days = seconds / 86_400;
        let (year, month, day) = civil(days);
        let of_day = seconds % 86_400;

        let mut line = *b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
        // 1 January 1970 was a Thursday.
        line[6..9].copy_from_slice(name(b"ThuFriSatSunMonTueWed", days % 7));
        two_digits(&mut line[11..13], day);
        line[14..17].copy_from_slice(name(b"JanFebMarAprMayJunJulAugSepOctNovDec", month));
        two_digits(&mut line[18..20], year / 100);
        two_digits(&mut line[20..22], year % 100);
        two_digits(&mut line[23..25], of_day / 3600);
        two_digits(&mut line[26..28], of_day / 60 % 60);
        two_digits(&mut line[29..31], of_day % 60);
        Self(line)
    }

    /// The line, CRLF included.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Only the moment, as `Last-Modified` and `Expires` carry it too (RFC 9110 section 5.6.7).
    pub fn as_str(&self) -> &str {
        // The line is made of ASCII in `at`, so the fallback cannot be taken.
        core::str::from_utf8(&self.0[6..35]).unwrap_or_default()
    }
}

/// Year, month from 0 and day from 1 of a day counted from 1 January 1970.
///
/// Counts in years that begin in March, so that the leap day comes last, within cycles of 400 years.
fn civil(days: u64) -> (u64, u64, u64) {
    let since_march_0000 = days + 719_468;
    let cycle = since_march_0000 / 146_097;
    let of_cycle = since_march_0000 % 146_097;
    let year_of_cycle = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = cycle * 400 + year_of_cycle + u64::from(month < 2);
    (year, month, day)
}

fn name(names: &[u8], index: u64) -> &[u8] {
    let start = index as usize * 3;
    &names[start..start + 3]
}

fn two_digits(place: &mut [u8], number: u64) {
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
    fn the_epoch_and_the_leap_days_are_right() {
        check(0, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT");
        check(1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT");
        check(4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT");
        check(784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn the_last_year_of_the_format_is_never_passed() {
        check(u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn the_line_ends_itself() {
        assert_eq!(Date::at(1_795_208_400).as_bytes(), b"Date: Fri, 20 Nov 2026 21:00:00 GMT\r\n");
    }
}
