//! Errors that a failed change returns to the program.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::id::RowId;
use crate::schema::InvalidValue;

/// The reason why a change failed. A failed change has no effect.
#[derive(Clone, PartialEq, Debug)]
pub enum Error {
    /// Columns do not accept their values, or other rows have the same values in a unique index.
    /// All reasons of the row are present, at least one.
    InvalidValues(Vec<InvalidValue>),
    /// A column refers to a row that does not exist.
    NoSuchRow {
        /// The table of the missing row.
        table: Cow<'static, str>,
        /// The missing row's id.
        id: RowId,
    },
    /// Other rows still refer to the row to be removed.
    StillReferenced {
        /// A table that holds such rows.
        by: Cow<'static, str>,
    },
    /// Concurrent commits changed the transaction's reads in every attempt.
    Conflict,
    /// The queue of commits that wait for the disk is full.
    Busy,
    /// A row or a commit exceeds its size limit.
    TooLarge,
    /// The disk is full. Reads continue; writes continue as soon as there is room.
    Full,
    /// The disk failed. The store is read-only until the program restarts.
    Broken(Arc<str>),
    /// This node is cut off from the others, for this reason: nothing was sent to them.
    CutOff(Arc<str>),
    /// This node was cut off, for this reason, before the others confirmed the change. It may have
    /// an effect.
    Unconfirmed(Arc<str>),
    /// The store is closed.
    Closed,
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidValues(wrong) => {
                for (place, invalid) in wrong.iter().enumerate() {
                    write!(to, "{}{invalid}", if place == 0 { "" } else { "; " })?;
                }
                Ok(())
            }
            Self::NoSuchRow { table, id } => write!(to, "there is no row {id} in `{table}`"),
            Self::StillReferenced { by } => write!(to, "rows of `{by}` name this row still"),
            Self::Conflict => to.write_str("others changed the same at the same time; try again"),
            Self::Busy => to.write_str("too many changes wait for the disk; try again"),
            Self::TooLarge => to.write_str("a row may have at most 8 MB, and a commit 64 MB"),
            Self::Full => to.write_str("the disk is full: nothing was written"),
            Self::Broken(reason) => {
                write!(to, "the disk failed ({reason}): nothing is written until a restart")
            }
            Self::CutOff(reason) => {
                write!(to, "this node is cut off from the others ({reason}): nothing was changed")
            }
            Self::Unconfirmed(reason) => write!(
                to,
                "this node was cut off from the others ({reason}) before they confirmed the change: it may have an effect"
            ),
            Self::Closed => to.write_str("the store is closed"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ValueFault;

    #[test]
    fn describes_each_error_to_the_user() {
        let missing = |column: &'static str, label: Option<&'static str>| InvalidValue {
            column: column.into(),
            label: label.map(Cow::Borrowed),
            fault: ValueFault::Missing,
        };
        let id = RowId::from_number(1);
        for (error, expected) in [
            (Error::InvalidValues(vec![missing("a", None)]), "`a` must be given"),
            (
                Error::InvalidValues(vec![missing("a", None), missing("b", Some("B"))]),
                "`a` must be given; B must be given",
            ),
            (
                Error::NoSuchRow { table: "t".into(), id },
                "there is no row 00000000-0000-0000-0000-000000000001 in `t`",
            ),
            (Error::StillReferenced { by: "t".into() }, "rows of `t` name this row still"),
            (
                Error::Broken("why".into()),
                "the disk failed (why): nothing is written until a restart",
            ),
            (
                Error::CutOff("why".into()),
                "this node is cut off from the others (why): nothing was changed",
            ),
            (
                Error::Unconfirmed("why".into()),
                "this node was cut off from the others (why) before they confirmed the change: it may have an effect",
            ),
            (Error::Closed, "the store is closed"),
        ] {
            assert_eq!(error.to_string(), expected);
        }
    }
}
