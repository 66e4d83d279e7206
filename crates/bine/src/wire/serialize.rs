//! Serializes the program's types as JSON.

use std::fmt::Display;
use std::io::Write as _;

use serde::Serialize;
use serde::ser::{
    Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::{Fault, MAX_SAFE_INTEGER, RESERVED};
use crate::base64;

/// Appends one value to a text.
pub(super) struct ValueSerializer<'t>(pub(super) &'t mut Vec<u8>);

impl<'t> ValueSerializer<'t> {
    fn put(self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn text(self, text: &str) -> Result<(), Fault> {
        Ok(serde_json::to_writer(self.0, text)?)
    }

    fn integer(self, number: impl Display, magnitude: u128) {
        let quote = if magnitude > MAX_SAFE_INTEGER { "\"" } else { "" };
        let _never_fails = write!(self.0, "{quote}{number}{quote}");
    }

    fn float(self, number: f64) -> Result<(), Fault> {
        if number.is_finite() {
            return Ok(serde_json::to_writer(self.0, &number)?);
        }
        Err(Fault::new(format!("{number} is no number of JSON")))
    }

    /// Opens an array or an object with its first character.
    fn open(self, begin: &str, end: &'static str) -> Compound<'t> {
        let to = self.0;
        to.extend_from_slice(begin.as_bytes());
        Compound { to, count: 0, key: String::new(), end }
    }

    /// Opens the object of an enum variant; the content follows.
    fn variant(self, name: &str) -> Result<Self, Fault> {
        self.0.push(b'{');
        ValueSerializer(self.0).key(name)?;
        Ok(self)
    }

    fn key(self, key: &str) -> Result<(), Fault> {
        if RESERVED.contains(&key) {
            return Err(Fault::new(format!("the key `{key}` is refused by whoever reads it")));
        }
        serde_json::to_writer(&mut *self.0, key)?;
        self.0.push(b':');
        Ok(())
    }
}

macro_rules! whole_numbers {
    ($($method:ident $type:ty, $number:ident => $magnitude:expr;)*) => {$(
        fn $method(self, $number: $type) -> Result<(), Fault> {
            self.integer($number, $magnitude);
            Ok(())
        }
    )*};
}

impl<'t> Serializer for ValueSerializer<'t> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Compound<'t>;
    type SerializeTuple = Compound<'t>;
    type SerializeTupleStruct = Compound<'t>;
    type SerializeTupleVariant = Compound<'t>;
    type SerializeMap = Compound<'t>;
    type SerializeStruct = Compound<'t>;
    type SerializeStructVariant = Compound<'t>;

    whole_numbers! {
        serialize_i8 i8, number => number.unsigned_abs().into();
        serialize_i16 i16, number => number.unsigned_abs().into();
        serialize_i32 i32, number => number.unsigned_abs().into();
        serialize_i64 i64, number => number.unsigned_abs().into();
        serialize_i128 i128, number => number.unsigned_abs();
        serialize_u8 u8, number => number.into();
        serialize_u16 u16, number => number.into();
        serialize_u32 u32, number => number.into();
        serialize_u64 u64, number => number.into();
        serialize_u128 u128, number => number;
    }

    fn serialize_bool(self, value: bool) -> Result<(), Fault> {
        self.put(if value { "true" } else { "false" });
        Ok(())
    }

    /// Writes the shortest digits, unless a reader that parses 64 bits and rounds to 32 would get a
    /// neighboring number, as with 7.038531e-26.
    fn serialize_f32(self, number: f32) -> Result<(), Fault> {
        let (integer, shortest) = (f64::from(number), number.to_string().parse::<f64>());
        match shortest {
            Ok(shortest) if (shortest as f32).to_bits() == number.to_bits() => self.float(shortest),
            _ => self.float(integer),
        }
    }

    fn serialize_f64(self, number: f64) -> Result<(), Fault> {
        self.float(number)
    }

    fn serialize_char(self, letter: char) -> Result<(), Fault> {
        self.text(letter.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), Fault> {
        self.text(text)
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Fault> {
        self.text(&base64::written_padded(bytes))
    }

    fn serialize_none(self) -> Result<(), Fault> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Fault> {
        self.put("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Fault> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Fault> {
        self.text(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        let to = self.variant(variant)?.0;
        value.serialize(ValueSerializer(to)).map_err(|fault| fault.in_key(variant))?;
        to.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Compound<'t>, Fault> {
        Ok(self.open("[", "]"))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Compound<'t>, Fault> {
        Ok(self.open("[", "]"))
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _length: usize,
    ) -> Result<Compound<'t>, Fault> {
        Ok(self.open("[", "]"))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Compound<'t>, Fault> {
        Ok(self.variant(variant)?.open("[", "]}"))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Compound<'t>, Fault> {
        Ok(self.open("{", "}"))
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Compound<'t>, Fault> {
        Ok(self.open("{", "}"))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Compound<'t>, Fault> {
        Ok(self.variant(variant)?.open("{", "}}"))
    }

    /// Most texts written this way are short.
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Fault> {
        self.text(&value.to_string())
    }
}

/// The content of an array or an object.
pub(super) struct Compound<'t> {
    to: &'t mut Vec<u8>,
    count: usize,
    /// The key or the index of the next value, for errors.
    key: String,
    end: &'static str,
}

impl Compound<'_> {
    fn next(&mut self) -> ValueSerializer<'_> {
        if self.count > 0 {
            self.to.push(b',');
        }
        self.count += 1;
        ValueSerializer(self.to)
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let place = self.count;
        value.serialize(self.next()).map_err(|fault| fault.in_item(place))
    }

    fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Fault> {
        self.next().key(key)?;
        value.serialize(ValueSerializer(self.to)).map_err(|fault| fault.in_key(key))
    }

    fn close(self) {
        self.to.extend_from_slice(self.end.as_bytes());
    }
}

macro_rules! lists {
    ($($kind:ident $method:ident;)*) => {$(
        impl $kind for Compound<'_> {
            type Ok = ();
            type Error = Fault;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
                self.item(value)
            }

            fn end(self) -> Result<(), Fault> {
                self.close();
                Ok(())
            }
        }
    )*};
}

lists! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! objects {
    ($($kind:ident)*) => {$(
        impl $kind for Compound<'_> {
            type Ok = ();
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Fault> {
                self.member(key, value)
            }

            fn end(self) -> Result<(), Fault> {
                self.close();
                Ok(())
            }
        }
    )*};
}

objects!(SerializeStruct SerializeStructVariant);

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        self.key = key.serialize(KeySerializer)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let key = std::mem::take(&mut self.key);
        self.member(&key, value)
    }

    fn end(self) -> Result<(), Fault> {
        self.close();
        Ok(())
    }
}

/// Serializes a key as a text.
struct KeySerializer;

const NO_KEY: &str = "a key must be a text, a number, a bool or a word of an enum";

macro_rules! plain_keys {
    ($($method:ident $type:ty;)*) => {$(
        fn $method(self, key: $type) -> Result<String, Fault> {
            Ok(key.to_string())
        }
    )*};
}

macro_rules! no_keys {
    ($($method:ident($($type:ty),*) -> $answer:ident;)*) => {$(
        fn $method(self, $(_: $type),*) -> Result<Self::$answer, Fault> {
            Err(Fault::new(NO_KEY))
        }
    )*};
}

impl Serializer for KeySerializer {
    type Ok = String;
    type Error = Fault;
    type SerializeSeq = Impossible<String, Fault>;
    type SerializeTuple = Impossible<String, Fault>;
    type SerializeTupleStruct = Impossible<String, Fault>;
    type SerializeTupleVariant = Impossible<String, Fault>;
    type SerializeMap = Impossible<String, Fault>;
    type SerializeStruct = Impossible<String, Fault>;
    type SerializeStructVariant = Impossible<String, Fault>;

    plain_keys! {
        serialize_bool bool;
        serialize_i8 i8;
        serialize_i16 i16;
        serialize_i32 i32;
        serialize_i64 i64;
        serialize_i128 i128;
        serialize_u8 u8;
        serialize_u16 u16;
        serialize_u32 u32;
        serialize_u64 u64;
        serialize_u128 u128;
        serialize_char char;
        serialize_str &str;
    }

    no_keys! {
        serialize_f32(f32) -> Ok;
        serialize_f64(f64) -> Ok;
        serialize_none() -> Ok;
        serialize_unit() -> Ok;
        serialize_unit_struct(&'static str) -> Ok;
        serialize_seq(Option<usize>) -> SerializeSeq;
        serialize_tuple(usize) -> SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant;
        serialize_map(Option<usize>) -> SerializeMap;
        serialize_struct(&'static str, usize) -> SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant;
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<String, Fault> {
        Ok(base64::written_padded(bytes))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, key: &T) -> Result<String, Fault> {
        key.serialize(self)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<String, Fault> {
        Ok(variant.to_owned())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        key: &T,
    ) -> Result<String, Fault> {
        key.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<String, Fault> {
        Err(Fault::new(NO_KEY))
    }
}
