//! Values of columns as texts, exact in both directions.

use std::borrow::Cow;

use crate::base64;
use crate::store::{Column, Constant, Kind, RowView, Schema, Value};

/// A value that was read from a text.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum CellValue {
    Plain(Value<'static>),
    Text(String),
    Bytes(Vec<u8>),
}

impl CellValue {
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::Text(text) => Value::Text(text),
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

/// The text of a value: RFC 3339 for a time, base64 for bytes, an empty text for null.
pub(super) fn text_of<'v>(value: Value<'v>, kind: &'v Kind) -> Cow<'v, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::Bool(value) => Cow::Borrowed(if value { "true" } else { "false" }),
        Value::Integer(number) => Cow::Owned(number.to_string()),
        // The shortest digits that parse to the same number.
        Value::Float(number) => Cow::Owned(format!("{number:?}")),
        Value::Text(text) => Cow::Borrowed(text),
        Value::Bytes(bytes) => Cow::Owned(base64::written_padded(bytes)),
        Value::Time(moment) => Cow::Owned(moment.to_string()),
        Value::Enum(position) => match kind {
            Kind::Enum(words) => {
                Cow::Borrowed(words.get(usize::from(position)).map_or("", |word| &**word))
            }
            _ => Cow::Borrowed(""),
        },
        Value::Id(id) => Cow::Owned(id.to_string()),
    }
}

/// Reads the text of a value that is not null. `None` if it is not of this type; the limits of the
/// column are not checked.
pub(super) fn parse(text: &str, kind: &Kind) -> Option<CellValue> {
    let trimmed = text.trim();
    Some(match kind {
        Kind::Text => CellValue::Text(text.to_owned()),
        Kind::Bytes => CellValue::Bytes(base64::padded(trimmed)?),
        Kind::Bool => CellValue::Plain(Value::Bool(match trimmed {
            "true" => true,
            "false" => false,
            _ => return None,
        })),
        Kind::Integer { .. } => CellValue::Plain(Value::Integer(trimmed.parse().ok()?)),
        Kind::Float => CellValue::Plain(Value::Float(trimmed.parse().ok()?)),
        Kind::Time => CellValue::Plain(Value::Time(trimmed.parse().ok()?)),
        Kind::Enum(words) => {
            let position = words.iter().position(|word| *word == trimmed)?;
            CellValue::Plain(Value::Enum(u16::try_from(position).ok()?))
        }
        Kind::Reference(_) => CellValue::Plain(Value::Id(trimmed.parse().ok()?)),
    })
}

/// The text of a default.
pub(super) fn text_of_constant(constant: &Constant, kind: &Kind) -> String {
    let value = match constant {
        Constant::Null => Value::Null,
        Constant::Bool(value) => Value::Bool(*value),
        Constant::Integer(number) => Value::Integer(*number),
        Constant::Float(number) => Value::Float(*number),
        Constant::Text(text) => Value::Text(text),
        Constant::Time(moment) => Value::Time(*moment),
        Constant::Now => return "now".to_owned(),
        Constant::Enum(position) => Value::Enum(*position),
    };
    text_of(value, kind).into_owned()
}

/// The first letters of a text, with an ellipsis if there are more.
pub(super) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}\u{2026}", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The columns that may be shown, with their positions.
pub(super) fn shown(schema: &Schema) -> impl Iterator<Item = (usize, &Column)> {
    schema.columns.iter().enumerate().filter(|(_, column)| !column.is_private)
}

/// A name of a row for readers: the beginning of its first text, or else the end of its id.
pub(super) fn label_of(row: &RowView<'_>, schema: &Schema) -> String {
    let text = shown(schema).find_map(|(place, _)| match row.values()[place] {
        Value::Text(text) if !text.trim().is_empty() => Some(cut(text, 40).into_owned()),
        _ => None,
    });
    text.unwrap_or_else(|| short_id(row.id))
}

/// The end of an id, which differs most between rows.
pub(super) fn short_id(id: crate::store::RowId) -> String {
    let id = id.to_string();
    format!("\u{2026}{}", &id[id.len() - 8..])
}

#[cfg(test)]
mod unit_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::{RowId, Time};

    #[track_caller]
    fn check(value: Value<'_>, kind: &Kind) {
        let text = text_of(value, kind).into_owned();
        let parsed = parse(&text, kind).unwrap_or_else(|| panic!("{text:?}"));
        // NaN equals no value.
        assert_eq!(format!("{:?}", parsed.value()), format!("{value:?}"), "{text:?}");
    }

    proptest! {
        #[test]
        fn parses_the_texts_of_values(
            text in ".{0,20}", bytes: Vec<u8>, number: i64, float: f64, id: u128, time: i64
        ) {
            check(Value::Text(&text), &Kind::Text);
            check(Value::Bytes(&bytes), &Kind::Bytes);
            let kind = Kind::Integer { min: i64::MIN.into(), max: i64::MAX.into() };
            check(Value::Integer(number.into()), &kind);
            check(Value::Float(float), &Kind::Float);
            check(Value::Id(RowId::from_number(id)), &Kind::Reference("note".into()));
            check(Value::Time(Time(time % 253_402_300_800_000_000)), &Kind::Time);
        }
    }

    #[test]
    fn rejects_texts_of_other_types() {
        let words = Kind::Enum(vec!["open".into(), "shut".into()].into());
        assert_eq!(parse(" shut ", &words), Some(CellValue::Plain(Value::Enum(1))));
        for (text, kind) in [("ajar", &words), ("1.5", &Kind::Time), ("yes", &Kind::Bool)] {
            assert_eq!(parse(text, kind), None, "{text}");
        }
        assert_eq!(parse("Zg=", &Kind::Bytes), None);
    }

    #[test]
    fn cuts_long_texts_between_letters() {
        assert_eq!(cut("h\u{e4}user", 2), "h\u{e4}\u{2026}");
        assert_eq!(cut("h\u{e4}", 2), "h\u{e4}");
    }
}
