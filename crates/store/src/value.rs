//! Column types, their values, and the Rust types that map to them.

use std::borrow::Cow;
use std::fmt;

use crate::id::RowId;
use crate::time::Time;

/// The type of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// True or false.
    Bool,
    /// An integer between these bounds, inclusive, within 64 bits.
    Integer {
        /// The lower bound.
        min: i128,
        /// The upper bound.
        max: i128,
    },
    /// A floating-point number of 64 bits (IEEE 754).
    Float,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// A point in time.
    Time,
    /// One word of an enum.
    Enum(EnumNames),
    /// The id of a row in the table with this name.
    Reference(Cow<'static, str>),
}

/// The words of an enum column.
pub type EnumNames = Cow<'static, [Cow<'static, str>]>;

/// The value of a column in one row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'v> {
    /// Null, in an optional column.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(&'v str),
    /// Bytes.
    Bytes(&'v [u8]),
    /// A point in time.
    Time(Time),
    /// A word of an enum, by its position.
    Enum(u16),
    /// The id of a row.
    Id(RowId),
}

/// A Rust type that a column can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of a column",
    label = "no column holds this",
    note = "a column holds text (`String`, `Text`), a number (`i8` to `i64`, `u8` to `u64`, `f32`, `f64`), `bool`, `Time`, bytes (`Vec<u8>`), or a word of an enum with `#[derive(Enum)]`",
    note = "it names a row of another table by its `Id<Row>`, may hold nothing as an `Option`, and of several values each is a row of its own"
)]
pub trait Field: Sized {
    /// The column type.
    fn kind() -> Kind;

    /// Whether the column accepts null.
    const IS_OPTIONAL: bool = false;

    /// The value to store.
    fn value(&self) -> Value<'_>;

    /// Converts a stored value. `None` if its type differs or the value is out of range.
    fn from_value(value: Value<'_>) -> Option<Self>;
}

impl Kind {
    /// Whether a value has this type. [`Value::Null`] has no type.
    pub fn admits(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Integer { min, max }, Value::Integer(number)) => (*min..=*max).contains(&number),
            (Self::Enum(words), Value::Enum(position)) => usize::from(position) < words.len(),
            (Self::Bool, Value::Bool(_))
            | (Self::Float, Value::Float(_))
            | (Self::Text, Value::Text(_))
            | (Self::Bytes, Value::Bytes(_))
            | (Self::Time, Value::Time(_))
            | (Self::Reference(_), Value::Id(_)) => true,
            _ => false,
        }
    }

    /// Whether every value of `older` is also a value of this type, with the same meaning.
    pub fn widens(&self, older: &Self) -> bool {
        match (self, older) {
            (Self::Integer { min, max }, Self::Integer { min: low, max: high }) => {
                min <= low && max >= high
            }
            // A word is stored by its position.
            (Self::Enum(words), Self::Enum(before)) => words.starts_with(before),
            (own, older) => own == older,
        }
    }
}

/// The type's name in messages.
impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => to.write_str("true or false"),
            Self::Integer { min, max } => write!(to, "a whole number from {min} to {max}"),
            Self::Float => to.write_str("a number"),
            Self::Text => to.write_str("text"),
            Self::Bytes => to.write_str("bytes"),
            Self::Time => to.write_str("a moment"),
            Self::Enum(words) => write!(to, "one of {}", words.join(", ")),
            Self::Reference(table) => write!(to, "the id of a row of `{table}`"),
        }
    }
}

macro_rules! whole_numbers {
    ($($number:ty)*) => {$(
        impl Field for $number {
            fn kind() -> Kind {
                Kind::Integer { min: <$number>::MIN.into(), max: <$number>::MAX.into() }
            }

            #[inline]
            fn value(&self) -> Value<'_> {
                Value::Integer((*self).into())
            }

            #[inline]
            fn from_value(value: Value<'_>) -> Option<Self> {
                let Value::Integer(number) = value else { return None };
                Self::try_from(number).ok()
            }
        }
    )*};
}

whole_numbers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! plain_fields {
    ($($type:ty, $kind:ident, $own:ident => $value:expr, $kept:pat => $back:expr;)*) => {$(
        impl Field for $type {
            fn kind() -> Kind {
                Kind::$kind
            }

            #[inline]
            fn value(&self) -> Value<'_> {
                let $own = self;
                $value
            }

            #[inline]
            fn from_value(value: Value<'_>) -> Option<Self> {
                match value {
                    $kept => Some($back),
                    _ => None,
                }
            }
        }
    )*};
}

plain_fields! {
    bool, Bool, own => Value::Bool(*own), Value::Bool(kept) => kept;
    f64, Float, own => Value::Float(*own), Value::Float(kept) => kept;
    f32, Float, own => Value::Float(f64::from(*own)), Value::Float(kept) => kept as f32;
    String, Text, own => Value::Text(own), Value::Text(kept) => kept.to_owned();
    Box<str>, Text, own => Value::Text(own), Value::Text(kept) => kept.into();
    Vec<u8>, Bytes, own => Value::Bytes(own), Value::Bytes(kept) => kept.to_vec();
    Box<[u8]>, Bytes, own => Value::Bytes(own), Value::Bytes(kept) => kept.into();
    Time, Time, own => Value::Time(*own), Value::Time(kept) => kept;
}

impl<F: Field> Field for Option<F> {
    fn kind() -> Kind {
        F::kind()
    }

    const IS_OPTIONAL: bool = true;

    #[inline]
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, F::value)
    }

    #[inline]
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => F::from_value(value).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_numbers_out_of_range() {
        assert_eq!(u8::from_value(Value::Integer(256)), None);
        assert_eq!(i64::from_value(Value::Integer(-1)), Some(-1));
        assert_eq!(u64::from_value(u64::MAX.value()), Some(u64::MAX));
        assert_eq!(String::from_value(Value::Integer(1)), None);
    }

    #[test]
    fn admits_values_of_one_type() {
        let words = Kind::Enum(vec!["open".into(), "shut".into()].into());
        assert!(words.admits(Value::Enum(1)) && !words.admits(Value::Enum(2)));
        let small = Kind::Integer { min: -1, max: 3 };
        for (number, is_admitted) in [(-2, false), (-1, true), (3, true), (4, false)] {
            assert_eq!(small.admits(Value::Integer(number)), is_admitted);
        }
        let id = Value::Id(crate::RowId::from_number(1));
        let values =
            [Value::Bool(true), Value::Text("a"), Value::Bytes(b"a"), Value::Float(1.0), id];
        let kinds = [Kind::Bool, Kind::Text, Kind::Bytes, Kind::Float, Kind::Reference("t".into())];
        for (own, kind) in kinds.iter().enumerate() {
            for (other, value) in values.iter().enumerate() {
                assert_eq!(kind.admits(*value), own == other, "{kind:?}, {value:?}");
            }
            assert!(!kind.admits(Value::Null));
        }
    }

    #[test]
    fn accepts_null_only_in_optional_columns() {
        assert_eq!(Option::<u8>::from_value(Value::Null), Some(None));
        assert_eq!(u8::from_value(Value::Null), None);
        assert_eq!(Some(3_u8).value(), Value::Integer(3));
    }

    #[test]
    fn widens_types_without_loss() {
        let words = |list: &[&'static str]| {
            Kind::Enum(list.iter().map(|word| Cow::Borrowed(*word)).collect::<Vec<_>>().into())
        };
        assert!(u32::kind().widens(&u8::kind()) && i64::kind().widens(&u32::kind()));
        assert!(!u32::kind().widens(&i8::kind()) && !i32::kind().widens(&u32::kind()));
        assert!(f64::kind().widens(&f32::kind()));
        assert!(words(&["open", "shut", "sold"]).widens(&words(&["open", "shut"])));
        assert!(!words(&["shut", "open"]).widens(&words(&["open", "shut"])));
        assert!(!Kind::Text.widens(&Kind::Bytes));
    }
}
