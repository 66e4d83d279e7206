//! Parses JSON within limits and rejects dangerous keys.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::{Fault, Limits, RESERVED};
use crate::text::shortened;

pub(super) fn parse(bytes: &[u8], limits: &Limits) -> Result<Value, Fault> {
    if bytes.len() > limits.bytes {
        return Err(Fault::new(format!("more than {} bytes of JSON", limits.bytes)));
    }
    let mut text = serde_json::Deserializer::from_slice(bytes);
    // This parser counts the levels itself.
    text.disable_recursion_limit();
    let (keys, values) = (Cell::new(0), Cell::new(0));
    let value = Level { limits, depth: 0, keys: &keys, values: &values }.deserialize(&mut text)?;
    text.end()?;
    Ok(value)
}

/// A nesting level with its remaining depth.
#[derive(Clone, Copy)]
struct Level<'l> {
    limits: &'l Limits,
    depth: usize,
    /// Keys so far in the whole text.
    keys: &'l Cell<usize>,
    /// Values so far in the whole text.
    values: &'l Cell<usize>,
}

impl Level<'_> {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.depth == self.limits.depth {
            return Err(E::custom(format_args!("more than {} levels", self.limits.depth)));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    /// Counts a member of an object or an item of an array.
    fn count<E: Error>(self) -> Result<(), E> {
        self.values.set(self.values.get() + 1);
        if self.values.get() > self.limits.values {
            return Err(E::custom(format_args!("more than {} values", self.limits.values)));
        }
        Ok(())
    }

    fn admit<E: Error>(self, key: &str) -> Result<(), E> {
        self.count()?;
        self.keys.set(self.keys.get() + 1);
        if self.keys.get() > self.limits.keys {
            return Err(E::custom(format_args!("more than {} keys", self.limits.keys)));
        }
        if RESERVED.contains(&key) {
            return Err(E::custom(format_args!("the key `{key}` is refused")));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        let number = Number::from_f64(number);
        number.map(Value::Number).ok_or_else(|| E::custom("the number is too large"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let level = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(level)? {
            level.count()?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let level = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            level.admit(&key)?;
            match map.entry(key) {
                Entry::Vacant(place) => place.insert(members.next_value_seed(level)?),
                Entry::Occupied(place) => {
                    let twice = format_args!("the key `{}` is there twice", shortened(place.key()));
                    return Err(A::Error::custom(twice));
                }
            };
        }
        Ok(Value::Object(map))
    }
}
