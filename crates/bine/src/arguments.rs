//! Decides what a handler's arguments are made of, and what a peer is told when one is wrong.

use std::fmt;
use std::ops::Deref;

use bine_html::{AttributeValue, Render, Writer};
use bine_http::query;
use bine_pipeline::Incoming;

use crate::text::Text;

/// A type that a handler may take as an argument.
pub trait Argument: Sized {
    /// Takes the argument called `name` out of a request.
    ///
    /// # Errors
    ///
    /// Why the request does not have it.
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection>;
}

/// A request while its handler's arguments are taken out of it.
pub struct Arguments<'a> {
    pub(crate) incoming: &'a Incoming<'a>,
    /// Some argument understands other methods than GET and HEAD.
    pub(crate) any_method: bool,
}

/// Why a request does not fit its handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// An argument is missing or wrong: the peer is told which and why.
    Bad {
        /// The argument.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The body is not here yet. Ask again with up to `limit` bytes of it.
    NeedsBody {
        /// The most bytes this handler takes.
        limit: u64,
    },
}

impl Rejection {
    /// Argument `name` is wrong for `reason`.
    pub fn bad(name: &'static str, reason: impl Into<String>) -> Self {
        Self::Bad { name, reason: reason.into() }
    }
}

/// An argument from the query: `name: Query<Text>` takes `TLUG` from `/hello?name=TLUG`.
///
/// The argument's own name is the query's. `Query<Option<T>>` may be missing; any other must be
/// there once at least, and the first one counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Query<T>(pub T);

impl<T: FromText> Argument for Query<T> {
    fn take(request: &mut Arguments<'_>, name: &'static str) -> Result<Self, Rejection> {
        let pairs = query::pairs(request.incoming.head.query().unwrap_or_default());
        for (key, value) in pairs {
            if key.is(name) {
                let text = value
                    .decode()
                    .map_err(|_| Rejection::bad(name, "is not encoded UTF-8 text"))?;
                let value = T::from_text(&text).map_err(|reason| Rejection::bad(name, reason))?;
                return Ok(Self(value));
            }
        }
        T::missing().map(Self).ok_or_else(|| Rejection::bad(name, "is missing from the query"))
    }
}

impl<T> Deref for Query<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Display> fmt::Display for Query<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Render> Render for Query<T> {
    #[inline]
    fn render(&self, writer: &mut Writer<'_>) {
        self.0.render(writer);
    }
}

impl<T: AttributeValue> AttributeValue for Query<T> {
    fn write_attribute(&self, opening: &'static str, writer: &mut Writer<'_>) {
        self.0.write_attribute(opening, writer);
    }
}

/// A value that is written as text in a query.
pub trait FromText: Sized {
    /// Understands `text`.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as the end of a sentence that begins with the argument's name.
    fn from_text(text: &str) -> Result<Self, String>;

    /// What stands for a missing value, if one may be missing.
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
    usize: "a whole number that is not negative",
    i8: "a whole number from -128 to 127",
    i16: "a whole number",
    i32: "a whole number",
    i64: "a whole number",
    isize: "a whole number",
    f32: "a number",
    f64: "a number",
}
