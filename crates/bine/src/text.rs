//! Text values that store up to 24 bytes inline, so that a name in a query costs no allocation.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

use bine_html::{Attribute, AttributeValue, Render, Writer};
use compact_str::CompactString;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// Text that a handler receives. Up to 24 bytes are stored inline; it dereferences to `&str`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text(CompactString);

impl Text {
    /// The text as a slice.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Shortens a name from a client for an error message: its first 40 bytes.
pub(crate) fn shortened(name: &str) -> Cow<'_, str> {
    const MOST: usize = 40;
    match name.len() {
        ..=MOST => Cow::Borrowed(name),
        _ => Cow::Owned(format!("{}..", &name[..name.floor_char_boundary(MOST)])),
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(CompactString::new(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0.into()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Render for Text {
    #[inline]
    fn render(&self, writer: &mut Writer<'_>) {
        writer.text(self);
    }
}

impl AttributeValue for Text {
    fn write_attribute(&self, attribute: Attribute, writer: &mut Writer<'_>) {
        self.as_str().write_attribute(attribute, writer);
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(TextReader)
    }
}

/// Deserializes text from a slice without an intermediate copy.
struct TextReader;

impl Visitor<'_> for TextReader {
    type Value = Text;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(text.into())
    }
}
