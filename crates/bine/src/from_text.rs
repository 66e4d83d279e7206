//! Parsing of single values from text, and the error messages for clients.

use bine_store::{Id, Time};

use crate::position::{InvalidPosition, Position};
use crate::text::Text;
use crate::visitor_message::{MessageText, VisitorMessage};

/// A value that a client sends as text: in a query, a path, a header field, or a form.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from text",
    note = "write `impl FromText for {Self}`, or take `Text` and look at it yourself"
)]
pub trait FromText: Sized {
    /// Parses `text`.
    ///
    /// # Errors
    ///
    /// Returns the reason, as the end of a sentence that begins with the argument's name:
    /// `"must be odd".into()`, or the reason of a type that reads a part of the text.
    fn from_text(text: &str) -> Result<Self, MessageText>;

    /// The value of a missing argument, if the argument is optional.
    fn missing() -> Option<Self> {
        None
    }
}

impl FromText for Text {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        Ok(text.into())
    }
}

impl FromText for String {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        Ok(text.to_owned())
    }
}

impl FromText for char {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Ok(letter),
            _ => Err(VisitorMessage::Character {}.into()),
        }
    }
}

/// A row's id. A path without a valid id is answered 404, like every path whose parameter cannot be
/// read.
impl<T> FromText for Id<T> {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        text.parse().map_err(|_| VisitorMessage::Id { text: text.to_owned() }.into())
    }
}

impl FromText for Time {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        text.parse().map_err(|_| VisitorMessage::Moment { text: text.to_owned() }.into())
    }
}

/// A position as [`Position`] displays it.
impl FromText for Position {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        text.parse().map_err(|error: InvalidPosition| error.to_string().into())
    }
}

/// A checked checkbox sends `on`, an unchecked one nothing; programs send `true` or `1`.
impl FromText for bool {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        match text {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => Err(VisitorMessage::Boolean { text: text.to_owned() }.into()),
        }
    }

    fn missing() -> Option<Self> {
        Some(false)
    }
}

/// A browser sends an empty field of a form as an empty text, which is no value.
impl<T: FromText> FromText for Option<T> {
    fn from_text(text: &str) -> Result<Self, MessageText> {
        if text.is_empty() { Ok(None) } else { T::from_text(text).map(Some) }
    }

    fn missing() -> Option<Self> {
        Some(None)
    }
}

macro_rules! numbers {
    ($($number:ty => $message:ident $({ $least:literal $most:literal })?,)+) => {$(
        impl FromText for $number {
            fn from_text(text: &str) -> Result<Self, MessageText> {
                text.parse().map_err(|_| {
                    let text = text.to_owned();
                    VisitorMessage::$message { $(least: $least, most: $most,)? text }.into()
                })
            }
        }
    )+};
}

numbers! {
    u8 => IntegerRange { 0 255 },
    u16 => IntegerRange { 0 65535 },
    u32 => Unsigned,
    u64 => Unsigned,
    u128 => Unsigned,
    usize => Unsigned,
    i8 => IntegerRange { -128 127 },
    i16 => Integer,
    i32 => Integer,
    i64 => Integer,
    i128 => Integer,
    isize => Integer,
    f32 => Number,
    f64 => Number,
}
