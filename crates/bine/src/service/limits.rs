//! The limits of a service's arguments, as attributes of the fields of its forms.
//!
//! A browser then refuses values that the service would refuse. It must never refuse others, so
//! that a limit without an equal attribute is omitted or wider.

use std::sync::OnceLock;

use bine_html::Writer;

use super::Signature;
use crate::store::{Column, Kind};

/// The columns that a service stores its arguments in, and the attributes that follow from them.
#[derive(Debug)]
pub struct ArgumentLimits {
    /// Each argument with its column.
    columns: &'static [StoredArgument],
    /// The attributes of each argument, written once.
    attributes: OnceLock<Box<[Attributes]>>,
}

/// The name of an argument, and its column.
type StoredArgument = (&'static str, fn() -> Option<Column>);

/// The texts of the attributes, each with its flag.
type Attributes = Vec<(u8, &'static str)>;

// `html!` has the same flags.
const REQUIRED: u8 = 1;
const MINLENGTH: u8 = 2;
const MAXLENGTH: u8 = 4;
const MIN: u8 = 8;
const MAX: u8 = 16;
const STEP: u8 = 32;

impl ArgumentLimits {
    /// The limits of the arguments that are stored in these columns.
    pub const fn new(columns: &'static [StoredArgument]) -> Self {
        Self { columns, attributes: OnceLock::new() }
    }

    fn attributes(&self, arguments: &[(&str, &str)]) -> &[Attributes] {
        self.attributes.get_or_init(|| {
            let all = arguments.iter().map(|(name, kind)| {
                let column = self.columns.iter().find(|(argument, _)| argument == name);
                attributes(kind, column.and_then(|(_, find)| find()).as_ref())
            });
            all.collect()
        })
    }
}

/// Writes the limits of the argument with this name as attributes, as far as `flags` has them.
pub fn write_limits(
    writer: &mut Writer<'_>,
    service: Option<&'static Signature>,
    name: &str,
    flags: u8,
) {
    let Some(service) = service else { return };
    let Some(place) = service.arguments.iter().position(|(own, _)| *own == name) else { return };
    for (flag, text) in &service.limits.attributes(service.arguments)[place] {
        if flags & flag != 0 {
            writer.constant(text);
        }
    }
}

/// The attributes of an argument of this type, as it is written, which is stored in this column.
fn attributes(kind: &str, column: Option<&Column>) -> Attributes {
    let inner = kind.strip_prefix("Option<").and_then(|kind| kind.strip_suffix('>'));
    let (kind, is_optional) = inner.map_or((kind, false), |kind| (kind, true));
    let number = Number::of(kind);
    // A service reads an empty field as an empty text, and other types have no empty value.
    let mut is_required = number.is_some() || kind == "char" || kind.starts_with("Id<");
    let (mut length, mut range) = (None, number.as_ref().and_then(|number| number.range));
    if kind == "char" {
        length = Some((0, 1));
    }
    if let Some(column) = column {
        let limit = column.length.filter(|_| column.kind == Kind::Text);
        is_required |= limit.is_some_and(|(least, _)| least > 0);
        length = limit.or(length);
        range = column.range.filter(|_| number.is_some()).or(range);
    }
    let mut all = Attributes::new();
    // An argument exists once in a program, so that the leak is bounded.
    let mut add = |flag, name: &str, value: &dyn std::fmt::Display| {
        all.push((flag, &*format!(" {name}=\"{value}\"").leak()));
    };
    if is_required && !is_optional {
        add(REQUIRED, "required", &"");
    }
    if let Some((least, most)) = length {
        if least > 1 {
            add(MINLENGTH, "minlength", &least);
        }
        // The server counts characters, the browser code units of UTF-16: two for some characters.
        if let Some(most) = most.checked_mul(2).filter(|most| i32::try_from(*most).is_ok()) {
            add(MAXLENGTH, "maxlength", &most);
        }
    }
    if let Some((least, most)) = range {
        for (flag, name, limit) in [(MIN, "min", least), (MAX, "max", most)] {
            if limit.is_finite() {
                add(flag, name, &limit);
            }
        }
    }
    // A browser accepts whole numbers only, unless the field has a step.
    if number.is_some_and(|number| number.is_float) {
        add(STEP, "step", &"any");
    }
    all
}

/// A type of numbers.
struct Number {
    is_float: bool,
    /// The limits of the type. Those beyond 2^53, which browsers would round, are infinite.
    range: Option<(f64, f64)>,
}

impl Number {
    /// The type with this name.
    fn of(kind: &str) -> Option<Self> {
        let range = match kind {
            "f32" | "f64" => return Some(Self { is_float: true, range: None }),
            "u8" => (0.0, u8::MAX.into()),
            "u16" => (0.0, u16::MAX.into()),
            "u32" => (0.0, u32::MAX.into()),
            "u64" | "u128" | "usize" => (0.0, f64::INFINITY),
            "i8" => (i8::MIN.into(), i8::MAX.into()),
            "i16" => (i16::MIN.into(), i16::MAX.into()),
            "i32" => (i32::MIN.into(), i32::MAX.into()),
            "i64" | "i128" | "isize" => (f64::NEG_INFINITY, f64::INFINITY),
            _ => return None,
        };
        Some(Self { is_float: false, range: Some(range) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: &str, column: Option<&Column>, expected: &str) {
        let all = attributes(kind, column);
        let text: String = all.iter().map(|(_, text)| *text).collect();
        assert_eq!(text, expected, "{kind} {column:?}");
    }

    fn text(least: usize, most: usize) -> Column {
        Column { length: Some((least, most)), ..Column::new("a", Kind::Text) }
    }

    #[test]
    fn types_of_arguments_have_limits() {
        check("u8", None, r#" required="" min="0" max="255""#);
        check("Option<u64>", None, r#" min="0""#);
        check("i64", None, r#" required="""#);
        check("f64", None, r#" required="" step="any""#);
        check("char", None, r#" required="" maxlength="2""#);
        check("Id<Card>", None, r#" required="""#);
        for kind in ["Text", "bool", "Vec<u8>", "Shape"] {
            check(kind, None, "");
        }
    }

    /// A browser counts U+1F337 as two characters, the server as one.
    #[test]
    fn longest_text_allows_two_code_units_for_each_character() {
        check("Text", Some(&text(1, 80)), r#" required="" maxlength="160""#);
        check("Option<Text>", Some(&text(3, 80)), r#" minlength="3" maxlength="160""#);
        check("Text", Some(&text(0, usize::MAX)), "");
    }

    #[test]
    fn ranges_of_columns_replace_those_of_types() {
        let column = Column { range: Some((0.5, 4.0)), ..Column::new("a", Kind::Float) };
        check("f64", Some(&column), r#" required="" min="0.5" max="4" step="any""#);
        let column = Column {
            range: Some((1.0, 9.0)),
            ..Column::new("a", Kind::Integer { min: 0, max: 255 })
        };
        check("u8", Some(&column), r#" required="" min="1" max="9""#);
    }

    #[test]
    fn limits_of_bytes_are_no_limits_of_their_text() {
        let column = Column { length: Some((1, 9)), ..Column::new("a", Kind::Bytes) };
        check("Bytes", Some(&column), "");
    }
}
