//! Serde support: points in time and ids are serialized as text in every format.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::id::{Id, RowId};
use crate::time::Time;

/// A visitor that parses text.
struct TextVisitor<T>(PhantomData<T>, &'static str);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.1)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The most common response of a service that inserts a row is its id, so this avoids an
/// allocation.
impl Serialize for RowId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.write_to(&mut [0; Self::LENGTH]))
    }
}

impl<T> Serialize for Id<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.row().serialize(to)
    }
}

macro_rules! from_text {
    ($($type:ty $(, of $table:ident)?: $words:literal;)*) => {$(
        impl<'de$(, $table)?> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(TextVisitor(PhantomData, $words))
            }
        }
    )*};
}

from_text! {
    Time: "a moment in UTC, like 2026-11-21T09:30:00Z";
    RowId: "an id of 32 hexadecimal digits";
    Id<T>, of T: "an id of 32 hexadecimal digits";
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;

    fn check<T: Serialize + DeserializeOwned + PartialEq + fmt::Debug>(value: &T, json: &str) {
        assert_eq!(serde_json::to_string(value).unwrap(), json);
        assert_eq!(serde_json::from_str::<T>(json).unwrap(), *value);
    }

    #[test]
    fn serializes_times_and_ids_as_text() {
        check(&Time(1_795_253_400_000_001), "\"2026-11-21T09:30:00.000001Z\"");
        let row = RowId::from_number(0x0193_f9a0_4c5e_7b3a_9c1d_5e6f_7081_9203);
        check(&row, "\"0193f9a0-4c5e-7b3a-9c1d-5e6f70819203\"");
        // An id whose table type has no traits.
        check(&Id::<()>::of(row), "\"0193f9a0-4c5e-7b3a-9c1d-5e6f70819203\"");
    }

    #[test]
    fn rejects_invalid_text_and_names_the_expected_form() {
        let to_message = |message: serde_json::Error| message.to_string();
        let message =
            serde_json::from_str::<Time>("\"yesterday\"").map_err(to_message).unwrap_err();
        assert!(message.starts_with("a moment is written in UTC, like 2026-"), "{message}");
        let message = serde_json::from_str::<RowId>("7").map_err(to_message).unwrap_err();
        assert!(message.contains("expected an id of 32 hexadecimal digits"), "{message}");
    }
}
