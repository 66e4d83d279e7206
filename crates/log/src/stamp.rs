//! Timestamps of log lines: formatted once a second, then copied into each line.

use bine_http::Date;
use rustix::time::{ClockId, clock_gettime};

/// The timestamp of one second in both formats of logs.
///
/// Always in UTC: local time would jump when daylight saving time begins or ends.
pub struct Stamp {
    unix: u64,
    classic: [u8; 28],
    iso: [u8; 20],
}

impl Stamp {
    /// Returns the timestamp of the current second.
    pub fn now() -> Self {
        // A clock before 1970 is not set, so any timestamp is wrong: use the epoch.
        Self::at(u64::try_from(clock_gettime(ClockId::RealtimeCoarse).tv_sec).unwrap_or(0))
    }

    /// Returns the timestamp of the second that is `unix` seconds after the epoch.
    pub fn at(unix: u64) -> Self {
        let mut classic = *b"[01/Jan/1970:00:00:00 +0000]";
        let mut iso = *b"1970-01-01T00:00:00Z";
        let date = Date::at(unix);
        // The parts of `Fri, 20 Nov 2026 21:00:00 GMT`, in a different order.
        let text = date.as_str().as_bytes();
        let (day, month, year, time) = (&text[5..7], &text[8..11], &text[12..16], &text[17..25]);
        classic[1..3].copy_from_slice(day);
        classic[4..7].copy_from_slice(month);
        classic[8..12].copy_from_slice(year);
        classic[13..21].copy_from_slice(time);
        iso[..4].copy_from_slice(year);
        iso[5..7].copy_from_slice(month_number(month));
        iso[8..10].copy_from_slice(day);
        iso[11..19].copy_from_slice(time);
        Self { unix, classic, iso }
    }

    /// Changes the timestamp to `unix` seconds after the epoch, unless it is equal already.
    pub fn move_to(&mut self, unix: u64) {
        if self.unix != unix {
            *self = Self::at(unix);
        }
    }

    /// The time as the `common` format writes it: `[20/Nov/2026:21:00:00 +0000]`.
    pub const fn classic(&self) -> &[u8] {
        &self.classic
    }

    /// The time as RFC 3339 writes it: `2026-11-20T21:00:00Z`.
    pub const fn iso(&self) -> &[u8] {
        &self.iso
    }
}

fn month_number(month: &[u8]) -> &'static [u8] {
    match month {
        b"Jan" => b"01",
        b"Feb" => b"02",
        b"Mar" => b"03",
        b"Apr" => b"04",
        b"May" => b"05",
        b"Jun" => b"06",
        b"Jul" => b"07",
        b"Aug" => b"08",
        b"Sep" => b"09",
        b"Oct" => b"10",
        b"Nov" => b"11",
        _ => b"12",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_time_in_both_formats() {
        let mut stamp = Stamp::at(1_795_208_400);
        assert_eq!(stamp.classic(), b"[20/Nov/2026:21:00:00 +0000]");
        assert_eq!(stamp.iso(), b"2026-11-20T21:00:00Z");
        stamp.move_to(951_782_399);
        assert_eq!(stamp.classic(), b"[28/Feb/2000:23:59:59 +0000]");
        assert_eq!(stamp.iso(), b"2000-02-28T23:59:59Z");
    }

    #[test]
    fn numbers_all_months() {
        for (index, days) in
            [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334].iter().enumerate()
        {
            let stamp = Stamp::at(days * 86_400);
            let expected = format!("1970-{:02}-01T00:00:00Z", index + 1);
            assert_eq!(stamp.iso(), expected.as_bytes());
        }
    }
}
