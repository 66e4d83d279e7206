//! Failures of tables that a script may catch, and that the server answers if it does not.

use std::fmt;

use bine_script::Value;

use crate::Error;
use crate::store::{self, CursorError, InvalidValue};

/// The reason why a function of tables has thrown a `TableError`.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum TableFailure {
    /// A change was rejected.
    Store(store::Error),
    /// There is no page at a cursor.
    Cursor(CursorError),
}

/// The name of the exceptions.
pub(super) const EXCEPTION: &str = "TableError";
/// The longest message of an exception, in bytes. The engine keeps more.
const MAX_MESSAGE_LENGTH: usize = 2048;

impl TableFailure {
    /// The message of the exception.
    pub(super) fn message(&self) -> String {
        let mut message = self.to_string();
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_LENGTH));
        message
    }

    /// The return value of a host function, so that the words throw the exception.
    pub(super) fn for_script(&self) -> Value {
        let text = |text: &str| Value::Text(text.to_owned());
        let column = |invalid: &InvalidValue| {
            Value::Object(vec![
                ("column".to_owned(), text(&invalid.column)),
                ("message".to_owned(), Value::Text(invalid.fault.to_string())),
            ])
        };
        let errors = match self {
            Self::Store(store::Error::InvalidValues(invalid)) => {
                invalid.iter().map(column).collect()
            }
            _ => Vec::new(),
        };
        Value::Object(vec![
            ("failure".to_owned(), text(self.reason())),
            ("message".to_owned(), Value::Text(self.message())),
            ("errors".to_owned(), Value::Array(errors)),
        ])
    }

    /// A word for the kind of the failure, for the script.
    fn reason(&self) -> &'static str {
        match self {
            Self::Store(store::Error::InvalidValues(invalid)) => {
                let is_duplicate = invalid.iter().all(|own| own.fault.is_duplicate());
                if is_duplicate { "duplicate" } else { "invalid" }
            }
            Self::Store(store::Error::NoSuchRow { .. }) => "missing",
            Self::Store(store::Error::StillReferenced { .. }) => "referenced",
            Self::Store(store::Error::Conflict) => "conflict",
            Self::Store(store::Error::TooLarge) => "large",
            Self::Store(_) => "unavailable",
            Self::Cursor(_) => "cursor",
        }
    }
}

/// The response to an exception that the script does not catch, as for the same error in Rust.
impl From<TableFailure> for Error {
    fn from(failure: TableFailure) -> Self {
        match failure {
            TableFailure::Store(error) => error.into(),
            TableFailure::Cursor(error) => error.into(),
        }
    }
}

impl fmt::Display for TableFailure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(to),
            Self::Cursor(error) => error.fmt(to),
        }
    }
}
