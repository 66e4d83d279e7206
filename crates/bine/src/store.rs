//! The API of tables: all of the store crate, with [`Text`] as a type of columns, and links between
//! pages of rows.

pub use bine_macros::{Enum, Table};
pub use bine_store::*;

use crate::Text;
pub use crate::pagination::PageLinks;

impl Field for Text {
    fn kind() -> Kind {
        Kind::Text
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }

    #[inline]
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.into()),
            _ => None,
        }
    }
}

impl KeyPart<Text> for &str {
    fn part(&self) -> Value<'_> {
        Value::Text(self)
    }
}
