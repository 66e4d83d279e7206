//! Deserializes the program's types from a parsed value.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value, map};

use super::Fault;
use crate::base64;

/// A value from which serde copies.
#[derive(Clone, Copy)]
pub(super) struct ValueDeserializer<'v>(pub(super) &'v Value);

impl ValueDeserializer<'_> {
    fn integer<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::String(text) => TextDeserializer(text).integer(visitor),
            _ => self.deserialize_any(visitor),
        }
    }
}

/// Whether the text is a whole number in its only spelling.
fn is_canonical_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    digits.iter().all(u8::is_ascii_digit)
        && matches!((digits, text), ([b'0'], "0") | ([b'1'..=b'9', ..], _))
}

fn visit_integer<'de, V: Visitor<'de>>(text: &str, visitor: V) -> Result<V::Value, Fault> {
    // The narrowest type first: many visitors accept 64 bits but not 128.
    if let Ok(number) = text.parse::<u64>() {
        visitor.visit_u64(number)
    } else if let Ok(number) = text.parse::<i64>() {
        visitor.visit_i64(number)
    } else if let Ok(number) = text.parse::<u128>() {
        visitor.visit_u128(number)
    } else if let Ok(number) = text.parse::<i128>() {
        visitor.visit_i128(number)
    } else {
        Err(Fault::invalid_value(Unexpected::Other("a number of more than 128 bits"), &visitor))
    }
}

macro_rules! whole_numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.integer(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for ValueDeserializer<'_> {
    type Error = Fault;

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_str(text),
            Value::Array(items) => {
                let count = items.len();
                let mut items = ItemAccess { items: items.iter(), position: 0 };
                let value = visitor.visit_seq(&mut items)?;
                match items.items.next() {
                    None => Ok(value),
                    Some(_) => {
                        let wanted = format!("{} of them", items.position);
                        Err(Fault::invalid_length(count, &wanted.as_str()))
                    }
                }
            }
            Value::Object(members) => visitor.visit_map(MemberAccess::of(members)),
        }
    }

    /// A number beyond the range of 32 bits would become infinite, so it is rejected.
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.as_f64() {
            Some(number) if !(number as f32).is_finite() => {
                let large = Unexpected::Other("a number too large for 32 bits");
                Err(Fault::invalid_value(large, &visitor))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let one = match self.0 {
            Value::String(name) => Some((&**name, None)),
            Value::Object(members) if members.len() == 1 => {
                members.iter().next().map(|(name, value)| (&**name, Some(ValueDeserializer(value))))
            }
            _ => None,
        };
        let (name, value) = one.ok_or_else(|| {
            Fault::new("an enum is a string, or an object of one key: the name of what it is")
        })?;
        visitor.visit_enum(VariantDeserializer { name, value })
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::String(text) => TextDeserializer(text).deserialize_bytes(visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool f64 char str string unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

struct ItemAccess<'v> {
    items: std::slice::Iter<'v, Value>,
    position: usize,
}

impl<'de> SeqAccess<'de> for &mut ItemAccess<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let position = self.position;
        self.position += 1;
        seed.deserialize(ValueDeserializer(item)).map(Some).map_err(|fault| fault.in_item(position))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct MemberAccess<'v> {
    members: map::Iter<'v>,
    /// The value of the key that was returned last.
    next: Option<(&'v str, &'v Value)>,
}

impl<'v> MemberAccess<'v> {
    fn of(members: &'v Map<String, Value>) -> Self {
        Self { members: members.iter(), next: None }
    }
}

impl<'de> MapAccess<'de> for MemberAccess<'_> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some((key, value)) = self.members.next() else { return Ok(None) };
        let taken = seed.deserialize(TextDeserializer(key)).map_err(|fault| fault.in_key(key))?;
        self.next = Some((key, value));
        Ok(Some(taken))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let next = self.next.take();
        let (key, value) =
            next.ok_or_else(|| Fault::new("a value was asked for before its key"))?;
        seed.deserialize(ValueDeserializer(value)).map_err(|fault| fault.in_key(key))
    }
}

/// A JSON string, such as a key, as any type of the program.
struct TextDeserializer<'v>(&'v str);

impl TextDeserializer<'_> {
    fn integer<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if is_canonical_integer(self.0) {
            visit_integer(self.0, visitor)
        } else {
            visitor.visit_str(self.0)
        }
    }
}

impl<'de> Deserializer<'de> for TextDeserializer<'_> {
    type Error = Fault;

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.0)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match base64::padded(self.0) {
            Some(bytes) => visitor.visit_byte_buf(bytes),
            None => Err(Fault::invalid_value(Unexpected::Str(self.0), &"bytes in base64")),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.parse() {
            Ok(value) => visitor.visit_bool(value),
            Err(_) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(VariantDeserializer { name: self.0, value: None })
    }

    forward_to_deserialize_any! {
        f32 f64 char str string unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

struct VariantDeserializer<'v> {
    name: &'v str,
    /// `None`: the variant has no content.
    value: Option<ValueDeserializer<'v>>,
}

impl<'de> EnumAccess<'de> for VariantDeserializer<'_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let name: StrDeserializer<'_, Fault> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'v> VariantDeserializer<'v> {
    fn content(self) -> Result<(&'v str, ValueDeserializer<'v>), Fault> {
        match self.value {
            Some(value) => Ok((self.name, value)),
            None => Err(Fault::new(format!("`{0}` holds something: {{\"{0}\": ..}}", self.name))),
        }
    }
}

impl<'de> VariantAccess<'de> for VariantDeserializer<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.value {
            None | Some(ValueDeserializer(Value::Null)) => Ok(()),
            Some(_) => Err(Fault::new(format!("`{0}` holds nothing: \"{0}\"", self.name))),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        let (name, value) = self.content()?;
        seed.deserialize(value).map_err(|fault| fault.in_key(name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Fault> {
        let (name, value) = self.content()?;
        value.deserialize_any(visitor).map_err(|fault| fault.in_key(name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let (name, value) = self.content()?;
        value.deserialize_any(visitor).map_err(|fault| fault.in_key(name))
    }
}
