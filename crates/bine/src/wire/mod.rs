//! Decides how values cross a call: as plain JSON, which every language reads without being told how, and which comes
//! back as it was.
//!
//! A whole number that JavaScript could not hold (beyond 2^53 - 1 on either side) is written as a string of its digits,
//! and read from one wherever a whole number is wanted. Moments and ids are their texts, [`Bytes`] are base64, what may
//! be missing is `null` or absent, enums are as serde has them. NaN and the infinities are no JSON and are refused.
//!
//! Behind serde's `untagged`, `flatten` and `tag` nobody can know what is wanted: digits stay a string there, and a
//! large number is refused, never changed.

mod bytes;
mod fault;
mod read;
mod take;
mod write;

#[cfg(test)]
mod tests;

use serde::Serialize;
use serde::de::DeserializeOwned;
pub(crate) use serde_json::Value;

pub use bytes::Bytes;
pub(crate) use fault::Fault;

/// How much a text of JSON may ask of its reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// All of it.
    pub(crate) bytes: usize,
    /// Arrays and objects within each other.
    pub(crate) depth: usize,
    /// Of all objects together.
    pub(crate) keys: usize,
    /// Members of all objects and items of all arrays together.
    pub(crate) values: usize,
}

impl Default for Limits {
    /// A megabyte, as of any body. 128 levels, since each takes about a kilobyte of stack, several times over, and no
    /// type that a person wrote has more. 10 000 keys, each an allocation and a place in a tree. 100 000 values, each of
    /// which takes a few bytes of text and some dozens in memory.
    fn default() -> Self {
        Self { bytes: 1 << 20, depth: 128, keys: 10_000, values: 100_000 }
    }
}

/// Reads a text of JSON (RFC 8259): within these limits, no key twice, and none that a careless program in JavaScript
/// takes for a part of its own objects.
///
/// # Errors
///
/// What is wrong, by line and column.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Value, Fault> {
    read::read(bytes, limits)
}

/// The value as a type of the program's.
///
/// # Errors
///
/// What does not fit, by its place in the value: `items[3].count`.
pub(crate) fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, Fault> {
    T::deserialize(take::Given(value))
}

/// Writes a value as a text that [`read`] and [`from_value`] take back.
///
/// # Errors
///
/// What in it JSON cannot say, by its place.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Fault> {
    let mut text = Vec::with_capacity(SHORT);
    value.serialize(write::Writer(&mut text))?;
    Ok(text)
}

/// A careless `object[key] = value` with one of these changes what all objects of a program in JavaScript are.
const RESERVED: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// Most answers are no longer: these take one allocation.
const SHORT: usize = 128;

/// JSON and JavaScript agree on whole numbers up to here (RFC 7493 section 2.2).
const GREATEST: u128 = (1 << 53) - 1;

/// What must hold of any bytes that come as JSON, for whoever searches for some of which it does not: they are refused,
/// or they are a value within the limits that is the same when it is written and read again.
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
    // Digits of a large number are a string from then on, and stay as they are.
    assert_eq!(to_json(&again).ok().as_deref(), Some(&*text));
    let _ = from_value::<Vec<(u64, Option<Bytes>)>>(&value);
    let _ = from_value::<std::collections::BTreeMap<i128, f32>>(&value);
    let _ = from_value::<Result<crate::store::Time, char>>(&value);
}
