//! Parsing of single values from text, and the error messages for clients.

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

/// A checkbox sends `on`; programs send `true` or `1`.
impl FromText for bool {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => Err(format!("must be true or false, not `{text}`")),
        }
    }
}

impl<T: FromText> FromText for Option<T> {
    fn from_text(text: &str) -> Result<Self, String> {
        T::from_text(text).map(Some)
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
