//! Bytes as an argument, an answer and a column.

use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::FromText;
use crate::base64;
use crate::store::{Field, Kind, Value};
use crate::visitor_message::{MessageText, VisitorMessage};

/// Bytes, such as a picture or a key: base64 in JSON and in a form (RFC 4648 section 4, as in
/// JavaScript's `atob`), a byte string in a column.
///
/// A `Vec<u8>` is a list of numbers in JSON, which is four times as long.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Bytes(pub Vec<u8>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<Bytes> for Vec<u8> {
    fn from(bytes: Bytes) -> Self {
        bytes.0
    }
}

impl FromText for Bytes {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        base64::padded(text).map(Self).ok_or_else(|| VisitorMessage::Base64 {}.into())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&base64::written_padded(self))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(BytesReader)
    }
}

struct BytesReader;

impl Visitor<'_> for BytesReader {
    type Value = Bytes;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("bytes in base64, like \"aG9wcw==\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        let bytes = base64::padded(text);
        bytes.map(Bytes).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

impl Field for Bytes {
    fn kind() -> Kind {
        Kind::Bytes
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }

    #[inline]
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes.into()),
            _ => None,
        }
    }
}
