//! Converts values of calls to JSON and back without loss, in a form that any language reads.
//!
//! | value | JSON |
//! |---|---|
//! | whole number up to 2^53 - 1 on either side | number |
//! | larger whole number | string of its digits, since JavaScript cannot hold it |
//! | time, id | string |
//! | [`Bytes`] | base64 |
//! | `None` | `null` or absent |
//! | enum | as serde writes it |
//! | NaN, infinity | error |
//!
//! With serde's `untagged`, `flatten` and `tag` the wanted type is unknown: digits stay a string
//! there, and a large number is rejected, never changed.

mod bytes;
mod deserialize;
mod fault;
mod parse;
mod serialize;

#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed};
pub(crate) use serde_json::Value;

pub use bytes::Bytes;
pub(crate) use fault::Fault;

/// Limits on a JSON text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Bytes of the text.
    pub(crate) bytes: usize,
    /// Nested arrays and objects.
    pub(crate) depth: usize,
    /// Keys of all objects together.
    pub(crate) keys: usize,
    /// Members of all objects and items of all arrays together.
    pub(crate) values: usize,
}

impl Default for Limits {
    /// The text has the default size limit of a body. Each of the 128 levels takes about a kilobyte
    /// of stack, several times, and no hand-written type is deeper. Each of the 10 000 keys is an
    /// allocation and a tree node. Each of the 100 000 values takes a few bytes of text and some
    /// dozen in memory.
    fn default() -> Self {
        Self { bytes: 1 << 20, depth: 128, keys: 10_000, values: 100_000 }
    }
}

/// Parses a JSON text (RFC 8259) within limits. Rejects duplicate keys and keys that can change
/// JavaScript's built-in objects.
///
/// # Errors
///
/// The error with its line and column.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Value, Fault> {
    parse::parse(bytes, limits)
}

/// Converts a value to a type of the program.
///
/// # Errors
///
/// The mismatch with its position in the value: `items[3].count`.
pub(crate) fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, Fault> {
    read_value(value, PhantomData::<T>)
}

/// Converts a value as `seed` reads it, for types that are known at run time only.
///
/// # Errors
///
/// As [`from_value`].
pub(crate) fn read_value<'de, S: DeserializeSeed<'de>>(
    value: &Value,
    seed: S,
) -> Result<S::Value, Fault> {
    seed.deserialize(deserialize::ValueDeserializer(value))
}

/// Writes a value as a text that [`read`] and [`from_value`] convert back.
///
/// # Errors
///
/// The part that JSON cannot represent, with its position.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Fault> {
    let mut text = Vec::with_capacity(INITIAL_CAPACITY);
    value.serialize(serialize::ValueSerializer(&mut text))?;
    Ok(text)
}

/// An unchecked `object[key] = value` with one of these keys changes the prototype of all objects
/// of a JavaScript program.
const RESERVED: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// Initial capacity: most answers are shorter, and take one allocation.
const INITIAL_CAPACITY: usize = 128;

/// The largest whole number that all JSON parsers read exactly (RFC 7493 section 2.2).
const MAX_SAFE_INTEGER: u128 = (1 << 53) - 1;

/// Asserts for any bytes that they are rejected, or parse to a value within the limits that is
/// equal when it is written and parsed again.
#[doc(hidden)]
pub fn check_wire(bytes: &[u8]) {
    let limits = Limits { bytes: 4096, depth: 20, keys: 100, values: 1000 };
    let value = match read(bytes, &limits) {
        Ok(value) => value,
        Err(fault) => return assert!(!fault.to_string().is_empty()),
    };
    assert!(serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok());
    let text = to_json(&value).expect("what was read has neither reserved keys nor NaN");
    let again = read(&text, &Limits::default()).expect("what was written is JSON");
    // A large number is written as a string of digits, which is written unchanged afterwards.
    assert_eq!(to_json(&again).ok().as_deref(), Some(&*text));
    let _ = from_value::<Vec<(u64, Option<Bytes>)>>(&value);
    let _ = from_value::<std::collections::BTreeMap<i128, f32>>(&value);
    let _ = from_value::<Result<crate::store::Time, char>>(&value);
}
