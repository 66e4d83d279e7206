//! Parsing of single values from text, and the error messages for clients.

use bine_store::{Id, Time};

use crate::text::Text;

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
    /// Returns the reason, as the end of a sentence that begins with the argument's name.
    fn from_text(text: &str) -> Result<Self, String>;

    /// The value of a missing argument, if the argument is optional.
    fn missing() -> Option<Self> {
        None
    }
}

impl FromText for Text {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }
}

impl FromText for String {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl FromText for char {
    fn from_text(text: &str) -> Result<Self, String> {
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Ok(letter),
            _ => Err("must be one character".to_owned()),
        }
    }
}

/// A row's id. A path without a valid id is answered 404, like every path whose parameter cannot be
/// read.
impl<T> FromText for Id<T> {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("must be an id, not `{text}`"))
    }
}

impl FromText for Time {
    fn from_text(text: &str) -> Result<Self, String> {
        let words = "must be a moment in UTC, like 2026-11-21T09:30:00Z";
        text.parse().map_err(|_| format!("{words}, not `{text}`"))
    }
}

/// A checked checkbox sends `on`, an unchecked one nothing; programs send `true` or `1`.
impl FromText for bool {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => Err(format!("must be true or false, not `{text}`")),
        }
    }

    fn missing() -> Option<Self> {
        Some(false)
    }
}

/// A browser sends an empty field of a form as an empty text, which is no value.
impl<T: FromText> FromText for Option<T> {
    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::from_text(text).map(Some) }
    }

    fn missing() -> Option<Self> {
        Some(None)
    }
}

macro_rules! numbers {
    ($($number:ty: $words:literal,)+) => {$(
        impl FromText for $number {
            fn from_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| format!(concat!("must be ", $words, ", not `{}`"), text))
            }
        }
    )+};
}

numbers! {
    u8: "a whole number from 0 to 255",
    u16: "a whole number from 0 to 65535",
    u32: "a whole number that is not negative",
    u64: "a whole number that is not negative",
    u128: "a whole number that is not negative",
    usize: "a whole number that is not negative",
    i8: "a whole number from -128 to 127",
    i16: "a whole number",
    i32: "a whole number",
    i64: "a whole number",
    i128: "a whole number",
    isize: "a whole number",
    f32: "a number",
    f64: "a number",
}
