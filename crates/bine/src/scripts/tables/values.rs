//! Values of columns in a script, and in the store.

use std::str::FromStr;

use bine_script::Value as ScriptValue;

use crate::store::{EnumNames, Kind, RowId, Time, Value};

/// The greatest integer for which the next one is a number too: 2^53 - 1.
pub(super) const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;
/// The milliseconds of the latest moment of a `Date`, on either side of 1970.
const MAX_MILLISECONDS: f64 = 8.64e15;
/// The microseconds of a millisecond, and of a day.
const MICROSECONDS: i64 = 1000;
const DAY: i64 = 86_400_000 * MICROSECONDS;

/// The value of a script for a column of this kind. One that does not fit becomes a value that the
/// column does not accept, so that the store reports it together with all other columns.
pub(super) fn to_store<'v>(kind: &Kind, value: &'v ScriptValue) -> Value<'v> {
    match (kind, value) {
        (_, ScriptValue::Null | ScriptValue::Undefined) => Value::Null,
        (Kind::Bool, ScriptValue::Bool(value)) => Value::Bool(*value),
        (Kind::Integer { .. }, ScriptValue::Number(number)) if is_integer(*number) => {
            Value::Integer(*number as i128)
        }
        (Kind::Integer { .. } | Kind::Float, ScriptValue::Number(number)) => Value::Float(*number),
        (Kind::Text, ScriptValue::Text(text)) => Value::Text(text),
        (Kind::Bytes, ScriptValue::Bytes(bytes)) => Value::Bytes(bytes),
        (Kind::Time, value) => to_time(value).map_or(Value::Bool(false), Value::Time),
        (Kind::Enum(words), ScriptValue::Text(word)) => {
            position(words, word).map_or(Value::Bool(false), Value::Enum)
        }
        (Kind::Reference(_), ScriptValue::Text(id)) => {
            RowId::from_str(id).map_or(Value::Bool(false), Value::Id)
        }
        (Kind::Bool, _) => Value::Integer(0),
        _ => Value::Bool(false),
    }
}

/// The value of a column for a script.
pub(super) fn of_store(kind: &Kind, value: Value<'_>) -> ScriptValue {
    match value {
        Value::Null => ScriptValue::Null,
        Value::Bool(value) => ScriptValue::Bool(value),
        // A column of a script has integers up to 2^53.
        Value::Integer(number) => ScriptValue::Number(number as f64),
        // As in JSON: only a tool can have stored a number that is not finite.
        Value::Float(number) if !number.is_finite() => ScriptValue::Null,
        Value::Float(number) => ScriptValue::Number(number),
        Value::Text(text) => ScriptValue::Text(text.to_owned()),
        Value::Bytes(bytes) => ScriptValue::Bytes(bytes.to_vec()),
        Value::Time(time) => ScriptValue::Text(time_text(time)),
        Value::Enum(position) => match kind {
            Kind::Enum(words) => words
                .get(usize::from(position))
                .map_or(ScriptValue::Null, |word| ScriptValue::Text(word.clone().into_owned())),
            _ => ScriptValue::Null,
        },
        Value::Id(id) => ScriptValue::Text(id.to_string()),
    }
}

/// A time as scripts write it: in UTC, with three digits of a second, or with six if the time was
/// not written by a script and has them, so that no two times have the same text.
pub(in crate::scripts) fn time_text(time: Time) -> String {
    let mut text = time.to_string();
    if text.ends_with("000Z") && text.as_bytes().get(text.len().wrapping_sub(8)) == Some(&b'.') {
        text.truncate(text.len() - "000Z".len());
        text.push('Z');
    } else if !text.contains('.') {
        text.truncate(text.len() - "Z".len());
        text.push_str(".000Z");
    }
    text
}

/// A time of a script: its text, or the milliseconds since 1970.
pub(super) fn to_time(value: &ScriptValue) -> Option<Time> {
    match value {
        ScriptValue::Text(text) => Time::from_str(text).ok(),
        ScriptValue::Number(number) if number.abs() <= MAX_MILLISECONDS => {
            // The microseconds of `MAX_MILLISECONDS` fit into an `i64`.
            Some(Time(number.floor() as i64 * MICROSECONDS))
        }
        _ => None,
    }
}

/// Writes times as [`time_text`] does. The times of successive rows are often of one day, whose text
/// it keeps.
#[derive(Debug, Default)]
pub(super) struct TimeWriter {
    /// The start of the day, in microseconds since 1970.
    start: i64,
    /// The beginning of the text of its times, up to the `T`; empty before the first time.
    date: String,
}

impl TimeWriter {
    pub(super) fn write(&mut self, time: Time, to: &mut String) {
        let within = time.0.rem_euclid(DAY);
        // The first day of all begins before the range of an `i64`.
        let start = time.0.checked_sub(within).filter(|_| within % MICROSECONDS == 0);
        let Some(start) = start else { return to.push_str(&time_text(time)) };
        if self.date.is_empty() || start != self.start {
            self.start = start;
            self.date = Time(start).to_string();
            self.date.truncate(self.date.len() - "00:00:00Z".len());
        }
        to.push_str(&self.date);
        let milliseconds = (within / MICROSECONDS).unsigned_abs();
        let (seconds, fraction) = (milliseconds / 1000, milliseconds % 1000);
        let digits = |number: u64| char::from(b'0' + (number % 10) as u8);
        for (number, end) in [(seconds / 3600, ':'), (seconds / 60 % 60, ':'), (seconds % 60, '.')]
        {
            to.extend([digits(number / 10), digits(number), end]);
        }
        to.extend([digits(fraction / 100), digits(fraction / 10), digits(fraction), 'Z']);
    }
}

/// The current time to the millisecond, which a script reads as it is stored.
pub(super) fn now() -> Time {
    let Time(now) = Time::now();
    Time(now - now.rem_euclid(MICROSECONDS))
}

/// Whether a number is an integer that a script can count up to.
pub(super) fn is_integer(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= MAX_INTEGER
}

/// A number as a count or a position.
pub(in crate::scripts) fn to_count(number: f64) -> Option<usize> {
    if is_integer(number) { usize::try_from(number as i64).ok() } else { None }
}

/// The position of a word of an enum.
pub(super) fn position(words: &EnumNames, word: &str) -> Option<u16> {
    let position = words.iter().position(|own| own == word)?;
    u16::try_from(position).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn writes_times_with_three_digits_of_a_second() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_795_253_400_500_000, "2026-11-21T09:30:00.500Z"),
            (1_795_253_400_500_001, "2026-11-21T09:30:00.500001Z"),
            (-1000, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(time_text(Time(micros)), text);
        }
    }

    proptest! {
        #[test]
        fn writes_the_same_text_in_any_order_of_times(times in prop::collection::vec(
            prop_oneof![any::<i64>(), -3 * DAY..3 * DAY, (-300_000_i64..300_000_000).prop_map(|milliseconds| milliseconds * 1000), Just(i64::MIN), Just(i64::MAX)],
            0..8,
        )) {
            let mut writer = TimeWriter::default();
            for time in times {
                let mut written = String::new();
                writer.write(Time(time), &mut written);
                prop_assert_eq!(&written, &time_text(Time(time)));
                prop_assert_eq!(to_time(&ScriptValue::Text(written)), Some(Time(time)));
            }
        }
    }
}
