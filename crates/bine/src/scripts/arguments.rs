//! The arguments of a script's service, read by the shape that the compiler derives from their type.
//!
//! A shape is a seed of serde. JSON, forms and queries pass through the deserializers of Rust
//! services, so both languages accept the same texts and report a mistake in the same words. As in
//! Rust, each wrong argument is reported once, and the reason has the place of a mistake in a nested
//! value: `items` .. `(at [2].name)`.

use std::fmt::{self, Display};

use bine_script::Value;
use bine_tsx::{Field, Literal, Shape};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, de};

use super::uploads::is_upload;
use crate::from_text::FromText;
use crate::service::{ArgumentError, CallArguments};
use crate::text::shortened;

/// Reads the argument of a service, whose `shape` is an object. Fields have the order of the shape;
/// absent and `null` fields and files are omitted.
///
/// `open` decrypts a sealed value, by the name of its argument.
///
/// # Errors
///
/// All wrong arguments: those that the service does not have, then the others in order.
pub(super) fn read(
    given: &CallArguments,
    shape: &Shape,
    open: impl Fn(&str, &str) -> Option<Vec<u8>>,
) -> Result<Value, Vec<ArgumentError>> {
    let fields: &[Field] = match shape {
        Shape::Object(fields) => fields,
        // The compiler accepts no other type.
        _ => &[],
    };
    let source = if given.texts().is_some() { ArgumentSource::Text } else { ArgumentSource::Json };
    let mut wrong = given.unknown(&fields.iter().map(|field| &*field.name));
    let mut entries = Vec::with_capacity(fields.len());
    for field in fields.iter().filter(|field| !is_upload(field)) {
        let read = match &field.shape {
            Shape::Sealed(inner) => read_sealed(given, field, inner, source, &open),
            _ => given.argument(&field.name, FieldReader { field, source }),
        };
        match read {
            Ok(Some(value)) => entries.push((field.name.clone(), value)),
            Ok(None) => {}
            Err(error) => wrong.push(error),
        }
    }
    if wrong.is_empty() { Ok(Value::Object(entries)) } else { Err(wrong) }
}

/// Reads a value that this server has sealed. It was valid then, but the program may have changed.
fn read_sealed(
    given: &CallArguments,
    field: &Field,
    inner: &Shape,
    source: ArgumentSource,
    open: impl Fn(&str, &str) -> Option<Vec<u8>>,
) -> Result<Option<Value>, ArgumentError> {
    let refused = || ArgumentError::new(&field.name, NOT_SEALED.to_owned());
    let text =
        Field { shape: Shape::String, name: field.name.clone(), is_optional: field.is_optional };
    let text = given.argument(&field.name, FieldReader { field: &text, source })?;
    let Some(Value::Text(text)) = text else { return Ok(None) };
    let content = open(&field.name, &text).ok_or_else(refused)?;
    let mut json = serde_json::Deserializer::from_slice(&content);
    let reader = ShapeReader { shape: inner, source: ArgumentSource::Json };
    reader.deserialize(&mut json).map(Some).map_err(|_| refused())
}

/// The message to a visitor about an argument that is not sealed for it.
const NOT_SEALED: &str = "is not a value that this server has sealed for you: load the page again";

/// Where arguments are from.
#[derive(Clone, Copy)]
enum ArgumentSource {
    Json,
    /// A form or a query, in which a number is a text.
    Text,
}

/// Reads the value of a field; `None`: the field is absent.
#[derive(Clone, Copy)]
struct FieldReader<'s> {
    field: &'s Field,
    source: ArgumentSource,
}

impl<'de> DeserializeSeed<'de> for FieldReader<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Value>, D::Error> {
        let reader = ShapeReader { shape: &self.field.shape, source: self.source };
        if self.field.is_optional {
            from.deserialize_option(OptionalVisitor(reader))
        } else {
            reader.deserialize(from).map(Some)
        }
    }
}

struct OptionalVisitor<'s>(ShapeReader<'s>);

impl<'de> Visitor<'de> for OptionalVisitor<'_> {
    type Value = Option<Value>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("option")
    }

    fn visit_none<E>(self) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Option<Value>, D::Error> {
        self.0.deserialize(from).map(Some)
    }
}

/// Reads a value that has a shape.
#[derive(Clone, Copy)]
struct ShapeReader<'s> {
    shape: &'s Shape,
    source: ArgumentSource,
}

impl<'de> DeserializeSeed<'de> for ShapeReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        let source = self.source;
        match self.shape {
            Shape::String => String::deserialize(from).map(Value::Text),
            Shape::Number => finite(f64::deserialize(from)?),
            Shape::Boolean => bool::deserialize(from).map(Value::Bool),
            Shape::OneOf(constants) => {
                let visitor = ConstantVisitor { constants, source };
                let all = |is_kind: fn(&Literal) -> bool| constants.iter().all(is_kind);
                // A deserializer of forms reads a text as the kind that is asked for.
                if all(|constant| matches!(constant, Literal::Number(_))) {
                    from.deserialize_f64(visitor)
                } else if all(|constant| matches!(constant, Literal::Boolean(_))) {
                    from.deserialize_bool(visitor)
                } else {
                    from.deserialize_any(visitor)
                }
            }
            Shape::Array(item) => {
                from.deserialize_seq(ArrayVisitor(ShapeReader { shape: item, source }))
            }
            Shape::Object(fields) => from.deserialize_map(ObjectVisitor { fields, source }),
            // No other value has one: the compiler rejects it.
            Shape::Upload => Err(D::Error::custom("a file comes with a form only")),
            // Only an argument itself has one: the compiler rejects it elsewhere.
            Shape::Sealed(_) => Err(D::Error::custom("a sealed value is an argument")),
        }
    }
}

/// A text can have a number that is not finite, which neither JSON nor a script's value has.
fn finite<E: Error>(number: f64) -> Result<Value, E> {
    if number.is_finite() {
        Ok(Value::Number(number))
    } else {
        Err(E::invalid_value(Unexpected::Float(number), &"a finite number"))
    }
}

/// Accepts one of these constants.
#[derive(Clone, Copy)]
struct ConstantVisitor<'s> {
    constants: &'s [Literal],
    source: ArgumentSource,
}

impl ConstantVisitor<'_> {
    /// The value of `given`, if it is one of the constants.
    fn find<E: Error>(self, given: &Literal, seen: Unexpected<'_>) -> Result<Value, E> {
        if self.constants.contains(given) {
            return Ok(value_of(given));
        }
        let same_kind =
            |own: &Literal| std::mem::discriminant(own) == std::mem::discriminant(given);
        Err(if self.constants.iter().any(same_kind) {
            unknown_variant(&text_of(given), self)
        } else {
            E::invalid_type(seen, &self)
        })
    }

    fn number<E: Error>(self, number: f64) -> Result<Value, E> {
        self.find(&Literal::Number(number), Unexpected::Float(number))
    }
}

impl Visitor<'_> for ConstantVisitor<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_names(to, self.constants.iter().map(text_of))
    }

    fn visit_bool<E: Error>(self, given: bool) -> Result<Value, E> {
        self.find(&Literal::Boolean(given), Unexpected::Bool(given))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        self.number(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        self.number(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        self.number(number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        let means = |constant: &&Literal| match constant {
            Literal::String(own) => own == text,
            Literal::Number(own) => f64::from_text(text) == Ok(*own),
            Literal::Boolean(own) => bool::from_text(text) == Ok(*own),
        };
        match self.source {
            ArgumentSource::Json => {
                self.find(&Literal::String(text.to_owned()), Unexpected::Str(text))
            }
            ArgumentSource::Text => match self.constants.iter().find(means) {
                Some(constant) => Ok(value_of(constant)),
                None => Err(unknown_variant(text, self)),
            },
        }
    }
}

fn value_of(constant: &Literal) -> Value {
    match constant {
        Literal::String(text) => Value::Text(text.clone()),
        Literal::Number(number) => Value::Number(*number),
        Literal::Boolean(given) => Value::Bool(*given),
    }
}

fn text_of(constant: &Literal) -> String {
    match constant {
        Literal::String(text) => text.clone(),
        Literal::Number(number) => number.to_string(),
        Literal::Boolean(given) => given.to_string(),
    }
}

/// The error of serde for an enum, which takes only names that are known at compile time.
fn unknown_variant<E: Error>(given: &str, expected: ConstantVisitor<'_>) -> E {
    let given = shortened(given);
    let expected: &dyn de::Expected = &expected;
    E::custom(format_args!("unknown variant `{given}`, expected {expected}"))
}

/// Writes names as serde does: `a`, "`a` or `b`", "one of `a`, `b`, `c`".
fn write_names(
    to: &mut fmt::Formatter<'_>,
    names: impl ExactSizeIterator<Item = impl Display>,
) -> fmt::Result {
    let count = names.len();
    let between = if count == 2 { " or " } else { ", " };
    to.write_str(if count > 2 { "one of " } else { "" })?;
    for (index, name) in names.enumerate() {
        to.write_str(if index > 0 { between } else { "" })?;
        write!(to, "`{name}`")?;
    }
    Ok(())
}

struct ArrayVisitor<'s>(ShapeReader<'s>);

impl<'de> Visitor<'de> for ArrayVisitor<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.0)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
}

/// Accepts an object with exactly these fields.
struct ObjectVisitor<'s> {
    fields: &'s [Field],
    source: ArgumentSource,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let Self { fields, source } = self;
        let mut values = vec![None; fields.len()];
        while let Some(index) = members.next_key_seed(KeyReader(fields))? {
            let field = &fields[index];
            values[index] = members.next_value_seed(FieldReader { field, source })?;
        }
        let mut entries = Vec::with_capacity(fields.len());
        for (field, value) in fields.iter().zip(values) {
            match value {
                Some(value) => entries.push((field.name.clone(), value)),
                None if field.is_optional => {}
                None => {
                    return Err(A::Error::custom(format_args!("missing field `{}`", field.name)));
                }
            }
        }
        Ok(Value::Object(entries))
    }
}

/// Reads a key as the index of the field that it names.
#[derive(Clone, Copy)]
struct KeyReader<'s>(&'s [Field]);

impl<'de> DeserializeSeed<'de> for KeyReader<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<usize, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeyReader<'_> {
    type Value = usize;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_names(to, self.0.iter().map(|field| &field.name))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<usize, E> {
        self.0.iter().position(|field| field.name == key).ok_or_else(|| {
            let (key, expected): (_, &dyn de::Expected) = (shortened(key), &self);
            if self.0.is_empty() {
                E::custom(format_args!("unknown field `{key}`, there are no fields"))
            } else {
                E::custom(format_args!("unknown field `{key}`, expected {expected}"))
            }
        })
    }
}

#[cfg(test)]
mod tests;
