//! Column values in lines of JSON, exact to the last bit: docs/formats/lines.md.

use std::borrow::Cow;

use super::json::{ParseError, Reader, Scalar, put_text};
use crate::schema::Constant;
use crate::value::{Kind, Value};

/// A value read from a line.
#[derive(Clone, Debug)]
pub(super) enum ParsedValue<'t> {
    Plain(Value<'t>),
    Text(Cow<'t, str>),
    Bytes(Vec<u8>),
}

/// The largest integer that each JSON reader handles exactly (RFC 7493 section 2.2).
const MAX_SAFE_INTEGER: u128 = (1 << 53) - 1;
/// Floats that JSON numbers cannot represent.
const NON_FINITE: [(&str, f64); 3] =
    [("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY), ("NaN", f64::NAN)];
/// The prefix of any other NaN, followed by its bits in hexadecimal digits.
const OTHER_NAN: &str = "NaN:";

/// Appends a column value. `None` if it does not match the column's type.
pub(super) fn put(to: &mut Vec<u8>, value: Value<'_>, kind: &Kind) -> Option<()> {
    match value {
        Value::Null => to.extend_from_slice(b"null"),
        Value::Bool(value) => to.extend_from_slice(if value { b"true" } else { b"false" }),
        Value::Integer(number) => put_whole(to, number),
        Value::Float(number) => put_float(to, number),
        Value::Text(text) => put_text(to, text),
        Value::Bytes(bytes) => put_base64(to, bytes),
        Value::Time(moment) => put_text(to, &moment.to_string()),
        Value::Enum(position) => match kind {
            Kind::Enum(words) => put_text(to, words.get(usize::from(position))?),
            _ => return None,
        },
        Value::Id(id) => put_text(to, &id.to_string()),
    }
    (value == Value::Null || value_is_of(value, kind)).then_some(())
}

/// Whether a value matches a type. Bounds of numbers are not checked: a dump writes what the folder
/// has.
fn value_is_of(value: Value<'_>, kind: &Kind) -> bool {
    matches!((value, kind), (Value::Integer(_), Kind::Integer { .. })) || kind.admits(value)
}

pub(super) fn put_whole(to: &mut Vec<u8>, number: i128) {
    let text = number.to_string();
    if number.unsigned_abs() <= MAX_SAFE_INTEGER {
        to.extend_from_slice(text.as_bytes());
    } else {
        put_text(to, &text);
    }
}

fn put_float(to: &mut Vec<u8>, number: f64) {
    if number.is_finite() {
        // The shortest digits that parse to the same number.
        to.extend_from_slice(format!("{number:?}").as_bytes());
    } else if let Some((name, _)) =
        NON_FINITE.iter().find(|(_, own)| own.to_bits() == number.to_bits())
    {
        put_text(to, name);
    } else {
        put_text(to, &format!("{OTHER_NAN}{:016x}", number.to_bits()));
    }
}

/// Reads a column value that is not null.
pub(super) fn read<'t>(
    from: &mut Reader<'t>,
    kind: &Kind,
    column: &str,
) -> Result<ParsedValue<'t>, ParseError> {
    let at = from.next_offset();
    let scalar = from.scalar()?;
    let given = match (kind, scalar) {
        (Kind::Bool, Scalar::Bool(value)) => Some(ParsedValue::Plain(Value::Bool(value))),
        (Kind::Integer { .. }, Scalar::Number(digits)) => whole(digits),
        (Kind::Integer { .. }, Scalar::Text(digits)) => whole(&digits),
        (Kind::Float, Scalar::Number(digits)) => {
            let number = digits.parse().ok().filter(|number: &f64| number.is_finite());
            number.map(|number| ParsedValue::Plain(Value::Float(number)))
        }
        (Kind::Float, Scalar::Text(name)) => {
            non_finite(&name).map(|number| ParsedValue::Plain(Value::Float(number)))
        }
        (Kind::Text, Scalar::Text(text)) => Some(ParsedValue::Text(text)),
        (Kind::Bytes, Scalar::Text(text)) => from_base64(&text).map(ParsedValue::Bytes),
        (Kind::Time, Scalar::Text(text)) => {
            text.parse().ok().map(|moment| ParsedValue::Plain(Value::Time(moment)))
        }
        (Kind::Enum(words), Scalar::Text(text)) => {
            let position = words.iter().position(|word| *word == text);
            position.map(|position| ParsedValue::Plain(Value::Enum(position as u16)))
        }
        (Kind::Reference(_), Scalar::Text(text)) => {
            text.parse().ok().map(|id| ParsedValue::Plain(Value::Id(id)))
        }
        _ => None,
    };
    let given = given.filter(|given| kind.admits(given.value()));
    given.ok_or_else(|| ParseError { at, what: format!("`{column}` must be {}", expected(kind)) })
}

/// The expected form of a value, for error messages.
fn expected(kind: &Kind) -> Cow<'static, str> {
    match kind {
        Kind::Float => "a number, or \"NaN\", \"Infinity\" or \"-Infinity\"".into(),
        Kind::Bytes => "bytes in base64, like \"aG9wcw==\"".into(),
        Kind::Time => "a moment like \"2026-11-21T09:30:00Z\"".into(),
        Kind::Reference(table) => {
            format!("the id of a row of `{table}`, like \"0193f9a0-4c5e-7b3a-9c1d-5e6f70819203\"")
                .into()
        }
        kind => kind.to_string().into(),
    }
}

impl ParsedValue<'_> {
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }

    /// Converts to a default; `None` if the type allows no default.
    pub(super) fn into_constant(self) -> Option<Constant> {
        Some(match self {
            Self::Text(text) => Constant::Text(text.into_owned().into()),
            Self::Plain(Value::Bool(value)) => Constant::Bool(value),
            Self::Plain(Value::Integer(number)) => Constant::Integer(number),
            Self::Plain(Value::Float(number)) => Constant::Float(number),
            Self::Plain(Value::Time(moment)) => Constant::Time(moment),
            Self::Plain(Value::Enum(position)) => Constant::Enum(position),
            Self::Plain(_) | Self::Bytes(_) => return None,
        })
    }
}

fn whole(digits: &str) -> Option<ParsedValue<'static>> {
    number(digits).map(|number| ParsedValue::Plain(Value::Integer(number)))
}

/// Parses an integer of plain digits.
pub(super) fn number(digits: &str) -> Option<i128> {
    let all_digits = digits.strip_prefix('-').unwrap_or(digits);
    let is_plain = all_digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

fn non_finite(name: &str) -> Option<f64> {
    if let Some((_, number)) = NON_FINITE.iter().find(|(own, _)| *own == name) {
        return Some(*number);
    }
    let bits = name.strip_prefix(OTHER_NAN).filter(|bits| bits.len() == 16)?;
    let is_plain = bits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = f64::from_bits(u64::from_str_radix(bits, 16).ok().filter(|_| is_plain)?);
    number.is_nan().then_some(number)
}

const BASE64_ALPHABET: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends bytes in base64 (RFC 4648 section 4).
fn put_base64(to: &mut Vec<u8>, bytes: &[u8]) {
    to.push(b'"');
    for three in bytes.chunks(3) {
        let mut all = [0; 4];
        all[1..=three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes(all);
        for letter in 0..4 {
            let decode_letter = bits >> (18 - 6 * letter) & 63;
            to.push(if letter > three.len() {
                b'='
            } else {
                BASE64_ALPHABET[decode_letter as usize]
            });
        }
    }
    to.push(b'"');
}

/// Decodes base64; `None` if the text is not an output of [`put_base64`].
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - letters.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in letters.as_bytes().chunks(4) {
        let mut bits = 0;
        for letter in four {
            bits = bits << 6 | decode_letter(*letter)?;
        }
        bits <<= 6 * (4 - four.len());
        let count = four.len() - 1;
        // The unused bits must be zero.
        if bits.to_be_bytes()[1 + count..].iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=count]);
    }
    Some(bytes)
}

fn decode_letter(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::row::tests::{kinds, value};
    use crate::time::Time;
    use crate::value::Field;

    fn written(value: Value<'_>, kind: &Kind) -> String {
        let mut to = Vec::new();
        put(&mut to, value, kind).unwrap();
        String::from_utf8(to).unwrap()
    }

    #[track_caller]
    fn check(value: Value<'_>, kind: &Kind, expected: &str) {
        assert_eq!(written(value, kind), expected);
        let read = read(&mut Reader::new(expected), kind, "a").unwrap();
        // Compare bits, because NaN does not equal itself.
        assert_eq!(format!("{:?}", read.value()), format!("{value:?}"));
        if let (Value::Float(read), Value::Float(value)) = (read.value(), value) {
            assert_eq!(read.to_bits(), value.to_bits());
        }
    }

    #[test]
    fn writes_each_type_in_its_form() {
        check(Value::Bool(true), &Kind::Bool, "true");
        check(Value::Integer(-7), &i64::kind(), "-7");
        check(Value::Integer(9_007_199_254_740_991), &u64::kind(), "9007199254740991");
        check(Value::Integer(9_007_199_254_740_992), &u64::kind(), "\"9007199254740992\"");
        check(Value::Integer(i64::MIN.into()), &i64::kind(), "\"-9223372036854775808\"");
        check(Value::Integer(u64::MAX.into()), &u64::kind(), "\"18446744073709551615\"");
        check(Value::Float(0.1), &Kind::Float, "0.1");
        check(Value::Float(-0.0), &Kind::Float, "-0.0");
        check(Value::Float(5e-324), &Kind::Float, "5e-324");
        check(Value::Float(f64::NEG_INFINITY), &Kind::Float, "\"-Infinity\"");
        check(Value::Float(f64::NAN), &Kind::Float, "\"NaN\"");
        check(Value::Float(-f64::NAN), &Kind::Float, "\"NaN:fff8000000000000\"");
        check(Value::Text("a\"\n"), &Kind::Text, "\"a\\\"\\n\"");
        check(Value::Bytes(b"hops"), &Kind::Bytes, "\"aG9wcw==\"");
        check(Value::Bytes(b""), &Kind::Bytes, "\"\"");
        check(Value::Time(Time(0)), &Kind::Time, "\"1970-01-01T00:00:00Z\"");
        check(Value::Time(Time(-1)), &Kind::Time, "\"1969-12-31T23:59:59.999999Z\"");
        let leap = Time(1_709_164_800_500_000);
        check(Value::Time(leap), &Kind::Time, "\"2024-02-29T00:00:00.500000Z\"");
        check(Value::Time(Time(i64::MAX)), &Kind::Time, "\"+294247-01-10T04:00:54.775807Z\"");
        check(Value::Time(Time(i64::MIN)), &Kind::Time, "\"-290308-12-21T19:59:05.224192Z\"");
        let words = Kind::Enum(Cow::Owned(vec!["open".into(), "shut".into()]));
        check(Value::Enum(1), &words, "\"shut\"");
        assert_eq!(put(&mut Vec::new(), Value::Enum(2), &words), None);
        assert_eq!(put(&mut Vec::new(), Value::Text("a"), &Kind::Bytes), None);
    }

    #[test]
    fn rejects_values_of_another_type() {
        let refused = |kind: &Kind, text: &str| {
            let parse_error = read(&mut Reader::new(text), kind, "a").unwrap_err();
            assert!(parse_error.what.starts_with("`a` must be "), "{text}: {parse_error:?}");
        };
        for text in ["256", "-1", "1.0", "1e2", "\"+1\"", "\"\"", "\"1 \"", "true", "null"] {
            refused(&u8::kind(), text);
        }
        for text in ["1e999", "\"nan\"", "\"NaN:7ff0000000000000\"", "\"NaN:+ff8000000000000\""] {
            refused(&Kind::Float, text);
        }
        for text in ["\"YQ\"", "\"YR==\"", "\"Y===\"", "\"YQ==YQ==\"", "\"Y-Q=\"", "\"====\""] {
            refused(&Kind::Bytes, text);
        }
        for text in [
            "\"2026-02-29T00:00:00Z\"",
            "\"2026-13-01T00:00:00Z\"",
            "\"2026-01-01T24:00:00Z\"",
            "\"2026-01-01T00:00:60Z\"",
            "\"2026-01-01T00:00:00\"",
            "\"2026-01-01 00:00:00Z\"",
            "\"2026-01-01T00:00:00.Z\"",
            "\"2026-01-01T00:00:00.1234567Z\"",
            "\"2026-01-01T00:00:+1Z\"",
            "\"+294247-01-10T04:00:54.775808Z\"",
            "\"+2026-01-01T00:00:00Z\"",
            "\"\u{e9}026-01-01T00:00:00Z\"",
            "0",
        ] {
            refused(&Kind::Time, text);
        }
        refused(&Kind::Reference("a".into()), "\"1\"");
    }

    proptest! {
        #[test]
        fn round_trips_values((kind, owned) in (0_usize..7).prop_flat_map(|kind| (Just(kind), value(kind)))) {
            let kind = &kinds()[kind];
            let text = written(owned.value(), kind);
            let given = read(&mut Reader::new(&text), kind, "a").unwrap();
            prop_assert_eq!(written(given.value(), kind), text);
        }

        #[test]
        fn round_trips_every_float_bit(bits: u64) {
            let text = written(Value::Float(f64::from_bits(bits)), &Kind::Float);
            let given = read(&mut Reader::new(&text), &Kind::Float, "a").unwrap();
            let Value::Float(number) = given.value() else { panic!("{given:?}") };
            prop_assert_eq!(number.to_bits(), bits);
        }

        #[test]
        fn reads_any_text_without_panic(text: String, kind in 0_usize..7) {
            let mut line = Vec::new();
            put_text(&mut line, &text);
            let line = String::from_utf8(line).unwrap();
            let _ = read(&mut Reader::new(&line), &kinds()[kind], "a");
        }
    }
}
