//! Deserializes the texts of a form or a query into the types of a service's arguments.

use std::fmt::{self, Display};

use serde::de::value::StrDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, SeqAccess, Visitor};

use crate::arguments::FromText;
use crate::visitor_message::{MessageText, VisitorMessage};

/// The texts of a form under one name. Most types use only the first one.
#[derive(Clone, Copy)]
pub(super) struct Field<'f> {
    pub(super) texts: &'f [&'f str],
}

/// Why a value is invalid: the rest of a sentence that begins with its name.
#[derive(Debug)]
pub(super) struct Reason(pub(super) MessageText);

impl<'f> Field<'f> {
    fn text(self) -> Result<&'f str, Reason> {
        self.texts.first().copied().ok_or_else(|| Reason(VisitorMessage::Missing {}.into()))
    }
}

/// Numbers are parsed in the same way as the arguments of pages.
macro_rules! read {
    ($($deserialize:ident $visit:ident $number:ty,)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Reason> {
            visitor.$visit(<$number>::from_text(self.text()?).map_err(Reason)?)
        }
    )*};
}

macro_rules! refuse {
    ($($deserialize:ident($($argument:ident: $kind:ty),*),)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, $($argument: $kind,)* _: V) -> Result<V::Value, Reason> {
            Err(Reason(VisitorMessage::NotFromForm {}.into()))
        }
    )*};
}

impl<'de> Deserializer<'de> for Field<'_> {
    type Error = Reason;

    read! {
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_i128 visit_i128 i128,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_u128 visit_u128 u128,
        deserialize_f32 visit_f32 f32,
        deserialize_f64 visit_f64 f64,
        deserialize_char visit_char char,
    }

    refuse! {
        deserialize_map(),
        deserialize_struct(_name: &'static str, _fields: &'static [&'static str]),
        deserialize_tuple(_length: usize),
        deserialize_tuple_struct(_name: &'static str, _length: usize),
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Reason> {
        visitor.visit_str(self.text()?)
    }

    /// A browser does not send an unchecked checkbox.
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Reason> {
        let text = self.texts.first().copied().unwrap_or("false");
        visitor.visit_bool(bool::from_text(text).map_err(Reason)?)
    }

    /// A browser sends an empty text field as an empty text.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Reason> {
        match self.texts {
            [] | [""] => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Reason> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Reason> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Reason> {
        visitor.visit_newtype_struct(self)
    }

    /// Each checked one of several checkboxes with the same name.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Reason> {
        visitor.visit_seq(Sequence(self.texts))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Reason> {
        let word: StrDeserializer<'_, Reason> = self.text()?.into_deserializer();
        visitor.visit_enum(word)
    }

    serde::forward_to_deserialize_any! { str string bytes byte_buf identifier ignored_any }
}

struct Sequence<'f>(&'f [&'f str]);

impl<'de> SeqAccess<'de> for Sequence<'_> {
    type Error = Reason;

    fn next_element_seed<S: serde::de::DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Reason> {
        let Some((first, rest)) = self.0.split_first() else { return Ok(None) };
        self.0 = rest;
        seed.deserialize(Field { texts: std::slice::from_ref(first) }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// A missing value: only an optional type accepts it.
pub(super) struct Missing;

impl<'de> Deserializer<'de> for Missing {
    type Error = Reason;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Reason> {
        Err(Reason(VisitorMessage::Missing {}.into()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Reason> {
        visitor.visit_none()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl Error for Reason {
    fn custom<T: Display>(words: T) -> Self {
        Self(VisitorMessage::Unexpected { reason: words.to_string() }.into())
    }
}

impl Display for Reason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for Reason {}
