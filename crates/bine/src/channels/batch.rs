//! Decides how much of a batch is kept while it is read: small messages would take many times their bytes.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// Messages at once, at most.
pub(super) const MOST: usize = 1000;

/// The first elements of an array: one more than may be if there are too many, so that the hub refuses it by its limit.
pub(super) struct Batch<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Batch<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Elements(PhantomData))
    }
}

struct Elements<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
    type Value = Batch<T>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an array of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Batch<T>, A::Error> {
        let mut elements = Vec::new();
        while elements.len() <= MOST {
            match from.next_element()? {
                Some(element) => elements.push(element),
                None => return Ok(Batch(elements)),
            }
        }
        while from.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Batch(elements))
    }
}
