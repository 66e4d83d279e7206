//! The error of the JSON conversions: the fault and its place.

use std::fmt;

/// An error and its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    /// `line 1 column 7` in a text, `items[3].count` in a value; empty: the whole value.
    position: String,
    what: String,
}

/// Bytes of the client's data that an error may quote.
const MAX_QUOTED: usize = 200;
const MAX_QUOTED_KEY: usize = 40;

impl Fault {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { position: String::new(), what: shortened(what.into(), MAX_QUOTED) }
    }

    /// Adds the key of the object that contains the error.
    pub(super) fn in_key(mut self, key: &str) -> Self {
        self.step();
        self.position.insert_str(0, &shortened(key.to_owned(), MAX_QUOTED_KEY));
        self
    }

    /// Adds the index of the list item that contains the error.
    pub(super) fn in_item(mut self, position: usize) -> Self {
        self.step();
        self.position.insert_str(0, &format!("[{position}]"));
        self
    }

    fn step(&mut self) {
        if !self.position.is_empty() && !self.position.starts_with('[') {
            self.position.insert(0, '.');
        }
    }
}

fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str("...");
    }
    text
}

/// Displayed as `invalid type: string "a", expected u8 (at items[3].count)`.
impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.what)?;
        if self.position.is_empty() { Ok(()) } else { write!(to, " (at {})", self.position) }
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self::new(what.to_string())
    }
}

impl serde::ser::Error for Fault {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self::new(what.to_string())
    }
}

/// The error of a JSON parser.
impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        let position = format!("line {} column {}", error.line(), error.column());
        let what = error.to_string();
        let what = what.strip_suffix(&format!(" at {position}")).unwrap_or(&what);
        Self { position, ..Self::new(what) }
    }
}
