//! Times for people: `time!` writes a `<time>` element that the browser shows in the visitor's
//! language and time zone.

use std::fmt;

use bine_html::{Html, Phrasing};

use crate::store::Time;

/// Writes a time as a `<time>` element, which the browser shows in the visitor's language and time
/// zone.
///
/// ```
/// use bine::prelude::*;
///
/// fn post(said: &str, at: Time) -> impl Page {
///     html!(<p>{said} <small>{time!(at, relative)}</small></p>)
/// }
/// ```
///
/// | call | a visitor from Germany reads | without script |
/// |---|---|---|
/// | `time!(at)` | 23.11.2026, 15:05 | 23 Nov 2026, 14:05 UTC |
/// | `time!(at, date)` | 23.11.2026 | 23 Nov 2026 |
/// | `time!(at, relative)` | vor 3 Minuten | 23 Nov 2026, 14:05 UTC |
///
/// The first argument is a [`Time`](crate::store::Time) or a `SystemTime`. The value is phrasing
/// content. A relative time moves on while the page is open; from a week on it is a date. The full
/// time is in a tooltip.
///
/// The server sends the same bytes to all visitors. A module of less than 1 KB rewrites the times;
/// only programs that use this macro link to it.
#[macro_export]
macro_rules! time {
    ($time:expr $(,)?) => { $crate::time!(@ $time, DateTime) };
    ($time:expr, date $(,)?) => { $crate::time!(@ $time, Date) };
    ($time:expr, relative $(,)?) => { $crate::time!(@ $time, Relative) };
    (@ $time:expr, $form:ident) => {{
        $crate::__private::submit! { $crate::__private::LinkedFeature::Time }
        let time = ::core::convert::Into::<$crate::store::Time>::into($time);
        $crate::__private::shown_time(time, $crate::__private::TimeForm::$form)
    }};
}

/// The form of a displayed time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeForm {
    /// The day and the minute.
    DateTime,
    /// The day.
    Date,
    /// The distance from the visitor's current time.
    Relative,
}

impl TimeForm {
    /// The value of `data-time`, which the script reads.
    const fn name(self) -> &'static str {
        match self {
            Self::DateTime => "date-time",
            Self::Date => "date",
            Self::Relative => "relative",
        }
    }
}

/// The element of a time. `time!` writes calls of this function.
#[doc(hidden)]
pub fn shown_time(time: Time, form: TimeForm) -> impl Html<Phrasing> {
    let time = UtcText::of(time);
    // The text does not depend on the current time, so a region that displays it keeps its hash.
    crate::html! {
        <time datetime={format_args!("{}T{}Z", time.date(), time.clock())} data-time={form.name()}>
            <span>
                {time.day()}" "{time.month()}" "{time.year()}
                {if form != TimeForm::Date { ", "{time.minute()}" UTC" }}
            </span>
        </time>
    }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time in the format of RFC 3339, in UTC, and its parts.
struct UtcText {
    bytes: [u8; Self::LENGTH],
    length: usize,
}

impl UtcText {
    /// The length of `+292277-01-10T04:00:54.775807Z`.
    const LENGTH: usize = 30;

    fn of(time: Time) -> Self {
        let mut text = Self { bytes: [0; Self::LENGTH], length: 0 };
        fmt::Write::write_fmt(&mut text, format_args!("{time}")).expect("no time is longer");
        text
    }

    fn text(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).expect("digits and marks")
    }

    /// As in `2026-11-23`.
    fn date(&self) -> &str {
        self.text().split_once('T').expect("a date and a time").0
    }

    /// As in `14:05:00`: HTML allows at most three further digits.
    fn clock(&self) -> &str {
        &self.text().split_once('T').expect("a date and a time").1[..8]
    }

    fn minute(&self) -> &str {
        &self.clock()[..5]
    }

    /// The day of the month, without a zero before it.
    fn day(&self) -> &str {
        let date = self.date();
        date[date.len() - 2..].trim_start_matches('0')
    }

    fn month(&self) -> &'static str {
        let date = self.date();
        let month: usize = date[date.len() - 5..date.len() - 3].parse().expect("two digits");
        MONTHS[month - 1]
    }

    fn year(&self) -> &str {
        let date = self.date();
        &date[..date.len() - 6]
    }
}

impl fmt::Write for UtcText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bine_html::{Page as _, Writer};

    use super::*;

    fn written(time: &str, form: TimeForm) -> String {
        let mut bytes = Vec::new();
        let time: Time = time.parse().expect("a time");
        shown_time(time, form).write(&mut Writer::new(&mut bytes));
        String::from_utf8(bytes).expect("markup is text")
    }

    #[test]
    fn writes_times_that_are_readable_without_script() {
        assert_eq!(
            written("2026-11-23T14:05:00.123456Z", TimeForm::DateTime),
            "<time datetime=\"2026-11-23T14:05:00Z\" data-time=\"date-time\"><span>23 Nov 2026, 14:05 UTC</span></time>"
        );
        assert_eq!(
            written("2024-02-09T23:59:59Z", TimeForm::Date),
            "<time datetime=\"2024-02-09T23:59:59Z\" data-time=\"date\"><span>9 Feb 2024</span></time>"
        );
        // It does not depend on the current time.
        assert_eq!(
            written("1969-12-31T00:00:00Z", TimeForm::Relative),
            "<time datetime=\"1969-12-31T00:00:00Z\" data-time=\"relative\"><span>31 Dec 1969, 00:00 UTC</span></time>"
        );
    }

    #[test]
    fn writes_the_first_and_the_last_time() {
        for (time, expected) in [
            (Time(i64::MAX), "10 Jan +294247, 04:00 UTC"),
            (Time(i64::MIN), "21 Dec -290308, 19:59 UTC"),
        ] {
            let written = written(&time.to_string(), TimeForm::DateTime);
            assert!(written.contains(expected), "{written}");
        }
    }
}
